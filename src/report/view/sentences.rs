//! What a comparison says in plain sentences: its verdict, and what earlier runs make of its flips.

use super::Line;
use crate::compare::{Part, sentence_parts};
use crate::model::Comparison;
use crate::model::comparison::History;
use crate::report::words::count;

pub(super) fn of(comparison: &Comparison) -> Vec<Line> {
    let verdict = sentence_parts(comparison)
        .into_iter()
        .fold(Line::default(), |line, part| match part {
            Part::Own(text) => line.and(text),
            Part::Name(name) => line.and_name(name),
        });
    let history = comparison.history.as_ref().map(|history| {
        let flips = &comparison.flips;
        expected(
            history,
            comparison.compared,
            flips.pass_to_fail.len(),
            flips.fail_to_pass.len(),
        )
    });
    std::iter::once(verdict).chain(history).collect()
}

fn expected(history: &History, compared: usize, down: usize, up: usize) -> Line {
    let runs = count(history.runs, "earlier run", "earlier runs");
    let (Some(less), Some(more)) = (history.expected_pass_to_fail, history.expected_fail_to_pass) else {
        return Line::own(format!("{runs}: no verdict on any pair that is compared"));
    };
    let part = if history.pairs == compared {
        String::new()
    } else {
        format!(" in the {} that they have", count(history.pairs, "pair", "pairs"))
    };
    Line::own(format!(
        "{runs}: noise alone predicts {less:.1} PASS→FAIL and {more:.1} FAIL→PASS{part}, and there are {down} and {up}; {} went both ways",
        count(history.flaky, "pair", "pairs")
    ))
}
