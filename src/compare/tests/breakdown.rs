//! Groups, and whether falls sit in one of them.

use super::super::compare;
use super::{F, P, T, by, known, labelled, options, passed, ran, set, suite};
use crate::model::comparison::{Comparison, ComparisonVerdict};
use crate::model::{Outcome, Verdict};

#[test]
fn more_pairs_that_pass_see_a_smaller_drop_and_a_stronger_concentration_but_name_no_group() {
    let (before, now) = known(17);
    let comparison = compare(&before, &now, &by("provider"));
    assert_eq!(comparison.compared, 237);
    assert_eq!(comparison.test.p_value, Some(0.4545));
    assert_eq!(comparison.test.detectable, Some(0.0667));
    let concentration = comparison.concentration.unwrap();
    assert_eq!(concentration.p_value, Some(0.02603));
    assert_eq!(concentration.named, None);
    let openai = comparison
        .groups
        .iter()
        .find(|group| group.by == "provider" && group.value == "openai");
    let openai = openai.unwrap();
    assert_eq!(
        (openai.compared, openai.passed_baseline, openai.passed_current),
        (88, 71, 70)
    );
    assert_eq!((openai.pass_to_fail, openai.fail_to_pass), (5, 4));
    assert_eq!(openai.delta, Some(-0.0114));
    assert_eq!(openai.p_adjusted, Some(1.0));
}

#[test]
fn a_pair_with_several_values_is_in_each_group_and_leaves_no_concentration() {
    let both = labelled(labelled(passed("a", "x"), "product", "auth"), "product", "cli");
    let before = set(
        "before",
        vec![
            both.clone(),
            labelled(passed("a", "y"), "product", "cli"),
            passed("a", "z"),
        ],
    );
    let mut now = before.clone();
    now.pairs[0].verdict = Verdict::Fail;
    let comparison = compare(&before, &now, &by("product"));
    let products: Vec<(&str, usize, usize)> = comparison
        .groups
        .iter()
        .filter(|group| group.by == "product")
        .map(|group| (&*group.value, group.compared, group.pass_to_fail))
        .collect();
    assert_eq!(products, [("auth", 1, 1), ("cli", 2, 1)]);
    let concentration = comparison.concentration.unwrap();
    assert_eq!(concentration.p_value, None);
    assert_eq!(concentration.reading, "pairs have several values of `product`");
    assert_eq!(
        comparison.warnings,
        ["1 compared pair has no label `product` and is in none of its groups"]
    );
    let unknown = compare(&before, &now, &by("colour"));
    assert_eq!(unknown.warnings, ["no compared pair has the label `colour`"]);
}

/// Four providers of 50 pairs, one of which falls in every third pair.
fn one_provider_falls(outcome: Outcome) -> Comparison {
    let providers = ["w", "x", "y", "z"];
    let (mut before, mut now) = (Vec::new(), Vec::new());
    for provider in providers {
        for each in 0..50 {
            let falls = provider == "y" && each % 3 == 0;
            let eval = format!("{each}");
            before.push(labelled(ran(provider, &eval, &[P, P]), "provider", provider));
            let outcome = if falls { outcome } else { P };
            now.push(labelled(
                ran(provider, &eval, &[outcome, outcome]),
                "provider",
                provider,
            ));
        }
    }
    compare(&set("before", before), &set("now", now), &by("provider"))
}

#[test]
fn a_provider_that_falls_alone_is_named_and_throttling_is_read_from_its_attempts() {
    let comparison = one_provider_falls(F);
    assert_eq!(comparison.verdict, ComparisonVerdict::Regressed);
    let concentration = comparison.concentration.unwrap();
    assert_eq!(concentration.named.as_deref(), Some("y"));
    assert_eq!(concentration.reading, "concentrated in y");
    let concentration = one_provider_falls(T).concentration.unwrap();
    assert_eq!(concentration.reading, "points to throttling in y");
}

#[test]
fn a_single_group_or_no_fall_gives_no_concentration() {
    let (before, now) = suite(&[("a", [8, 2, 0, 0])]);
    let concentration = compare(&before, &now, &options()).concentration.unwrap();
    assert_eq!(
        (concentration.by.as_str(), concentration.p_value),
        ("experiment", None)
    );
    assert_eq!(
        concentration.reading,
        "only one group has pairs that passed before"
    );
    let (before, now) = suite(&[("a", [8, 0, 2, 0]), ("b", [8, 0, 2, 0])]);
    let concentration = compare(&before, &now, &options()).concentration.unwrap();
    assert_eq!(
        (concentration.p_value, concentration.reading.as_str()),
        (None, "no PASS→FAIL")
    );
}

/// Numbers that are the same each time: xorshift.
struct Draws(u64);

impl Draws {
    fn happens(&mut self, probability: f64) -> bool {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) as f64 / (1_u64 << 53) as f64) < probability
    }
}

#[test]
fn one_experiment_of_ten_that_collapses_is_found() {
    let mut draws = Draws(0x9e37_79b9_7f4a_7c15);
    let mut side = |collapsed: bool| {
        let mut pairs = Vec::new();
        for experiment in 0..10 {
            let probability = if collapsed && experiment == 3 { 0.5 } else { 0.9 };
            for eval in 0..22 {
                let outcomes = [(); 3].map(|()| if draws.happens(probability) { P } else { F });
                pairs.push(ran(&format!("x{experiment}"), &format!("e{eval}"), &outcomes));
            }
        }
        set("run", pairs)
    };
    let found = (0..40)
        .map(|_| compare(&side(false), &side(true), &options()))
        .filter(|comparison| {
            comparison.verdict == ComparisonVerdict::Regressed
                && comparison.groups[3].p_adjusted.is_some_and(|p| p < 0.05)
        })
        .count();
    assert!(found >= 38, "{found} of 40");
}
