//! Makes the engine that a configuration names. Each engine is one arm in each function here.

use std::sync::Arc;

use anyhow::anyhow;
use camino::Utf8PathBuf;

use super::Failure;
use super::context::Context;
use crate::config::SandboxConfig;
use crate::model::Whereabouts;
use crate::runner::Job;
use crate::sandbox::local::{self, LocalBackend, LocalOptions, LocalReaper};
use crate::sandbox::{Backend, Capacity, Reaper};

/// What the engine can take at once, as far as that is known before it is spoken to.
pub(super) fn capacity(config: &SandboxConfig) -> Option<Capacity> {
    match config {
        SandboxConfig::Local(local) => Some(local::capacity_here(local)),
        SandboxConfig::Docker(_) | SandboxConfig::Vercel(_) | SandboxConfig::Command(_) => None,
    }
}

/// The engine for a run.
pub(super) fn backend(
    config: &SandboxConfig,
    job: &Job,
    context: &Context,
) -> Result<Arc<dyn Backend>, Failure> {
    match config {
        SandboxConfig::Local(local) => {
            let options = LocalOptions {
                run_id: job.run_id.clone(),
                temporary: context.temp_dir.clone(),
                program: context.program.clone(),
                path: context.environment.get("PATH").cloned(),
                home: context.environment.get("HOME").map(Utf8PathBuf::from),
                lang: context.environment.get("LANG").cloned(),
                system: context.system_variables(),
            };
            Ok(Arc::new(LocalBackend::new(local, options, &job.workspace.root)?))
        }
        SandboxConfig::Docker(_) | SandboxConfig::Vercel(_) | SandboxConfig::Command(_) => {
            Err(anyhow!("`sandbox.kind: {}` is not built in yet", config.kind()).into())
        }
    }
}

/// What deletes the sandboxes of a run that is over.
pub(super) fn reaper(whereabouts: &Whereabouts, _context: &Context) -> Result<Box<dyn Reaper>, Failure> {
    match whereabouts {
        Whereabouts::Local { temporary } => Ok(Box::new(LocalReaper::new(temporary))),
    }
}
