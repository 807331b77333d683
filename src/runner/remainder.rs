//! What is left to be done of a run that goes on: which attempts are done, and how the scheduler counts the others. Starts
//! nothing.

use std::collections::HashMap;
use std::time::Duration;

use super::Job;
use crate::model::{AttemptRecord, CancelReason, Outcome, PairRun, Produces, Run};
use crate::plan;
use crate::schedule::{AttemptRef, PairSpec, Used};

/// What a run has done before it goes on; of a run that begins, nothing.
#[derive(Debug, Default)]
pub(super) struct Remainder {
    /// Seconds of the run before this session of it.
    pub(super) since: Duration,
    /// The attempts of pairs some of whose are done, in the order in which the scheduler has them: what is done comes
    /// first.
    order: HashMap<usize, Vec<u32>>,
}

impl Remainder {
    /// Of this job; what is done is taken into the scheduler's pairs.
    pub(super) fn of(job: &Job, run: &Run, pairs: &mut [PairSpec]) -> Self {
        if job.earlier.is_none() {
            return Self::default();
        }
        let mut order = HashMap::new();
        for (at, (spec, pair)) in pairs.iter_mut().zip(&run.pairs).enumerate() {
            let graded: Vec<&AttemptRecord> = graded(pair).collect();
            let Some(first) = graded.first() else { continue };
            if job.plan.produces == Produces::Pair {
                // Where any of its attempts gave a result, the command is never run again.
                spec.done = vec![(first.outcome, first.score)];
                continue;
            }
            spec.done = graded
                .iter()
                .map(|record| (record.outcome, record.score))
                .collect();
            let done: Vec<u32> = graded.iter().map(|record| record.index).collect();
            let others = (1..=job.plan.runs).filter(|index| !done.contains(index));
            order.insert(at, done.iter().copied().chain(others).collect());
        }
        Self {
            since: Duration::try_from_secs_f64(run.wall_seconds).unwrap_or_default(),
            order,
        }
    }

    /// Which of its pair's attempts the scheduler means.
    pub(super) fn index(&self, attempt: AttemptRef) -> u32 {
        let order = self.order.get(&attempt.pair);
        let index = order.and_then(|order| order.get(attempt.index as usize - 1));
        index.copied().unwrap_or(attempt.index)
    }
}

/// What the run has used of its budget.
pub(super) fn used(job: &Job, run: &Run) -> Used {
    if job.earlier.is_none() {
        return Used::default();
    }
    let (seconds, cost) = plan::used(run, &job.price);
    Used {
        sandbox_time: Duration::try_from_secs_f64(seconds).unwrap_or_default(),
        cost,
    }
}

/// How many attempts of a pair are still to be told of.
pub(super) fn left(job: &Job, pair: &PairRun) -> u32 {
    let done = graded(pair).count();
    match job.plan.produces {
        Produces::Pair if done > 0 => 0,
        _ => job
            .plan
            .runs
            .saturating_sub(u32::try_from(done).unwrap_or(u32::MAX)),
    }
}

/// Whether what an earlier session has said of an attempt that is not made again is its last word: an error stays one,
/// and what was not needed then is not needed now. A try that has failed since is a later word.
pub(super) fn stands(pair: &PairRun, index: u32) -> bool {
    let is_last = |record: &AttemptRecord| {
        record.outcome == Outcome::Errored || record.reason == Some(CancelReason::Decided)
    };
    pair.failed(index).is_empty() && pair.record(index).is_some_and(is_last)
}

fn graded(pair: &PairRun) -> impl Iterator<Item = &AttemptRecord> {
    pair.records.iter().filter(|record| record.outcome.is_graded())
}
