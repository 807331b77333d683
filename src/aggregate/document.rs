//! The whole run as `summary.json` tells it, before it is compared with anything.

use super::{Facts, conclude, pair_summary, round_seconds, totals};
use crate::model::summary::{SUMMARY_SCHEMA, Tool};
use crate::model::{
    AttemptId, AttemptRecord, CancelReason, PairRun, PairSummary, PlannedPair, Run, RunFacts, RunPlan,
    Summary,
};

/// Decides every pair of a run and counts them. Attempts that are not known, because the run has not come to its
/// end, are cancelled by the run. The conclusion is the one without gates, but for a run that was concluded already: its
/// summary is the one that it had then.
pub fn summarize(run: &Run) -> Summary {
    let plan = &run.plan;
    let pairs: Vec<PairSummary> = plan
        .pairs
        .iter()
        .zip(&run.pairs)
        .map(|(pair, attempts)| summarize_pair(pair, plan, attempts))
        .collect();
    let totals = totals(&pairs);
    let reason = stopped_by(run, &pairs);
    let facts = Facts {
        cancelled: run.cancelled,
        ..Facts::of(&totals, reason)
    };
    let run_facts = RunFacts {
        id: run.id.clone(),
        started_at: run.started_at,
        wall_seconds: round_seconds(run.wall_seconds),
        complete: facts.complete,
        conclusion: conclude(facts).0,
        reason,
        strategy: plan.strategy,
        runs: plan.runs,
        concurrency: plan.concurrency.value,
        policy: plan.policy,
        sandbox: plan.sandbox.clone(),
        suite: plan.suite.clone(),
        commit: run.commit.clone(),
        config_hash: plan.config_hash.clone(),
        concurrency_reason: plan.concurrency.reason.clone(),
        selection: plan.selection,
        url: None,
    };
    let summary = Summary {
        schema: SUMMARY_SCHEMA.to_owned(),
        tool: Tool::this(),
        run: run_facts,
        totals,
        pairs,
        scheduling: None,
        comparison: None,
        gates: Vec::new(),
        quarantined: Vec::new(),
        notices: run.notices.clone(),
    };
    match &run.findings {
        Some(findings) => summary.with_findings(findings.as_ref().clone()),
        None => summary,
    }
}

/// Why the run ended before its plan was done.
fn stopped_by(run: &Run, pairs: &[PairSummary]) -> Option<CancelReason> {
    if run.cancelled {
        return Some(CancelReason::Run);
    }
    let attempts = pairs.iter().flat_map(|pair| &pair.attempts);
    let mut reasons = attempts.filter_map(|attempt| attempt.reason);
    reasons.find(|reason| *reason != CancelReason::Decided)
}

/// Decides one pair of a run.
pub fn summarize_pair(pair: &PlannedPair, plan: &RunPlan, attempts: &PairRun) -> PairSummary {
    // A try that has failed since an attempt ended was to be followed by another one.
    let stands =
        |record: &&AttemptRecord| record.outcome.is_graded() || attempts.failed(record.index).is_empty();
    let mut records: Vec<AttemptRecord> = attempts.records.iter().filter(stands).cloned().collect();
    let is_open = |index: &u32| records.iter().all(|record| record.index != *index);
    let open: Vec<u32> = (1..=plan.runs).filter(is_open).collect();
    let stopped = |index| attempts.stopped(index, CancelReason::Run);
    records.extend(open.into_iter().map(stopped));
    for record in records.iter_mut().filter(|record| record.tries > 0) {
        let attempt = AttemptId {
            pair: pair.id.clone(),
            index: record.index,
        };
        record.path = Some(attempt.path());
    }
    pair_summary(pair, plan, records, attempts.held_seconds)
}
