//! What holds of every comparison.

use std::collections::BTreeMap;

use proptest::prelude::{Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::super::compare;
use super::{E, F, P, T, by, options, part, ran, set};
use crate::model::comparison::{ComparisonVerdict, Flip, Group};
use crate::model::{Outcome, Policy, ResultSet};

fn some_outcomes() -> impl Strategy<Value = Vec<Outcome>> {
    let outcome = prop_oneof![6 => Just(P), 4 => Just(F), 1 => Just(T), 1 => Just(E)];
    prop::collection::vec(outcome, 1..4)
}

/// A few pairs out of a small suite, with or without their attempts, some lost, labelled by their eval.
fn some_results() -> impl Strategy<Value = ResultSet> {
    let pair = (some_outcomes(), prop::bool::weighted(0.9), any::<bool>());
    let pairs = prop::collection::btree_map((0..4_u32, 0..4_u32), pair, 0..16);
    let policy =
        prop_oneof![3 => Just(None), 1 => Just(Some(Policy::Any)), 1 => Just(Some(Policy::Majority))];
    let runs = prop_oneof![2 => Just(None), 1 => Just(Some(1)), 1 => Just(Some(3))];
    (pairs, policy, runs, any::<bool>()).prop_map(|(pairs, policy, runs, rows)| {
        let pairs: BTreeMap<(u32, u32), (Vec<Outcome>, bool, bool)> = pairs;
        let pairs = pairs
            .into_iter()
            .map(|((experiment, eval), (outcomes, keep, short))| {
                let mut pair = ran(&format!("x{experiment}"), &format!("e{eval}"), &outcomes);
                pair.firm &= keep;
                pair.labels.add("product", &format!("p{}", eval % 2));
                if rows && short {
                    pair.samples = None;
                }
                pair
            });
        ResultSet {
            policy,
            runs,
            ..set("some", pairs.collect())
        }
    })
}

fn mirrored(verdict: ComparisonVerdict) -> ComparisonVerdict {
    match verdict {
        ComparisonVerdict::Regressed => ComparisonVerdict::Improved,
        ComparisonVerdict::Improved => ComparisonVerdict::Regressed,
        other => other,
    }
}

fn turned(flips: &[Flip]) -> Vec<Flip> {
    let turn = |flip: &Flip| Flip {
        before: flip.now.clone(),
        now: flip.before.clone(),
        ..flip.clone()
    };
    flips.iter().map(turn).collect()
}

fn turned_groups(groups: &[Group]) -> Vec<Group> {
    let turn = |group: &Group| Group {
        passed_baseline: group.passed_current,
        passed_current: group.passed_baseline,
        pass_to_fail: group.fail_to_pass,
        fail_to_pass: group.pass_to_fail,
        delta: group.delta.map(|delta| 0.0 - delta),
        ..group.clone()
    };
    groups.iter().map(turn).collect()
}

proptest! {
    #[test]
    fn a_set_compared_with_itself_is_unchanged(results in some_results()) {
        let comparison = compare(&results, &results, &by("product"));
        let expected = if comparison.compared == 0 {
            ComparisonVerdict::Inconclusive
        } else {
            ComparisonVerdict::Unchanged
        };
        prop_assert_eq!(comparison.verdict, expected);
        prop_assert!(comparison.test.p_value.is_none_or(|p| p == 1.0));
        prop_assert!(comparison.flips.pass_to_fail.is_empty() && comparison.flips.fail_to_pass.is_empty());
        prop_assert!(comparison.added.is_empty() && comparison.removed.is_empty());
    }

    #[test]
    fn swapping_the_sides_mirrors_the_comparison(a in some_results(), b in some_results()) {
        let there = compare(&a, &b, &by("product"));
        let back = compare(&b, &a, &by("product"));
        prop_assert_eq!(back.verdict, mirrored(there.verdict));
        prop_assert_eq!(&back.test.p_value, &there.test.p_value);
        prop_assert_eq!(back.test.detectable, there.test.detectable);
        prop_assert_eq!(back.test.level, there.test.level);
        prop_assert_eq!(back.compared, there.compared);
        prop_assert_eq!(back.pass_rate.delta, there.pass_rate.delta.map(|delta| 0.0 - delta));
        prop_assert_eq!(&back.flips.pass_to_fail, &turned(&there.flips.fail_to_pass));
        prop_assert_eq!(&back.flips.fail_to_pass, &turned(&there.flips.pass_to_fail));
        prop_assert_eq!(&back.added, &there.removed);
        prop_assert_eq!(&back.removed, &there.added);
        prop_assert_eq!(&back.groups, &turned_groups(&there.groups));
        prop_assert_eq!(back.not_comparable.len(), there.not_comparable.len());
    }

    #[test]
    fn every_pair_is_accounted_for_once(a in some_results(), b in some_results(), partial in any::<bool>()) {
        let b = ResultSet { selection: part(1, 16).filter(|_| partial), ..b };
        let comparison = compare(&a, &b, &options());
        let both = comparison.compared + comparison.not_comparable.len();
        prop_assert_eq!(both + comparison.added.len(), b.pairs.len());
        prop_assert_eq!(both + comparison.removed.len() + comparison.not_selected, a.pairs.len());
    }

    #[test]
    fn shares_are_rounded_to_four_decimals_and_p_values_to_four_digits(a in some_results(), b in some_results()) {
        let comparison = compare(&a, &b, &options());
        let rates = comparison.pass_rate;
        let test = comparison.test;
        for share in [rates.baseline, rates.current, rates.delta, test.detectable, test.lower_bound].into_iter().flatten() {
            prop_assert_eq!(format!("{share:.4}").parse::<f64>(), Ok(share));
        }
        for p_value in test.p_value.into_iter().chain(comparison.groups.iter().filter_map(|group| group.p_adjusted)) {
            prop_assert_eq!(format!("{p_value:.3e}").parse::<f64>(), Ok(p_value));
        }
    }
}
