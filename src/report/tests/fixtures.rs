//! Runs and comparisons with invented names.

use std::collections::BTreeMap;

use crate::model::comparison::{
    COMPARISON_SCHEMA, ComparisonVerdict, Concentration, Flip, Flips, Group, Level, PassRates, Side, Test,
};
use crate::model::summary::{AttemptTotals, Conclusion, SUMMARY_SCHEMA, Tool};
use crate::model::{
    AttemptError, AttemptRecord, CancelReason, Comparison, ErrorClass, Labels, Outcome, PairId, PairSummary,
    Phase, Policy, RunFacts, Selection, SelectionKind, Strategy, Summary, Totals, Verdict,
};

pub(in crate::report) fn attempt(index: u32, outcome: Outcome, seconds: f64) -> AttemptRecord {
    AttemptRecord {
        outcome,
        reason: None,
        seconds,
        tries: 1,
        checks_failed: match outcome {
            Outcome::Failed => vec!["the page loads".to_owned()],
            _ => Vec::new(),
        },
        ..AttemptRecord::not_started(index, CancelReason::Run)
    }
}

pub(in crate::report) fn errored(index: u32, class: ErrorClass, message: &str) -> AttemptRecord {
    AttemptRecord {
        error: Some(AttemptError {
            class,
            phase: Phase::Command,
            message: message.to_owned(),
            exit_code: Some(1),
            signal: None,
        }),
        ..attempt(index, Outcome::Errored, 1.0)
    }
}

pub(in crate::report) fn pair(experiment: &str, eval: &str, attempts: Vec<AttemptRecord>) -> PairSummary {
    let count = |wanted: fn(Outcome) -> bool| {
        attempts.iter().filter(|attempt| wanted(attempt.outcome)).count() as u32
    };
    let passed = count(|outcome| outcome == Outcome::Passed);
    let graded = count(Outcome::is_graded);
    let id = PairId::new(experiment, eval).unwrap();
    PairSummary {
        experiment: id.experiment,
        eval: id.eval,
        labels: Labels::default(),
        verdict: match (passed, graded) {
            (_, 0) => Verdict::Error,
            (0, _) => Verdict::Fail,
            _ => Verdict::Pass,
        },
        passed_attempts: passed,
        graded_attempts: graded,
        planned_attempts: attempts.len() as u32,
        representative: (graded > 0).then_some(1),
        seconds: attempts.iter().map(|attempt| attempt.seconds).sum(),
        firm: passed > 0 || graded as usize == attempts.len(),
        before: None,
        attempts,
    }
}

pub(in crate::report) fn run_of(pairs: Vec<PairSummary>) -> Summary {
    let verdicts = |verdict| pairs.iter().filter(|pair| pair.verdict == verdict).count();
    let attempts = || pairs.iter().flat_map(|pair| &pair.attempts);
    let outcomes = |outcome| attempts().filter(|attempt| attempt.outcome == outcome).count();
    let mut distribution = BTreeMap::new();
    for pair in pairs.iter().filter(|pair| pair.graded_attempts > 0) {
        *distribution
            .entry(format!("{}/{}", pair.passed_attempts, pair.graded_attempts))
            .or_default() += 1;
    }
    let (passed, failed) = (verdicts(Verdict::Pass), verdicts(Verdict::Fail));
    let totals = Totals {
        pairs: pairs.len(),
        passed,
        failed,
        errored: verdicts(Verdict::Error),
        not_run: verdicts(Verdict::NotRun),
        pass_rate: (passed + failed > 0).then(|| passed as f64 / (passed + failed) as f64),
        attempts: AttemptTotals {
            planned: attempts().count(),
            graded: attempts().filter(|attempt| attempt.outcome.is_graded()).count(),
            passed: outcomes(Outcome::Passed),
            failed: outcomes(Outcome::Failed),
            timed_out: outcomes(Outcome::TimedOut),
            errored: outcomes(Outcome::Errored),
            cancelled: outcomes(Outcome::Cancelled),
            retried: 0,
        },
        attempt_pass_rate: Some(0.5),
        distribution,
        ..Totals::default()
    };
    Summary {
        schema: SUMMARY_SCHEMA.to_owned(),
        tool: Tool {
            name: "evalwave".to_owned(),
            version: "0.1.0".to_owned(),
        },
        run: RunFacts {
            url: None,
            id: "r1".to_owned(),
            started_at: "2026-01-01T00:00:00Z".parse().unwrap(),
            wall_seconds: 1032.4,
            complete: true,
            conclusion: Conclusion::Success,
            reason: None,
            strategy: Strategy::Parallel,
            runs: 2,
            concurrency: pairs.len() * 2,
            policy: Policy::Any,
            sandbox: "local".to_owned(),
            suite: "all".to_owned(),
            commit: Some("abc1234def5678".to_owned()),
            config_hash: "00".to_owned(),
            concurrency_reason: format!(
                "{} = pairs x runs ({} x 2): one wave",
                pairs.len() * 2,
                pairs.len()
            ),
            selection: Selection {
                kind: SelectionKind::All,
                selected: pairs.len(),
                of: pairs.len(),
            },
        },
        totals,
        pairs,
        scheduling: None,
        comparison: None,
        gates: Vec::new(),
        quarantined: Vec::new(),
        notices: Vec::new(),
    }
}

pub(in crate::report) fn small() -> Summary {
    run_of(vec![
        pair(
            "fast",
            "add",
            vec![attempt(1, Outcome::Passed, 4.0), attempt(2, Outcome::Failed, 5.0)],
        ),
        pair(
            "fast",
            "sort",
            vec![
                attempt(1, Outcome::Failed, 42.0),
                attempt(2, Outcome::TimedOut, 90.0),
            ],
        ),
        pair(
            "slow",
            "add",
            vec![attempt(1, Outcome::Passed, 4.0), attempt(2, Outcome::Passed, 5.0)],
        ),
    ])
}

pub(in crate::report) fn flip(experiment: &str, eval: &str, before: &str, now: &str, flaky: bool) -> Flip {
    let id = PairId::new(experiment, eval).unwrap();
    Flip {
        experiment: id.experiment,
        eval: id.eval,
        flaky,
        quarantined: false,
        confirmed: None,
        before: before.to_owned(),
        now: now.to_owned(),
    }
}

pub(in crate::report) fn compared(of: usize, before: usize, now: usize) -> Comparison {
    let side = |source: &str, passed| Side {
        source: source.to_owned(),
        pairs: of,
        passed,
        ..Side::default()
    };
    let share =
        |passed: usize| Some((passed as f64 / of as f64 * 10_000.0).round() / 10_000.0).filter(|_| of > 0);
    Comparison {
        schema: COMPARISON_SCHEMA.to_owned(),
        baseline: side("baseline.json", before),
        current: side("this run", now),
        compared: of,
        pass_rate: PassRates {
            baseline: share(before),
            current: share(now),
            delta: Some((now as f64 - before as f64) / of as f64).filter(|_| of > 0),
        },
        flips: Flips::default(),
        fewer_passes: Vec::new(),
        history: None,
        added: Vec::new(),
        removed: Vec::new(),
        not_selected: 0,
        not_comparable: Vec::new(),
        test: Test {
            level: Level::Verdicts,
            p_value: Some(0.4545).filter(|_| of > 0),
            alpha: 0.05,
            detectable: Some(0.067).filter(|_| of > 0),
            lower_bound: None,
        },
        groups: Vec::new(),
        concentration: None,
        verdict: if of > 0 {
            ComparisonVerdict::WithinNoise
        } else {
            ComparisonVerdict::Inconclusive
        },
        warnings: Vec::new(),
    }
}

/// 237 pairs, 185 x 2/2, 22 x 1/2, 30 x 0/2, against a baseline with 10 and 6 flips.
pub(in crate::report) fn large() -> Summary {
    let pairs = (0..237).map(|number| {
        let outcomes = match number {
            0..30 => [Outcome::Failed, Outcome::Failed],
            30..52 => [Outcome::Failed, Outcome::Passed],
            _ => [Outcome::Passed, Outcome::Passed],
        };
        let seconds = 100.0 + f64::from(number * 7919 % 728);
        let attempts = vec![
            attempt(1, outcomes[0], seconds),
            attempt(2, outcomes[1], seconds * 0.9),
        ];
        pair(
            &format!("agent-{}", number % 11),
            &format!("build-{:03}-task", number / 11),
            attempts,
        )
    });
    let mut summary = run_of(pairs.collect());
    let mut comparison = compared(237, 211, 207);
    comparison.baseline = Side {
        reference: Some("main".to_owned()),
        commit: Some("def5678abc1234".to_owned()),
        age_seconds: Some(7300.0),
        wall_seconds: Some(1690.0),
        attempts: Some(280),
        attempts_errored: Some(1),
        attempts_timed_out: Some(3),
        run_url: Some("https://example.com/runs/1".to_owned()),
        ..comparison.baseline
    };
    let flips = |range: std::ops::Range<usize>, before: &str, now: &str| {
        let pairs = &summary.pairs[range];
        pairs
            .iter()
            .enumerate()
            .map(|(number, pair)| {
                flip(
                    pair.experiment.as_str(),
                    pair.eval.as_str(),
                    before,
                    now,
                    number % 5 != 0,
                )
            })
            .collect::<Vec<_>>()
    };
    comparison.flips = Flips {
        pass_to_fail: flips(0..10, "2/2", "0/2"),
        fail_to_pass: flips(40..46, "0/2", "1/2"),
    };
    comparison.groups = ["anthropic", "moonshotai", "openai"]
        .map(|provider| Group {
            by: "provider".to_owned(),
            value: provider.to_owned(),
            compared: 79,
            passed_baseline: 71,
            passed_current: 69,
            pass_to_fail: 4,
            fail_to_pass: 2,
            delta: Some(-0.0253),
            p_adjusted: Some(0.057),
        })
        .to_vec();
    comparison.concentration = Some(Concentration {
        by: "provider".to_owned(),
        p_value: Some(0.026),
        named: None,
        reading: "scattered over 3 groups".to_owned(),
    });
    summary.comparison = Some(comparison);
    summary.totals.attempt_pass_rate = Some(0.827);
    summary
}
