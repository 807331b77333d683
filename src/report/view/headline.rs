//! What is said first: the headline, the counts below it, and which runs they are about.

use std::collections::BTreeMap;

use super::{Compared, Line, Span, Tone, baseline_name};
use crate::model::comparison::{ComparisonVerdict, Level};
use crate::model::summary::Conclusion;
use crate::model::{Comparison, Outcome, RunFacts, SelectionKind, Summary};
use crate::report::words::{age, count, p_value, points, rate, verdict};

/// How many error classes are named where there is nothing else to say.
const CLASSES: usize = 3;

/// A comparison's verdict as a phrase: `within noise`.
fn phrase(comparison: &Comparison) -> &'static str {
    match comparison.verdict {
        ComparisonVerdict::Mixed => "mixed: worse in one part, better in another",
        ComparisonVerdict::Inconclusive if comparison.compared > 0 => "too small to tell",
        other => verdict(other),
    }
}

pub(super) fn tone(comparison: &Comparison) -> Tone {
    match comparison.verdict {
        ComparisonVerdict::Regressed | ComparisonVerdict::Mixed => Tone::Bad,
        ComparisonVerdict::Improved => Tone::Good,
        ComparisonVerdict::WithinNoise | ComparisonVerdict::Unchanged | ComparisonVerdict::Inconclusive => {
            Tone::Neutral
        }
    }
}

pub(super) fn of_summary(summary: &Summary, comparison: Option<&Comparison>) -> Line {
    let totals = &summary.totals;
    let decided = totals.passed + totals.failed;
    let Some(share) = rate(totals.passed, decided) else {
        return nothing_measured(summary);
    };
    let mut line = Line::default();
    if totals.not_run > 0 {
        let ended = totals.pairs - totals.not_run.min(totals.pairs);
        line = line.and(format!(
            "partial: {ended} of {} · ",
            count(totals.pairs, "pair", "pairs")
        ));
    }
    line = line.and(format!("{}/{decided} passed ({share})", totals.passed));
    line = match comparison {
        Some(comparison) => against_baseline(line, comparison, decided),
        None => line.and(" · no baseline"),
    };
    if totals.errored > 0 {
        line = line.and(format!(
            " · {} without a result",
            count(totals.errored, "pair", "pairs")
        ));
    }
    with_selection(line, summary)
}

pub(super) fn of_comparison(comparison: &Comparison) -> Line {
    let compared = Compared::of(comparison);
    let Some(share) = rate(compared.current, compared.of) else {
        return against_baseline(Line::own("nothing compared"), comparison, 0);
    };
    let line = Line::own(format!("{}/{} passed ({share})", compared.current, compared.of));
    against_baseline(line, comparison, compared.of)
}

/// What the run decided, and what became of it against the baseline.
pub(super) fn counts(summary: &Summary, comparison: Option<&Comparison>) -> Line {
    let totals = &summary.totals;
    match comparison {
        Some(comparison) => comparison_counts(comparison, Some(totals.errored)),
        None => {
            let mut parts = Vec::new();
            if totals.passed + totals.failed > 0 {
                parts.push(format!("{} passed", totals.passed));
                parts.push(format!("{} failed", totals.failed));
            }
            parts.push(format!("{} errored", totals.errored));
            if totals.not_run > 0 {
                parts.push(format!("{} not run", totals.not_run));
            }
            Line::own(parts.join(" · "))
        }
    }
}

pub(super) fn comparison_counts(comparison: &Comparison, errored: Option<usize>) -> Line {
    let (down, up) = (&comparison.flips.pass_to_fail, &comparison.flips.fail_to_pass);
    let flipped = down.len() + up.len();
    let mut parts = vec![
        format!("{} PASS→FAIL{}", down.len(), flaky(down)),
        format!("{} FAIL→PASS{}", up.len(), flaky(up)),
        format!("{} unchanged", comparison.compared.saturating_sub(flipped)),
    ];
    if !comparison.not_comparable.is_empty() {
        parts.push(format!("{} not comparable", comparison.not_comparable.len()));
    }
    parts.extend(errored.map(|errored| format!("{errored} errored")));
    let test = &comparison.test;
    if let Some(p) = test.p_value {
        let name = match test.level {
            Level::Attempts => "exact test over all attempts",
            Level::FirstAttempts => "exact test over first attempts",
            Level::Verdicts => "exact paired test",
        };
        // Where it is too small to tell, the sentence below says so.
        let is_told = comparison.verdict == ComparisonVerdict::Inconclusive;
        let seen = match test.detectable.map(points) {
            _ if is_told => String::new(),
            Some(drop) => format!(
                "; a drop of {} or more would have shown",
                drop.trim_start_matches('+')
            ),
            None => "; no drop of any size would have shown".to_owned(),
        };
        parts.push(format!("{name} {}{seen}", p_value(p)));
    }
    Line::own(parts.join(" · "))
}

pub(super) fn flaky(flips: &[crate::model::comparison::Flip]) -> String {
    match flips.iter().filter(|flip| flip.flaky).count() {
        0 => String::new(),
        flaky => format!(" ({flaky} known flaky)"),
    }
}

/// Which commits and runs a run is about.
pub(super) fn provenance(run: &RunFacts, comparison: Option<&Comparison>) -> Option<Line> {
    sides(run.commit.as_deref(), run.url.as_deref(), comparison)
}

/// The same of a comparison of results that exist already.
pub(super) fn comparison_provenance(comparison: &Comparison) -> Option<Line> {
    let current = &comparison.current;
    sides(
        current.commit.as_deref(),
        current.run_url.as_deref(),
        Some(comparison),
    )
}

fn sides(commit: Option<&str>, url: Option<&str>, comparison: Option<&Comparison>) -> Option<Line> {
    let mut parts = Vec::new();
    parts.extend(commit.map(|commit| Line::own("this run ").and_name(short(commit))));
    if let Some(comparison) = comparison {
        let baseline = &comparison.baseline;
        let mut facts = Vec::new();
        if baseline.commit.is_some() {
            facts.push(Line::name(baseline_name(comparison)));
        }
        facts.extend(baseline.age_seconds.map(|seconds| Line::own(age(seconds))));
        if !facts.is_empty() {
            let name = baseline
                .commit
                .as_deref()
                .map_or(baseline_name(comparison), short);
            let facts = Line::joined(facts, ", ");
            let line = Line::own("baseline ").and_name(name).and(" (");
            parts.push(Line([line.0, facts.0].concat()).and(")"));
        }
    }
    let baseline = comparison.and_then(|comparison| comparison.baseline.run_url.as_deref());
    for (text, url) in [("run", url), ("baseline run", baseline)] {
        parts.extend(url.map(|url| {
            let url = url.to_owned();
            Line(vec![Span::Link { text, url }])
        }));
    }
    (!parts.is_empty()).then(|| Line::joined(parts, " · "))
}

/// `decided` is what the numbers so far are over: where the comparison is over other pairs, that is said.
fn against_baseline(line: Line, comparison: &Comparison, decided: usize) -> Line {
    let mut line = line;
    if let Some(delta) = Compared::of(comparison).delta() {
        line = line.and(format!(", {}", points(delta)));
        if comparison.compared != decided {
            line = line.and(format!(
                " over the {}",
                count(comparison.compared, "pair", "pairs")
            ));
            line = line.and(" compared");
        }
    }
    line = line.and(" against ").and_name(baseline_name(comparison));
    line = line.and(format!(" · {}", phrase(comparison)));
    let fresh: Vec<bool> = comparison
        .flips
        .pass_to_fail
        .iter()
        .filter_map(|flip| flip.confirmed)
        .collect();
    let gone = fresh.iter().filter(|confirmed| !**confirmed).count();
    if gone > 0 {
        line = line.and(format!(
            " · {gone} of {} PASS→FAIL did not reproduce",
            fresh.len()
        ));
    }
    line
}

fn with_selection(line: Line, summary: &Summary) -> Line {
    let selection = &summary.run.selection;
    match selection.kind {
        SelectionKind::All => line,
        SelectionKind::Subset | SelectionKind::Shard => line.and(format!(
            " · {} of {} run",
            selection.selected,
            count(selection.of, "pair", "pairs")
        )),
    }
}

/// Never a rate: the first error classes instead.
fn nothing_measured(summary: &Summary) -> Line {
    if summary.totals.pairs == 0 {
        let skipped = summary.run.conclusion == Conclusion::Skipped;
        return with_selection(
            Line::own(if skipped {
                "skipped: nothing to run"
            } else {
                "no pair to run"
            }),
            summary,
        );
    }
    let mut classes: BTreeMap<String, usize> = BTreeMap::new();
    let attempts = summary.pairs.iter().flat_map(|pair| &pair.attempts);
    for attempt in attempts.filter(|attempt| attempt.outcome == Outcome::Errored) {
        if let Some(error) = &attempt.error {
            *classes.entry(error.class.to_string()).or_default() += 1;
        }
    }
    let mut classes: Vec<(String, usize)> = classes.into_iter().collect();
    classes.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    let named: Vec<String> = classes
        .iter()
        .take(CLASSES)
        .map(|(class, number)| format!("{class} ({})", count(*number, "attempt", "attempts")))
        .collect();
    let cancelled = match summary.run.conclusion {
        Conclusion::Cancelled => "cancelled: ",
        _ => "",
    };
    let classes = match named.is_empty() {
        true => String::new(),
        false => format!(": {}", named.join(", ")),
    };
    with_selection(
        Line::own(format!("{cancelled}no eval gave a result{classes}")),
        summary,
    )
}

/// A commit's first seven digits; anything else as it is.
pub(super) fn short(commit: &str) -> &str {
    let is_hash = commit.len() >= 7 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { &commit[..7] } else { commit }
}
