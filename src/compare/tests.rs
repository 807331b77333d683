mod breakdown;
mod laws;

use jiff::Timestamp;

use super::{Options, compare, sentence};
use crate::model::comparison::{ComparisonVerdict, Level, Side};
use crate::model::{
    Labels, Outcome, PairId, PairResult, Policy, ResultSet, Sample, Selection, SelectionKind, Usage, Verdict,
};

pub(super) const P: Outcome = Outcome::Passed;
pub(super) const F: Outcome = Outcome::Failed;
pub(super) const E: Outcome = Outcome::Errored;
pub(super) const T: Outcome = Outcome::TimedOut;

pub(super) fn pair(experiment: &str, eval: &str, verdict: Verdict) -> PairResult {
    PairResult {
        id: PairId::new(experiment, eval).unwrap(),
        labels: Labels::default(),
        verdict,
        firm: true,
        samples: None,
        graded: None,
    }
}

pub(super) fn passed(experiment: &str, eval: &str) -> PairResult {
    pair(experiment, eval, Verdict::Pass)
}

pub(super) fn failed(experiment: &str, eval: &str) -> PairResult {
    pair(experiment, eval, Verdict::Fail)
}

pub(super) fn set(source: &str, pairs: Vec<PairResult>) -> ResultSet {
    ResultSet::of_pairs(source, pairs)
}

/// A pair with all its attempts, decided by `any`.
pub(super) fn ran(experiment: &str, eval: &str, outcomes: &[Outcome]) -> PairResult {
    let verdict = if outcomes.contains(&P) {
        Verdict::Pass
    } else if outcomes.iter().any(|outcome| outcome.is_graded()) {
        Verdict::Fail
    } else {
        Verdict::Error
    };
    let samples = (1..)
        .zip(outcomes)
        .map(|(index, outcome)| Sample {
            index,
            outcome: *outcome,
            stopped_early: *outcome == Outcome::Cancelled,
            command_seconds: None,
            overhead_seconds: None,
            score: None,
            usage: None,
        })
        .collect();
    PairResult {
        firm: verdict == Verdict::Pass || outcomes.iter().all(|outcome| outcome.is_graded()),
        samples: Some(samples),
        ..pair(experiment, eval, verdict)
    }
}

fn labelled(mut pair: PairResult, name: &str, value: &str) -> PairResult {
    pair.labels.add(name, value);
    pair
}

pub(super) fn options() -> Options {
    Options {
        alpha: 0.05,
        margin: 0.10,
        group_by: None,
        now: None,
    }
}

fn by(label: &str) -> Options {
    Options {
        group_by: Some(label.to_owned()),
        ..options()
    }
}

fn part(selected: usize, of: usize) -> Option<Selection> {
    Some(Selection {
        kind: SelectionKind::Subset,
        selected,
        of,
    })
}

/// Pairs of a provider: (both pass, down, up, both fail), each provider an experiment of its own.
fn suite(providers: &[(&str, [usize; 4])]) -> (ResultSet, ResultSet) {
    let kinds = [
        (Verdict::Pass, Verdict::Pass),
        (Verdict::Pass, Verdict::Fail),
        (Verdict::Fail, Verdict::Pass),
        (Verdict::Fail, Verdict::Fail),
    ];
    let (mut before, mut now) = (Vec::new(), Vec::new());
    for (provider, numbers) in providers {
        for (kind, number) in kinds.iter().zip(numbers) {
            for each in 0..*number {
                let eval = format!("{:?}-{:?}-{each}", kind.0, kind.1);
                before.push(labelled(pair(provider, &eval, kind.0), "provider", provider));
                now.push(labelled(pair(provider, &eval, kind.1), "provider", provider));
            }
        }
    }
    (set("before", before), set("now", now))
}

/// The counts of two real runs of a public suite, by provider.
fn known(more_passes: usize) -> (ResultSet, ResultSet) {
    suite(&[
        ("anthropic", [81 + more_passes, 1, 1, 5]),
        ("moonshotai", [37, 4, 1, 2]),
        ("openai", [66, 5, 4, 13]),
    ])
}

#[test]
fn the_known_runs_are_within_noise() {
    let (before, now) = known(0);
    let comparison = compare(&before, &now, &by("provider"));
    assert_eq!(comparison.compared, 220);
    assert_eq!(
        (comparison.baseline.passed, comparison.current.passed),
        (194, 190)
    );
    assert_eq!(comparison.pass_rate.baseline, Some(0.8818));
    assert_eq!(comparison.pass_rate.current, Some(0.8636));
    assert_eq!(comparison.pass_rate.delta, Some(-0.0182));
    assert_eq!(comparison.flips.pass_to_fail.len(), 10);
    assert_eq!(comparison.flips.fail_to_pass.len(), 6);
    assert_eq!(comparison.test.level, Level::Verdicts);
    assert_eq!(comparison.test.p_value, Some(0.4545));
    assert_eq!(comparison.test.detectable, Some(0.0718));
    assert_eq!(comparison.test.lower_bound, Some(-0.0549));
    assert_eq!(comparison.verdict, ComparisonVerdict::WithinNoise);
    assert_eq!(comparison.warnings, [""; 0]);
    let concentration = comparison.concentration.clone().unwrap();
    assert_eq!(
        (concentration.by.as_str(), concentration.named),
        ("provider", None)
    );
    assert_eq!(
        concentration.p_value.map(|p| format!("{p:.3}")),
        Some("0.057".to_owned())
    );
    assert_eq!(concentration.reading, "scattered over 3 groups");
    assert_eq!(
        sentence(&comparison),
        "within noise: 10 PASS→FAIL and 6 FAIL→PASS are no more than chance explains (p = 0.4545); a drop of 7.2 pp would have been seen with 80 % power"
    );
}

#[test]
fn nothing_compared_is_inconclusive_and_gives_no_numbers() {
    for (before, now) in [(vec![], vec![]), (vec![passed("a", "x")], vec![passed("a", "y")])] {
        let comparison = compare(&set("before", before), &set("now", now), &options());
        assert_eq!(comparison.verdict, ComparisonVerdict::Inconclusive);
        assert_eq!(comparison.compared, 0);
        assert_eq!(comparison.pass_rate.baseline, None);
        assert_eq!(comparison.pass_rate.current, None);
        assert_eq!(comparison.pass_rate.delta, None);
        assert_eq!(comparison.test.p_value, None);
        assert_eq!(comparison.test.detectable, None);
        assert_eq!(comparison.test.lower_bound, None);
        assert!(comparison.groups.is_empty());
        assert_eq!(
            sentence(&comparison),
            "inconclusive: no pair has a firm verdict on both sides"
        );
    }
}

#[test]
fn too_few_pairs_are_too_small_to_tell() {
    let (before, now) = suite(&[("a", [27, 2, 1, 0])]);
    let comparison = compare(&before, &now, &options());
    assert_eq!(comparison.verdict, ComparisonVerdict::Inconclusive);
    assert_eq!(
        sentence(&comparison),
        "too small to tell: it would not have seen a drop under 29.9 pp (p = 1)"
    );
    let (before, now) = suite(&[("a", [1, 1, 0, 0])]);
    let comparison = compare(&before, &now, &options());
    assert_eq!(comparison.test.detectable, None);
    assert_eq!(
        sentence(&comparison),
        "too small to tell: it would not have seen a drop of any size (p = 1)"
    );
}

#[test]
fn a_large_fall_is_a_regression_and_the_same_rise_an_improvement() {
    let (before, now) = suite(&[("a", [80, 15, 1, 4])]);
    let fell = compare(&before, &now, &options());
    assert_eq!(fell.verdict, ComparisonVerdict::Regressed);
    assert_eq!(
        sentence(&fell),
        "regressed: the pass rate fell by more than chance explains, in all 100 pairs together (p = 0.0005188), experiment a (adjusted p = 0.0005188)"
    );
    let rose = compare(&now, &before, &options());
    assert_eq!(rose.verdict, ComparisonVerdict::Improved);
    assert_eq!(rose.test.p_value, fell.test.p_value);
}

#[test]
fn one_group_that_falls_and_one_that_rises_are_mixed() {
    let (before, now) = suite(&[("a", [20, 12, 0, 0]), ("b", [20, 0, 12, 0])]);
    let comparison = compare(&before, &now, &options());
    assert_eq!(comparison.test.p_value, Some(1.0));
    assert_eq!(comparison.verdict, ComparisonVerdict::Mixed);
    assert_eq!(
        sentence(&comparison),
        "mixed: some fell and some rose by more than chance explains, in experiment a (adjusted p = 0.0009766), experiment b (adjusted p = 0.0009766)"
    );
}

#[test]
fn when_both_sides_ran_every_attempt_every_attempt_is_evidence() {
    let evals: Vec<String> = (0..40).map(|each| format!("e{each}")).collect();
    let of = |outcomes: &[Outcome]| evals.iter().map(|eval| ran("a", eval, outcomes)).collect();
    let before = set("before", of(&[P, P, P]));
    let now = set("now", of(&[P, F, E]));
    let comparison = compare(&before, &now, &options());
    assert_eq!(comparison.test.level, Level::Attempts);
    assert_eq!(comparison.pass_rate.delta, Some(0.0), "no verdict changed");
    assert_eq!(
        comparison.verdict,
        ComparisonVerdict::Regressed,
        "but attempts fail that passed"
    );
    assert_eq!(comparison.baseline.attempts, Some(120));
    assert_eq!(comparison.current.attempts, Some(80));
}

#[test]
fn a_side_that_stopped_early_is_compared_by_verdicts() {
    let stopped = ran("a", "x", &[P, Outcome::Cancelled]);
    let before = set("before", vec![stopped, ran("a", "y", &[F, F])]);
    let now = set("now", vec![ran("a", "x", &[P, P]), ran("a", "y", &[F, F])]);
    let comparison = compare(&before, &now, &options());
    assert_eq!(comparison.test.level, Level::Verdicts);
    assert_eq!(comparison.verdict, ComparisonVerdict::Unchanged);
    assert_eq!(
        sentence(&comparison),
        "unchanged: all 2 pairs compared gave the same on both sides"
    );
}

#[test]
fn attempts_that_are_not_there_are_not_every_attempt() {
    let mut before = set("before", vec![ran("a", "x", &[P]), ran("a", "y", &[F, F])]);
    let now = set("now", vec![ran("a", "x", &[P, P]), ran("a", "y", &[F, F])]);
    assert_eq!(compare(&before, &now, &options()).test.level, Level::Verdicts);
    before = set("before", vec![ran("a", "x", &[P]), ran("a", "y", &[F])]);
    assert_eq!(compare(&before, &now, &options()).test.level, Level::Attempts);
    before.runs = Some(2);
    assert_eq!(compare(&before, &now, &options()).test.level, Level::Verdicts);
}

#[test]
fn different_runs_are_warned_of_and_compared_by_first_attempts() {
    let mut before = set(
        "before",
        vec![
            ran("a", "x", &[P, Outcome::Cancelled]),
            ran("a", "y", &[F, P]),
            ran("a", "z", &[Outcome::Cancelled, P]),
        ],
    );
    let mut now = set(
        "now",
        vec![
            ran("a", "x", &[P, P, P]),
            ran("a", "y", &[F, F, F]),
            ran("a", "z", &[P, P, P]),
        ],
    );
    (before.runs, now.runs) = (Some(2), Some(3));
    let comparison = compare(&before, &now, &options());
    assert_eq!(comparison.test.level, Level::FirstAttempts);
    assert_eq!(comparison.compared, 2);
    assert_eq!(
        comparison.test.p_value,
        Some(1.0),
        "x passed, y failed, on both sides"
    );
    let [lost] = &comparison.not_comparable[..] else {
        panic!("{:?}", comparison.not_comparable)
    };
    assert_eq!(lost.eval.as_str(), "z");
    assert_eq!(
        lost.reason,
        "baseline: attempt 1 was stopped when another decided the pair"
    );
    assert_eq!(
        comparison.warnings,
        [
            "the baseline made up to 2 attempts of each pair, this run 3: verdicts, rates and flips do not mean the same on both sides, and the test is over first attempts instead"
        ]
    );
}

#[test]
fn different_policies_are_warned_of_and_compared_by_attempts() {
    let mut before = set("before", vec![ran("a", "x", &[P, F])]);
    let mut now = before.clone();
    now.pairs[0].verdict = Verdict::Fail;
    (before.policy, now.policy) = (Some(Policy::Any), Some(Policy::All));
    let comparison = compare(&before, &now, &options());
    assert_eq!(comparison.test.level, Level::Attempts);
    assert_eq!(comparison.test.p_value, Some(1.0));
    assert_eq!(
        comparison.warnings,
        [
            "the baseline decided its pairs by the policy `any`, this run by `all`: verdicts, rates and flips do not mean the same on both sides, and the test is over all attempts instead"
        ]
    );
}

#[test]
fn what_is_not_known_of_a_side_counts_as_the_same() {
    let mut before = set("before", vec![passed("a", "x")]);
    let now = set("now", vec![passed("a", "x")]);
    (before.policy, before.runs) = (Some(Policy::All), Some(5));
    let comparison = compare(&before, &now, &options());
    assert_eq!(comparison.test.level, Level::Verdicts);
    assert!(comparison.warnings.is_empty());
}

#[test]
fn a_verdict_that_lost_attempts_could_have_changed_is_never_a_flip() {
    let before = set(
        "before",
        vec![
            ran("a", "x", &[P, P]),
            ran("a", "y", &[E, E]),
            ran("a", "z", &[P, P]),
        ],
    );
    let mut now = set(
        "now",
        vec![ran("a", "x", &[F, E]), ran("a", "y", &[P, P]), failed("a", "z")],
    );
    now.pairs[2].firm = false;
    let comparison = compare(&before, &now, &options());
    assert_eq!(comparison.compared, 0);
    assert!(comparison.flips.pass_to_fail.is_empty());
    let reasons: Vec<&str> = comparison
        .not_comparable
        .iter()
        .map(|pair| pair.reason.as_str())
        .collect();
    assert_eq!(
        reasons,
        [
            "this run: 1 of 2 graded",
            "baseline: error, no attempt gave a result",
            "this run: some attempts gave no result"
        ]
    );
}

#[test]
fn pairs_of_one_side_are_added_and_removed() {
    let before = set(
        "before",
        vec![passed("a", "y"), passed("a", "x"), passed("a", "w")],
    );
    let mut now = set("now", vec![passed("a", "x"), passed("b", "z"), passed("a", "z")]);
    let comparison = compare(&before, &now, &options());
    let names = |pairs: &[crate::model::comparison::PairRef]| -> Vec<String> {
        pairs
            .iter()
            .map(|pair| format!("{}/{}", pair.experiment, pair.eval))
            .collect()
    };
    assert_eq!(names(&comparison.added), ["a/z", "b/z"]);
    assert_eq!(names(&comparison.removed), ["a/w", "a/y"]);
    assert_eq!(comparison.not_selected, 0);

    now.selection = part(3, 5);
    let comparison = compare(&before, &now, &options());
    assert_eq!(names(&comparison.removed), [""; 0]);
    assert_eq!(comparison.not_selected, 2);

    let comparison = compare(&now, &before, &options());
    assert_eq!(
        comparison.warnings,
        ["the baseline is a part of its suite (3 of 5 pairs): pairs that it lacks are listed as added"]
    );

    // The same part on both sides lacks nothing.
    let comparison = compare(&now, &now, &options());
    assert_eq!(comparison.warnings, [""; 0]);
}

#[test]
fn flaky_flips_are_marked_and_come_last() {
    let before = set(
        "before",
        vec![
            ran("b", "x", &[P, P]),
            ran("a", "y", &[P, F]),
            ran("a", "x", &[P, P]),
        ],
    );
    let now = set(
        "now",
        vec![
            ran("b", "x", &[F, F]),
            ran("a", "y", &[F, F]),
            ran("a", "x", &[F, T]),
        ],
    );
    let comparison = compare(&before, &now, &options());
    let flips: Vec<(String, bool, &str, &str)> = comparison
        .flips
        .pass_to_fail
        .iter()
        .map(|flip| {
            (
                format!("{}/{}", flip.experiment, flip.eval),
                flip.flaky,
                &*flip.before,
                &*flip.now,
            )
        })
        .collect();
    assert_eq!(
        flips,
        [
            ("a/x".to_owned(), false, "2/2", "0/2"),
            ("b/x".to_owned(), false, "2/2", "0/2"),
            ("a/y".to_owned(), true, "1/2", "0/2"),
        ]
    );
    let rows = compare(
        &set("before", vec![passed("a", "x")]),
        &set("now", vec![failed("a", "x")]),
        &options(),
    );
    let flip = &rows.flips.pass_to_fail[0];
    assert_eq!((&*flip.before, &*flip.now, flip.flaky), ("pass", "fail", false));
}

#[test]
fn attempts_that_disagree_now_are_what_a_change_has_done_where_more_than_one_has_to_pass() {
    let flaky = |policy, before: &[Outcome], now: &[Outcome]| {
        let side = |name, verdict, outcomes| ResultSet {
            policy: Some(policy),
            ..set(
                name,
                vec![PairResult {
                    verdict,
                    firm: true,
                    ..ran("a", "x", outcomes)
                }],
            )
        };
        let [before, now] = [
            side("before", Verdict::Pass, before),
            side("now", Verdict::Fail, now),
        ];
        let fell = compare(&before, &now, &options()).flips;
        let rose = compare(&now, &before, &options()).flips;
        (fell.pass_to_fail[0].flaky, rose.fail_to_pass[0].flaky)
    };
    assert_eq!(flaky(Policy::All, &[P, P], &[F, P]), (false, false));
    assert_eq!(flaky(Policy::Majority, &[P, P, P], &[F, F, P]), (false, false));
    assert_eq!(flaky(Policy::Majority, &[P, P, F], &[F, F, P]), (true, true));
    assert_eq!(flaky(Policy::Any, &[F, P], &[F, F]), (true, true));
}

#[test]
fn what_each_side_used_is_told_with_how_many_attempts_say_so() {
    let used = |cost_usd, input_tokens, output_tokens| Usage {
        input_tokens,
        output_tokens,
        cost_usd,
    };
    let with = |usages: [Option<Usage>; 2]| {
        let mut pair = ran("a", "x", &[Outcome::Passed, Outcome::Passed]);
        for (sample, usage) in pair.samples.iter_mut().flatten().zip(usages) {
            sample.usage = usage;
        }
        set("side", vec![pair])
    };
    let before = with([Some(used(Some(0.5), Some(100), Some(5))), None]);
    let now = with([
        Some(used(Some(1e308), Some(u64::MAX), None)),
        Some(used(Some(1e308), Some(1), None)),
    ]);
    let comparison = compare(&before, &now, &options());
    let spent = |side: &Side| {
        (
            side.cost_usd.map(|cost| (cost.total, cost.attempts)),
            side.tokens.map(|tokens| (tokens.total, tokens.attempts)),
        )
    };
    assert_eq!(spent(&comparison.baseline), (Some((0.5, 1)), Some((105, 1))));
    assert_eq!(spent(&comparison.current), (None, Some((u64::MAX, 2))));
    let silent = compare(&with([None, None]), &now, &options());
    assert_eq!(spent(&silent.baseline), (None, None));
}

#[test]
fn how_attempts_ended_is_told_where_it_is_known_of_each() {
    const T: Outcome = Outcome::TimedOut;
    const E: Outcome = Outcome::Errored;
    let ended = |set: &ResultSet| {
        let side = compare(set, set, &options()).baseline;
        (
            side.attempts_passed,
            side.attempts_errored,
            side.attempts_timed_out,
        )
    };
    let whole = ResultSet {
        tells_errors: true,
        ..set("ours", vec![ran("a", "x", &[P, F]), ran("a", "y", &[T, E])])
    };
    assert_eq!(ended(&whole), (Some(1), Some(1), Some(1)));
    let published = ResultSet {
        tells_errors: false,
        ..whole.clone()
    };
    assert_eq!(
        ended(&published),
        (Some(1), None, None),
        "time-outs are among its failures"
    );
    let fewer = ResultSet {
        runs: Some(3),
        ..whole.clone()
    };
    assert_eq!(ended(&fewer).0, None, "one of three was enough");
    let uneven = set("rows", vec![ran("a", "x", &[P]), ran("a", "y", &[F, P])]);
    assert_eq!(ended(&uneven).0, None);
    let stopped = set(
        "ours",
        vec![ran("a", "x", &[P, Outcome::Cancelled]), ran("a", "y", &[F, F])],
    );
    assert_eq!(ended(&stopped).0, None);
    let verdicts = set("verdicts", vec![passed("a", "x")]);
    assert_eq!(ended(&verdicts), (None, None, None));
}

#[test]
fn ages_are_told_from_the_time_of_the_comparison() {
    let mut before = set("before", vec![passed("a", "x")]);
    let mut now = before.clone();
    before.started_at = Some(Timestamp::from_second(1_000).unwrap());
    now.started_at = Some(Timestamp::from_second(5_000).unwrap());
    let options = Options {
        now: Some(Timestamp::from_second(4_600).unwrap()),
        ..options()
    };
    let comparison = compare(&before, &now, &options);
    assert_eq!(comparison.baseline.age_seconds, Some(3_600.0));
    assert_eq!(comparison.current.age_seconds, None, "it is not older than now");
}
