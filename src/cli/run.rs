//! `evalwave run`.

use std::sync::Arc;

use anyhow::Context as _;
use camino::Utf8PathBuf;
use tokio_util::sync::CancellationToken;

use super::arguments::{RunArguments, TextOrJson};
use super::baseline::Baseline;
use super::context::{self, Context};
use super::output::Output;
use super::progress::Progress;
use super::recorder::Recording;
use super::sources::Suite;
use super::{Failure, job, json, print, tell};
use crate::aggregate::Facts;
use crate::compare::gates::{self, GateFacts};
use crate::compare::{self, Options};
use crate::config::{Config, SandboxConfig, settings};
use crate::model::layout::SUMMARY_FILE;
use crate::model::{ExitCode, ResultSet, Run, RunPlan, Summary};
use crate::runner::{self, Job};
use crate::sandbox::Backend;
use crate::sandbox::local::{LocalBackend, LocalOptions, harden_self};
use crate::store::RunDir;
use crate::{aggregate, plan, report};

pub(super) fn run(arguments: &RunArguments, context: &Context) -> Result<ExitCode, Failure> {
    let more = [
        (settings::BASELINE, arguments.baseline.as_deref()),
        (settings::FAIL_ON, arguments.fail_on.as_deref()),
    ];
    let suite = Suite::read(&arguments.selection, &more, context)?;
    let baseline = Baseline::read(&suite, arguments.baseline.as_deref(), context)?;
    let plan = suite.plan(&arguments.selection, &baseline)?;
    let started_at = context::now();
    let output = Output::of(arguments, context::new_run_id(started_at), context);
    let job = job::job(&suite, plan, started_at, &output, context)?;
    harden_self();
    let backend = backend(&suite, &job, context)?;
    let directory = RunDir::create(
        &output.directory,
        arguments.overwrite,
        &job.plan,
        &suite.config.attempt,
    )?;
    output.point_latest();
    if job.plan.concurrency.bounded {
        tell(&format!("notice: {}", bounded(&job.plan)));
    }
    let recording = Arc::new(Recording {
        directory,
        progress: Progress::new(job.plan.attempts()),
    });
    let run = drive(Arc::new(job), backend, &recording)?;
    let skipped = arguments.selection.is_skipped(&run.plan);
    let (summary, exit) = conclude(&run, &suite.config, baseline, skipped);
    keep(&recording.directory, &summary)?;
    print(&match arguments.format {
        TextOrJson::Text => report::text(&summary, context.color),
        TextOrJson::Json => json(&summary)?,
    })?;
    tell(&format!("results in {}", output.shown));
    Ok(exit)
}

/// What bounds the concurrency below what was asked for.
fn bounded(plan: &RunPlan) -> String {
    format!("concurrency {}", plan.concurrency.reason)
}

fn backend(suite: &Suite, job: &Job, context: &Context) -> Result<Arc<dyn Backend>, Failure> {
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

/// Runs the plan, SIGINT and SIGTERM cancelling it.
fn drive(job: Arc<Job>, backend: Arc<dyn Backend>, recording: &Arc<Recording>) -> Result<Run, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the asynchronous runtime")?;
    let cancel = CancellationToken::new();
    let run = runtime.block_on(async {
        let watching = tokio::spawn(cancel_on_signal(cancel.clone()));
        let run = runner::run(job, backend, Arc::clone(recording) as _, cancel).await;
        watching.abort();
        run
    });
    Ok(run)
}

async fn cancel_on_signal(cancel: CancellationToken) {
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

fn conclude(run: &Run, config: &Config, baseline: Baseline, skipped: bool) -> (Summary, ExitCode) {
    let mut summary = aggregate::summarize(run);
    if run.plan.concurrency.bounded {
        summary.notices.push(bounded(&run.plan));
    }
    summary.scheduling = plan::hindsight(&run.plan, &summary);
    match baseline {
        Baseline::Known { results, .. } => {
            let options = Options {
                alpha: config.compare.alpha,
                margin: config.compare.margin,
                group_by: config.report.group_by.clone(),
                now: Some(run.started_at),
            };
            let current = ResultSet::of_summary("this run", &summary);
            summary.comparison = Some(compare::compare(&results, &current, &options));
        }
        Baseline::None(why) => summary.notices.push(why.to_owned()),
    }
    summary.gates = gates::evaluate(
        &config.fail_on,
        &GateFacts::of_summary(&summary),
        summary.comparison.as_ref(),
    );
    let (conclusion, exit) = aggregate::conclude(Facts {
        cancelled: run.cancelled,
        skipped,
        gates: &summary.gates,
        ..Facts::of(&summary.totals, summary.run.reason)
    });
    summary.run.conclusion = conclusion;
    (summary, exit)
}

/// Writes the documents of the whole run; what cannot be written is said, and what was printed stands.
fn keep(directory: &RunDir, summary: &Summary) -> Result<(), Failure> {
    let documents = [
        (SUMMARY_FILE, json(summary)?),
        ("report.md", report::markdown(summary, usize::MAX)),
    ];
    for (name, text) in documents {
        if let Err(error) = directory.write(name, &text) {
            tell(&format!("warning: {:#}", anyhow::Error::from(error)));
        }
    }
    Ok(())
}
