//! What follows the table: notices, failed gates, flips, groups, attempts, and the pairs that were not compared.

mod alone;
mod apart;

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{Compared, Line, MOST_ROWS, Section, Table, Tone, Topic, headline};
use crate::model::comparison::{Flip, Group};
use crate::model::summary::GateResult;
use crate::model::{AttemptError, AttemptRecord, Comparison, Outcome, PairSummary, Summary, Verdict};
use crate::report::words::{duration, p_number, points, rate};
pub(super) use alone::{experiments, failed};
pub(super) use apart::{fewer_passes, quarantine};

/// How many of the slowest pairs are shown.
const SLOWEST: usize = 5;

pub(super) fn notices<'a>(notices: impl Iterator<Item = &'a String>) -> Option<Section> {
    let rows: Vec<Vec<Line>> = notices.map(|notice| vec![Line::excerpt(notice)]).collect();
    section(
        Topic::Notices,
        Tone::Neutral,
        Line::own("Notices"),
        Vec::new(),
        rows,
    )
}

/// The gates that failed, and why.
pub(super) fn gates(gates: &[GateResult]) -> Option<Section> {
    let failed: Vec<Vec<Line>> = gates
        .iter()
        .filter(|gate| gate.failed)
        .map(|gate| vec![Line::name(&gate.gate), Line::excerpt(&gate.why)])
        .collect();
    let title = Line::own(format!("{} of {} gates failed", failed.len(), gates.len()));
    section(Topic::Gates, Tone::Bad, title, Vec::new(), failed)
}

/// Flips each way. What failed is known of this run's own summary only.
pub(super) fn flips(comparison: &Comparison, summary: Option<&Summary>) -> Vec<Section> {
    let pairs: HashMap<(&str, &str), &PairSummary> = summary
        .into_iter()
        .flat_map(|summary| &summary.pairs)
        .map(|pair| ((pair.experiment.as_str(), pair.eval.as_str()), pair))
        .collect();
    let failing = |flip: &Flip| {
        let pair = pairs.get(&(flip.experiment.as_str(), flip.eval.as_str()));
        pair.map_or_else(Line::default, |pair| first_failure(pair))
    };
    let mut columns = vec!["experiment", "eval", "before", "now"];
    let up = rows(&comparison.flips.fail_to_pass, |_| Vec::new());
    let up_columns = columns.clone();
    let down = match summary {
        Some(_) => {
            columns.push("first failing check");
            rows(&comparison.flips.pass_to_fail, |flip| vec![failing(flip)])
        }
        None => rows(&comparison.flips.pass_to_fail, |_| Vec::new()),
    };
    let title =
        |flips: &[Flip], way: &str| Line::own(format!("{} {way}{}", flips.len(), headline::flaky(flips)));
    let down = section(
        Topic::Flips,
        Tone::Bad,
        title(&comparison.flips.pass_to_fail, "PASS→FAIL"),
        columns,
        down,
    );
    let up = section(
        Topic::Flips,
        Tone::Good,
        title(&comparison.flips.fail_to_pass, "FAIL→PASS"),
        up_columns,
        up,
    );
    down.into_iter().chain(up).collect()
}

/// One section a grouping.
pub(super) fn groups(comparison: &Comparison) -> Vec<Section> {
    let mut groupings: Vec<(&str, Vec<&Group>)> = Vec::new();
    for group in &comparison.groups {
        match groupings.iter_mut().find(|(by, _)| *by == group.by) {
            Some((_, groups)) => groups.push(group),
            None => groupings.push((&group.by, vec![group])),
        }
    }
    let sections = groupings.into_iter().filter_map(|(by, groups)| {
        let mut title = Line::own("By ").and_name(by);
        if let Some(concentration) = comparison.concentration.as_ref().filter(|found| found.by == by) {
            title = title.and(": ").and_excerpt(&concentration.reading);
        }
        let columns = vec![
            "group",
            "pairs",
            "baseline",
            "this run",
            "change",
            "PASS→FAIL",
            "FAIL→PASS",
            "adjusted p",
        ];
        section(
            Topic::Groups,
            Tone::Neutral,
            title,
            columns,
            groups.into_iter().map(group_row).collect(),
        )
    });
    sections.collect()
}

/// How many attempts passed of how many, of how many pairs: `185 x 2/2 · 22 x 1/2`.
pub(super) fn distribution(summary: &Summary) -> String {
    let mut distribution: Vec<(u32, u32, usize)> = summary
        .totals
        .distribution
        .iter()
        .filter_map(|(ratio, pairs)| {
            let (passed, of) = ratio.split_once('/')?;
            Some((passed.parse().ok()?, of.parse().ok()?, *pairs))
        })
        .filter(|(_, of, _)| *of > 0)
        .collect();
    distribution.sort_by_key(|(passed, of, _)| Reverse((*of, *passed)));
    let parts: Vec<String> = distribution
        .iter()
        .map(|(passed, of, pairs)| format!("{pairs} x {passed}/{of}"))
        .collect();
    match parts.is_empty() {
        true => "none gave a result".to_owned(),
        false => parts.join(" · "),
    }
}

/// How many attempts passed of how many, and the slowest pairs.
pub(super) fn attempts(summary: &Summary) -> Option<Section> {
    let mut slowest: Vec<(&PairSummary, f64)> = summary
        .pairs
        .iter()
        .map(|pair| {
            (
                pair,
                pair.attempts
                    .iter()
                    .map(|attempt| attempt.seconds)
                    .fold(0.0, f64::max),
            )
        })
        .filter(|(_, seconds)| *seconds > 0.0)
        .collect();
    slowest.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let rows = slowest.into_iter().take(SLOWEST).map(|(pair, seconds)| {
        vec![
            Line::name(&pair.experiment),
            Line::name(&pair.eval),
            Line::own(duration(seconds)),
            Line::own(format!("{}/{}", pair.passed_attempts, pair.graded_attempts)),
        ]
    });
    let title = format!("Attempts: {}", distribution(summary));
    let columns = vec!["experiment, slowest first", "eval", "longest attempt", "passed"];
    section(
        Topic::Attempts,
        Tone::Neutral,
        Line::own(title),
        columns,
        rows.collect(),
    )
}

/// Pairs of one side only, pairs that cannot be compared, verdicts that are not firm, and attempts that errored.
pub(super) fn others(comparison: Option<&Comparison>, summary: Option<&Summary>) -> Option<Section> {
    let mut counts = Vec::new();
    let mut tone = Tone::Neutral;
    let mut kinds: Vec<Vec<Vec<Line>>> = Vec::new();
    if let Some(comparison) = comparison {
        let row = |what: &str, experiment: &dyn ToString, eval: &dyn ToString, why: Line| {
            vec![
                Line::own(what),
                Line::name(experiment.to_string()),
                Line::name(eval.to_string()),
                why,
            ]
        };
        let added = comparison.added.iter();
        let removed = comparison.removed.iter();
        let not_comparable = comparison.not_comparable.iter();
        counts.push(format!("Added {}", comparison.added.len()));
        counts.push(format!("removed {}", comparison.removed.len()));
        counts.push(format!("not comparable {}", comparison.not_comparable.len()));
        kinds.push(
            added
                .map(|pair| row("added", &pair.experiment, &pair.eval, Line::default()))
                .collect(),
        );
        kinds.push(
            removed
                .map(|pair| row("removed", &pair.experiment, &pair.eval, Line::default()))
                .collect(),
        );
        kinds.push(
            not_comparable
                .map(|pair| {
                    row(
                        "not comparable",
                        &pair.experiment,
                        &pair.eval,
                        Line::excerpt(&pair.reason),
                    )
                })
                .collect(),
        );
        if comparison.not_selected > 0 {
            counts.push(format!("not selected {}", comparison.not_selected));
        }
    }
    if let Some(summary) = summary {
        let errors = errors(summary);
        if !errors.is_empty() {
            tone = Tone::Bad;
        }
        counts.push(format!(
            "{} {}",
            if counts.is_empty() { "Errors" } else { "errors" },
            errors.len()
        ));
        kinds.push(errors);
        if comparison.is_none() {
            let lost = not_firm(summary);
            if !lost.is_empty() {
                counts.push(format!("not firm {}", lost.len()));
            }
            kinds.push(lost);
        }
    }
    let mut shown = Vec::new();
    let mut more = 0;
    for mut kind in kinds {
        more += kind.len().saturating_sub(MOST_ROWS);
        kind.truncate(MOST_ROWS);
        shown.extend(kind);
    }
    let title = Line::own(counts.join(" · "));
    (!shown.is_empty()).then(|| Section {
        topic: Topic::Others,
        tone,
        title,
        table: Table {
            columns: vec!["what", "experiment", "eval", "why"],
            rows: shown,
        },
        more,
    })
}

fn section(
    topic: Topic,
    tone: Tone,
    title: Line,
    columns: Vec<&'static str>,
    mut rows: Vec<Vec<Line>>,
) -> Option<Section> {
    let more = rows.len().saturating_sub(MOST_ROWS);
    rows.truncate(MOST_ROWS);
    (!rows.is_empty()).then_some(Section {
        topic,
        tone,
        title,
        table: Table { columns, rows },
        more,
    })
}

fn rows(flips: &[Flip], rest: impl Fn(&Flip) -> Vec<Line>) -> Vec<Vec<Line>> {
    let mut sorted: Vec<&Flip> = flips.iter().collect();
    sorted.sort_by_key(|flip| flip.flaky);
    sorted
        .into_iter()
        .map(|flip| {
            let mut now = Line::result(&flip.now);
            if flip.quarantined {
                now = now.and(" (in quarantine)");
            } else if flip.flaky {
                now = now.and(" (known flaky)");
            }
            now = match flip.confirmed {
                Some(true) => now.and(" (confirmed)"),
                Some(false) => now.and(" (did not reproduce)"),
                None => now,
            };
            let mut row = vec![
                Line::name(&flip.experiment),
                Line::name(&flip.eval),
                Line::result(&flip.before),
                now,
            ];
            row.extend(rest(flip));
            row
        })
        .collect()
}

/// Why the attempt that stands for the pair failed; if it does not say, the first other one that does.
fn first_failure(pair: &PairSummary) -> Line {
    let (standing, others): (Vec<_>, Vec<_>) = pair
        .attempts
        .iter()
        .partition(|attempt| Some(attempt.index) == pair.representative);
    let failure = |attempt: &AttemptRecord| match (attempt.checks_failed.first(), attempt.outcome) {
        (Some(check), _) => Some(Line::excerpt(check)),
        (None, Outcome::TimedOut) => Some(Line::own("timed out")),
        (None, _) => None,
    };
    standing
        .into_iter()
        .chain(others)
        .find_map(failure)
        .unwrap_or_default()
}

fn group_row(group: &Group) -> Vec<Line> {
    let compared = Compared {
        baseline: group.passed_baseline,
        current: group.passed_current,
        of: group.compared,
    };
    let own = |text: Option<String>| Line::own(text.unwrap_or_else(|| "n/a".to_owned()));
    vec![
        Line::name(&group.value),
        Line::own(group.compared.to_string()),
        own(rate(group.passed_baseline, group.compared)),
        own(rate(group.passed_current, group.compared)),
        own(compared.delta().map(points)),
        Line::own(group.pass_to_fail.to_string()),
        Line::own(group.fail_to_pass.to_string()),
        own(group.p_adjusted.map(p_number)),
    ]
}

/// The kind of failure, and where it happened where that is not the same.
fn kind(error: &AttemptError) -> String {
    let (class, phase) = (error.class.to_string(), error.phase.to_string());
    match class == phase {
        true => class,
        false => format!("{class} in {phase}"),
    }
}

/// What was wrong and what to do about it are lines of their own.
fn on_one_line(message: &str) -> String {
    let lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.fold(String::new(), |text, line| match text.chars().last() {
        None => line.to_owned(),
        Some(',' | ';' | ':' | '.') => format!("{text} {line}"),
        Some(_) => format!("{text}; {line}"),
    })
}

fn errors(summary: &Summary) -> Vec<Vec<Line>> {
    let attempts = summary
        .pairs
        .iter()
        .flat_map(|pair| pair.attempts.iter().map(move |attempt| (pair, attempt)));
    attempts
        .filter(|(_, attempt)| attempt.outcome == Outcome::Errored)
        .map(|(pair, attempt)| {
            let why = match &attempt.error {
                Some(error) => Line::own(format!("attempt {}: {}: ", attempt.index, kind(error)))
                    .and_excerpt(&on_one_line(&error.message)),
                None => Line::own(format!("attempt {}", attempt.index)),
            };
            vec![
                Line::own("error"),
                Line::name(&pair.experiment),
                Line::name(&pair.eval),
                why,
            ]
        })
        .collect()
}

/// Verdicts that lost attempts could have changed.
fn not_firm(summary: &Summary) -> Vec<Vec<Line>> {
    let lost = |pair: &&PairSummary| !pair.firm && matches!(pair.verdict, Verdict::Pass | Verdict::Fail);
    summary
        .pairs
        .iter()
        .filter(lost)
        .map(|pair| {
            let verdict = if pair.verdict == Verdict::Pass {
                "pass"
            } else {
                "fail"
            };
            let why = format!(
                "{verdict} on {} of {} graded",
                pair.graded_attempts, pair.planned_attempts
            );
            vec![
                Line::own("not firm"),
                Line::name(&pair.experiment),
                Line::name(&pair.eval),
                Line::own(why),
            ]
        })
        .collect()
}
