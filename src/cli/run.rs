//! `evalwave run`.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::arguments::{RunArguments, TextOrJson, given};
use super::baseline::Baseline;
use super::context::{self, Context};
use super::output::Output;
use super::progress::Progress;
use super::recorder::Recording;
use super::sources::Suite;
use super::{Failure, execution, job, json, print, tell};
use crate::config::settings;
use crate::model::{ExitCode, Run, with_causes};
use crate::report;
use crate::runner::{self, Job};
use crate::sandbox::Backend;
use crate::sandbox::local::harden_self;
use crate::store::RunDir;

pub(super) fn run(arguments: &RunArguments, context: &Context) -> Result<ExitCode, Failure> {
    let more = [
        (settings::BASELINE, arguments.baseline.as_deref()),
        (settings::FAIL_ON, arguments.fail_on.as_deref()),
    ];
    let suite = Suite::read(&arguments.selection, &more, context)?;
    let plan = suite.plan(&arguments.selection)?;
    let baseline = Baseline::read(&suite, given(arguments.baseline.as_deref()).is_some(), context)?;
    let started_at = context::now();
    let output = Output::of(
        given(arguments.output_dir.as_deref()),
        context::new_run_id(started_at),
        context,
    );
    let job = job::job(&suite, plan, started_at, &output, &[], context)?;
    harden_self();
    let backend = execution::backend(&suite, &job, context)?;
    let directory = RunDir::create(
        &output.directory,
        arguments.overwrite,
        &job.plan,
        &suite.config.attempt,
    )?;
    output.point_latest();
    if job.plan.concurrency.bounded {
        tell(&format!("notice: {}", execution::bounded(&job.plan)));
    }
    let progress = Progress::new(job.plan.attempts());
    let recording = Arc::new(Recording::new(directory, progress));
    let run = drive(Arc::new(job), backend, &recording)?;
    let skipped = arguments.selection.is_skipped(&run.plan);
    let (summary, exit) = execution::conclude(&run, &suite.config, baseline, skipped, None);
    let kept = execution::keep(&recording.keeper.directory, &summary)?;
    let printed = print(&match arguments.format {
        TextOrJson::Text => report::text(&summary, context.color),
        TextOrJson::Json => json(&summary)?,
    });
    if let Err(failure) = &printed {
        tell(&format!("warning: {}", with_causes(failure.error.as_ref())));
    }
    tell(&format!("results in {}", output.shown));
    let lost = !kept || recording.keeper.has_lost();
    if lost {
        tell("error: not everything of this run could be written: its directory is incomplete");
    }
    Ok(execution::exit_with(exit, lost || printed.is_err()))
}

/// Runs the plan, SIGINT and SIGTERM cancelling it.
fn drive(job: Arc<Job>, backend: Arc<dyn Backend>, recording: &Arc<Recording>) -> Result<Run, Failure> {
    let cancel = CancellationToken::new();
    let run = execution::runtime()?.block_on(async {
        let watching = tokio::spawn(execution::cancel_on_signal(cancel.clone()));
        let run = runner::run(job, backend, Arc::clone(recording) as _, cancel).await;
        watching.abort();
        run
    });
    Ok(run)
}
