//! Paths as text, and as git prints them.

use std::path::PathBuf;

use camino::Utf8PathBuf;

use super::CatalogError;

/// The path as text.
pub(super) fn utf8(path: PathBuf) -> Result<Utf8PathBuf, CatalogError> {
    Utf8PathBuf::from_path_buf(path)
        .map_err(|path| CatalogError::FileName(path.to_string_lossy().into_owned()))
}

/// A path as git prints it.
pub(super) fn path(bytes: &[u8]) -> PathBuf {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
    }
    #[cfg(not(unix))]
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}
