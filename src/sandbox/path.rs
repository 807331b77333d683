//! Paths of a workspace, as suites write them. Knows no engine.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

use super::SandboxError;

/// The path without `.`, if it stays below where it starts.
///
/// # Errors
/// It is absolute, or has a `..`.
pub(super) fn inside(path: &Utf8Path) -> Result<Utf8PathBuf, SandboxError> {
    let mut relative = Utf8PathBuf::new();
    for part in path.components() {
        match part {
            Utf8Component::Normal(part) => relative.push(part),
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir | Utf8Component::RootDir | Utf8Component::Prefix(_) => {
                return Err(SandboxError::new(format!(
                    "cannot use `{path}`: it leads out of the workspace"
                )));
            }
        }
    }
    Ok(relative)
}
