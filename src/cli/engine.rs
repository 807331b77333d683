//! Makes the engine that a configuration names. Each engine is one arm in each function here.

use std::sync::Arc;

use anyhow::anyhow;
use camino::Utf8PathBuf;

use super::context::Context;
use super::{Failure, vercel};
use crate::config::SandboxConfig;
use crate::model::Whereabouts;
use crate::runner::Job;
use crate::sandbox::local::{self, LocalBackend, LocalOptions, LocalReaper};
use crate::sandbox::{self, Backend, Capacity, Reaper};

/// What the engine can take at once, as far as that is known before it is spoken to.
pub(super) fn capacity(config: &SandboxConfig) -> Option<Capacity> {
    match config {
        SandboxConfig::Local(local) => Some(local::capacity_here(local)),
        SandboxConfig::Vercel(config) => Some(sandbox::vercel::capacity(config)),
        SandboxConfig::Docker(_) | SandboxConfig::Command(_) => None,
    }
}

/// The variables that the engine needs of this process's environment and that are not there.
pub(super) fn missing(config: &SandboxConfig, context: &Context) -> Vec<String> {
    match config {
        SandboxConfig::Vercel(config) => vercel::missing(config, context),
        SandboxConfig::Local(_) | SandboxConfig::Docker(_) | SandboxConfig::Command(_) => Vec::new(),
    }
}

/// Says which are not there, before anything is planned.
pub(super) fn check(config: &SandboxConfig, context: &Context) -> Result<(), Failure> {
    let missing = missing(config, context);
    if missing.is_empty() {
        return Ok(());
    }
    let missing: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
    Err(anyhow!(
        "missing in the environment: {} (`sandbox.kind: {}`)\nset it; nothing is planned without it",
        missing.join(", "),
        config.kind()
    )
    .into())
}

/// What the engine uses that must not be seen in anything that is kept.
pub(super) fn hidden(config: &SandboxConfig, context: &Context) -> Vec<String> {
    match config {
        SandboxConfig::Vercel(config) => vercel::hidden(config, context),
        SandboxConfig::Local(_) | SandboxConfig::Docker(_) | SandboxConfig::Command(_) => Vec::new(),
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
        SandboxConfig::Vercel(config) => Ok(Arc::new(vercel::backend(config, job, context)?)),
        SandboxConfig::Docker(_) | SandboxConfig::Command(_) => {
            Err(anyhow!("`sandbox.kind: {}` is not built in yet", config.kind()).into())
        }
    }
}

/// What deletes the sandboxes of a run that is over.
pub(super) fn reaper(whereabouts: &Whereabouts, context: &Context) -> Result<Box<dyn Reaper>, Failure> {
    match whereabouts {
        Whereabouts::Local { temporary } => Ok(Box::new(LocalReaper::new(temporary))),
        Whereabouts::Vercel { .. } => Ok(Box::new(vercel::reaper(whereabouts, context)?)),
    }
}
