//! Files that are passed to the user's commands: this user's alone, and gone when they have been used.

use std::io::{self, Write as _};

use camino::{Utf8Path, Utf8PathBuf};

use crate::sandbox::local::RunDirectory;

/// A file, or the place for one, that is deleted when it is dropped.
#[derive(Debug)]
pub(super) struct PrivateFile(Utf8PathBuf);

impl PrivateFile {
    /// A path in the run's directory, which is made where it is not there.
    pub(super) fn reserve(directory: &RunDirectory, name: &str) -> io::Result<Self> {
        directory.create()?;
        Ok(Self(directory.path().join(name)))
    }

    /// Writes the file.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        self.create()?.write_all(bytes)
    }

    /// Makes the file, which must not be there.
    pub(super) fn create(&self) -> io::Result<fs_err::File> {
        let mut options = fs_err::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        fs_err::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&self.0)
    }

    pub(super) fn path(&self) -> &Utf8Path {
        &self.0
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        // The directory goes with the run, and what is in it.
        let _ = fs_err::remove_file(&self.0);
    }
}
