//! `evalwave run`.

use super::arguments::{RunArguments, TextOrJson, given};
use super::arms::{Arm, Common, Driver, Place};
use super::baseline::Baseline;
use super::conclude::{self, Judging};
use super::confirm::Wanted;
use super::context::{self, Context};
use super::job::Means;
use super::measure::Prepared;
use super::output::Output;
use super::sources::Suite;
use super::{Failure, execution, json, keep, print, tell};
use crate::aggregate;
use crate::config::settings;
use crate::model::{ExitCode, with_causes};
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
    let mut baseline = Baseline::read(&suite, given(arguments.baseline.as_deref()).is_some(), context)?;
    let output = Output::of(
        given(arguments.output_dir.as_deref()),
        context::new_run_id(started_at),
        context,
    );
    let means = Means::gather(config, &[], context)?;
    let leave_out = output.roots();
    let common = Common {
        suite: &suite,
        means: &means,
        context,
        leave_out: &leave_out,
        started_at,
    };
    let base = match &baseline {
        Baseline::Measure(reference) => {
            let reference = reference.as_deref();
            Prepared::new(&suite, reference, &mut plan, &output.run_id, context)?
        }
        _ => None,
    };
    if base.is_none() && matches!(baseline, Baseline::Measure(_)) {
        baseline = Baseline::None("no baseline: the base revision has none of these pairs".to_owned());
    }
    let at_once = base.as_ref().is_none_or(|base| base.at_once);

    harden_self();
    let place = Place {
        name: "",
        root: &suite.root,
        run_id: output.run_id.clone(),
        directory: output.directory.clone(),
        overwrite: arguments.overwrite,
    };
    let head = Arm::new(&common, place, plan)?;
    let measured = base.map(|base| base.arm(&common, &output)).transpose()?;
    output.point_latest();
    if head.job.plan.concurrency.bounded {
        tell(&format!("notice: {}", execution::bounded(&head.job.plan)));
    }

    let driver = Driver::new()?;
    let arms: Vec<&Arm> = std::iter::once(&head)
        .chain(measured.as_ref().map(|measured| &measured.arm))
        .collect();
    let mut runs = driver.run(&arms, at_once).into_iter();
    let (Some(run), base_run) = (runs.next(), runs.next()) else {
        return Ok(ExitCode::NothingMeasured);
    };
    let mut judging = Judging {
        config,
        run: &run,
        summary: aggregate::summarize(&run),
        baseline: None,
        known,
    };
    if run.plan.concurrency.bounded {
        judging.summary.notices.push(execution::bounded(&run.plan));
    }
    match (baseline, &measured, base_run) {
        (Baseline::Known(baseline), ..) => judging.baseline = Some(baseline),
        (Baseline::None(why), ..) => judging.summary.notices.push(why),
        (Baseline::Measure(_), Some(measured), Some(run)) => {
            let summary = aggregate::summarize(&run);
            keep(&measured.arm.recording.keeper.directory, &summary)?;
            judging.baseline = Some(measured.base.results(&summary));
        }
        (Baseline::Measure(_), ..) => {}
    }
    let wanted = Wanted {
        attempts: config.confirm,
        plan: &head.job.plan,
        run_id: &output.run_id,
        directory: &output.directory,
        base: measured
            .as_ref()
            .map(|measured| (&measured.arm.job.plan, measured.base.root())),
        most: suite.most_at_once(),
    };
    let fresh = wanted.confirm(&mut judging, &common, &driver);
    let (summary, exit) = judging.conclude(
        run.cancelled || fresh.cancelled,
        arguments.selection.is_skipped(&run.plan),
    );
    let kept = keep(&head.recording.keeper.directory, &summary)?;
    let printed = print(&match arguments.format {
        TextOrJson::Text => report::text(&summary, context.color),
        TextOrJson::Json => json(&summary)?,
    });
    if let Err(failure) = &printed {
        tell(&format!("warning: {}", with_causes(failure.error.as_ref())));
    }
    tell(&format!("results in {}", output.shown));
    let lost = !kept || fresh.lost || arms.iter().any(|arm| arm.recording.keeper.has_lost());
    if lost {
        tell("error: not everything of this run could be written: its directory is incomplete");
    }
    Ok(execution::exit_with(exit, lost || printed.is_err()))
}
