//! `evalwave run`.

use super::arguments::{RunArguments, TextOrJson};
use super::arms::{Arm, Common, Driver, Place, share};
use super::baseline::Baseline;
use super::conclude::{self, Judging};
use super::confirm::Wanted;
use super::context::{self, Context};
use super::job::Means;
use super::measure::{self, Base};
use super::output::Output;
use super::sources::Suite;
use super::{Failure, json, keep, print, tell};
use crate::aggregate;
use crate::config::settings;
use crate::model::{ExitCode, RunPlan, with_causes};
use crate::report;
use crate::sandbox::local::harden_self;

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
    let mut plan = suite.plan(&arguments.selection)?;
    let started_at = context::now();
    let config = &suite.config;
    let known = conclude::known(
        &config.history,
        &config.flaky,
        Some(config.policy),
        started_at,
        context,
    )?;
    let mut baseline = Baseline::read(&suite, arguments, context)?;
    let output = Output::of(arguments, context::new_run_id(started_at), context);
    let means = Means::gather(config, context)?;
    let leave_out = output.roots();
    let common = Common {
        suite: &suite,
        means: &means,
        context,
        leave_out: &leave_out,
        started_at,
    };

    let mut base = match &baseline {
        Baseline::Measure(reference) if !plan.pairs.is_empty() => Some(Base::check_out(
            &suite,
            reference.as_deref(),
            &output.run_id,
            context,
        )?),
        _ => None,
    };
    let mut base_plan = match &base {
        Some(base) => base.plan(&suite, &plan)?,
        None => None,
    };
    if base_plan.is_none() && matches!(baseline, Baseline::Measure(_)) {
        base = None;
        baseline = Baseline::None("no baseline: the base revision has none of these pairs");
    }
    let at_once = base_plan
        .as_mut()
        .is_none_or(|base| share(&mut plan, base, suite.most_at_once()));

    harden_self();
    let head = Place {
        name: "",
        root: &suite.root,
        run_id: output.run_id.clone(),
        directory: output.directory.clone(),
        overwrite: arguments.overwrite,
    };
    let head = Arm::new(&common, head, plan)?;
    let base_arm = match (&base, base_plan) {
        (Some(base), Some(plan)) => Some(base_arm(&common, base, plan, &output)?),
        _ => None,
    };
    output.point_latest();
    if head.job.plan.concurrency.bounded {
        tell(&format!("notice: {}", bounded(&head.job.plan)));
    }

    let driver = Driver::new()?;
    let arms: Vec<&Arm> = std::iter::once(&head).chain(&base_arm).collect();
    let mut runs = driver.run(&arms, at_once).into_iter();
    let (Some(run), base_run) = (runs.next(), runs.next()) else {
        return Ok(ExitCode::NothingMeasured);
    };
    let mut summary = aggregate::summarize(&run);
    if run.plan.concurrency.bounded {
        summary.notices.push(bounded(&run.plan));
    }
    let known_baseline = match (baseline, &base, &base_arm, base_run) {
        (Baseline::Known(baseline), ..) => Some(baseline),
        (_, Some(base), Some(arm), Some(run)) => {
            let measured = aggregate::summarize(&run);
            keep(&arm.recording.directory, &measured)?;
            Some(base.results(&measured))
        }
        (Baseline::None(why), ..) => {
            summary.notices.push(why.to_owned());
            None
        }
        (Baseline::Measure(_), ..) => None,
    };
    let mut judging = Judging {
        config,
        run: &run,
        summary,
        baseline: known_baseline,
        known,
    };
    let mut cancelled = run.cancelled;
    if config.confirm > 0
        && !cancelled
        && let Some(comparison) = judging.comparison()
    {
        let wanted = Wanted {
            comparison: &comparison,
            attempts: config.confirm,
            plan: &head.job.plan,
            run_id: &output.run_id,
            directory: &output.directory,
            base: base
                .as_ref()
                .zip(base_arm.as_ref())
                .map(|(base, arm)| (&arm.job.plan, base.root())),
            most: suite.most_at_once(),
        };
        match wanted.ask(&common, &driver) {
            Ok(Some(answer)) => {
                cancelled = answer.cancelled;
                judging.confirm(answer.confirmed);
                judging.summary.notices.push(answer.notice);
            }
            Ok(None) => {}
            // What was measured stands without it.
            Err(failure) => {
                let why = format!(
                    "the flips could not be confirmed: {}",
                    with_causes(failure.error.as_ref())
                );
                judging.summary.notices.push(why);
            }
        }
    }
    let (summary, exit) = judging.conclude(cancelled, arguments.selection.is_skipped(&run.plan));
    let kept = keep(&head.recording.directory, &summary)?;
    let printed = print(&match arguments.format {
        TextOrJson::Text => report::text(&summary, context.color),
        TextOrJson::Json => json(&summary)?,
    });
    if let Err(failure) = &printed {
        tell(&format!("warning: {}", with_causes(failure.error.as_ref())));
    }
    tell(&format!("results in {}", output.shown));
    let lost = !kept || arms.iter().any(|arm| arm.recording.has_lost());
    if lost {
        tell("error: not everything of this run could be written: its directory is incomplete");
    }
    // What was run has to be known to be a success.
    Ok(match exit {
        ExitCode::Success if lost || printed.is_err() => ExitCode::Incomplete,
        exit => exit,
    })
}

/// What bounds the concurrency below what was asked for.
fn bounded(plan: &RunPlan) -> String {
    format!("concurrency {}", plan.concurrency.reason)
}

fn base_arm(common: &Common<'_>, base: &Base, plan: RunPlan, output: &Output) -> Result<Arm, Failure> {
    let place = Place {
        name: "baseline ",
        root: base.root(),
        run_id: format!("{}-baseline", output.run_id),
        directory: measure::directory(&output.directory),
        overwrite: false,
    };
    Arm::new(common, place, plan)
}
