//! Removes what a run left behind that was killed: directories, mounts, and processes that outlived their supervisor.

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};

use super::blocking;
use super::directory::{RunDirectory, remove_tree};
use crate::model::{LeftSandbox, Whereabouts, file_name};
use crate::sandbox::{Reaped, Reaper, SandboxError};

/// Deletes local sandboxes of runs, from any process.
#[derive(Clone, Debug)]
pub struct LocalReaper {
    temporary: Utf8PathBuf,
}

impl LocalReaper {
    /// For runs whose directory is below `temporary`.
    pub fn new(temporary: &Utf8Path) -> Self {
        Self {
            temporary: temporary.to_owned(),
        }
    }
}

#[async_trait]
impl Reaper for LocalReaper {
    fn whereabouts(&self) -> Whereabouts {
        Whereabouts::Local {
            temporary: self.temporary.clone(),
        }
    }

    async fn reap(&self, run_id: &str, left: &[LeftSandbox]) -> Result<Reaped, SandboxError> {
        // Both were read from a file, and become paths.
        if let Some(odd) = std::iter::once(run_id)
            .chain(left.iter().map(|sandbox| sandbox.name.as_str()))
            .find(|name| name.is_empty() || file_name(name) != **name)
        {
            let message = format!(
                "cannot delete the sandbox `{}`: it is none of ours",
                odd.escape_debug()
            );
            return Err(SandboxError::new(message));
        }
        let directory = RunDirectory::new(&self.temporary, run_id);
        let sandboxes: Vec<Utf8PathBuf> = left
            .iter()
            .map(|sandbox| directory.path().join(&sandbox.name))
            .collect();
        blocking(move || {
            #[cfg(target_os = "linux")]
            crate::sandbox::supervisor::kill_marked(format!("{}/", directory.path()).as_bytes());
            let cannot = |path: &Utf8Path, error| {
                SandboxError::io(format!("cannot remove the directory `{path}`"), error)
            };
            let there = sandboxes.iter().filter(|sandbox| sandbox.exists());
            let removed = there.map(|sandbox| match remove(sandbox) {
                Ok(()) => Ok(true),
                Err(error) => Err(cannot(sandbox, error)),
            });
            let reaped: Reaped = removed.collect();
            if reaped.failed.is_empty() {
                let removed = directory.remove();
                removed.map_err(|error| cannot(directory.path(), error))?;
            }
            Ok(reaped)
        })
        .await
    }
}

fn remove(sandbox: &Utf8Path) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    super::overlay::unmount_at(&sandbox.join("workspace"))?;
    remove_tree(sandbox)
}
