//! The files that a sandbox receives: what git would commit, or everything, and what the configuration adds or drops.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

use super::path::{path, utf8};
use super::walk::{Kind, Walk, depth, fixed_start};
use super::{CatalogError, git};
use crate::config::UploadConfig;
use crate::glob::{InvalidGlob, PathGlobs, path_glob};

const INCLUDE: &str = "attempt.upload.include";
const EXCLUDE: &str = "attempt.upload.exclude";

/// Files and symbolic links below `root`, relative to it, sorted.
///
/// In a git work tree, unless `upload.git` is off: tracked files, and untracked ones that are not ignored, also in
/// submodules and in repositories that lie in this one; where git ignores the root itself, and elsewhere, every file.
/// `.git` is never among them, nor what lies in one of `leave_out` (paths from `root`, or absolute). A glob of
/// `include` or `exclude` that matches a directory means all that is in it; `exclude` wins.
///
/// # Errors
/// A glob that is none, a repository that git cannot list, a file whose name is not UTF-8, `root` in `leave_out`.
pub fn workspace_files(
    root: &Utf8Path,
    upload: &UploadConfig,
    leave_out: &[Utf8PathBuf],
) -> Result<Vec<Utf8PathBuf>, CatalogError> {
    let workspace = Files {
        root,
        exclude: PathGlobs::new(&upload.exclude).map_err(glob_error(EXCLUDE))?,
        leave_out: below(root, leave_out)?,
    };
    let mut paths = BTreeSet::new();
    if !(upload.git && in_work_tree(root)? && workspace.listed(Path::new(""), &mut paths)?) {
        workspace.walked(Path::new(""), &mut paths)?;
    }
    for text in &upload.include {
        workspace.included(text, &mut paths)?;
    }
    let files = paths.into_iter().map(utf8).collect::<Result<BTreeSet<_>, _>>()?;
    Ok(files.into_iter().collect())
}

/// Where git is not installed, only a directory without any sign of it is known to be no work tree.
fn in_work_tree(root: &Utf8Path) -> Result<bool, CatalogError> {
    match git::in_work_tree(root, "set `attempt.upload.git` to `false`") {
        Err(CatalogError::NoGit { .. }) if !real(root).ancestors().any(|dir| dir.join(".git").exists()) => {
            Ok(false)
        }
        known => known,
    }
}

struct Files<'a> {
    root: &'a Utf8Path,
    exclude: PathGlobs,
    leave_out: Vec<Utf8PathBuf>,
}

impl Files<'_> {
    /// Adds what git lists in the repository at `directory`; false if git ignores the directory itself.
    fn listed(&self, directory: &Path, paths: &mut BTreeSet<PathBuf>) -> Result<bool, CatalogError> {
        let at = utf8(self.root.as_std_path().join(directory))?;
        let args = [
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
            "--deduplicate",
        ];
        let output = git::checked(&at, &args, "list the files of the workspace")?;
        if output.is_empty() && git::says_yes(&at, &["check-ignore", "--quiet", "."]) {
            return Ok(false);
        }
        for name in output.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let name = directory.join(path(name.strip_suffix(b"/").unwrap_or(name)));
            if self.drops(&name) {
                continue;
            }
            // A file that was deleted and is still tracked, or is left out of a sparse checkout, is not there.
            let Ok(metadata) = fs_err::symlink_metadata(self.root.as_std_path().join(&name)) else {
                continue;
            };
            if metadata.is_file() || metadata.is_symlink() {
                paths.insert(name);
            } else if metadata.is_dir() {
                self.nested(&name, paths)?;
            }
        }
        Ok(true)
    }

    /// Adds what a submodule, or a repository within this one, holds: git names it and no file of it.
    fn nested(&self, directory: &Path, paths: &mut BTreeSet<PathBuf>) -> Result<(), CatalogError> {
        let repository = self.root.as_std_path().join(directory).join(".git").exists();
        if !(repository && self.listed(directory, paths)?) {
            self.walked(directory, paths)?;
        }
        Ok(())
    }

    /// Adds every file below `directory`.
    fn walked(&self, directory: &Path, paths: &mut BTreeSet<PathBuf>) -> Result<(), CatalogError> {
        let walk = Walk {
            root: self.root,
            follow: false,
            deepest: usize::MAX,
            enter: &|directory| !self.drops(directory),
        };
        walk.visit(directory, &mut |path, kind| {
            if kind != Kind::Directory && !self.drops(&path) {
                paths.insert(path);
            }
            Ok(())
        })
    }

    /// Adds every file that the glob matches, and every one in a directory that it matches.
    fn included(&self, text: &str, paths: &mut BTreeSet<PathBuf>) -> Result<(), CatalogError> {
        let glob = path_glob(text.trim_end_matches('/')).map_err(glob_error(INCLUDE))?;
        let matcher = glob.compile_matcher();
        let directories = RefCell::new(Vec::new());
        let walk = Walk {
            root: self.root,
            follow: false,
            deepest: depth(glob.glob()),
            enter: &|directory| {
                let whole = matcher.is_match(directory);
                if whole && !self.drops(directory) {
                    directories.borrow_mut().push(directory.to_owned());
                }
                !whole && !self.drops(directory)
            },
        };
        walk.visit(&fixed_start(glob.glob()), &mut |path, kind| {
            if kind != Kind::Directory && matcher.is_match(&path) && !self.drops(&path) {
                paths.insert(path);
            }
            Ok(())
        })?;
        for directory in directories.into_inner() {
            self.walked(&directory, paths)?;
        }
        Ok(())
    }

    /// Whether the path, or a directory above it, is never part of the workspace.
    fn drops(&self, path: &Path) -> bool {
        path.file_name().is_some_and(|name| name == ".git")
            || self.leave_out.iter().any(|left_out| path.starts_with(left_out))
            || self.exclude.match_within(path)
    }
}

fn glob_error(key: &'static str) -> impl Fn(InvalidGlob) -> CatalogError {
    move |source| CatalogError::Glob { key, source }
}

/// Those of `paths` that lie below the root, relative to it: as they are written, and as they are without links.
fn below(root: &Utf8Path, paths: &[Utf8PathBuf]) -> Result<Vec<Utf8PathBuf>, CatalogError> {
    let written_root = normal(root);
    let real_root = real(&written_root);
    let mut relative = Vec::new();
    for path in paths {
        let written = normal(&root.join(path));
        let real = real(&written);
        for (root, path) in [(&written_root, &written), (&real_root, &real)] {
            match path.strip_prefix(root) {
                Ok(below) if below.as_str().is_empty() => {
                    return Err(CatalogError::OutputIsRoot(path.clone()));
                }
                Ok(below) => relative.push(below.to_owned()),
                Err(_) => {}
            }
        }
    }
    Ok(relative)
}

/// The path without `.` and `..`.
fn normal(path: &Utf8Path) -> Utf8PathBuf {
    let mut normal = Utf8PathBuf::new();
    for part in path.components() {
        match part {
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir if normal.file_name().is_some() => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

/// The path without links, as far as it is there.
fn real(path: &Utf8Path) -> Utf8PathBuf {
    path.ancestors()
        .find_map(|there| Some((there, there.canonicalize_utf8().ok()?)))
        .and_then(|(there, real)| Some(real.join(path.strip_prefix(there).ok()?)))
        .unwrap_or_else(|| path.to_owned())
}
