//! What a run says that is compared with nothing: how each experiment did, and which pairs failed.

use super::super::{Line, Section, Tone, Topic};
use super::{first_failure, section};
use crate::model::{PairSummary, Summary, Verdict};
use crate::report::words::{count, rate};

/// The experiments' pass rates; `None` where there is only one.
pub(in crate::report::view) fn experiments(summary: &Summary) -> Option<Section> {
    let mut experiments: Vec<(&str, Vec<&PairSummary>)> = Vec::new();
    for pair in &summary.pairs {
        let name = pair.experiment.as_str();
        match experiments.iter_mut().find(|(known, _)| *known == name) {
            Some((_, pairs)) => pairs.push(pair),
            None => experiments.push((name, vec![pair])),
        }
    }
    let of_attempts = summary.totals.attempt_pass_rate.is_some() && summary.run.runs > 1;
    let mut columns = vec!["experiment", "pass rate"];
    if of_attempts {
        columns.push("single attempt");
    }
    let row = |(name, pairs): &(&str, Vec<&PairSummary>)| {
        let with = |verdict| pairs.iter().filter(|pair| pair.verdict == verdict).count();
        let passed = with(Verdict::Pass);
        let mut row = vec![Line::name(name), fraction(passed, passed + with(Verdict::Fail))];
        if of_attempts {
            let sum = |of: fn(&PairSummary) -> u32| pairs.iter().map(|pair| of(pair) as usize).sum();
            row.push(fraction(
                sum(|pair| pair.passed_attempts),
                sum(|pair| pair.graded_attempts),
            ));
        }
        row
    };
    let rows: Vec<Vec<Line>> = experiments.iter().map(row).collect();
    let title = Line::own("By experiment");
    section(Topic::Alone, Tone::Neutral, title, columns, rows).filter(|section| section.table.rows.len() > 1)
}

/// The pairs that failed, and why.
pub(in crate::report::view) fn failed(summary: &Summary) -> Option<Section> {
    let failed = summary.pairs.iter().filter(|pair| pair.verdict == Verdict::Fail);
    let row = |pair: &PairSummary| {
        vec![
            Line::name(&pair.experiment),
            Line::name(&pair.eval),
            Line::own(format!("{}/{}", pair.passed_attempts, pair.graded_attempts)),
            first_failure(pair),
        ]
    };
    let rows: Vec<Vec<Line>> = failed.map(row).collect();
    let title = Line::own(format!("{} failed", count(rows.len(), "pair", "pairs")));
    let columns = vec!["experiment", "eval", "passed", "first failing check"];
    section(Topic::Alone, Tone::Bad, title, columns, rows)
}

fn fraction(passed: usize, of: usize) -> Line {
    match rate(passed, of) {
        Some(rate) => Line::own(format!("{rate} ({passed}/{of})")),
        None => Line::own("n/a"),
    }
}
