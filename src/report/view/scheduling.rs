//! How the run was scheduled: what bounded it, what other strategies would have come to, how well it was predicted.

use super::{Line, Section, Table, Tone, Topic};
use crate::model::forecast::{Accuracy, Scheduling, Taken};
use crate::report::words::duration;

pub(super) fn section(scheduling: &Scheduling) -> Section {
    let mut rows: Vec<Vec<Line>> = scheduling.strategies.iter().map(taken).collect();
    rows.extend(scheduling.accuracy.as_ref().map(expected));
    Section {
        topic: Topic::Scheduling,
        tone: Tone::Neutral,
        title: Line::own("Bounded by ").and_excerpt(&scheduling.bounded_by.why),
        table: Table {
            columns: vec!["strategy", "at once", "wall-clock", "all sandboxes", ""],
            rows,
        },
        more: 0,
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
