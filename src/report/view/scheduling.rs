//! How the run was scheduled: what bounded it, what other strategies would have come to, how well it was predicted.

use super::{Line, Section, Table, Tone, Topic};
use crate::model::forecast::{Accuracy, Bound, BoundKind, Scheduling, Taken};
use crate::model::{PairId, Summary};
use crate::report::words::duration;

pub(super) fn section(scheduling: &Scheduling, summary: &Summary) -> Section {
    let mut rows: Vec<Vec<Line>> = scheduling.strategies.iter().map(taken).collect();
    rows.extend(scheduling.accuracy.as_ref().map(expected));
    Section {
        topic: Topic::Scheduling,
        tone: Tone::Neutral,
        title: bounded(&scheduling.bounded_by, summary),
        table: Table {
            columns: vec!["strategy", "at once", "wall-clock", "all sandboxes", ""],
            rows,
        },
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
        true => "simulated from this run",
        false => "this run",
    };
    vec![
        Line::own(taken.strategy.to_string()),
        Line::own(taken.concurrency.to_string()),
        Line::own(duration(taken.wall_seconds)),
        Line::own(duration(taken.sandbox_seconds)),
        Line::own(how),
    ]
}

/// What the plan had said of this run.
fn expected(accuracy: &Accuracy) -> Vec<Line> {
    let expected = &accuracy.expected;
    let range = |range: crate::model::Range| {
        let (low, likely, high) = (duration(range.low), duration(range.likely), duration(range.high));
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
        Line::own(range(expected.wall_seconds)),
        Line::own(range(expected.sandbox_seconds)),
        Line::own(how),
    ]
}
