use jiff::civil::date;

use super::super::tests::{failed, options, pair, passed, ran, set};
use super::super::{Known, Quarantine};
use super::{Assessment, Criteria, assess};
use crate::config::{FlakyConfig, LabelGates};
use crate::model::{Gate, Outcome, PairResult, ResultSet, Verdict};

fn criteria(fail_on: &[Gate]) -> Criteria {
    Criteria {
        options: options(),
        known: Known::default(),
        fail_on: fail_on.to_vec(),
        gates: Vec::new(),
    }
}

fn quarantine(eval: &str) -> Known {
    let flaky = FlakyConfig {
        experiment: None,
        eval: Some(eval.to_owned()),
        until: None,
        why: Some("slow".to_owned()),
    };
    Known {
        quarantine: Quarantine::new(&[flaky], date(2026, 1, 1)).unwrap(),
        ..Known::default()
    }
}

fn critical(mut pair: PairResult) -> PairResult {
    pair.labels.add("tier", "critical");
    pair
}

fn label_gates(fail_on: &[Gate]) -> Vec<LabelGates> {
    vec![LabelGates {
        name: "tier".to_owned(),
        value: "critical".to_owned(),
        fail_on: fail_on.to_vec(),
    }]
}

/// The gates that failed, with why.
fn failures(assessment: &Assessment) -> Vec<(&str, &str)> {
    let failed = assessment.gates.iter().filter(|gate| gate.failed);
    failed.map(|gate| (&*gate.gate, &*gate.why)).collect()
}

#[test]
fn a_pair_in_quarantine_is_compared_and_shown_and_fails_no_gate() {
    let before = set(
        "before",
        vec![passed("a", "x"), passed("a", "y"), passed("a", "z")],
    );
    let now = set(
        "now",
        vec![passed("a", "x"), failed("a", "y"), pair("a", "z", Verdict::Error)],
    );
    let gates = [
        Gate::Regression,
        Gate::Drop(0.05),
        Gate::Below(0.9),
        Gate::Incomplete,
    ];
    let without = assess(Some(&before), &now, &criteria(&gates));
    assert_eq!(failures(&without).len(), 4);

    let mut wanted = criteria(&gates);
    wanted.known = quarantine("[yz]");
    let with = assess(Some(&before), &now, &wanted);
    assert_eq!(failures(&with), []);
    let comparison = with.comparison.unwrap();
    assert_eq!(comparison.compared, 2, "the rates are over all pairs");
    let flip = &comparison.flips.pass_to_fail[0];
    assert!(flip.quarantined && flip.flaky);
    let evals: Vec<&str> = with.quarantined.iter().map(|pair| pair.eval.as_str()).collect();
    assert_eq!(evals, ["y", "z"]);
    assert_eq!(with.quarantined[0].why.as_deref(), Some("slow"));
}

#[test]
fn the_gates_of_a_label_are_over_its_pairs_alone() {
    let before = set(
        "before",
        // The baseline's rows carry no label.
        vec![passed("a", "x"), passed("a", "y"), passed("a", "z")],
    );
    let now = |y: PairResult, z: PairResult| set("now", vec![critical(passed("a", "x")), critical(y), z]);
    let mut wanted = criteria(&[Gate::Below(0.5)]);
    wanted.gates = label_gates(&[Gate::Regression, Gate::Incomplete]);

    let fine = assess(Some(&before), &now(passed("a", "y"), failed("a", "z")), &wanted);
    let gates: Vec<(&str, bool)> = fine.gates.iter().map(|gate| (&*gate.gate, gate.failed)).collect();
    assert_eq!(
        gates,
        [
            ("below:50%", false),
            ("regression (tier=critical)", false),
            ("incomplete (tier=critical)", false)
        ]
    );
    let fell = assess(Some(&before), &now(failed("a", "y"), passed("a", "z")), &wanted);
    assert_eq!(
        failures(&fell),
        [(
            "regression (tier=critical)",
            "1 PASS→FAIL in the 2 pairs compared: a × y"
        )]
    );
    assert!(!fell.gates[1].is_incomplete());

    let lost = assess(
        Some(&before),
        &now(pair("a", "y", Verdict::Error), passed("a", "z")),
        &wanted,
    );
    assert_eq!(failures(&lost)[0].0, "incomplete (tier=critical)");
    assert!(lost.gates[2].is_incomplete());
}

#[test]
fn a_label_that_no_pair_has_is_told_and_fails_nothing() {
    let now = set("now", vec![failed("a", "x")]);
    let mut wanted = criteria(&[Gate::Never]);
    wanted.gates = label_gates(&[Gate::Below(0.5), Gate::NoBaseline]);
    let found = assess(None, &now, &wanted);
    assert_eq!(failures(&found), []);
    assert_eq!(found.notices, ["gates: no pair has the label `tier=critical`"]);
    assert_eq!(found.gates[1].why, "this run has no such pair");

    // With such pairs, `never` above does not silence the gates below.
    let now = set("now", vec![critical(failed("a", "x"))]);
    let found = assess(None, &now, &wanted);
    assert_eq!(failures(&found).len(), 2);
}

#[test]
fn quarantine_holds_for_the_gates_of_a_label_too() {
    let before = set("before", vec![passed("a", "x")]);
    let now: ResultSet = set("now", vec![critical(failed("a", "x"))]);
    let mut wanted = criteria(&[Gate::Regression]);
    wanted.gates = label_gates(&[Gate::Regression]);
    assert_eq!(failures(&assess(Some(&before), &now, &wanted)).len(), 2);
    wanted.known = quarantine("x");
    let found = assess(Some(&before), &now, &wanted);
    assert_eq!(failures(&found), []);
    assert!(found.notices.is_empty());
}

#[test]
fn only_flips_that_were_there_again_are_regressions() {
    let before = set("before", vec![passed("a", "x"), passed("a", "y")]);
    let now = set("now", vec![failed("a", "x"), failed("a", "y")]);
    let mut wanted = criteria(&[Gate::Regression]);
    let id = |pair: usize| now.pairs[pair].id.clone();
    wanted.known.confirmed = Some([(id(0), false), (id(1), true)].into());
    let found = assess(Some(&before), &now, &wanted);
    assert_eq!(
        failures(&found)[0].1,
        "1 PASS→FAIL in the 2 pairs compared, besides 1 flaky or not reproduced: a × y"
    );
    wanted.known.confirmed = Some([(id(0), false), (id(1), false)].into());
    assert_eq!(failures(&assess(Some(&before), &now, &wanted)), []);

    wanted.known.confirmed = Some([(id(1), true)].into());
    let found = assess(Some(&before), &now, &wanted);
    assert_eq!(
        failures(&found)[0].1,
        "2 PASS→FAIL in the 2 pairs compared: a × x, a × y; 1 of them could not be confirmed"
    );
    wanted.known.confirmed = Some([].into());
    let found = assess(Some(&before), &now, &wanted);
    let why = failures(&found)[0].1;
    assert!(why.ends_with("; none of them could be confirmed"), "{why}");
}

/// A pair that passed once and whose other attempt was stopped with its run.
fn stopped(eval: &str) -> PairResult {
    let mut pair = ran("a", eval, &[Outcome::Passed, Outcome::Cancelled]);
    pair.samples.as_mut().unwrap()[1].stopped_early = false;
    pair
}

#[test]
fn a_label_is_incomplete_where_its_own_pairs_lack_attempts() {
    let whole = |eval: &str| ran("a", eval, &[Outcome::Passed, Outcome::Failed]);
    let cut_short = |name: &str, pairs: Vec<PairResult>| ResultSet {
        runs: Some(2),
        is_cut_short: true,
        ..set(name, pairs)
    };
    let mut wanted = criteria(&[Gate::Incomplete]);
    wanted.gates = label_gates(&[Gate::Incomplete]);
    let failed = |base: Option<&ResultSet>, now: &ResultSet| -> Vec<String> {
        let found = assess(base, now, &wanted);
        failures(&found)
            .iter()
            .map(|(gate, _)| gate.to_string())
            .collect()
    };
    let both = ["incomplete", "incomplete (tier=critical)"];

    let elsewhere = cut_short("now", vec![critical(whole("x")), stopped("y")]);
    assert_eq!(failed(None, &elsewhere), ["incomplete"]);
    let there = cut_short("now", vec![critical(stopped("x")), whole("y")]);
    assert_eq!(failed(None, &there), both);
    let missing = critical(ran("a", "x", &[Outcome::Passed]));
    assert_eq!(failed(None, &cut_short("now", vec![missing, whole("y")])), both);
    let decided = critical(ran("a", "x", &[Outcome::Passed, Outcome::Cancelled]));
    assert_eq!(
        failed(None, &cut_short("now", vec![decided, stopped("y")])),
        ["incomplete"]
    );

    // It was the base revision beside it that was stopped.
    let now = cut_short("now", vec![critical(whole("x")), whole("y")]);
    let base = cut_short("measure", vec![whole("x"), stopped("y")]);
    assert_eq!(failed(Some(&base), &now), ["incomplete"]);
    let base = cut_short("measure", vec![stopped("x"), whole("y")]);
    assert_eq!(failed(Some(&base), &now), both);
}
