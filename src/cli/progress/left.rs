//! How much longer a run takes, from how long its attempts are expected to take. Knows neither clocks nor words.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::standing::Standing;
use crate::model::{OnPass, Produces, Strategy};

/// How much longer a run takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// It is not known how long some attempt takes.
    Unknown,
    /// About so long.
    About(Duration),
    /// So long, or less if attempts turn out not to be needed.
    UpTo(Duration),
    /// Everything that still runs has taken longer than expected.
    Overdue,
}

/// Estimates it: what runs ends when it is expected to, and what waits takes the place that is free first, the longest
/// first as in a real run.
pub(super) fn left(standing: &Standing, now: Duration) -> Left {
    let Some(mut work) = work(standing, now) else {
        return Left::Unknown;
    };
    work.waiting.sort_unstable_by_key(|job| Reverse(*job));
    let places = standing.plan.concurrency.value.max(1);
    let mut free: BinaryHeap<Reverse<Duration>> = work.running.iter().copied().map(Reverse).collect();
    while free.len() > places {
        free.pop();
    }
    let mut end = work.running.iter().max().copied().unwrap_or_default();
    for job in work.waiting {
        let from = if free.len() < places {
            Duration::ZERO
        } else {
            free.pop().map_or(Duration::ZERO, |Reverse(at)| at)
        };
        let until = from.saturating_add(job);
        end = end.max(until);
        free.push(Reverse(until));
    }
    let plan = &standing.plan;
    let may_skip = plan.runs > 1
        && plan.produces == Produces::Attempt
        && (plan.strategy != Strategy::Parallel || plan.on_pass == OnPass::Cancel);
    match end {
        Duration::ZERO => Left::Overdue,
        end if may_skip => Left::UpTo(end),
        end => Left::About(end),
    }
}

/// What is left to do: what is left of each place's work that runs, and the work that waits for one.
struct Work {
    running: Vec<Duration>,
    waiting: Vec<Duration>,
}

/// `None` where it is not known how long something takes.
fn work(standing: &Standing, now: Duration) -> Option<Work> {
    let tallies = standing.tallies();
    let each = standing.attempts_per_start();
    let mut remaining = vec![Vec::new(); tallies.len()];
    for (pair, running) in standing.running() {
        let spent = now.saturating_sub(running.since);
        remaining[pair].push(duration(standing.expected(pair)?).saturating_sub(spent));
    }
    let (mut running, mut waiting) = (Vec::new(), Vec::new());
    for (pair, tally) in tallies.iter().enumerate() {
        let starts = (tally.waiting() + tally.retrying) / each.max(1);
        let mut own = std::mem::take(&mut remaining[pair]);
        if starts > 0 {
            let expected = duration(standing.expected(pair)?);
            match (standing.plan.strategy, own.first_mut()) {
                // A place is a pair's, and its attempts come one after another.
                (Strategy::Sequential, Some(first)) => {
                    *first = first.saturating_add(expected.saturating_mul(starts as u32));
                }
                (Strategy::Sequential, None) => waiting.push(expected.saturating_mul(starts as u32)),
                (_, _) => waiting.extend(std::iter::repeat_n(expected, starts)),
            }
        }
        running.extend(own);
    }
    Some(Work { running, waiting })
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
