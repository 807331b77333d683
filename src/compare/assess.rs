//! A run, its baseline and the criteria in; the comparison and what every gate finds out. Does not know exit codes.

use std::collections::BTreeMap;

use super::gates::{self, GateFacts};
use super::{Known, Options, compare_knowing};
use crate::config::LabelGates;
use crate::model::summary::{GateResult, Quarantined};
use crate::model::{Comparison, Gate, Outcome, PairId, PairResult, ResultSet, Sample};

/// What a run is held to.
#[derive(Clone, Debug)]
pub struct Criteria {
    /// How it is compared.
    pub options: Options,
    /// What is known besides the two runs.
    pub known: Known,
    /// Gates over all pairs that are not in quarantine.
    pub fail_on: Vec<Gate>,
    /// Gates over those of them that have a label.
    pub gates: Vec<LabelGates>,
}

/// What a run comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    /// Over all pairs; `None` without a baseline.
    pub comparison: Option<Comparison>,
    /// What each gate found, those of labels after the others.
    pub gates: Vec<GateResult>,
    /// Pairs in quarantine, in the run's order.
    pub quarantined: Vec<Quarantined>,
    /// Criteria that do nothing, in words.
    pub notices: Vec<String>,
}

/// Compares a run with its baseline, where it has one, and holds it to its gates.
///
/// Pairs in quarantine are compared and shown, but every gate is over the others alone: where there are any, and for
/// every label that has gates, both sides are restricted and compared anew.
pub fn assess(baseline: Option<&ResultSet>, current: &ResultSet, criteria: &Criteria) -> Assessment {
    let Criteria { options, known, .. } = criteria;
    let compared = |baseline: Option<&ResultSet>, current: &ResultSet| {
        baseline.map(|baseline| compare_knowing(baseline, current, options, known))
    };
    let facts = |results: &ResultSet| GateFacts {
        confirms: known.confirmed.is_some(),
        ..GateFacts::of_results(results)
    };
    let comparison = compared(baseline, current);
    let quarantined = known.quarantine.of(current);
    let mut notices = known.quarantine.warnings(current);

    let gating = |pair: &PairResult| !known.quarantine.holds(&pair.id);
    let mut found = if quarantined.is_empty() {
        gates::evaluate(&criteria.fail_on, &facts(current), comparison.as_ref())
    } else {
        let (before, now) = restricted(baseline, current, gating);
        let comparison = compared(before.as_ref(), &now);
        gates::evaluate(&criteria.fail_on, &facts(&now), comparison.as_ref())
    };
    for label in &criteria.gates {
        let LabelGates { name, value, fail_on } = label;
        let (before, now) = restricted(baseline, current, |pair| {
            pair.labels.has(name, value) && gating(pair)
        });
        let mut results = if now.pairs.is_empty() {
            if !current.is_partial_selection()
                && !current.pairs.iter().any(|pair| pair.labels.has(name, value))
            {
                notices.push(format!("gates: no pair has the label `{name}={value}`"));
            }
            nothing_to_hold(fail_on)
        } else {
            let comparison = compared(before.as_ref(), &now);
            gates::evaluate(fail_on, &facts(&now), comparison.as_ref())
        };
        for result in &mut results {
            result.gate = format!("{} ({name}={value})", result.gate);
        }
        found.extend(results);
    }
    Assessment {
        comparison,
        gates: found,
        quarantined,
        notices,
    }
}

/// The pairs that a gate is over, on both sides: those of this run that it wants, and those of the baseline that are
/// the same, or that it wants and this run does not have.
fn restricted(
    baseline: Option<&ResultSet>,
    current: &ResultSet,
    wanted: impl Fn(&PairResult) -> bool,
) -> (Option<ResultSet>, ResultSet) {
    let of_current: BTreeMap<&PairId, bool> = current
        .pairs
        .iter()
        .map(|pair| (&pair.id, wanted(pair)))
        .collect();
    let with = |set: &ResultSet, keep: &dyn Fn(&PairResult) -> bool| ResultSet {
        pairs: set.pairs.iter().filter(|pair| keep(pair)).cloned().collect(),
        ..set.clone()
    };
    let before = |pair: &PairResult| of_current.get(&pair.id).copied().unwrap_or_else(|| wanted(pair));
    let before = baseline.map(|baseline| with(baseline, &before));
    let mut now = with(current, &wanted);
    // What was stopped may be other pairs only, of the run or of the base revision that is measured beside it.
    let base_lacks = before
        .as_ref()
        .is_some_and(|base| base.is_cut_short && lacks_attempts(base));
    now.is_cut_short &= base_lacks || lacks_attempts(&now);
    (before, now)
}

/// Whether a pair of the set is not known to have had all its attempts.
fn lacks_attempts(set: &ResultSet) -> bool {
    let runs = set.runs.unwrap_or_default() as usize;
    let lacks = |samples: &[Sample]| {
        let stopped = |sample: &Sample| sample.outcome == Outcome::Cancelled && !sample.stopped_early;
        samples.len() < runs || samples.iter().any(stopped)
    };
    let mut pairs = set.pairs.iter();
    pairs.any(|pair| pair.samples.as_deref().is_none_or(lacks))
}

fn nothing_to_hold(fail_on: &[Gate]) -> Vec<GateResult> {
    let result = |gate: &Gate| GateResult {
        gate: gate.to_string(),
        failed: false,
        why: "this run has no such pair".to_owned(),
    };
    fail_on.iter().map(result).collect()
}

#[cfg(test)]
mod tests;
