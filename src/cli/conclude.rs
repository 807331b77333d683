//! From a finished run to its summary and exit code: compared, held to its gates, concluded. Runs nothing.

use std::collections::{BTreeMap, HashMap};

use anyhow::Context as _;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::Failure;
use super::context::Context;
use super::sources::read_results;
use crate::aggregate::{self, Facts};
use crate::compare::{self, Criteria, Known, Options, Quarantine};
use crate::config::{CompareConfig, Config, FlakyConfig, HistoryConfig, ReportConfig};
use crate::model::{Comparison, ExitCode, PairId, PairResult, Policy, ResultSet, Run, Summary};
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
        confirmed: BTreeMap::new(),
    })
}

/// A run that came to its end, and what it is compared with.
pub(super) struct Judging<'a> {
    pub(super) config: &'a Config,
    pub(super) run: &'a Run,
    /// The run's pairs, decided.
    pub(super) summary: Summary,
    pub(super) baseline: Option<ResultSet>,
    pub(super) known: Known,
}

impl Judging<'_> {
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
        let current = ResultSet::of_summary("this run", &self.summary);
        let found = compare::assess(self.baseline.as_ref(), &current, &self.criteria());
        let mut summary = self.summary;
        let baseline = self.baseline.iter().flat_map(|baseline| &baseline.pairs);
        let baseline: HashMap<&PairId, &PairResult> = baseline.map(|pair| (&pair.id, pair)).collect();
        for pair in &mut summary.pairs {
            pair.before = baseline.get(&pair.id()).map(|before| compare::before(before));
        }
        summary.scheduling = plan::hindsight(&self.run.plan, &summary);
        summary.comparison = found.comparison;
        summary.gates = found.gates;
        summary.quarantined = found.quarantined;
        summary.notices.extend(found.notices);
        let (conclusion, exit) = aggregate::conclude(Facts {
            cancelled,
            skipped,
            gates: &summary.gates,
            ..Facts::of(&summary.totals, summary.run.reason)
        });
        summary.run.conclusion = conclusion;
        (summary, exit)
    }
}
