//! `evalwave run`.

use std::sync::Arc;

use camino::Utf8Path;

use super::arguments::{RunArguments, TextOrJson, given};
use super::arms::Driver;
use super::baseline::Baseline;
use super::context::{self, Context};
use super::execution::{Execution, LOST};
use super::job::Means;
use super::output::Output;
use super::past::Past;
use super::progress::Progress;
use super::recorder::{Audience, Show};
use super::sources::Suite;
use super::{Failure, conclude, json, print, tell};
use crate::config::settings;
use crate::model::{ExitCode, with_causes};
use crate::report;
use crate::runner::Job;

pub(super) fn run(arguments: &RunArguments, context: &Context) -> Result<ExitCode, Failure> {
    let mut more = vec![
        (settings::BASELINE, arguments.baseline.as_deref()),
        (settings::FAIL_ON, arguments.fail_on.as_deref()),
        (settings::CONFIRM, arguments.confirm.as_deref()),
    ];
    more.extend(
        arguments
            .history
            .iter()
            .map(|source| (settings::HISTORY, Some(source.as_str()))),
    );
    let suite = Suite::read(&arguments.selection, &more, context)?;
    let started_at = context::now();
    let config = &suite.config;
    let known = conclude::known(
        &config.history,
        &config.flaky,
        Some(config.policy),
        started_at,
        context,
    )?;
    let named = given(arguments.baseline.as_deref()).is_some();
    let baseline = Baseline::read(&suite, named, context)?;
    let past = Past::of(&suite, named, &baseline, &known, context);
    let plan = suite.plan(&arguments.selection, &past)?;
    let output = Output::of(
        given(arguments.output_dir.as_deref()),
        context::new_run_id(started_at),
        context,
    );
    let means = Means::gather(config, &[], context)?;
    let execution = Execution {
        skipped: arguments.selection.is_skipped(&plan),
        suite: &suite,
        plan,
        baseline,
        known,
        means: &means,
        output: &output,
        overwrite: arguments.overwrite,
        url: None,
        started_at,
        audience: &Terminal,
        context,
    };
    let done = execution.run(&Driver::new()?, Vec::new())?;
    let printed = print(&match arguments.format {
        TextOrJson::Text => report::text(&done.summary, context.color),
        TextOrJson::Json => json(&done.summary)?,
    });
    if let Err(failure) = &printed {
        tell(&format!("warning: {}", with_causes(failure.error.as_ref())));
    }
    tell(&format!("results in {}", output.shown));
    if done.lost {
        tell(&format!("error: {LOST}"));
    }
    Ok(done.exit(printed.is_err()))
}

/// Shows a line for each attempt.
struct Terminal;

impl Audience for Terminal {
    fn attend(&self, name: &'static str, job: &Job, _directory: &Utf8Path) -> Arc<dyn Show> {
        Arc::new(Progress::new(name, job.plan.attempts()))
    }
}
