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

/// The verdict of a comparison as a plain sentence: lower-case, without a full stop.
pub fn sentence(comparison: &Comparison) -> String {
    match comparison.verdict {
        ComparisonVerdict::Regressed => format!("regressed: {}", finding(comparison, "fell")),
        ComparisonVerdict::Improved => format!("improved: {}", finding(comparison, "rose")),
        ComparisonVerdict::Mixed => format!(
            "mixed: some fell and some rose by more than chance explains, in {}",
            significant_parts(comparison).join(", ")
        ),
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
    }
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

fn finding(comparison: &Comparison, moved: &str) -> String {
    let what = match comparison.test.level {
        Level::Attempts => "the share of passing attempts",
        Level::FirstAttempts => "the share of passing first attempts",
        Level::Verdicts => "the pass rate",
    };
    let parts = significant_parts(comparison).join(", ");
    format!("{what} {moved} by more than chance explains, in {parts}")
}

/// Everything that is significant in itself: all pairs together, and groups.
fn significant_parts(comparison: &Comparison) -> Vec<String> {
    let alpha = comparison.test.alpha;
    let overall = comparison
        .test
        .p_value
        .filter(|p_value| *p_value < alpha)
        .map(|p_value| format!("all {} pairs together ({})", comparison.compared, equals(p_value)));
    let groups = comparison.groups.iter().filter_map(|group| {
        let p_value = group.p_adjusted.filter(|p_value| *p_value < alpha)?;
        Some(format!(
            "{} {} (adjusted {})",
            group.by,
            group.value,
            equals(p_value)
        ))
    });
    overall.into_iter().chain(groups).collect()
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
