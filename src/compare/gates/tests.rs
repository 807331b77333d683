use super::super::tests::{failed, options, pair, passed, ran, set};
use super::super::{Options, compare};
use super::{GateFacts, evaluate};
use crate::model::comparison::{Comparison, ComparisonVerdict};
use crate::model::{Gate, Outcome, PairResult, Verdict};

fn facts(pairs: Vec<PairResult>) -> GateFacts {
    GateFacts::of_results(&set("now", pairs))
}

/// What a gate finds: whether it fails, and why.
fn found(gate: Gate, facts: &GateFacts, comparison: Option<&Comparison>) -> (bool, String) {
    let results = evaluate(&[gate], facts, comparison);
    assert_eq!(results[0].gate, gate.to_string());
    (results[0].failed, results[0].why.clone())
}

/// So many pairs that pass on both sides, fall, and rise.
fn comparison(both: usize, down: usize, up: usize) -> Comparison {
    let (mut before, mut now) = (Vec::new(), Vec::new());
    for each in 0..both + down + up {
        let eval = format!("e{each:03}");
        let (fell, rose) = (each >= both && each < both + down, each >= both + down);
        before.push(if rose {
            failed("a", &eval)
        } else {
            passed("a", &eval)
        });
        now.push(if fell {
            failed("a", &eval)
        } else {
            passed("a", &eval)
        });
    }
    compare(&set("main", before), &set("now", now), &options())
}

fn some_facts() -> GateFacts {
    facts(vec![passed("a", "x"), failed("a", "y")])
}

#[test]
fn a_pair_without_a_verdict_is_incomplete() {
    assert_eq!(
        found(Gate::Incomplete, &some_facts(), None),
        (false, "all 2 pairs have a verdict".to_owned())
    );
    let missing: Vec<PairResult> = ["v", "w", "x", "y"]
        .iter()
        .map(|eval| pair("a", eval, Verdict::Error))
        .collect();
    let mut pairs = vec![passed("a", "a"), pair("a", "b", Verdict::NotRun)];
    assert_eq!(
        found(Gate::Incomplete, &facts(pairs.clone()), None),
        (true, "1 of 2 pairs has no verdict: a × b".to_owned())
    );
    pairs.extend(missing);
    assert_eq!(
        found(Gate::Incomplete, &facts(pairs), None),
        (
            true,
            "5 of 6 pairs have no verdict: a × b, a × v, a × w and 2 more".to_owned()
        )
    );
}

#[test]
fn an_attempt_that_errored_for_good_fails_the_gate_error() {
    let lost = ran("a", "x", &[Outcome::Passed, Outcome::Errored]);
    assert_eq!(
        found(Gate::Error, &facts(vec![lost]), None),
        (true, "1 attempt errored for good".to_owned())
    );
    let fine = ran("a", "x", &[Outcome::Passed, Outcome::TimedOut]);
    assert!(!found(Gate::Error, &facts(vec![fine]), None).0);
    assert_eq!(
        found(Gate::Error, &some_facts(), None),
        (false, "the attempts are not known one by one".to_owned())
    );
}

#[test]
fn the_pass_rate_has_to_reach_its_limit() {
    assert_eq!(
        found(Gate::Below(0.8), &some_facts(), None),
        (
            true,
            "1 of 2 pairs passed, 50 %, and the limit is 80 %".to_owned()
        )
    );
    assert!(!found(Gate::Below(0.5), &some_facts(), None).0, "at the limit");
    let nothing = facts(vec![pair("a", "x", Verdict::Error)]);
    assert!(found(Gate::Below(0.5), &nothing, None).0);
    assert!(
        !found(Gate::Below(0.5), &facts(Vec::new()), None).0,
        "nothing to measure"
    );
}

#[test]
fn without_a_baseline_only_the_gate_for_that_fails() {
    let needing = [
        Gate::Regression,
        Gate::Significant,
        Gate::Drop(0.05),
        Gate::NotProven(0.05),
        Gate::Inconclusive,
    ];
    for gate in needing {
        assert_eq!(
            found(gate, &some_facts(), None),
            (false, "no baseline to compare with".to_owned())
        );
    }
    assert!(found(Gate::NoBaseline, &some_facts(), None).0);
    assert_eq!(
        found(Gate::NoBaseline, &some_facts(), Some(&comparison(1, 0, 0))),
        (false, "compared with main".to_owned())
    );
}

#[test]
fn a_fall_that_is_not_flaky_is_a_regression() {
    let mut comparison = comparison(7, 3, 0);
    assert_eq!(
        found(Gate::Regression, &some_facts(), Some(&comparison)),
        (
            true,
            "3 PASS→FAIL in the 10 pairs compared: a × e007, a × e008, a × e009".to_owned()
        )
    );
    comparison.flips.pass_to_fail[0].flaky = true;
    comparison.flips.pass_to_fail[1].confirmed = Some(false);
    assert_eq!(
        found(Gate::Regression, &some_facts(), Some(&comparison)),
        (
            true,
            "1 PASS→FAIL in the 10 pairs compared, besides 2 flaky or not reproduced: a × e009".to_owned()
        )
    );
    comparison.flips.pass_to_fail[2].flaky = true;
    assert_eq!(
        found(Gate::Regression, &some_facts(), Some(&comparison)),
        (
            false,
            "3 PASS→FAIL in the 10 pairs compared, all of them flaky or not reproduced".to_owned()
        )
    );
}

#[test]
fn only_a_significant_fall_fails_the_gate_significant() {
    let is_found = |comparison: &Comparison| found(Gate::Significant, &some_facts(), Some(comparison)).0;
    assert!(is_found(&comparison(90, 10, 0)));
    assert!(!is_found(&comparison(90, 5, 5)));
    assert!(!is_found(&comparison(90, 0, 10)));
    let mut mixed = comparison(1, 0, 0);
    mixed.verdict = ComparisonVerdict::Mixed;
    assert!(is_found(&mixed));
}

#[test]
fn a_drop_has_to_be_larger_than_its_limit() {
    let comparison = comparison(95, 5, 0);
    assert_eq!(
        found(Gate::Drop(0.04), &some_facts(), Some(&comparison)),
        (
            true,
            "the pass rate fell by 5 pp, and the limit is 4 pp".to_owned()
        )
    );
    assert!(!found(Gate::Drop(0.05), &some_facts(), Some(&comparison)).0);
}

#[test]
fn a_drop_that_is_not_ruled_out_is_not_proven() {
    let comparison = comparison(200, 10, 6);
    let (failed, why) = found(Gate::NotProven(0.05), &some_facts(), Some(&comparison));
    assert!(failed);
    assert_eq!(
        why,
        "with 95 % confidence the pass rate fell by no more than 5.59 pp, and the limit is 5 pp"
    );
    assert!(!found(Gate::NotProven(0.06), &some_facts(), Some(&comparison)).0);
    let nothing = compare(&set("main", vec![]), &set("now", vec![]), &options());
    assert!(found(Gate::NotProven(0.05), &some_facts(), Some(&nothing)).0);
    assert!(!found(Gate::Drop(0.05), &some_facts(), Some(&nothing)).0);
    assert!(!found(Gate::Regression, &some_facts(), Some(&nothing)).0);
}

#[test]
fn a_comparison_that_cannot_tell_fails_the_gate_inconclusive() {
    let small = comparison(10, 1, 0);
    let (failed, why) = found(Gate::Inconclusive, &some_facts(), Some(&small));
    assert!(failed);
    assert!(why.starts_with("too small to tell"), "{why}");
    let wide = Options {
        margin: 1.0,
        ..options()
    };
    let told = compare(
        &set("main", vec![passed("a", "x"); 1]),
        &set("now", vec![passed("a", "x")]),
        &wide,
    );
    assert!(!found(Gate::Inconclusive, &some_facts(), Some(&told)).0);
}

#[test]
fn after_never_nothing_fails() {
    let missing = facts(vec![pair("a", "x", Verdict::Error)]);
    let results = evaluate(&[Gate::Incomplete, Gate::Never], &missing, None);
    assert!(results.iter().all(|result| !result.failed));
    assert_eq!(
        results[0].why,
        "1 of 1 pairs has no verdict: a × x, which `never` lets pass"
    );
}
