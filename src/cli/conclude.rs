//! From a finished run to its summary and exit code: compared, held to its gates, concluded. Runs nothing.

use std::collections::HashMap;

use anyhow::Context as _;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::Failure;
use super::context::Context;
use super::sources::read_results;
use crate::aggregate::{self, Facts};
use crate::compare::{self, Criteria, Known, Options, Quarantine};
use crate::config::{CompareConfig, Config, FlakyConfig, HistoryConfig, ReportConfig};
use crate::model::{CancelReason, Comparison, ExitCode, PairId, PairResult, Policy, ResultSet, Run, Summary};
use crate::plan;

/// How results are compared at `now`.
pub(super) fn options(compare: &CompareConfig, report: &ReportConfig, now: Timestamp) -> Options {
    Options {
        alpha: compare.alpha,
        margin: compare.margin,
        group_by: report.group_by.clone(),
        now: Some(now),
    }
}

/// Reads what is known besides the two sides, before the run, so that a broken history costs nothing.
pub(super) fn known(
    history: &HistoryConfig,
    flaky: &[FlakyConfig],
    policy: Option<Policy>,
    now: Timestamp,
    context: &Context,
) -> Result<Known, Failure> {
    let read = |source: &String| read_results(std::slice::from_ref(source), &context.current_dir, policy);
    let history: anyhow::Result<Vec<ResultSet>> = history.sources.iter().map(read).collect();
    Ok(Known {
        history: history.context("cannot read the history")?,
        quarantine: Quarantine::new(flaky, TimeZone::UTC.to_datetime(now).date())?,
        confirmed: None,
    })
}

/// A run that came to its end, and what it is compared with.
pub(super) struct Judging<'a> {
    pub(super) config: &'a Config,
    pub(super) run: &'a Run,
    /// The run's pairs, decided.
    pub(super) summary: Summary,
    pub(super) baseline: Option<ResultSet>,
    /// A part of what was planned is missing: of the run, or of the base revision that was measured beside it.
    pub(super) is_cut_short: bool,
    pub(super) known: Known,
}

impl Judging<'_> {
    /// Takes the base revision that was measured beside the run for its baseline, and says what a reader has to know of it.
    /// `told` is what was told of its run.
    pub(super) fn measured(&mut self, summary: &Summary, reference: Option<&str>, told: &[String]) {
        let source = reference.map_or_else(|| "measure".to_owned(), |name| format!("measure:{name}"));
        let why = match summary.run.reason {
            Some(CancelReason::Budget) => Some("its half of the budget was used up"),
            Some(CancelReason::Breaker) => {
                Some("its first tries all died alike, so pairs that it has no verdict of are not compared")
            }
            Some(CancelReason::Run) => Some("it was cancelled"),
            Some(CancelReason::Decided) | None => None,
        };
        let notices = &mut self.summary.notices;
        notices.extend(why.map(|why| format!("the base revision was stopped: {why}")));
        notices.extend(told.iter().map(|notice| format!("the base revision: {notice}")));
        self.baseline = Some(ResultSet {
            reference: reference.map(str::to_owned),
            ..ResultSet::of_summary(&source, summary)
        });
        if why.is_some() {
            self.lacks_base();
        }
    }

    /// A part of the base revision that is measured beside the run is missing.
    pub(super) fn lacks_base(&mut self) {
        self.is_cut_short = true;
        if let Some(base) = &mut self.baseline {
            base.is_cut_short = true;
        }
    }

    fn criteria(&self) -> Criteria {
        Criteria {
            options: options(&self.config.compare, &self.config.report, self.run.started_at),
            known: self.known.clone(),
            fail_on: self.config.fail_on.clone(),
            gates: self.config.gates.clone(),
        }
    }

    /// The comparison so far; `None` without a baseline.
    pub(super) fn comparison(&self) -> Option<Comparison> {
        let baseline = self.baseline.as_ref()?;
        let current = ResultSet::of_summary("this run", &self.summary);
        let Criteria { options, known, .. } = self.criteria();
        Some(compare::compare_knowing(baseline, &current, &options, &known))
    }

    /// The whole summary, and how the process ends.
    pub(super) fn conclude(self, cancelled: bool, skipped: bool) -> (Summary, ExitCode) {
        let mut current = ResultSet::of_summary("this run", &self.summary);
        // The base is a half of what was to be measured.
        current.is_cut_short |= self.is_cut_short;
        let found = compare::assess(self.baseline.as_ref(), &current, &self.criteria());
        let mut summary = self.summary;
        let baseline = self.baseline.iter().flat_map(|baseline| &baseline.pairs);
        let baseline: HashMap<&PairId, &PairResult> = baseline.map(|pair| (&pair.id, pair)).collect();
        for pair in &mut summary.pairs {
            pair.before = baseline.get(&pair.id()).map(|before| compare::before(before));
        }
        summary.scheduling = plan::hindsight(&self.run.plan, &summary, &self.config.price);
        summary.comparison = found.comparison;
        summary.gates = found.gates;
        summary.quarantined = found.quarantined;
        summary.notices.extend(found.notices);
        let facts = Facts::of(&summary.totals, summary.run.reason);
        let complete = facts.complete && !self.is_cut_short;
        let (conclusion, exit) = aggregate::conclude(Facts {
            complete,
            cancelled,
            skipped,
            gates: &summary.gates,
            ..facts
        });
        summary.run.complete = complete;
        summary.run.conclusion = conclusion;
        (summary, exit)
    }
}
