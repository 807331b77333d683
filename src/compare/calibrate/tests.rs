use super::super::tests::{E, F, P, failed, options, pair, passed, ran, set};
use super::calibrate;
use crate::model::{Gate, Outcome, Policy, ResultSet, Verdict};

fn run(source: &str, pairs: &[&[Outcome]]) -> ResultSet {
    let name = |at: usize| {
        if at < 26 {
            char::from(b'a' + at as u8).to_string()
        } else {
            at.to_string()
        }
    };
    let pairs = pairs
        .iter()
        .enumerate()
        .map(|(at, outcomes)| ran("x", &name(at), outcomes));
    set(source, pairs.collect())
}

#[test]
fn each_run_is_compared_with_each_later_one() {
    let runs = [
        run("1", &[&[P, P], &[F, P], &[F, F]]),
        run("2", &[&[P, P], &[F, F], &[F, F]]),
        run("3", &[&[P, F], &[P, P], &[F, F]]),
        run("4", &[&[P, P], &[P, P], &[F, E]]),
    ];
    let gates = [Gate::Regression, Gate::Significant, Gate::Inconclusive];
    let calibration = calibrate(&runs, &gates, &options());
    let pairings: Vec<(&str, &str, usize, usize)> = calibration
        .comparisons
        .iter()
        .map(|each| {
            (
                &*each.baseline,
                &*each.current,
                each.pass_to_fail,
                each.fail_to_pass,
            )
        })
        .collect();
    assert_eq!(
        pairings,
        [
            ("1", "2", 1, 0),
            ("1", "3", 0, 0),
            ("1", "4", 0, 0),
            ("2", "3", 0, 1),
            ("2", "4", 0, 1),
            ("3", "4", 0, 0)
        ]
    );
    // c of the last run is not firm.
    assert_eq!((calibration.flips.flips, calibration.flips.compared), (3, 15));
    assert_eq!(calibration.flips.rate, Some(0.2));
    let rates: Vec<(&str, usize, Option<usize>, usize)> = calibration
        .gates
        .iter()
        .map(|gate| (&*gate.gate, gate.failed, gate.failed_with_history, gate.of))
        .collect();
    assert_eq!(
        rates,
        [
            // b is split in run 1, so that its one fall is flaky already.
            ("regression", 0, Some(0), 6),
            ("significant", 0, Some(0), 6),
            ("inconclusive", 6, Some(6), 6)
        ]
    );
    let flaky = &calibration.flaky;
    assert_eq!(flaky.len(), 1);
    assert_eq!((&*flaky[0].eval, flaky[0].passed, flaky[0].of), ("b", 3, 4));
    assert_eq!(flaky[0].attempts, "5/8");
    assert_eq!(calibration.runs[0].pass_rate, Some(0.6667));
    assert_eq!(
        (calibration.runs[0].low, calibration.runs[0].high),
        (Some(0.2077), Some(0.9385))
    );
}

#[test]
fn history_keeps_a_flaky_pair_from_failing_the_gate_regression() {
    let of = |source: &str, verdict| set(source, vec![passed("x", "a"), pair("x", "b", verdict)]);
    let runs = [
        of("1", Verdict::Pass),
        of("2", Verdict::Fail),
        of("3", Verdict::Fail),
    ];
    let calibration = calibrate(&runs, &[Gate::Regression], &options());
    let gate = &calibration.gates[0];
    // Where two runs pass and fail, the third says that the pair does both.
    assert_eq!((gate.failed, gate.failed_with_history, gate.of), (2, Some(0), 3));
    let runs = [Verdict::Pass, Verdict::Pass, Verdict::Pass, Verdict::Fail];
    let runs: Vec<ResultSet> = ('1'..)
        .zip(runs)
        .map(|(name, verdict)| of(&name.to_string(), verdict))
        .collect();
    let calibration = calibrate(&runs, &[Gate::Regression], &options());
    let gate = &calibration.gates[0];
    // What fails for the first time is a regression as far as anybody can know.
    assert_eq!((gate.failed, gate.failed_with_history, gate.of), (3, Some(3), 6));
}

#[test]
fn the_outlook_is_from_the_attempts_of_all_runs() {
    // 3 of 4 and 4 of 4 attempts: q(1−q) is 1/4 and 0.
    let runs = [run("1", &[&[P, F], &[P, P]]), run("2", &[&[P, P], &[P, P]])];
    let calibration = calibrate(&runs, &[], &options());
    assert_eq!(calibration.noise, Some(0.125));
    let shares: Vec<(Option<f64>, Option<f64>)> = calibration
        .outlook
        .iter()
        .map(|each| (each.any_passes, each.all_pass))
        .collect();
    assert_eq!(
        shares[..5],
        [
            (Some(0.875), Some(0.875)),
            (Some(1.0), Some(0.75)),
            (Some(1.0), Some(0.625)),
            (Some(1.0), Some(0.5)),
            (None, None)
        ]
    );
    assert_eq!(calibration.outlook.len(), 8);
    assert_eq!(calibration.outlook[0].detectable, None, "two pairs see nothing");

    let many: Vec<Vec<Outcome>> = (0..100)
        .map(|each| vec![P, if each % 10 == 0 { F } else { P }])
        .collect();
    let many: Vec<&[Outcome]> = many.iter().map(Vec::as_slice).collect();
    let calibration = calibrate(&[run("1", &many), run("2", &many)], &[], &options());
    let drops: Vec<f64> = calibration
        .outlook
        .iter()
        .filter_map(|each| each.detectable)
        .collect();
    assert_eq!(drops.len(), 8);
    assert!(drops.windows(2).all(|pair| pair[1] < pair[0]), "{drops:?}");
    // Ten pairs of 2 in 4: V = 2 · 100 · (10 · 1/3 / 100) / 2 = 3.33, m = 2, z = 2.802, so (3.93 + 2.802 · 3.91) / 200.
    assert_eq!(drops[1], 0.0744);
}

#[test]
fn a_run_that_stops_early_counts_its_first_attempts_and_verdicts_are_warned_of() {
    let stopped = run("1", &[&[P, Outcome::Cancelled], &[F, P]]);
    let rows = set("2", vec![passed("x", "a"), failed("x", "b")]);
    let calibration = calibrate(&[stopped, rows], &[], &options());
    // a passed its first attempt and its verdict; b failed both.
    assert_eq!(calibration.noise, Some(0.0));
    assert_eq!(
        calibration.warnings,
        ["the attempts of `2` are not known one by one: its verdicts count as attempts"]
    );
    // With two attempts of a pair known, verdicts of another run are not mixed with them.
    let rows = set("2", vec![passed("x", "a")]);
    let calibration = calibrate(&[run("1", &[&[P, P]]), rows], &[], &options());
    assert_eq!(calibration.outlook[1].all_pass, Some(1.0));
    assert_eq!(calibration.outlook[2].all_pass, None);
    assert!(calibration.warnings[0].ends_with("are no part of the outlook"));
    let mut other = run("3", &[&[P]]);
    other.policy = Some(Policy::All);
    let mut one = run("4", &[&[P]]);
    one.policy = Some(Policy::Any);
    assert_eq!(
        calibrate(&[one, other], &[], &options()).warnings,
        ["the runs differ in their policy: they are not runs of the same thing"]
    );
}

#[test]
fn runs_without_a_pair_in_common_have_no_flip_rate() {
    let calibration = calibrate(
        &[set("1", vec![passed("x", "a")]), set("2", Vec::new())],
        &[],
        &options(),
    );
    assert_eq!((calibration.flips.rate, calibration.noise), (None, None));
    assert_eq!(calibration.runs[1].pass_rate, None);
    assert!(calibration.outlook.iter().all(|each| each.detectable.is_none()));
}
