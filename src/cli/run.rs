//! `evalwave run`.

use std::sync::Arc;

use anyhow::anyhow;
use camino::Utf8Path;

use super::arguments::{RunArguments, TextOrJson, given};
use super::arms::{Driver, Occupied};
use super::baseline::Baseline;
use super::cleanup::{self, Left};
use super::context::{self, Context};
use super::execution::{Execution, LOST};
use super::job::Means;
use super::output::Output;
use super::past::Past;
use super::progress::Progress;
use super::sources::Suite;
use super::{Failure, conclude, engine, json, print, tell};
use crate::config::settings;
use crate::model::{ExitCode, with_causes};
use crate::report;
use crate::store::Sandboxes;

pub(super) fn run(arguments: &RunArguments, context: &Context) -> Result<ExitCode, Failure> {
    // First of all: from here on a signal is an order, also before anything runs.
    let driver = Driver::new()?;
    match run_on(&driver, arguments, context) {
        // What was cut off has failed for no reason of its own.
        Err(_) if driver.is_cancelled() => Ok(ExitCode::Cancelled),
        done => done,
    }
}

fn run_on(driver: &Driver, arguments: &RunArguments, context: &Context) -> Result<ExitCode, Failure> {
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
    let suite = Suite::read(&arguments.selection, &more, driver, context)?;
    engine::check(&suite.config.sandbox, context)?;
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
    let named = given(arguments.output_dir.as_deref());
    let (occupied, output) = if arguments.resume {
        let output = Output::of_earlier(named, context)?;
        // What was under way when it died is of no use to anybody.
        let config = arguments.selection.config.as_deref();
        cleanup::delete_left(&output.directory, config, driver, context);
        (Occupied::Resume, output)
    } else {
        let output = Output::of(named, context::new_run_id(started_at), context);
        let occupied = match arguments.overwrite {
            true => {
                give_way(&output.directory, arguments, driver, context)?;
                Occupied::Replace
            }
            false => Occupied::Refuse,
        };
        (occupied, output)
    };
    let means = Means::gather(config, &[], context)?;
    let progress = Progress::new(arguments.quiet, arguments.verbose, context);
    let execution = Execution {
        skipped: arguments.selection.is_skipped(&plan),
        suite: &suite,
        plan,
        baseline,
        known,
        means: &means,
        output: &output,
        occupied,
        url: None,
        started_at,
        audience: &progress,
        context,
    };
    driver.set_out();
    let showing = driver.start(Arc::clone(&progress).go_on());
    let done = execution.run(driver, Vec::new());
    showing.abort();
    let done = done?;
    let printed = print(&match arguments.format {
        TextOrJson::Text => context.spelled(&report::text(&done.summary, context.color)),
        TextOrJson::Json => json(&done.summary)?,
    });
    if let Err(failure) = &printed {
        tell(&format!("warning: {}", with_causes(failure.error.as_ref())));
    }
    if !arguments.quiet {
        tell(&format!("results in {}", output.shown));
    }
    if done.lost {
        tell(&format!("error: {LOST}"));
    }
    Ok(done.exit(printed.is_err()))
}

/// Deletes the sandboxes of a run that is to be replaced: nothing else knows of them.
fn give_way(
    directory: &Utf8Path,
    arguments: &RunArguments,
    driver: &Driver,
    context: &Context,
) -> Result<(), Failure> {
    // One that goes on is nobody's to clean up.
    drop(Sandboxes::open(directory)?);
    let config = arguments.selection.config.as_deref();
    match cleanup::delete_left(directory, config, driver, context) {
        Left::Nothing | Left::Deleted => Ok(()),
        Left::Some => Err(anyhow!(
            "cannot replace the run in `{directory}`: it is all that is known of its sandboxes, which may be there still\nname another directory, or run `evalwave cleanup {directory}` first"
        )
        .into()),
    }
}
