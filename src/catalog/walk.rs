//! Walks a directory tree in the order of names, for globs and for workspaces outside of git.

use std::fs::FileType;
use std::path::{Path, PathBuf};

use camino::Utf8Path;

use super::CatalogError;
use crate::glob::is_pattern;

/// What lies somewhere in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A directory, or a link to one that is followed.
    Directory,
    /// A file, or a link to one that is followed.
    File,
    /// A symbolic link that is not followed.
    Link,
}

/// How to walk.
pub(super) struct Walk<'a> {
    /// Paths are relative to it.
    pub(super) root: &'a Utf8Path,
    /// Whether links are followed to what lies below the root, never around in a circle; others are passed over.
    pub(super) follow: bool,
    /// How many parts a path may have.
    pub(super) deepest: usize,
    /// Whether to go into the directory at a relative path.
    pub(super) enter: &'a dyn Fn(&Path) -> bool,
}

impl Walk<'_> {
    /// Tells `found` of everything below `from`, which may not exist. Devices, pipes and sockets are passed over.
    ///
    /// # Errors
    /// A directory that cannot be read, or an error of `found`.
    pub(super) fn visit(
        &self,
        from: &Path,
        found: &mut dyn FnMut(PathBuf, Kind) -> Result<(), CatalogError>,
    ) -> Result<(), CatalogError> {
        let root = self.root.canonicalize().map_err(CatalogError::Read)?;
        let Ok(real) = root.join(from).canonicalize() else {
            return Ok(());
        };
        let linked = real != root.join(from);
        if !real.is_dir() || !real.starts_with(&root) || linked && !self.follow {
            return Ok(());
        }
        let depth = from.components().count();
        self.directory(&root, from, &mut vec![real], depth, found)
    }

    /// `above` holds the real paths of the directories that were gone through, the last one's included.
    fn directory(
        &self,
        root: &Path,
        directory: &Path,
        above: &mut Vec<PathBuf>,
        depth: usize,
        found: &mut dyn FnMut(PathBuf, Kind) -> Result<(), CatalogError>,
    ) -> Result<(), CatalogError> {
        let Some(here) = above.last().cloned().filter(|_| depth < self.deepest) else {
            return Ok(());
        };
        let entries = fs_err::read_dir(&here).map_err(CatalogError::Read)?;
        let mut entries = entries
            .map(|entry| entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?))))
            .collect::<Result<Vec<_>, _>>()
            .map_err(CatalogError::Read)?;
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (name, kind) in entries {
            let path = directory.join(&name);
            let Some((kind, real)) = self.kind(root, here.join(&name), kind) else {
                continue;
            };
            if kind == Kind::Directory && !above.contains(&real) && (self.enter)(&path) {
                found(path.clone(), kind)?;
                above.push(real);
                self.directory(root, &path, above, depth + 1, found)?;
                above.pop();
            } else if kind != Kind::Directory {
                found(path, kind)?;
            }
        }
        Ok(())
    }

    fn kind(&self, root: &Path, path: PathBuf, kind: FileType) -> Option<(Kind, PathBuf)> {
        if kind.is_dir() {
            Some((Kind::Directory, path))
        } else if kind.is_file() {
            Some((Kind::File, path))
        } else if kind.is_symlink() && !self.follow {
            Some((Kind::Link, path))
        } else if kind.is_symlink() {
            let real = path.canonicalize().ok().filter(|real| real.starts_with(root))?;
            let kind = if real.is_dir() {
                Kind::Directory
            } else {
                Kind::File
            };
            Some((kind, real)).filter(|(kind, real)| *kind == Kind::Directory || real.is_file())
        } else {
            None
        }
    }
}

/// The directories that a glob names before its first wildcard.
pub(super) fn fixed_start(pattern: &str) -> PathBuf {
    let parts: Vec<&str> = pattern.split('/').collect();
    let directories = &parts[..parts.len() - 1];
    directories
        .iter()
        .take_while(|part| !is_pattern(part))
        .filter(|part| !part.is_empty() && **part != ".")
        .fold(PathBuf::new(), |path, part| path.join(Path::new(part)))
}

/// The most parts that a path which matches can have.
pub(super) fn depth(pattern: &str) -> usize {
    if pattern.contains("**") {
        usize::MAX
    } else {
        1 + pattern.matches('/').count()
    }
}
