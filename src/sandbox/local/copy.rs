//! Copies a workspace: as clones that share their blocks where the file system can, never as hard links, which would
//! carry a change back to the source.

use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use camino::{Utf8Path, Utf8PathBuf};

use crate::sandbox::{SandboxError, Workspace};

/// Copies with what they have learnt about the file systems between them.
#[derive(Debug)]
pub(super) struct Copier {
    links: Vec<Utf8PathBuf>,
    clones: AtomicBool,
}

impl Copier {
    /// `links` are paths of the workspace that are linked to the source instead of being copied.
    pub(super) fn new(links: Vec<Utf8PathBuf>) -> Self {
        Self {
            links,
            clones: AtomicBool::new(cfg!(target_os = "linux")),
        }
    }

    /// Fills the empty directory `into`. Stops early, with an error, once `stopped` is set.
    ///
    /// A linked path that the source lacks is left out: `attempt.setup` may be what makes it.
    pub(super) fn copy(
        &self,
        workspace: &Workspace,
        into: &Utf8Path,
        stopped: &AtomicBool,
    ) -> Result<(), SandboxError> {
        let mut made = HashSet::from([Utf8Path::new("")]);
        for file in workspace.files.iter() {
            if stopped.load(Ordering::Relaxed) {
                return Err(SandboxError::new(
                    "cannot copy the workspace: the sandbox was stopped",
                ));
            }
            if self.links.iter().any(|link| file.starts_with(link)) {
                continue;
            }
            make_parents(file, into, &mut made)
                .and_then(|()| self.copy_one(&workspace.root.join(file), &into.join(file)))
                .map_err(|error| SandboxError::io(format!("cannot copy `{file}` into the sandbox"), error))?;
        }
        for link in &self.links {
            let source = workspace.root.join(link);
            if source.symlink_metadata().is_ok() {
                make_parents(link, into, &mut made)
                    .and_then(|()| symlink(source.as_std_path(), &into.join(link)))
                    .map_err(|error| {
                        SandboxError::io(format!("cannot link `{link}` into the sandbox"), error)
                    })?;
            }
        }
        Ok(())
    }

    fn copy_one(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
        let metadata = fs_err::symlink_metadata(from)?;
        if metadata.is_symlink() {
            return symlink(&fs_err::read_link(from)?, to);
        }
        if metadata.is_dir() {
            // A submodule that is not checked out is listed as one path.
            return fs_err::create_dir(to);
        }
        self.copy_file(from, to)
    }

    #[cfg(unix)]
    fn copy_file(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
        use fs_err::os::unix::fs::OpenOptionsExt as _;
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

        let (source, _) = fs_err::File::open(from)?.into_parts();
        let metadata = source.metadata()?;
        let mode = metadata.permissions().mode() & 0o777;
        let (target, _) = fs_err::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(to)?
            .into_parts();
        if !self.clone_blocks(&source, &target) {
            // Both are plain files, for which this is `copy_file_range`.
            io::copy(&mut &source, &mut &target)?;
        }
        if target.metadata()?.permissions().mode() & 0o777 != mode {
            target.set_permissions(std::fs::Permissions::from_mode(mode))?;
        }
        // Tools that compare times of files (make) must not see everything as new.
        let modified = rustix::fs::Timespec {
            tv_sec: metadata.mtime(),
            tv_nsec: metadata.mtime_nsec() as _,
        };
        let times = rustix::fs::Timestamps {
            last_access: modified,
            last_modification: modified,
        };
        Ok(rustix::fs::futimens(&target, &times)?)
    }

    #[cfg(not(unix))]
    fn copy_file(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
        fs_err::copy(from, to).map(|_| ())
    }

    /// Whether the target shares the source's blocks now. Once that has failed it is not tried again: a workspace lies
    /// on one file system, and so do the sandboxes.
    #[cfg(target_os = "linux")]
    fn clone_blocks(&self, source: &std::fs::File, target: &std::fs::File) -> bool {
        if !self.clones.load(Ordering::Relaxed) {
            return false;
        }
        let cloned = rustix::fs::ioctl_ficlone(target, source).is_ok();
        if !cloned {
            self.clones.store(false, Ordering::Relaxed);
        }
        cloned
    }

    #[cfg(all(unix, not(target_os = "linux")))]
    fn clone_blocks(&self, _source: &std::fs::File, _target: &std::fs::File) -> bool {
        false
    }
}

/// Creates the directories above `file`, each one once.
fn make_parents<'a>(file: &'a Utf8Path, into: &Utf8Path, made: &mut HashSet<&'a Utf8Path>) -> io::Result<()> {
    let Some(parent) = file.parent() else {
        return Ok(());
    };
    if made.contains(parent) {
        return Ok(());
    }
    make_parents(parent, into, made)?;
    fs_err::create_dir(into.join(parent))?;
    made.insert(parent);
    Ok(())
}

#[cfg(unix)]
fn symlink(target: &std::path::Path, at: &Utf8Path) -> io::Result<()> {
    fs_err::os::unix::fs::symlink(target, at)
}

/// Windows tells links to files from links to directories.
#[cfg(windows)]
fn symlink(target: &std::path::Path, at: &Utf8Path) -> io::Result<()> {
    let seen_from_link = at.as_std_path().parent().map(|parent| parent.join(target));
    if seen_from_link.is_some_and(|path| path.is_dir()) {
        fs_err::os::windows::fs::symlink_dir(target, at)
    } else {
        fs_err::os::windows::fs::symlink_file(target, at)
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::atomic::AtomicBool;

    use camino::{Utf8Path, Utf8PathBuf};

    use super::Copier;
    use crate::sandbox::Workspace;

    fn source() -> (tempfile::TempDir, Workspace, Utf8PathBuf) {
        let temporary = tempfile::tempdir().unwrap();
        let base = Utf8PathBuf::from_path_buf(temporary.path().to_path_buf()).unwrap();
        let root = base.join("source");
        let into = base.join("into");
        fs_err::create_dir_all(root.join("a/b")).unwrap();
        fs_err::create_dir_all(root.join("modules/left")).unwrap();
        fs_err::create_dir(&into).unwrap();
        fs_err::write(root.join("a/b/run.sh"), "#!/bin/sh\n").unwrap();
        fs_err::set_permissions(root.join("a/b/run.sh"), std::fs::Permissions::from_mode(0o751)).unwrap();
        fs_err::write(root.join("modules/left/pad.js"), "pad").unwrap();
        fs_err::write(root.join("ignored"), "no").unwrap();
        std::os::unix::fs::symlink("../nowhere", root.join("a/link")).unwrap();
        let files = ["a/b/run.sh", "a/link", "modules/left/pad.js"];
        let files = files.iter().map(Utf8PathBuf::from).collect();
        (temporary, Workspace { root, files }, into)
    }

    #[test]
    fn modes_times_and_links_are_kept_and_only_what_is_listed_is_copied() {
        let (_temporary, workspace, into) = source();
        let script = workspace.root.join("a/b/run.sh");
        let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        let file = std::fs::OpenOptions::new().write(true).open(&script).unwrap();
        file.set_modified(old).unwrap();
        Copier::new(Vec::new())
            .copy(&workspace, &into, &AtomicBool::new(false))
            .unwrap();
        let copied = fs_err::metadata(into.join("a/b/run.sh")).unwrap();
        assert_eq!(copied.permissions().mode() & 0o777, 0o751);
        assert_eq!(copied.modified().unwrap(), old);
        assert_eq!(
            fs_err::read_link(into.join("a/link")).unwrap(),
            Utf8Path::new("../nowhere")
        );
        assert_eq!(
            fs_err::read_to_string(into.join("modules/left/pad.js")).unwrap(),
            "pad"
        );
        assert!(!into.join("ignored").exists());
    }

    #[test]
    fn linked_paths_lead_to_the_source() {
        let (_temporary, workspace, into) = source();
        let copier = Copier::new(vec!["modules".into(), "missing".into()]);
        copier.copy(&workspace, &into, &AtomicBool::new(false)).unwrap();
        assert_eq!(
            fs_err::read_link(into.join("modules")).unwrap(),
            workspace.root.join("modules")
        );
        assert!(into.join("missing").symlink_metadata().is_err());
    }

    #[test]
    fn a_file_that_vanished_is_named() {
        let (_temporary, mut workspace, into) = source();
        workspace.files = ["gone".into()].into();
        let copied = Copier::new(Vec::new()).copy(&workspace, &into, &AtomicBool::new(false));
        assert_eq!(
            copied.unwrap_err().to_string(),
            "cannot copy `gone` into the sandbox"
        );
    }

    #[test]
    fn a_stopped_copy_ends_early() {
        let (_temporary, workspace, into) = source();
        assert!(
            Copier::new(Vec::new())
                .copy(&workspace, &into, &AtomicBool::new(true))
                .is_err()
        );
        assert_eq!(fs_err::read_dir(&into).unwrap().count(), 0);
    }
}
