//! What `run` and `action` share: an engine, a runtime, the signals, and how a run that is not all on disk ends.
//! Knows no terminal and no workflow.

use std::sync::Arc;

use anyhow::Context as _;
use camino::Utf8PathBuf;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::{Failure, tell};
use crate::config::{Config, SandboxConfig};
use crate::model::{ExitCode, RunPlan};
use crate::runner::Job;
use crate::sandbox::Backend;
use crate::sandbox::local::{LocalBackend, LocalOptions};

/// The engine that the suite asks for.
pub(super) fn backend(config: &Config, job: &Job, context: &Context) -> Result<Arc<dyn Backend>, Failure> {
    let SandboxConfig::Local(local) = &config.sandbox;
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

/// What everything that waits runs on.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the asynchronous runtime")?)
}

/// Waits for SIGINT or SIGTERM, then cancels.
pub(super) async fn cancel_on_signal(cancel: CancellationToken) {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (Ok(mut interrupt), Ok(mut terminate)) =
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            tell("warning: signals cannot be watched: an interrupt will lose what runs");
            return;
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
    #[cfg(not(unix))]
    if tokio::signal::ctrl_c().await.is_err() {
        return;
    }
    tell("cancelling: nothing more starts, what runs is stopped");
    cancel.cancel();
}

/// What bounds the concurrency below what was asked for.
pub(super) fn bounded(plan: &RunPlan) -> String {
    format!("concurrency {}", plan.concurrency.reason)
}

/// The exit code of a run of which something may not be on disk: what was run has to be known to be a success.
pub(super) fn exit_with(exit: ExitCode, lost: bool) -> ExitCode {
    match exit {
        ExitCode::Success if lost => ExitCode::Incomplete,
        exit => exit,
    }
}
