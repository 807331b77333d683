//! What `run` and `action` share: an engine, the signals, and from a finished run to its documents and exit code.
//! Knows no terminal and no workflow.

use std::sync::Arc;

use anyhow::Context as _;
use camino::Utf8PathBuf;
use tokio_util::sync::CancellationToken;

use super::baseline::Baseline;
use super::context::Context;
use super::sources::Suite;
use super::{Failure, json, tell};
use crate::aggregate::Facts;
use crate::compare::gates::{self, GateFacts};
use crate::compare::{self, Options};
use crate::config::{Config, SandboxConfig};
use crate::model::layout::SUMMARY_FILE;
use crate::model::{ExitCode, ResultSet, Run, RunPlan, Summary, with_causes};
use crate::runner::Job;
use crate::sandbox::Backend;
use crate::sandbox::local::{LocalBackend, LocalOptions};
use crate::store::RunDir;
use crate::{aggregate, report};

/// The report beside the summary.
pub(super) const REPORT_FILE: &str = "report.md";

/// The engine that the suite asks for.
pub(super) fn backend(suite: &Suite, job: &Job, context: &Context) -> Result<Arc<dyn Backend>, Failure> {
    let SandboxConfig::Local(local) = &suite.config.sandbox;
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

/// Decides the run, compares it, and says how it ended. `url` is the page of the workflow run that it is a part of.
pub(super) fn conclude(
    run: &Run,
    config: &Config,
    baseline: Baseline,
    skipped: bool,
    url: Option<String>,
) -> (Summary, ExitCode) {
    let mut summary = aggregate::summarize(run);
    summary.run.url = url;
    if run.plan.concurrency.bounded {
        summary.notices.push(bounded(&run.plan));
    }
    compare_with(&mut summary, config, baseline, run);
    summary.gates = gates::evaluate(
        &config.fail_on,
        &GateFacts::of_summary(&summary),
        summary.comparison.as_ref(),
    );
    let (conclusion, exit) = aggregate::conclude(Facts {
        cancelled: run.cancelled,
        skipped,
        gates: &summary.gates,
        ..Facts::of(&summary.totals)
    });
    summary.run.conclusion = conclusion;
    (summary, exit)
}

fn compare_with(summary: &mut Summary, config: &Config, baseline: Baseline, run: &Run) {
    match baseline {
        Baseline::Known(baseline) => {
            let options = Options {
                alpha: config.compare.alpha,
                margin: config.compare.margin,
                group_by: config.report.group_by.clone(),
                now: Some(run.started_at),
            };
            let current = ResultSet::of_summary("this run", summary);
            summary.comparison = Some(compare::compare(&baseline, &current, &options));
        }
        Baseline::None(why) => summary.notices.push(why),
    }
}

/// Writes the documents of the whole run; what cannot be written is said. Gives whether all were.
pub(super) fn keep(directory: &RunDir, summary: &Summary) -> Result<bool, Failure> {
    let mut all = true;
    let documents = [
        (SUMMARY_FILE, json(summary)?),
        (REPORT_FILE, report::markdown(summary, usize::MAX)),
    ];
    for (name, text) in documents {
        if let Err(error) = directory.write(name, &text) {
            tell(&format!("warning: {}", with_causes(&error)));
            all = false;
        }
    }
    Ok(all)
}

/// The exit code of a run of which something may not be on disk: what was run has to be known to be a success.
pub(super) fn exit_with(exit: ExitCode, lost: bool) -> ExitCode {
    match exit {
        ExitCode::Success if lost => ExitCode::Incomplete,
        exit => exit,
    }
}
