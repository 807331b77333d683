//! A pair's entry in the summary, and the run's totals over all of them.

use super::verdict::{Grade, firm, representative, verdict};
use crate::model::summary::AttemptTotals;
use crate::model::{
    AttemptRecord, CancelReason, Outcome, PairSummary, PlannedPair, RunPlan, Totals, Verdict,
};

/// Rounds a share to four decimals, as every document shows it.
pub fn round_rate(rate: f64) -> f64 {
    round(rate, 1e4)
}

/// Rounds seconds to milliseconds, as every document shows them.
pub fn round_seconds(seconds: f64) -> f64 {
    round(seconds, 1e3)
}

/// Decides a pair. `records` are its attempts in any order; `held_seconds` is how long its sandboxes were held, all
/// tries together.
pub fn pair_summary(
    pair: &PlannedPair,
    plan: &RunPlan,
    mut records: Vec<AttemptRecord>,
    held_seconds: f64,
) -> PairSummary {
    records.sort_by_key(|record| record.index);
    let grades: Vec<Grade> = records.iter().map(Grade::from).collect();
    // A command that produces a whole pair may leave more results than were asked for.
    let planned = plan.runs.max(count(records.len()));
    let verdict = verdict(plan.policy, planned, &grades);
    PairSummary {
        experiment: pair.id.experiment.clone(),
        eval: pair.id.eval.clone(),
        labels: pair.labels.clone(),
        verdict,
        passed_attempts: count(outcomes(&records, |outcome| outcome == Outcome::Passed)),
        graded_attempts: count(outcomes(&records, Outcome::is_graded)),
        planned_attempts: planned,
        representative: representative(verdict, &grades).map(|position| records[position].index),
        seconds: round_seconds(held_seconds),
        firm: firm(plan.policy, planned, &grades),
        before: None,
        attempts: records,
    }
}

/// Counts and rates over all pairs of a run.
///
/// Rates are over the pairs, or attempts, that have a result. A pair that was stopped early has only the attempts
/// that decided it, so with one of those the rates that need every attempt are `None`.
pub fn totals(pairs: &[PairSummary]) -> Totals {
    let verdicts = |wanted| pairs.iter().filter(|pair| pair.verdict == wanted).count();
    let (passed, failed) = (verdicts(Verdict::Pass), verdicts(Verdict::Fail));
    let attempts = attempt_totals(pairs);
    let with_result = || pairs.iter().filter(|pair| pair.graded_attempts > 0);
    let any = with_result().filter(|pair| pair.passed_attempts > 0).count();
    let all = with_result()
        .filter(|pair| pair.passed_attempts == pair.graded_attempts)
        .count();
    let stopped_early = records(pairs).any(|record| record.reason == Some(CancelReason::Decided));
    let of_every_attempt = |rate: Option<f64>| rate.filter(|_| !stopped_early);
    let mut totals = Totals {
        pairs: pairs.len(),
        passed,
        failed,
        errored: verdicts(Verdict::Error),
        not_run: verdicts(Verdict::NotRun),
        pass_rate: rate(passed, passed + failed),
        attempts,
        any_pass_rate: rate(any, with_result().count()),
        attempt_pass_rate: of_every_attempt(rate(attempts.passed, attempts.graded)),
        all_pass_rate: of_every_attempt(rate(all, with_result().count())),
        sandbox_seconds: round_seconds(pairs.iter().fold(0.0, |sum, pair| sum + pair.seconds)),
        cost_usd: None,
        tokens: None,
        ..Totals::default()
    };
    for pair in with_result() {
        let share = format!("{}/{}", pair.passed_attempts, pair.graded_attempts);
        *totals.distribution.entry(share).or_default() += 1;
    }
    for usage in records(pairs).flat_map(AttemptRecord::usages) {
        add(&mut totals.cost_usd, usage.cost_usd, |sum, more| sum + more);
        add(&mut totals.tokens, usage.input_tokens, u64::saturating_add);
        add(&mut totals.tokens, usage.output_tokens, u64::saturating_add);
    }
    let cost = totals.cost_usd.map(|cost| round(cost, 1e6));
    // A sum that is no number any more is unknown.
    totals.cost_usd = cost.filter(|cost| cost.is_finite());
    totals
}

fn attempt_totals(pairs: &[PairSummary]) -> AttemptTotals {
    let mut totals = AttemptTotals {
        planned: pairs.iter().map(|pair| pair.planned_attempts as usize).sum(),
        ..AttemptTotals::default()
    };
    for record in records(pairs) {
        *match record.outcome {
            Outcome::Passed => &mut totals.passed,
            Outcome::Failed => &mut totals.failed,
            Outcome::TimedOut => &mut totals.timed_out,
            Outcome::Errored => &mut totals.errored,
            Outcome::Cancelled => &mut totals.cancelled,
        } += 1;
        totals.graded += usize::from(record.outcome.is_graded());
        totals.retried += usize::from(record.tries > 1);
    }
    totals
}

fn records(pairs: &[PairSummary]) -> impl Iterator<Item = &AttemptRecord> {
    pairs.iter().flat_map(|pair| &pair.attempts)
}

fn outcomes(records: &[AttemptRecord], wanted: impl Fn(Outcome) -> bool) -> usize {
    records.iter().filter(|record| wanted(record.outcome)).count()
}

fn rate(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| round_rate(part as f64 / whole as f64))
}

fn add<T: Copy>(sum: &mut Option<T>, more: Option<T>, plus: impl Fn(T, T) -> T) {
    if let Some(more) = more {
        *sum = Some(sum.map_or(more, |sum| plus(sum, more)));
    }
}

fn round(value: f64, steps: f64) -> f64 {
    (value * steps).round() / steps
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
