use super::{pair_summary, totals};
use crate::model::{
    AttemptRecord, CancelReason, Concurrency, Labels, OnPass, Outcome, PairId, PairSummary, PlannedBudget,
    PlannedPair, Policy, Produces, RunPlan, Selection, SelectionKind, Strategy, Usage, Verdict,
};

fn plan(runs: u32, policy: Policy) -> RunPlan {
    RunPlan {
        suite: "suite".to_owned(),
        pairs: Vec::new(),
        runs,
        strategy: Strategy::Parallel,
        on_pass: OnPass::Continue,
        policy,
        produces: Produces::Attempt,
        concurrency: Concurrency {
            most: None,
            value: 1,
            reason: String::new(),
            bounded: false,
        },
        limits: Vec::new(),
        budget: PlannedBudget::default(),
        overhead_seconds: None,
        forecast: None,
        selection: Selection {
            kind: SelectionKind::All,
            selected: 0,
            of: 0,
        },
        shard: None,
        sandbox: "local".to_owned(),
        config_hash: String::new(),
    }
}

fn pair(eval: &str) -> PlannedPair {
    PlannedPair {
        id: PairId::new("agent", eval).unwrap(),
        labels: Labels::default(),
        predicted_seconds: None,
    }
}

fn record(index: u32, outcome: Outcome) -> AttemptRecord {
    AttemptRecord {
        outcome,
        reason: None,
        tries: 1,
        ..AttemptRecord::not_started(index, CancelReason::Run)
    }
}

fn decided(eval: &str, outcomes: &[Outcome]) -> PairSummary {
    let records = (1..)
        .zip(outcomes)
        .map(|(index, outcome)| record(index, *outcome));
    let plan = plan(outcomes.len() as u32, Policy::Any);
    pair_summary(&pair(eval), &plan, records.collect(), 10.0)
}

#[test]
fn a_full_run_of_237_pairs_gives_the_known_rates() {
    const P: Outcome = Outcome::Passed;
    const F: Outcome = Outcome::Failed;
    let mut pairs = Vec::new();
    for (count, outcomes) in [(185, [P, P]), (11, [P, F]), (11, [F, P]), (30, [F, F])] {
        for _ in 0..count {
            pairs.push(decided(&format!("eval-{}", pairs.len()), &outcomes));
        }
    }
    let totals = totals(&pairs);
    assert_eq!((totals.pairs, totals.passed, totals.failed), (237, 207, 30));
    assert_eq!(totals.attempts.planned, 474);
    assert_eq!((totals.attempts.graded, totals.attempts.passed), (474, 392));
    assert_eq!(totals.attempts.failed, 82);
    assert_eq!(totals.pass_rate, Some(0.8734));
    assert_eq!(totals.any_pass_rate, Some(0.8734));
    assert_eq!(totals.attempt_pass_rate, Some(0.827));
    assert_eq!(totals.all_pass_rate, Some(0.7806));
    let distribution: Vec<(&str, usize)> = totals
        .distribution
        .iter()
        .map(|(share, pairs)| (share.as_str(), *pairs))
        .collect();
    assert_eq!(distribution, [("0/2", 30), ("1/2", 22), ("2/2", 185)]);
    assert_eq!(totals.sandbox_seconds, 2370.0);
    assert_eq!((totals.cost_usd, totals.tokens), (None, None));
}

#[test]
fn a_pair_is_decided_on_its_attempts_in_order() {
    let records = vec![
        record(3, Outcome::Passed),
        record(1, Outcome::Errored),
        record(2, Outcome::Failed),
    ];
    let pair = pair_summary(&pair("e"), &plan(3, Policy::Any), records, 1.23456);
    assert_eq!(pair.verdict, Verdict::Pass);
    assert!(pair.firm);
    assert_eq!(
        (pair.passed_attempts, pair.graded_attempts, pair.planned_attempts),
        (1, 2, 3)
    );
    assert_eq!(pair.representative, Some(3));
    assert_eq!(pair.seconds, 1.235);
    let order: Vec<u32> = pair.attempts.iter().map(|attempt| attempt.index).collect();
    assert_eq!(order, [1, 2, 3]);
}

#[test]
fn one_of_two_lost_leaves_a_failure_that_is_not_firm() {
    let pair = decided("e", &[Outcome::Failed, Outcome::Errored]);
    assert_eq!((pair.verdict, pair.firm), (Verdict::Fail, false));
    assert_eq!((pair.graded_attempts, pair.planned_attempts), (1, 2));
}

#[test]
fn a_pair_stopped_early_leaves_no_rate_that_needs_every_attempt() {
    let records = vec![
        record(1, Outcome::Passed),
        AttemptRecord::not_started(2, CancelReason::Decided),
    ];
    let stopped = pair_summary(&pair("a"), &plan(2, Policy::Any), records, 1.0);
    assert!(stopped.firm);
    let totals = totals(&[stopped, decided("b", &[Outcome::Failed, Outcome::Failed])]);
    assert_eq!(totals.pass_rate, Some(0.5));
    assert_eq!(totals.any_pass_rate, Some(0.5));
    assert_eq!((totals.attempt_pass_rate, totals.all_pass_rate), (None, None));
    assert_eq!(totals.attempts.cancelled, 1);
}

#[test]
fn pairs_without_a_result_are_counted_but_in_no_rate() {
    let lost = AttemptRecord {
        tries: 3,
        ..record(1, Outcome::Errored)
    };
    let broken = pair_summary(&pair("a"), &plan(1, Policy::Any), vec![lost], 1.0);
    let not_run = vec![AttemptRecord::not_started(1, CancelReason::Run)];
    let not_run = pair_summary(&pair("b"), &plan(1, Policy::Any), not_run, 0.0);
    assert_eq!(not_run.verdict, Verdict::NotRun);
    let totals = totals(&[broken, not_run, decided("c", &[Outcome::TimedOut])]);
    assert_eq!(
        (totals.errored, totals.not_run, totals.failed, totals.passed),
        (1, 1, 1, 0)
    );
    assert_eq!(totals.pass_rate, Some(0.0));
    assert_eq!(
        (
            totals.attempts.errored,
            totals.attempts.cancelled,
            totals.attempts.timed_out
        ),
        (1, 1, 1)
    );
    assert_eq!(totals.attempts.retried, 1);
    assert_eq!(totals.distribution.len(), 1);
}

#[test]
fn nothing_measured_has_no_rates() {
    let totals = totals(&[decided("a", &[Outcome::Errored])]);
    assert_eq!((totals.pass_rate, totals.any_pass_rate), (None, None));
    assert_eq!((totals.attempt_pass_rate, totals.all_pass_rate), (None, None));
    assert!(totals.distribution.is_empty());
}

#[test]
fn cost_and_tokens_are_summed_over_those_that_report_them() {
    let usage = |usage| AttemptRecord {
        usage: Some(usage),
        ..record(1, Outcome::Passed)
    };
    let cost = usage(Usage {
        cost_usd: Some(0.1),
        ..Usage::default()
    });
    let both = usage(Usage {
        input_tokens: Some(100),
        output_tokens: Some(5),
        cost_usd: Some(0.2),
    });
    let summary = |eval, record| pair_summary(&pair(eval), &plan(1, Policy::Any), vec![record], 1.0);
    let silent = summary("c", record(1, Outcome::Passed));
    let totals = totals(&[summary("a", cost), summary("b", both), silent]);
    assert_eq!(totals.cost_usd, Some(0.3));
    assert_eq!(totals.tokens, Some(105));
}

#[test]
fn no_pairs_take_no_seconds() {
    let seconds = totals(&[]).sandbox_seconds;
    assert_eq!(serde_json::to_string(&seconds).unwrap(), "0.0");
}

#[test]
fn the_seconds_of_all_tries_are_summed_to_the_millisecond() {
    let held = 0.1 + 0.2;
    assert_ne!(held, 0.3);
    let pair = pair_summary(
        &pair("a"),
        &plan(1, Policy::Any),
        vec![record(1, Outcome::Passed)],
        held,
    );
    assert_eq!(pair.seconds, 0.3);
}

#[test]
fn sums_that_are_no_numbers_any_more_are_unknown() {
    let usage = |cost, tokens| AttemptRecord {
        usage: Some(Usage {
            input_tokens: Some(tokens),
            output_tokens: Some(tokens),
            cost_usd: Some(cost),
        }),
        ..record(1, Outcome::Passed)
    };
    let of = |cost, tokens| {
        let pair = |eval| {
            let mut pair = decided(eval, &[Outcome::Passed]);
            pair.attempts = vec![usage(cost, tokens)];
            pair
        };
        let totals = totals(&[pair("a"), pair("b")]);
        (totals.cost_usd, totals.tokens)
    };
    assert_eq!(of(0.5, 3), (Some(1.0), Some(12)));
    assert_eq!(of(1e308, u64::MAX), (None, Some(u64::MAX)));
}
