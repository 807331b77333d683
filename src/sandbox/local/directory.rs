//! Directories of one run's sandboxes: made private, and removed whatever an attempt did to them.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};

/// `<temporary directory>/evalwave-<run id>`, which comes into being with its first sandbox.
#[derive(Debug)]
pub(in crate::sandbox) struct RunDirectory {
    path: Utf8PathBuf,
}

impl RunDirectory {
    /// The run's directory below `temporary`. Nothing is created yet.
    pub(in crate::sandbox) fn new(temporary: &Utf8Path, run_id: &str) -> Self {
        Self {
            path: temporary.join(format!("evalwave-{run_id}")),
        }
    }

    /// Where it is.
    pub(in crate::sandbox) fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// A sandbox's directory with `workspace`, `home` and `tmp` in it, all of them this user's alone.
    pub(super) fn create_sandbox(&self, name: &str) -> io::Result<Utf8PathBuf> {
        let sandbox = self.path.join(name);
        match create_private(&sandbox) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.create()?;
                create_private(&sandbox)?;
            }
            created => created?,
        }
        for part in ["workspace", "home", "tmp"] {
            create_private(&sandbox.join(part))?;
        }
        Ok(sandbox)
    }

    /// Creates the run's directory. One that is there already has to be this user's: the name can be guessed, and
    /// temporary directories are everybody's.
    pub(in crate::sandbox) fn create(&self) -> io::Result<()> {
        match create_private(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_own_directory(&self.path)? => {
                Ok(())
            }
            created => created,
        }
    }

    /// Removes it unless something is in it.
    pub(super) fn remove_if_empty(&self) {
        let _ = fs_err::remove_dir(&self.path);
    }

    /// Removes it with all that is left in it.
    pub(in crate::sandbox) fn remove(&self) -> io::Result<()> {
        remove_tree(&self.path)
    }
}

/// Removes a directory tree, also where an attempt took the permission to do so away. One that is not there is no
/// failure.
pub(super) fn remove_tree(path: &Utf8Path) -> io::Result<()> {
    let mut outcome = Ok(());
    for _ in 0..3 {
        outcome = match fs_err::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        match &outcome {
            Ok(()) => break,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => make_writable(path),
            // Something was still writing: what it added is met by the next round.
            Err(_) => {}
        }
    }
    outcome
}

#[cfg(unix)]
fn create_private(path: &Utf8Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;

    let created = std::fs::DirBuilder::new().mode(0o700).create(path);
    created.map_err(|error| io::Error::new(error.kind(), format!("cannot create `{path}`: {error}")))
}

#[cfg(not(unix))]
fn create_private(path: &Utf8Path) -> io::Result<()> {
    fs_err::create_dir(path)
}

#[cfg(unix)]
fn is_own_directory(path: &Utf8Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;

    let metadata = fs_err::symlink_metadata(path)?;
    Ok(metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw())
}

#[cfg(not(unix))]
fn is_own_directory(path: &Utf8Path) -> io::Result<bool> {
    Ok(fs_err::symlink_metadata(path)?.is_dir())
}

/// Gives this user every right on every directory of a tree; what cannot be changed is met again by the removal.
#[cfg(unix)]
fn make_writable(path: &Utf8Path) {
    use std::os::unix::fs::PermissionsExt as _;

    let mut directories = vec![path.to_path_buf().into_std_path_buf()];
    while let Some(directory) = directories.pop() {
        let _ = fs_err::set_permissions(&directory, std::fs::Permissions::from_mode(0o700));
        for entry in fs_err::read_dir(&directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                directories.push(entry.path());
            }
        }
    }
}

/// Windows refuses to remove read-only files.
#[cfg(not(unix))]
fn make_writable(path: &Utf8Path) {
    let mut directories = vec![path.to_path_buf().into_std_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in fs_err::read_dir(&directory).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                directories.push(entry.path());
            } else if metadata.permissions().readonly() {
                let mut permissions = metadata.permissions();
                permissions.set_readonly(false);
                let _ = fs_err::set_permissions(entry.path(), permissions);
            }
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use camino::Utf8Path;

    use super::{RunDirectory, make_writable, remove_tree};

    #[test]
    fn every_part_of_a_sandbox_is_private() {
        let temporary = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(Utf8Path::from_path(temporary.path()).unwrap(), "r1");
        let sandbox = run.create_sandbox("a").unwrap();
        for path in [
            run.path(),
            &sandbox,
            &sandbox.join("workspace"),
            &sandbox.join("home"),
            &sandbox.join("tmp"),
        ] {
            assert_eq!(
                fs_err::metadata(path).unwrap().permissions().mode() & 0o777,
                0o700,
                "{path}"
            );
        }
        assert!(run.create_sandbox("a").is_err(), "a name is used once");
    }

    #[test]
    fn a_link_in_the_place_of_the_run_directory_is_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(temporary.path()).unwrap();
        fs_err::create_dir(root.join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(root.join("elsewhere"), root.join("evalwave-r1")).unwrap();
        assert!(RunDirectory::new(root, "r1").create().is_err());
    }

    #[test]
    fn directories_without_permissions_are_removed() {
        let temporary = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(temporary.path()).unwrap();
        let inner = root.join("tree/outer/inner");
        fs_err::create_dir_all(&inner).unwrap();
        fs_err::write(inner.join("file"), "x").unwrap();
        for path in [inner.as_path(), &root.join("tree/outer")] {
            fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o000)).unwrap();
        }
        // Root may remove it as it is; this is what anybody else needs.
        make_writable(&root.join("tree"));
        assert_eq!(
            fs_err::metadata(&inner).unwrap().permissions().mode() & 0o777,
            0o700
        );
        remove_tree(&root.join("tree")).unwrap();
        assert!(!root.join("tree").exists());
        remove_tree(&root.join("tree")).unwrap();
    }
}
