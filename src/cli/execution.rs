//! A settled run from its engine to its documents and its exit code: what `run` and `action` share. Knows neither where
//! its settings and its baseline came from, nor who is told.

use jiff::Timestamp;

use super::arms::{Arm, Common, Driver, Occupied, Place};
use super::baseline::Baseline;
use super::conclude::Judging;
use super::confirm::Wanted;
use super::context::Context;
use super::job::Means;
use super::measure::{Measured, Prepared};
use super::output::Output;
use super::recorder::Audience;
use super::sources::Suite;
use super::{Failure, keep, tell};
use crate::aggregate;
use crate::compare::Known;
use crate::model::{ExitCode, Run, RunPlan, Summary};
use crate::plan;
use crate::sandbox::local::harden_self;

/// Everything that a run needs, settled before anything is spent.
pub(super) struct Execution<'a> {
    pub(super) suite: &'a Suite,
    pub(super) plan: RunPlan,
    pub(super) baseline: Baseline,
    pub(super) known: Known,
    pub(super) means: &'a Means,
    pub(super) output: &'a Output,
    /// What becomes of a run that is there already.
    pub(super) occupied: Occupied,
    /// Nothing is selected, and that is fine.
    pub(super) skipped: bool,
    /// The page of the workflow run that it is a part of.
    pub(super) url: Option<String>,
    pub(super) started_at: Timestamp,
    pub(super) audience: &'a dyn Audience,
    pub(super) context: &'a Context,
}

/// What has become of a run.
pub(super) struct Done {
    pub(super) summary: Summary,
    pub(super) exit: ExitCode,
    /// Not everything of it could be written.
    pub(super) lost: bool,
}

impl Done {
    /// The exit code: what was run has to be known to be a success.
    pub(super) fn exit(&self, untold: bool) -> ExitCode {
        match self.exit {
            ExitCode::Success if self.lost || untold => ExitCode::Incomplete,
            exit => exit,
        }
    }
}

/// Said where something of a run is missing on disk.
pub(super) const LOST: &str = "not everything of this run could be written: its directory is incomplete";

impl Execution<'_> {
    /// Runs it, and writes its documents. `notices` are added to its summary.
    pub(super) fn run(mut self, driver: &Driver, notices: Vec<String>) -> Result<Done, Failure> {
        let leave_out = self.output.roots();
        let common = Common {
            suite: self.suite,
            means: self.means,
            context: self.context,
            leave_out: &leave_out,
            started_at: self.started_at,
            audience: self.audience,
        };
        let (limits, budget) = (self.plan.limits.clone(), self.plan.budget);
        let most = self.plan.concurrency.most;
        let base = self.base()?;
        let at_once = base.as_ref().is_none_or(|base| base.at_once);
        harden_self();
        let place = Place {
            name: "",
            root: &self.suite.root,
            run_id: self.output.run_id.clone(),
            directory: self.output.directory.clone(),
            occupied: self.occupied,
        };
        let head = Arm::new(&common, place, self.plan)?;
        let measured = base
            .map(|base| base.arm(&common, self.output, self.occupied))
            .transpose()?;
        self.output.point_latest();
        if head.job.plan.concurrency.bounded {
            tell(&format!("notice: {}", bounded(&head.job.plan)));
        }

        let arms: Vec<&Arm> = std::iter::once(&head)
            .chain(measured.as_ref().map(|measured| &measured.arm))
            .collect();
        let mut runs = driver.run(&arms, at_once).into_iter();
        let (Some(run), base_run) = (runs.next(), runs.next()) else {
            return Err(anyhow::anyhow!("nothing was run").into());
        };
        let budget = plan::left(
            budget,
            [&run].into_iter().chain(&base_run),
            &self.suite.config.price,
        );
        let mut judging = Judging {
            config: &self.suite.config,
            run: &run,
            summary: aggregate::summarize(&run),
            baseline: None,
            is_cut_short: false,
            known: self.known,
        };
        judging.summary.run.url = self.url;
        if run.plan.concurrency.bounded {
            judging.summary.notices.push(bounded(&run.plan));
        }
        judging.summary.notices.extend(notices);
        let base_was_cancelled = base_run.as_ref().is_some_and(|base| base.cancelled);
        let base_is_kept = compare_with(self.baseline, measured.as_ref(), base_run, &mut judging)?;
        let wanted = Wanted {
            attempts: self.suite.config.confirm,
            plan: &head.job.plan,
            run_id: &self.output.run_id,
            directory: &self.output.directory,
            base: measured
                .as_ref()
                .map(|measured| (&measured.arm.job.plan, measured.base.root())),
            most,
            limits: &limits,
            budget,
        };
        let fresh = wanted.confirm(&mut judging, &common, driver);
        let cancelled = run.cancelled || base_was_cancelled || fresh.cancelled;
        let (summary, exit) = judging.conclude(cancelled, self.skipped);
        let kept = keep(&head.recording.directory, &summary)?;
        Ok(Done {
            summary,
            exit,
            lost: !kept || !base_is_kept || fresh.lost || arms.iter().any(|arm| arm.recording.has_lost()),
        })
    }

    /// The base revision, where it is measured beside this one.
    fn base(&mut self) -> Result<Option<Prepared>, Failure> {
        let Baseline::Measure(revision) = &self.baseline else {
            return Ok(None);
        };
        let base = Prepared::new(
            self.suite,
            revision.as_ref(),
            &mut self.plan,
            &self.output.run_id,
            self.context,
        )?;
        if base.is_none() {
            let why = "no baseline: the base revision has none of these pairs";
            self.baseline = Baseline::None(why.to_owned());
        }
        Ok(base)
    }
}

/// Gives whether the documents of the base revision could be written.
fn compare_with(
    baseline: Baseline,
    measured: Option<&Measured>,
    base_run: Option<Run>,
    judging: &mut Judging<'_>,
) -> Result<bool, Failure> {
    match (baseline, measured, base_run) {
        (Baseline::Known(baseline), ..) => judging.baseline = Some(baseline),
        (Baseline::None(why), ..) => judging.summary.notices.push(why),
        (Baseline::Measure(_), Some(measured), Some(run)) => {
            let summary = aggregate::summarize(&run);
            judging.measured(&summary, Some(measured.base.name()), &run.notices);
            return keep(&measured.arm.recording.directory, &summary);
        }
        (Baseline::Measure(_), ..) => {}
    }
    Ok(true)
}

/// What bounds the concurrency below what was asked for.
fn bounded(plan: &RunPlan) -> String {
    format!("concurrency {}", plan.concurrency.reason)
}
