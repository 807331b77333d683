//! Pairs that are shown apart from the flips: those that pass less often without one, and those in quarantine.

use super::super::{Line, Section, Tone, Topic};
use super::section;
use crate::model::comparison::FewerPasses;
use crate::model::summary::Quarantined;
use crate::model::{Comparison, Summary, Verdict};
use crate::report::words::count;

/// Pairs that pass less often, where verdicts do not show it.
pub(in crate::report::view) fn fewer_passes(comparison: &Comparison) -> Option<Section> {
    let row = |pair: &FewerPasses| {
        vec![
            Line::name(&pair.experiment),
            Line::name(&pair.eval),
            Line::result(&pair.before),
            Line::result(&pair.now),
        ]
    };
    let rows: Vec<Vec<Line>> = comparison.fewer_passes.iter().map(row).collect();
    let title = Line::own(format!(
        "{} less often without a flip",
        count(rows.len(), "pair passes", "pairs pass")
    ));
    section(
        Topic::Flips,
        Tone::Neutral,
        title,
        vec!["experiment", "eval", "before", "now"],
        rows,
    )
}

/// Pairs that run and do not gate, and why.
pub(in crate::report::view) fn quarantine(summary: &Summary) -> Option<Section> {
    let verdict = |pair: &Quarantined| {
        let found = summary
            .pairs
            .iter()
            .find(|each| each.experiment == pair.experiment && each.eval == pair.eval);
        found.map_or("not run", |pair| match pair.verdict {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::Error => "error",
            Verdict::NotRun => "not run",
        })
    };
    let row = |pair: &Quarantined| {
        let until = pair
            .until
            .map_or_else(|| "for good".to_owned(), |day| day.to_string());
        vec![
            Line::name(&pair.experiment),
            Line::name(&pair.eval),
            Line::own(verdict(pair)),
            Line::own(until),
            pair.why.as_deref().map_or_else(Line::default, Line::excerpt),
        ]
    };
    let rows: Vec<Vec<Line>> = summary.quarantined.iter().map(row).collect();
    let title = Line::own(format!(
        "{} in quarantine: shown, and no gate looks at {}",
        count(rows.len(), "pair", "pairs"),
        if rows.len() == 1 { "it" } else { "them" }
    ));
    section(
        Topic::Quarantine,
        Tone::Neutral,
        title,
        vec!["experiment", "eval", "now", "until", "why"],
        rows,
    )
}
