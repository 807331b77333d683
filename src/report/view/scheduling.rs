//! How the run was scheduled: what bounded it, what other strategies would have come to, how well it was predicted.

use super::{Line, Section, Table, Tone, Topic};
use crate::model::forecast::{Accuracy, Bound, BoundKind, Scheduling, Taken};
use crate::model::{PairId, Summary};
use crate::report::words::{dollars, duration};

/// The column with what it costs.
const COST: usize = 4;

/// The run, and each other strategy once, as many at once as the run had.
pub(super) fn section(scheduling: &Scheduling, summary: &Summary) -> Section {
    let all = &scheduling.strategies;
    let is_first =
        |at: usize, taken: &Taken| all[..at].iter().all(|earlier| earlier.strategy != taken.strategy);
    let first = all.iter().enumerate().filter(|(at, taken)| is_first(*at, taken));
    of(first.map(|(_, taken)| taken).collect(), scheduling, summary)
}

/// With other concurrencies too.
pub(super) fn whole(scheduling: &Scheduling, summary: &Summary) -> Section {
    of(scheduling.strategies.iter().collect(), scheduling, summary)
}

fn of(strategies: Vec<&Taken>, scheduling: &Scheduling, summary: &Summary) -> Section {
    let is_priced = strategies.iter().any(|taken| taken.cost_usd.is_some());
    let mut rows: Vec<Vec<Line>> = strategies.into_iter().map(taken).collect();
    rows.extend(scheduling.accuracy.as_ref().map(expected));
    let mut columns = vec!["strategy", "at once", "wall-clock", "all sandboxes", "cost", ""];
    if !is_priced {
        columns.remove(COST);
        rows.iter_mut().for_each(|row| drop(row.remove(COST)));
    }
    Section {
        topic: Topic::Scheduling,
        tone: Tone::Neutral,
        title: bounded(&scheduling.bounded_by, summary),
        table: Table { columns, rows },
        more: 0,
    }
}

fn bounded(bound: &Bound, summary: &Summary) -> Line {
    let name = bound.pair.as_ref().map(|pair| PairId {
        experiment: pair.experiment.clone(),
        eval: pair.eval.clone(),
    });
    let seconds = duration(bound.seconds.unwrap_or_default());
    let of_wall = format!(": {seconds} of {}", duration(summary.run.wall_seconds));
    let (before, after) = match bound.kind {
        BoundKind::SlowestAttempt => ("Bounded by the slowest attempt, one of ".to_owned(), of_wall),
        BoundKind::OneAfterAnother => ("Bounded by attempts one after another, of ".to_owned(), of_wall),
        BoundKind::Concurrency => (
            format!(
                "Bounded by the concurrency of {}: the pair that ended last, ",
                summary.run.concurrency
            ),
            format!(", waited {seconds} for its start"),
        ),
        BoundKind::Limit => (
            "Bounded by a limit on a label (`limits`): the pair that ended last, ".to_owned(),
            format!(", waited {seconds} for its start"),
        ),
        BoundKind::Retries => (
            "Bounded by tries that failed: the last attempt was one more try of ".to_owned(),
            String::new(),
        ),
        BoundKind::Budget => (
            "Bounded by the budget, which was used up".to_owned(),
            String::new(),
        ),
        BoundKind::Stopped => ("Stopped before it was done".to_owned(), String::new()),
    };
    match name {
        Some(name) => Line::own(before).and_name(name).and(after),
        None => Line::own(before),
    }
}

fn taken(taken: &Taken) -> Vec<Line> {
    let how = match taken.simulated {
        true => "simulated",
        false => "this run",
    };
    vec![
        Line::own(taken.strategy.to_string()),
        Line::own(taken.concurrency.to_string()),
        Line::own(duration(taken.wall_seconds)),
        Line::own(duration(taken.sandbox_seconds)),
        Line::own(taken.cost_usd.map_or_else(|| "n/a".to_owned(), dollars)),
        Line::own(how),
    ]
}

/// What the plan had said of this run.
fn expected(accuracy: &Accuracy) -> Vec<Line> {
    let expected = &accuracy.expected;
    let range = |range: crate::model::Range, shown: fn(f64) -> String| {
        let (low, likely, high) = (shown(range.low), shown(range.likely), shown(range.high));
        match low == high {
            true => likely,
            false => format!("{likely} ({low} to {high})"),
        }
    };
    let mut how = format!("predicted, {} pairs known", accuracy.known_pairs);
    if let Some(error) = accuracy.median_error {
        how.push_str(&format!(", half of the attempts within {:.0} %", error * 100.0));
    }
    vec![
        Line::own(expected.strategy.to_string()),
        Line::own(expected.concurrency.to_string()),
        Line::own(range(expected.wall_seconds, duration)),
        Line::own(range(expected.sandbox_seconds, duration)),
        Line::own(
            expected
                .cost_usd
                .map_or_else(|| "n/a".to_owned(), |cost| range(cost, dollars)),
        ),
        Line::own(how),
    ]
}
