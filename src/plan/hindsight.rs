//! A run's scheduling seen from its end: what bounded it, what the other strategies would have come to, how well it was
//! predicted. Decides nothing.

use std::time::Duration;

use super::concurrency;
use super::experience::median;
use super::forecast::{Choice, Costs};
use super::price::cost_of;
use super::scheduled::{self, duration};
use crate::config::PriceConfig;
use crate::model::comparison::PairRef;
use crate::model::forecast::{Accuracy, Bound, BoundKind, Scheduling, Taken};
use crate::model::{
    AttemptRecord, CancelReason, Outcome, PairSummary, PlannedLimit, Produces, RunPlan, Strategy, Summary,
    Verdict,
};
use crate::schedule::{Pace, Trace, TraceAttempt, TracePair};

/// Attempts of one pair follow each other if there is no more than this between them, in seconds; and what started so
/// early started with the run.
const AT_ONCE: f64 = 1.0;

/// What there is to say; `None` where nothing ran.
pub fn hindsight(plan: &RunPlan, summary: &Summary, price: &PriceConfig) -> Option<Scheduling> {
    // Of several the first.
    let last = ran(summary).min_by(|(_, one), (_, other)| end(other).total_cmp(&end(one)))?;
    let costs = costs(summary, price);
    let mut strategies = vec![Taken {
        strategy: plan.strategy,
        concurrency: plan.concurrency.value,
        simulated: false,
        wall_seconds: summary.run.wall_seconds,
        sandbox_seconds: summary.totals.sandbox_seconds,
        cost_usd: costs.as_ref().map(|_| spent(summary, price)),
    }];
    // A run that was stopped has no whole to be compared with, and a command that runs its whole pair no strategy.
    if summary.run.reason.is_none()
        && plan.produces == Produces::Attempt
        && let Some(trace) = trace(plan, summary)
    {
        let means = costs.and_then(|costs| costs.iter().map(|each| mean(each)).collect());
        let costs = means.map(|attempts| Costs {
            attempts,
            sandbox_second: price.sandbox_second,
        });
        strategies.extend(simulated(plan, &trace, costs.as_ref()));
    }
    Some(Scheduling {
        bounded_by: bound(plan, summary, last),
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
fn bound(plan: &RunPlan, summary: &Summary, (pair, last): (&PairSummary, &AttemptRecord)) -> Bound {
    match summary.run.reason {
        Some(CancelReason::Budget) => return whole(BoundKind::Budget, "its budget, which was used up"),
        Some(_) => return whole(BoundKind::Stopped, "nothing: it was stopped before it was done"),
        None => {}
    }
    let all = concurrency::total(plan.strategy, plan.produces, plan.pairs.len(), plan.runs);
    let had_all_places = plan.concurrency.value >= all;
    let limits = binding(plan, pair);
    // Where places were free, an attempt that started while one before it ran was kept back by the strategy.
    let was_kept_back = plan.strategy == Strategy::Adaptive && had_all_places && limits.is_empty();
    let mut first = last;
    let mut links = 1;
    let mut overlaps = false;
    while let Some(before) = pair
        .attempts
        .iter()
        .filter(|each| each.index < first.index && each.started_offset.is_some())
        .find(|each| {
            let gap = start(first) - end(each);
            gap.abs() <= AT_ONCE || (was_kept_back && gap < 0.0 && start(each) < start(first))
        })
    {
        overlaps |= end(before) - start(first) > AT_ONCE;
        first = before;
        links += 1;
    }
    let id = pair.id();
    let taken = end(last) - start(first);
    let wall = summary.run.wall_seconds;
    let waited = || {
        format!(
            "{id}, which ended last, waited {:.1} s for its start",
            start(first)
        )
    };
    let was_first = start(first) <= AT_ONCE;
    let wait = (!was_first).then(|| waited_for(plan, summary, &limits, first));
    let (kind, seconds, why) = match (wait, first.tries > 1, links) {
        (None, _, 1) | (Some(Wait::Nothing), false, 1) => (
            BoundKind::SlowestAttempt,
            taken,
            format!("the slowest attempt, one of {id}: {taken:.1} s of {wall:.1} s"),
        ),
        (None, ..) | (Some(Wait::Nothing), false, _) => (
            BoundKind::OneAfterAnother,
            taken,
            format!(
                "{links} attempts of {id}, {}one after another: {taken:.1} s of {wall:.1} s",
                if overlaps { "started " } else { "" }
            ),
        ),
        (Some(_), true, _) => (
            BoundKind::Retries,
            start(first),
            format!("tries that failed: the last attempt, one of {id}, was tried again"),
        ),
        (Some(Wait::Limit(limit)), false, _) => (
            BoundKind::Limit,
            start(first),
            format!(
                "the limit of {} at once for {}={}: {}",
                limit.concurrency,
                limit.name,
                limit.value,
                waited()
            ),
        ),
        (Some(Wait::Place), false, _) => (
            BoundKind::Concurrency,
            start(first),
            format!("its concurrency of {}: {}", summary.run.concurrency, waited()),
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

/// What an attempt that did not start with the run has waited for.
enum Wait<'a> {
    Limit(&'a PlannedLimit),
    Place,
    /// There was a place for it.
    Nothing,
}

/// A limit whose places were all taken shortly before the attempt started, else a place at all.
fn waited_for<'a>(
    plan: &RunPlan,
    summary: &Summary,
    limits: &[&'a PlannedLimit],
    attempt: &AttemptRecord,
) -> Wait<'a> {
    let before = start(attempt) - AT_ONCE;
    let running = |limit: &PlannedLimit| {
        let held = ran(summary).filter(|(pair, _)| limit.holds(&pair.labels));
        held.filter(|(_, each)| start(each) <= before && before < end(each))
            .count()
    };
    let all = concurrency::total(plan.strategy, plan.produces, plan.pairs.len(), plan.runs);
    let full = limits.iter().find(|limit| running(limit) >= limit.concurrency);
    match (full, limits.first()) {
        (Some(limit), _) => Wait::Limit(limit),
        _ if plan.concurrency.value < all => Wait::Place,
        (None, Some(limit)) => Wait::Limit(limit),
        (None, None) => Wait::Nothing,
    }
}

/// The limits that hold for the pair and let fewer run at once than there are.
fn binding<'a>(plan: &'a RunPlan, pair: &PairSummary) -> Vec<&'a PlannedLimit> {
    let binds = |limit: &PlannedLimit| {
        let held = plan.pairs.iter().filter(|each| limit.holds(&each.labels)).count();
        limit.concurrency < concurrency::total(plan.strategy, plan.produces, held, plan.runs)
    };
    let held = plan.limits.iter().filter(|limit| limit.holds(&pair.labels));
    held.filter(|limit| binds(limit)).collect()
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

/// What each strategy would have come to with as many at once as the run had, or, where that was no bound, all at once
/// that may be; then with half of that, and with all.
fn simulated(plan: &RunPlan, trace: &Trace, costs: Option<&Costs>) -> Vec<Taken> {
    let others = [Strategy::Parallel, Strategy::Sequential, Strategy::Adaptive];
    let others = others.into_iter().filter(|strategy| *strategy != plan.strategy);
    let all = concurrency::total(plan.strategy, plan.produces, plan.pairs.len(), plan.runs);
    let taken = std::iter::once(plan.strategy).chain(others).flat_map(|strategy| {
        let most = concurrency::total(strategy, plan.produces, plan.pairs.len(), plan.runs);
        let allowed = most.min(plan.concurrency.most.unwrap_or(most));
        let like_the_run = match plan.concurrency.value < all {
            true => plan.concurrency.value.min(most),
            false => allowed,
        };
        let mut each = Choice::new(strategy, like_the_run, allowed).concurrencies;
        // That is the run itself.
        each.retain(|concurrency| (strategy, *concurrency) != (plan.strategy, plan.concurrency.value));
        each.into_iter().map(move |concurrency| {
            let timeline = trace.simulate(Pace::new(strategy, plan.on_pass), concurrency);
            Taken {
                strategy,
                concurrency,
                simulated: true,
                wall_seconds: rounded(timeline.wall),
                sandbox_seconds: rounded(timeline.sandbox_time),
                cost_usd: costs.map(|costs| micro_dollars(costs.of(trace, &timeline))),
            }
        })
    });
    taken.collect()
}

/// USD of the graded attempts of each pair, besides their sandboxes; `None` where it is not known of every one, or there
/// is none. If no attempt reports anything, sandboxes that have a price are all that costs.
fn costs(summary: &Summary, price: &PriceConfig) -> Option<Vec<Vec<f64>>> {
    let reports = |pair: &PairSummary| reported(pair, price).next().is_some();
    if price.sandbox_second > 0.0 && !summary.pairs.iter().any(reports) {
        return Some(vec![vec![0.0]; summary.pairs.len()]);
    }
    let of_pair = |pair: &PairSummary| -> Option<Vec<f64>> {
        let graded = pair.attempts.iter().filter(|attempt| attempt.outcome.is_graded());
        graded
            .map(|attempt| cost_of(attempt.usage?, &pair.labels, price))
            .collect()
    };
    let costs: Vec<Vec<f64>> = summary.pairs.iter().map(of_pair).collect::<Option<_>>()?;
    costs.iter().any(|costs| !costs.is_empty()).then_some(costs)
}

/// USD of all attempts that say what they used, and of the sandboxes.
fn spent(summary: &Summary, price: &PriceConfig) -> f64 {
    let of_pair = |pair: &PairSummary| reported(pair, price).sum::<f64>();
    let attempts: f64 = summary.pairs.iter().map(of_pair).sum();
    micro_dollars(attempts + summary.totals.sandbox_seconds * price.sandbox_second)
}

/// USD of the pair's attempts that say what they used.
fn reported(pair: &PairSummary, price: &PriceConfig) -> impl Iterator<Item = f64> {
    let used = pair.attempts.iter().filter_map(|attempt| attempt.usage);
    used.filter_map(|usage| cost_of(usage, &pair.labels, price))
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Rounded, as every document shows USD.
fn micro_dollars(usd: f64) -> f64 {
    (usd * 1e6).round() / 1e6
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
