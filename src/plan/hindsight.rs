//! A run's scheduling seen from its end: what bounded it, what the other strategies would have come to, how well it was
//! predicted. Decides nothing.

use std::time::Duration;

use super::concurrency;
use super::experience::median;
use super::scheduled::{self, duration};
use crate::model::comparison::PairRef;
use crate::model::forecast::{Accuracy, Bound, BoundKind, Scheduling, Taken};
use crate::model::{
    AttemptRecord, CancelReason, Outcome, PairSummary, Produces, RunPlan, Strategy, Summary, Verdict,
};
use crate::schedule::{Pace, Trace, TraceAttempt, TracePair};

/// Attempts of one pair follow each other if there is no more than this between them, in seconds; and what started so
/// early started with the run.
const AT_ONCE: f64 = 1.0;

/// What there is to say; `None` where nothing ran.
pub fn hindsight(plan: &RunPlan, summary: &Summary) -> Option<Scheduling> {
    // Of several the first.
    let last = ran(summary).min_by(|(_, one), (_, other)| end(other).total_cmp(&end(one)))?;
    let mut strategies = vec![Taken {
        strategy: plan.strategy,
        concurrency: plan.concurrency.value,
        simulated: false,
        wall_seconds: summary.run.wall_seconds,
        sandbox_seconds: summary.totals.sandbox_seconds,
    }];
    // A run that was stopped has no whole to be compared with, and a command that runs its whole pair no strategy.
    if summary.run.reason.is_none()
        && plan.produces == Produces::Attempt
        && let Some(trace) = trace(plan, summary)
    {
        strategies.extend(simulated(plan, &trace));
    }
    Some(Scheduling {
        bounded_by: bound(summary, last),
        strategies,
        accuracy: accuracy(plan, summary),
    })
}

/// Attempts that started, with their pairs.
fn ran(summary: &Summary) -> impl Iterator<Item = (&PairSummary, &AttemptRecord)> {
    let attempts = summary
        .pairs
        .iter()
        .flat_map(|pair| pair.attempts.iter().map(move |attempt| (pair, attempt)));
    attempts.filter(|(_, attempt)| attempt.started_offset.is_some())
}

fn start(attempt: &AttemptRecord) -> f64 {
    attempt.started_offset.unwrap_or_default()
}

fn end(attempt: &AttemptRecord) -> f64 {
    start(attempt) + attempt.seconds
}

/// Follows the attempts of the pair that ended last back to the run's start.
fn bound(summary: &Summary, (pair, last): (&PairSummary, &AttemptRecord)) -> Bound {
    match summary.run.reason {
        Some(CancelReason::Budget) => return whole(BoundKind::Budget, "its budget, which was used up"),
        Some(_) => return whole(BoundKind::Stopped, "nothing: it was stopped before it was done"),
        None => {}
    }
    let mut first = last;
    let mut links = 1;
    while let Some(before) = pair
        .attempts
        .iter()
        .filter(|each| each.index < first.index && each.started_offset.is_some())
        .find(|each| (end(each) - start(first)).abs() <= AT_ONCE)
    {
        first = before;
        links += 1;
    }
    let id = pair.id();
    let taken = end(last) - start(first);
    let wall = summary.run.wall_seconds;
    let (kind, seconds, why) = match (start(first) <= AT_ONCE, first.tries > 1, links) {
        (true, _, 1) => (
            BoundKind::SlowestAttempt,
            taken,
            format!("the slowest attempt, one of {id}: {taken:.1} s of {wall:.1} s"),
        ),
        (true, ..) => (
            BoundKind::OneAfterAnother,
            taken,
            format!("{links} attempts of {id}, one after another: {taken:.1} s of {wall:.1} s"),
        ),
        (false, true, _) => (
            BoundKind::Retries,
            start(first),
            format!("tries that failed: the last attempt, one of {id}, was tried again"),
        ),
        (false, false, _) => (
            BoundKind::Concurrency,
            start(first),
            format!(
                "its concurrency of {}: {id}, which ended last, waited {:.1} s for its start",
                summary.run.concurrency,
                start(first)
            ),
        ),
    };
    Bound {
        kind,
        pair: Some(PairRef {
            experiment: id.experiment,
            eval: id.eval,
        }),
        seconds: Some((seconds * 1000.0).round() / 1000.0),
        why,
    }
}

/// A bound that is about no pair.
fn whole(kind: BoundKind, why: &str) -> Bound {
    Bound {
        kind,
        pair: None,
        seconds: None,
        why: why.to_owned(),
    }
}

/// The run's attempts as they were measured. Those that did not come to their end are taken to be like the others of
/// their pair, and to give what the pair came to, as they could not have changed it.
fn trace(plan: &RunPlan, summary: &Summary) -> Option<Trace> {
    let commands = |pair: &PairSummary| -> Vec<f64> {
        let graded = pair.attempts.iter().filter(|attempt| attempt.outcome.is_graded());
        graded.filter_map(|attempt| attempt.phases.command).collect()
    };
    let all: Vec<f64> = summary.pairs.iter().flat_map(commands).collect();
    let usual = median(&all)?;
    let overheads: Vec<f64> = ran(summary)
        .filter_map(|(_, attempt)| attempt.overhead_seconds())
        .collect();
    let overhead = median(&overheads).and_then(duration).unwrap_or_default();
    let pairs = summary
        .pairs
        .iter()
        .zip(scheduled::pairs(plan))
        .map(|(pair, spec)| {
            let middle = median(&commands(pair)).unwrap_or(usual);
            let attempt = |index: u32| {
                let record = pair.attempts.iter().find(|attempt| attempt.index == index);
                let graded = record.filter(|record| record.outcome.is_graded());
                let otherwise = match pair.verdict {
                    Verdict::Pass => Outcome::Passed,
                    Verdict::Fail => Outcome::Failed,
                    Verdict::Error | Verdict::NotRun => Outcome::Errored,
                };
                TraceAttempt {
                    command: duration(graded.and_then(|record| record.phases.command).unwrap_or(middle))
                        .unwrap_or(Duration::ZERO),
                    outcome: graded.map_or(otherwise, |record| record.outcome),
                    score: graded.and_then(|record| record.score),
                }
            };
            TracePair {
                attempts: (1..=plan.runs).map(attempt).collect(),
                spec,
            }
        });
    Some(Trace {
        overhead,
        policy: plan.policy,
        runs: plan.runs,
        pairs: pairs.collect(),
        limits: scheduled::limits(plan),
    })
}

/// The strategies that the run did not have, as many at once as it had, or all at once where that was no bound.
fn simulated(plan: &RunPlan, trace: &Trace) -> Vec<Taken> {
    let others = [Strategy::Parallel, Strategy::Sequential, Strategy::Adaptive];
    let others = others.into_iter().filter(|strategy| *strategy != plan.strategy);
    let all = concurrency::total(plan.strategy, plan.produces, plan.pairs.len(), plan.runs);
    let taken = others.map(|strategy| {
        let most = concurrency::total(strategy, plan.produces, plan.pairs.len(), plan.runs);
        let concurrency = match plan.concurrency.value < all {
            true => plan.concurrency.value.min(most),
            false => most,
        };
        let timeline = trace.simulate(Pace::new(strategy, plan.on_pass), concurrency);
        Taken {
            strategy,
            concurrency,
            simulated: true,
            wall_seconds: rounded(timeline.wall),
            sandbox_seconds: rounded(timeline.sandbox_time),
        }
    });
    taken.collect()
}

fn accuracy(plan: &RunPlan, summary: &Summary) -> Option<Accuracy> {
    let forecast = plan.forecast.as_ref()?;
    let misses = plan.pairs.iter().zip(&summary.pairs).flat_map(|(planned, pair)| {
        let predicted = planned.predicted_seconds.filter(|seconds| *seconds > 0.0);
        let graded = pair.attempts.iter().filter(|attempt| attempt.outcome.is_graded());
        graded.filter_map(move |attempt| Some((attempt.phases.command? / predicted? - 1.0).abs()))
    });
    let misses: Vec<f64> = misses.collect();
    Some(Accuracy {
        known_pairs: forecast.known_pairs,
        expected: forecast.run,
        median_error: median(&misses).map(|error| (error * 10_000.0).round() / 10_000.0),
    })
}

fn rounded(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}
