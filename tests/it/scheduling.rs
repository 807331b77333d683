//! What the adaptive strategy costs and takes beside the two others, in simulated time.

use evalwave::aggregate::{Grade, verdict};
use evalwave::model::{OnPass, Policy, Verdict};
use evalwave::schedule::{Pace, PairSpec, Timeline, Trace, simulate};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::prop_assert;

use crate::support::repository;
use crate::traces::{
    LONGEST, Shape, benchmark, creation_ramp, lower_bound, predicted_as, read, with_giant, wrong_by_three,
};

const PARALLEL: Pace = Pace::Parallel(OnPass::Continue);
const SEEDS: std::ops::Range<u64> = 1000..1030;

fn wall(timeline: &Timeline) -> f64 {
    timeline.wall.as_secs_f64()
}

fn sandboxes(timeline: &Timeline) -> f64 {
    timeline.sandbox_time.as_secs_f64()
}

/// What the attempts that came to their end decide.
fn verdicts(trace: &Trace, timeline: &Timeline) -> Vec<Verdict> {
    let mut grades: Vec<Vec<(u32, Grade)>> = vec![Vec::new(); trace.pairs.len()];
    for span in timeline.spans.iter().filter(|span| !span.stopped) {
        let attempt = trace.pairs[span.attempt.pair].attempts[span.attempt.index as usize - 1];
        let grade = Grade {
            outcome: attempt.outcome,
            reason: None,
            score: attempt.score,
        };
        grades[span.attempt.pair].push((span.attempt.index, grade));
    }
    let of = |mut grades: Vec<(u32, Grade)>| {
        grades.sort_by_key(|(index, _)| *index);
        let grades: Vec<Grade> = grades.into_iter().map(|(_, grade)| grade).collect();
        verdict(trace.policy, trace.runs, &grades)
    };
    grades.into_iter().map(of).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Adaptive at 250: its wall-clock over that of parallel in one wave, its sandbox-seconds over those of sequential.
fn ratios(trace: &Trace) -> (f64, f64) {
    let one_wave = trace.pairs.len() * trace.runs as usize;
    let parallel = trace.simulate(PARALLEL, one_wave);
    let sequential = trace.simulate(Pace::Sequential, 250);
    let adaptive = trace.simulate(Pace::Adaptive, 250);
    assert_eq!(verdicts(trace, &parallel), verdicts(trace, &sequential));
    assert_eq!(verdicts(trace, &parallel), verdicts(trace, &adaptive));
    (
        wall(&adaptive) / wall(&parallel),
        sandboxes(&adaptive) / sandboxes(&sequential),
    )
}

/// The means over the seeds.
fn mean_ratios(make: impl Fn(u64) -> Trace) -> (f64, f64) {
    let (walls, costs): (Vec<f64>, Vec<f64>) = SEEDS.map(|seed| ratios(&make(seed))).unzip();
    (mean(&walls), mean(&costs))
}

#[test]
fn the_trace_beside_the_checkout_is_run_in_the_time_and_at_the_cost_that_are_promised() {
    let path = repository().join("../shared/data/attempt-trace.json");
    let path = std::env::var("EVALWAVE_TRACE").map_or(path, Into::into);
    let Ok(text) = fs_err::read_to_string(&path) else {
        eprintln!("not run: there is no trace at {path}");
        return;
    };
    let trace = read(&text);
    let parallel = trace.simulate(PARALLEL, 474);
    let sequential = trace.simulate(Pace::Sequential, 250);
    assert_eq!(
        (wall(&parallel), sandboxes(&parallel).round()),
        (868.0, 139_035.0)
    );
    assert_eq!(
        (wall(&sequential).round(), sandboxes(&sequential).round()),
        (1534.0, 78_389.0)
    );
    assert_eq!(wall(&trace.simulate(PARALLEL, 250)), 868.0);
    let (walls, costs) = ratios(&trace);
    assert!(walls <= 1.05 && costs <= 1.25, "{walls} {costs}");
}

#[test]
fn over_thirty_seeds_adaptive_has_parallels_wall_clock_at_about_sequentials_cost() {
    let (walls, costs) = mean_ratios(|seed| benchmark(2).trace(seed));
    assert!(walls <= 1.08 && costs <= 1.25, "{walls} {costs}");
    let wild = Shape {
        longest_predicted: f64::INFINITY,
        ..benchmark(2)
    };
    let (walls, costs) = mean_ratios(|seed| wild.trace(seed));
    assert!(walls <= 1.08 && costs <= 1.25, "{walls} {costs}");
}

#[test]
fn with_three_runs_adaptive_does_better_than_a_staircase_of_latest_starts() {
    let (walls, costs) = mean_ratios(|seed| benchmark(3).trace(seed));
    assert!(walls <= 1.10 && costs <= 1.38, "{walls} {costs}");
}

#[test]
fn predictions_that_are_all_wrong_by_the_same_factor_cost_nothing() {
    for factor in [3.0, 1.0 / 3.0] {
        let (walls, costs) =
            mean_ratios(|seed| predicted_as(&benchmark(2).trace(seed), |_, seconds| Some(seconds * factor)));
        assert!(walls <= 1.08 && costs <= 1.25, "{factor}: {walls} {costs}");
    }
}

#[test]
fn predictions_that_are_wrong_at_random_or_not_there_cost_a_quarter_of_the_time_at_most() {
    let (walls, costs) = mean_ratios(|seed| wrong_by_three(&benchmark(2).trace(seed), seed));
    assert!(walls <= 1.25 && costs <= 1.25, "{walls} {costs}");
    let (walls, costs) = mean_ratios(|seed| predicted_as(&benchmark(2).trace(seed), |_, _| None));
    assert!(walls <= 1.25 && costs <= 1.25, "{walls} {costs}");
}

#[test]
fn beside_one_giant_everything_else_runs_one_after_another() {
    let (walls, costs) = mean_ratios(|seed| with_giant(&benchmark(2).trace(seed)));
    assert!(walls <= 1.01 && costs <= 1.10, "{walls} {costs}");
}

#[test]
fn a_wave_that_does_not_fit_ends_close_to_its_lower_bound() {
    let over: Vec<f64> = SEEDS
        .map(|seed| {
            let trace = benchmark(2).trace(seed);
            wall(&trace.simulate(PARALLEL, 250)) / lower_bound(&trace, 250)
        })
        .collect();
    assert!(mean(&over) <= 1.10, "{over:?}");
}

#[test]
fn a_creation_ramp_hides_behind_the_longest_attempts() {
    let run = |trace: &Trace| {
        simulate(
            trace.spec(PARALLEL, 474),
            |attempt, _| trace.course(attempt),
            creation_ramp(trace.overhead, 150.0, 500.0),
        )
    };
    let (longest_first, plan_order): (Vec<f64>, Vec<f64>) = SEEDS
        .map(|seed| {
            let trace = benchmark(2).trace(seed);
            let unordered = predicted_as(&trace, |_, _| None);
            (wall(&run(&trace)), wall(&run(&unordered)))
        })
        .unzip();
    // The last of 474 sandboxes is created in the second minute.
    assert!(mean(&longest_first) < LONGEST + 40.0 + 15.0, "{longest_first:?}");
    assert!(mean(&longest_first) + 20.0 < mean(&plan_order), "{plan_order:?}");
}

fn any_shape() -> impl Strategy<Value = Shape> {
    (
        1..40_usize,
        1..=8_u32,
        0.0..1.5_f64,
        0.0..0.8_f64,
        0.0..1.5_f64,
        any::<bool>(),
    )
        .prop_map(|(pairs, runs, spread, noise, error, all_fail)| Shape {
            pairs,
            runs,
            spread,
            noise,
            error,
            all_fail,
            ..benchmark(runs)
        })
}

/// Predictions as they are, wrong by a factor, missing here and there, or missing.
fn with_predictions(trace: &Trace, kind: u8, seed: u64) -> Trace {
    match kind {
        0 => trace.clone(),
        1 => predicted_as(trace, |_, seconds| Some(seconds * 3.0)),
        2 => predicted_as(trace, |_, seconds| Some(seconds / 3.0)),
        3 => wrong_by_three(trace, seed),
        4 => predicted_as(trace, |position, seconds| (position % 3 == 0).then_some(seconds)),
        _ => predicted_as(trace, |_, _| None),
    }
}

proptest! {
    #[test]
    fn in_one_wave_adaptive_is_never_slower_than_sequential_nor_dearer_than_parallel(
        shape in any_shape(),
        policy in prop_oneof![
            Just(Policy::Any),
            Just(Policy::All),
            Just(Policy::Majority),
            Just(Policy::Mean { threshold: 0.5, complete: false }),
            Just(Policy::Mean { threshold: 0.5, complete: true }),
        ],
        kind in 0..6_u8,
        seed in any::<u64>(),
    ) {
        let trace = Trace { policy, ..shape.trace(seed) };
        let trace = with_predictions(&trace, kind, seed);
        let one_wave = shape.pairs * shape.runs as usize;
        let parallel = trace.simulate(PARALLEL, one_wave);
        let sequential = trace.simulate(Pace::Sequential, one_wave);
        let adaptive = trace.simulate(Pace::Adaptive, one_wave);
        let overheads = trace.overhead * (shape.runs - 1);
        prop_assert!(adaptive.wall <= sequential.wall + overheads);
        prop_assert!(adaptive.sandbox_time <= parallel.sandbox_time);
        prop_assert!(verdicts(&trace, &adaptive) == verdicts(&trace, &parallel));
        prop_assert!(verdicts(&trace, &adaptive) == verdicts(&trace, &sequential));
    }

    #[test]
    fn however_few_run_at_once_adaptive_gives_the_same_verdicts_and_is_not_dearer_than_parallel(
        shape in any_shape(),
        concurrency in 1..20_usize,
        kind in 0..6_u8,
        seed in any::<u64>(),
    ) {
        let trace = with_predictions(&shape.trace(seed), kind, seed);
        let limits = vec![(concurrency / 2).max(1)];
        let mut limited = Trace { limits, ..trace.clone() };
        for pair in limited.pairs.iter_mut().step_by(2) {
            pair.spec = PairSpec { limits: vec![0], ..pair.spec.clone() };
        }
        for trace in [trace, limited] {
            let parallel = trace.simulate(PARALLEL, concurrency);
            let adaptive = trace.simulate(Pace::Adaptive, concurrency);
            prop_assert!(adaptive.sandbox_time <= parallel.sandbox_time);
            prop_assert!(verdicts(&trace, &adaptive) == verdicts(&trace, &parallel));
        }
    }
}
