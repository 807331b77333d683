//! How a sandbox's workspace comes into being and goes: one of the four modes, chosen once for a run.

use std::io;
use std::sync::atomic::AtomicBool;

use camino::{Utf8Path, Utf8PathBuf};

use super::copy::Copier;
use super::directory::RunDirectory;
#[cfg(target_os = "linux")]
use super::overlay::Overlay;
use super::worktree::Worktrees;
use crate::config::{LocalConfig, WorkspaceMode};
use crate::sandbox::{SandboxError, Workspace};

/// A mode with what it keeps for the run.
#[derive(Debug)]
pub(super) enum Mode {
    Copy(Copier),
    #[cfg(target_os = "linux")]
    Overlay(Copier, Overlay),
    Worktree(Worktrees),
    Shared,
}

impl Mode {
    /// Checks that the mode is possible here. `environment` is for git.
    pub(super) fn new(
        config: &LocalConfig,
        root: &Utf8Path,
        run: &RunDirectory,
        environment: Vec<(String, String)>,
    ) -> Result<Self, SandboxError> {
        let copier = || Copier::new(config.link.clone());
        Ok(match config.workspace {
            WorkspaceMode::Copy => Self::Copy(copier()),
            #[cfg(target_os = "linux")]
            WorkspaceMode::Overlay => Self::Overlay(copier(), Overlay::probe(run)?),
            #[cfg(not(target_os = "linux"))]
            WorkspaceMode::Overlay => {
                let _ = run;
                return Err(SandboxError::new(
                    "cannot mount overlays on this system\nuse `workspace: copy`",
                ));
            }
            WorkspaceMode::Worktree => Self::Worktree(Worktrees::new(root, environment)?),
            WorkspaceMode::Shared => Self::Shared,
        })
    }

    /// Brings the workspace into a sandbox's directory. Returns where commands run.
    pub(super) fn fill(
        &self,
        run: &RunDirectory,
        workspace: &Workspace,
        sandbox: &Utf8Path,
        stopped: &AtomicBool,
    ) -> Result<Utf8PathBuf, SandboxError> {
        let own = sandbox.join("workspace");
        match self {
            Self::Copy(copier) => copier.copy(workspace, &own, stopped)?,
            #[cfg(target_os = "linux")]
            Self::Overlay(copier, overlay) => overlay.fill(run, copier, workspace, sandbox)?,
            Self::Worktree(worktrees) => return worktrees.fill(&own),
            Self::Shared => return Ok(workspace.root.clone()),
        }
        #[cfg(not(target_os = "linux"))]
        let _ = run;
        Ok(own)
    }

    /// Takes back what deleting the sandbox's directory would not.
    pub(super) fn empty(&self, sandbox: &Utf8Path) -> io::Result<()> {
        match self {
            Self::Copy(_) | Self::Shared => Ok(()),
            #[cfg(target_os = "linux")]
            Self::Overlay(..) => Overlay::empty(sandbox),
            Self::Worktree(worktrees) => worktrees.empty(&sandbox.join("workspace")),
        }
    }

    /// A directory outside the sandbox that commands write to in this mode.
    pub(super) fn shared_directory<'a>(&'a self, root: &'a Utf8Path) -> Option<&'a Utf8Path> {
        match self {
            Self::Copy(_) => None,
            #[cfg(target_os = "linux")]
            Self::Overlay(..) => None,
            Self::Worktree(worktrees) => Some(&worktrees.repository),
            Self::Shared => Some(root),
        }
    }
}
