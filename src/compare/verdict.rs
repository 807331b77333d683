//! What a comparison says: the verdict by its ordered rule, and the sentence that tells it. Knows no evidence levels.

use super::evidence::Compared;
use super::groups::Grouping;
use super::stats::StratifiedTest;
use crate::model::Comparison;
use crate::model::comparison::{ComparisonVerdict, Level, Test};

/// The first that holds: nothing compared, significant falls and rises, no difference at all, too small to tell.
pub(super) fn decide(
    compared: &[Compared<'_>],
    overall: Option<&StratifiedTest>,
    groupings: &[Grouping<'_>],
    test: &Test,
    margin: f64,
) -> ComparisonVerdict {
    let Some(overall) = overall else {
        return ComparisonVerdict::Inconclusive;
    };
    let is_significant = test.p_value.is_some_and(|p_value| p_value < test.alpha);
    let signs: Vec<f64> = is_significant
        .then_some(overall.excess)
        .into_iter()
        .chain(
            groupings
                .iter()
                .flat_map(|grouping| grouping.significant(test.alpha)),
        )
        .collect();
    let falls = signs.iter().any(|excess| *excess < 0.0);
    let rises = signs.iter().any(|excess| *excess > 0.0);
    match (falls, rises) {
        (true, true) => ComparisonVerdict::Mixed,
        (true, false) => ComparisonVerdict::Regressed,
        (false, true) => ComparisonVerdict::Improved,
        (false, false) if compared.iter().all(is_unchanged) => ComparisonVerdict::Unchanged,
        (false, false) if test.detectable.is_some_and(|drop| drop <= margin) => {
            ComparisonVerdict::WithinNoise
        }
        (false, false) => ComparisonVerdict::Inconclusive,
    }
}

/// A part of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Our own words.
    Own(String),
    /// A name from outside.
    Name(String),
}

/// The verdict of a comparison as a plain sentence: lower-case, without a full stop.
pub fn sentence(comparison: &Comparison) -> String {
    let text = |part: &Part| match part {
        Part::Own(text) | Part::Name(text) => text.clone(),
    };
    sentence_parts(comparison).iter().map(text).collect()
}

/// [`sentence`], with names from outside apart from our own words.
pub fn sentence_parts(comparison: &Comparison) -> Vec<Part> {
    let says = match comparison.verdict {
        ComparisonVerdict::Regressed => return finding(comparison, "regressed", "fell"),
        ComparisonVerdict::Improved => return finding(comparison, "improved", "rose"),
        ComparisonVerdict::Mixed => {
            let what = "mixed: some fell and some rose by more than chance explains, in ";
            return and_parts(what.to_owned(), comparison);
        }
        ComparisonVerdict::WithinNoise => format!(
            "within noise: {} are no more than chance explains{}; a drop of {} pp would have been seen with 80 % power",
            flip_counts(comparison),
            p_value(comparison),
            points(comparison.test.detectable.unwrap_or(1.0)),
        ),
        ComparisonVerdict::Unchanged if comparison.compared == 1 => {
            "unchanged: the one pair compared gave the same on both sides".to_owned()
        }
        ComparisonVerdict::Unchanged => format!(
            "unchanged: all {} pairs compared gave the same on both sides",
            comparison.compared
        ),
        ComparisonVerdict::Inconclusive if comparison.compared == 0 => {
            "inconclusive: no pair has a firm verdict on both sides".to_owned()
        }
        ComparisonVerdict::Inconclusive => match comparison.test.detectable {
            Some(drop) => format!(
                "too small to tell: it would not have seen a drop under {} pp{}",
                points(drop),
                p_value(comparison)
            ),
            None => format!(
                "too small to tell: it would not have seen a drop of any size{}",
                p_value(comparison)
            ),
        },
    };
    vec![Part::Own(says)]
}

/// A share as percentage points, to one decimal.
fn points(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

fn is_unchanged(pair: &Compared<'_>) -> bool {
    let (before, now) = (pair.stratum.before, pair.stratum.now);
    let same_share = u64::from(before.hits) * u64::from(now.of) == u64::from(now.hits) * u64::from(before.of);
    same_share && pair.passed_before() == pair.passed_now()
}

fn finding(comparison: &Comparison, verdict: &str, moved: &str) -> Vec<Part> {
    let what = match comparison.test.level {
        Level::Attempts => "the share of passing attempts",
        Level::FirstAttempts => "the share of passing first attempts",
        Level::Verdicts => "the pass rate",
    };
    let start = format!("{verdict}: {what} {moved} by more than chance explains, in ");
    and_parts(start, comparison)
}

/// Everything that is significant in itself: all pairs together, and groups.
fn and_parts(start: String, comparison: &Comparison) -> Vec<Part> {
    let alpha = comparison.test.alpha;
    let mut parts = vec![Part::Own(start)];
    let overall = comparison.test.p_value.filter(|p_value| *p_value < alpha);
    if let Some(p_value) = overall {
        parts.push(Part::Own(format!(
            "all {} pairs together ({})",
            comparison.compared,
            equals(p_value)
        )));
    }
    for group in &comparison.groups {
        if let Some(p_value) = group.p_adjusted.filter(|p_value| *p_value < alpha) {
            let separator = if parts.len() > 1 { ", " } else { "" };
            parts.push(Part::Own(separator.to_owned()));
            parts.push(match group.by.as_str() {
                "experiment" => Part::Own(group.by.clone()),
                label => Part::Name(label.to_owned()),
            });
            parts.push(Part::Own(" ".to_owned()));
            parts.push(Part::Name(group.value.clone()));
            parts.push(Part::Own(format!(" (adjusted {})", equals(p_value))));
        }
    }
    parts
}

fn flip_counts(comparison: &Comparison) -> String {
    let flips = &comparison.flips;
    format!(
        "{} PASS→FAIL and {} FAIL→PASS",
        flips.pass_to_fail.len(),
        flips.fail_to_pass.len()
    )
}

fn p_value(comparison: &Comparison) -> String {
    comparison
        .test
        .p_value
        .map_or_else(String::new, |p_value| format!(" ({})", equals(p_value)))
}

fn equals(p_value: f64) -> String {
    if p_value < 0.0001 {
        "p < 0.0001".to_owned()
    } else {
        format!("p = {p_value}")
    }
}
