//! What the adaptive strategy costs and takes beside the two others, in simulated time.

use std::collections::BTreeSet;
use std::time::Duration;

use assert_cmd::assert::Assert;
use evalwave::aggregate::{Grade, verdict};
use evalwave::model::{OnPass, Outcome, Policy, Verdict};
use evalwave::schedule::{AttemptRef, Pace, PairSpec, Timeline, Trace, TraceAttempt, TracePair, simulate};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::prop_assert;

use crate::support::{Suite, evalwave, json, repository, stderr, stdout, with_time_enough};
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

#[test]
fn the_timelines_that_the_documentation_draws_are_those_of_the_scheduler() {
    let minutes = [(9, false), (8, true), (4, true), (3, true), (2, false)];
    let pair = |(minutes, first_passes): (u64, bool)| {
        let command = Duration::from_secs(60 * minutes);
        let attempt = |passes| TraceAttempt {
            command,
            outcome: if passes { Outcome::Passed } else { Outcome::Failed },
            score: None,
        };
        TracePair {
            spec: PairSpec {
                predicted: Some(command),
                ..PairSpec::default()
            },
            attempts: vec![attempt(first_passes), attempt(true)],
        }
    };
    let trace = Trace {
        overhead: Duration::ZERO,
        policy: Policy::Any,
        runs: 2,
        pairs: minutes.map(pair).to_vec(),
        limits: Vec::new(),
    };
    let run = |pace| {
        let timeline = trace.simulate(pace, 10);
        (wall(&timeline) / 60.0, sandboxes(&timeline) / 60.0)
    };
    assert_eq!(run(Pace::Sequential), (18.0, 37.0));
    assert_eq!(run(PARALLEL), (9.0, 52.0));
    assert_eq!(run(Pace::Adaptive), (9.0, 47.0));
    let timeline = trace.simulate(Pace::Adaptive, 10);
    let second = |pair| {
        let of = timeline
            .spans
            .iter()
            .find(|span| span.attempt == AttemptRef { pair, index: 2 });
        of.map(|span| span.start.as_secs_f64() / 60.0)
    };
    let seconds: Vec<Option<f64>> = (0..5).map(second).collect();
    assert_eq!(seconds, [Some(0.0), Some(0.0), Some(2.0), None, Some(2.0)]);
}

/// A suite of four pairs x 2 whose attempts pass at once, and the summary of a run in which they took 100 s, 200 s, ….
fn suite_with_durations() -> Suite {
    let config = "runs: 2\nbaseline: before.json";
    let script = "echo '{\"passed\": true}' > result.json";
    let suite = Suite::scripted(
        "a/one a/two a/three a/four",
        "result: result.json",
        config,
        script,
    );
    suite
        .ev("run --parallel-attempts --baseline none -o before")
        .code(0);
    let mut summary = suite.read_json("before/summary.json");
    for (position, pair) in summary["pairs"].as_array_mut().unwrap().iter_mut().enumerate() {
        for attempt in pair["attempts"].as_array_mut().unwrap() {
            let command = 100.0 * (position as f64 + 1.0);
            attempt["phases"]["command"] = command.into();
            attempt["seconds"] = (command + 20.0).into();
        }
    }
    suite.write("before.json", &summary.to_string());
    suite
}

#[test]
fn the_variable_turns_adaptive_on_and_the_report_says_how_the_run_was_scheduled() {
    let suite = suite_with_durations();
    let run = evalwave(suite.path())
        .args(["run", "-o", "out"])
        .env("EVAL_PARALLEL_ATTEMPTS", "adaptive")
        .assert()
        .code(0);
    let text = stdout(&run);
    assert!(text.contains("\nBounded by "), "{text}");
    assert!(
        text.contains("sequential") && text.contains("simulated"),
        "{text}"
    );
    assert!(text.contains("predicted, 4 pairs known"), "{text}");
    let report = suite.read("out/report.md");
    assert!(report.contains("<summary>Bounded by "), "{report}");
    let summary = suite.read_json("out/summary.json");
    assert_eq!(summary["run"]["strategy"], "adaptive");
    assert_eq!(summary["totals"]["passed"], 4);
    let scheduling = &summary["scheduling"];
    let simulated = scheduling["strategies"].as_array().unwrap().iter();
    let names: BTreeSet<&str> = simulated.map(|row| row["strategy"].as_str().unwrap()).collect();
    assert_eq!(names, BTreeSet::from(["adaptive", "parallel", "sequential"]));
    assert_eq!(scheduling["accuracy"]["expected"]["strategy"], "adaptive");
}

#[test]
fn a_plan_says_what_every_strategy_would_take_where_durations_are_known_and_unknown_where_not() {
    let suite = suite_with_durations();
    let plan = json(&suite.ev("plan --format json").code(0));
    assert_eq!(plan["longest_attempt_seconds"], 400.0);
    assert_eq!(plan["pairs"][2]["predicted_seconds"], 300.0);
    let forecast = &plan["forecast"];
    assert_eq!(forecast["known_pairs"], 4);
    let likely = |at: usize| {
        forecast["strategies"][at]["wall_seconds"]["likely"]
            .as_f64()
            .unwrap()
    };
    assert!((380.0..700.0).contains(&likely(0)), "{forecast}");
    let text = stdout(&suite.ev("plan").code(0));
    assert!(text.contains("\n  strategy    at once  wall-clock"), "{text}");
    let unknown = stdout(&suite.ev("plan --baseline none").code(0));
    assert!(unknown.contains("wall-clock      unknown\n"), "{unknown}");
    assert!(unknown.contains("sandbox-minutes unknown\n"), "{unknown}");
}

#[test]
fn a_budget_that_will_not_do_is_refused_by_plan_and_run_before_anything_runs() {
    let suite = suite_with_durations();
    let config = suite.read("evalwave.yml");
    suite.write(
        "evalwave.yml",
        &format!("{config}budget: {{ sandbox-minutes: 5 }}\n"),
    );
    for command in ["plan", "run -o never"] {
        let refused = suite.ev(command).code(2);
        let message = stderr(&refused);
        assert!(
            message.contains("error: cannot keep to the budget of 5 sandbox-minutes"),
            "{message}"
        );
    }
    for command in ["plan --baseline none", "run -o never --baseline none"] {
        let message = stderr(&suite.ev(command).code(2));
        assert!(message.contains("cannot tell whether the budget"), "{message}");
    }
    assert!(!suite.path().join("never").exists());
}

/// A run whose budget is enough for what is quick in it, `was_enough` says whether, and never for what hangs.
fn on_a_budget(
    pairs: &str,
    more: &str,
    script: &str,
    was_enough: impl Fn(&serde_json::Value) -> bool,
) -> (Assert, serde_json::Value) {
    let run = |minutes: &&str| {
        let more = format!("{more}\nbudget: {{ sandbox-minutes: {minutes}, allow-unknown: true }}");
        let suite = Suite::scripted(pairs, "result: result.json", &more, script);
        suite.write(
            "before.json",
            r#"[{"experiment": "a", "eval": "one", "passed": true}]"#,
        );
        suite.run("")
    };
    with_time_enough(&["0.05", "0.5", "5"], run, |(_, summary)| was_enough(summary))
}

#[test]
fn a_run_that_uses_up_its_budget_is_incomplete_and_keeps_what_is_graded() {
    let script = "[ $EVALWAVE_EVAL = one ] || sleep 600\necho '{\"passed\": true}' > result.json";
    let (run, summary) = on_a_budget("a/one a/two", "", script, |summary| {
        summary["pairs"][0]["attempts"][0]["outcome"] == "passed"
    });
    run.code(3);
    assert_eq!(summary["run"]["conclusion"], "incomplete");
    assert_eq!(summary["run"]["reason"], "budget");
    assert_eq!(summary["pairs"][0]["verdict"], "pass");
    assert_eq!(summary["pairs"][1]["attempts"][0]["reason"], "budget");
    assert_eq!(summary["scheduling"]["bounded_by"]["kind"], "budget");
}

/// A run in which whatever is quick fails and costs more than the budget.
fn too_expensive(pairs: &str, more: &str, hangs: &str) -> (Assert, serde_json::Value, Suite) {
    let script = format!(
        "{hangs} && sleep 600\necho '{{\"passed\": false, \"usage\": {{\"costUsd\": 9}}}}' > result.json"
    );
    let more =
        format!("baseline: before.json\nconfirm: 1\nbudget: {{ cost: 5, allow-unknown: true }}\n{more}");
    let suite = Suite::scripted(pairs, "result: result.json", &more, &script);
    suite.write(
        "before.json",
        r#"[{"experiment": "a", "eval": "one", "passed": true}]"#,
    );
    let (run, summary) = suite.run("");
    (run, summary, suite)
}

#[test]
fn a_run_that_its_budget_stopped_is_incomplete_though_every_pair_has_a_verdict_and_confirms_nothing() {
    let more = "runs: 2\nstrategy: parallel";
    let (run, summary, suite) = too_expensive("a/one", more, "[ $EVALWAVE_ATTEMPT = 2 ]");
    run.code(3);
    assert_eq!(summary["pairs"][0]["verdict"], "fail");
    assert_eq!(summary["run"]["complete"], false);
    assert_eq!(
        summary["gates"][0]["why"],
        "the one pair has a verdict, but the run was stopped before every attempt was made"
    );
    // Its verdict is not firm: there is no flip to confirm.
    assert_eq!(
        summary["comparison"]["flips"]["pass_to_fail"],
        serde_json::json!([])
    );
    assert!(!suite.path().join("out/confirm").exists());
}

#[test]
fn flips_are_not_confirmed_on_a_budget_that_is_used_up() {
    let more = "fail-on: [incomplete, regression]";
    let (run, summary, _) = too_expensive("a/one a/two", more, "[ $EVALWAVE_EVAL = two ]");
    let text = stdout(&run.code(1));
    assert_eq!(
        summary["comparison"]["flips"]["pass_to_fail"][0]["confirmed"],
        serde_json::Value::Null
    );
    assert!(
        text.contains("the flips could not be confirmed: the budget is used up"),
        "{text}"
    );
    assert_eq!(
        summary["gates"][1]["why"],
        "1 PASS→FAIL in the 1 pairs compared: a × one; it could not be confirmed"
    );
}

#[test]
fn fresh_attempts_that_the_budget_stops_say_so() {
    // Enough for one attempt; the one after it hangs.
    let script = "[ -e \"$MARK\" ] && sleep 600\n: > \"$MARK\"\necho '{\"passed\": false}' > result.json";
    let more = "baseline: before.json\nconfirm: 1\nsandbox: { landlock: off }";
    let marked = tempfile::TempDir::new().unwrap();
    let mark = marked.path().join("mark");
    let script = format!("MARK={}\n{script}", mark.display());
    let (_, summary) = on_a_budget("a/one", more, &script, |summary| {
        // The next run begins anew.
        fs_err::remove_file(&mark).unwrap_or_default();
        summary["pairs"][0]["verdict"] == "fail"
    });
    let notices = summary["notices"].to_string();
    assert!(
        notices.contains("1 without a fresh verdict (`confirm/`), cut short: the budget was used up"),
        "{notices}"
    );
}

#[test]
fn shards_go_by_duration_only_where_the_baseline_is_a_file_of_the_commit() {
    let suite = suite_with_durations();
    let evals = |arguments: &str| -> Vec<String> {
        let plan = json(&suite.ev(&format!("plan --format json {arguments}")).code(0));
        let pairs = plan["pairs"].as_array().unwrap();
        pairs
            .iter()
            .map(|pair| pair["eval"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(evals("--shard 1/2"), ["one", "three"]);
    let git = |arguments: &[&str]| {
        let mut command = assert_cmd::Command::new("git");
        command
            .current_dir(suite.path())
            .args(["-c", "user.name=t", "-c", "user.email=t@t"]);
        command.args(arguments).assert().success()
    };
    git(&["init", "--quiet"]);
    git(&["add", "before.json"]);
    git(&["commit", "--quiet", "-m", "baseline"]);
    // 400 + 100 s and 300 + 200 s.
    assert_eq!(evals("--shard 1/2"), ["one", "four"]);
    assert_eq!(evals("--shard 2/2"), ["two", "three"]);
    let head = git(&["rev-parse", "HEAD"]);
    let head = stdout(&head);
    assert_eq!(
        evals(&format!("--shard 1/2 --baseline git:{}:before.json", head.trim())),
        ["one", "four"]
    );
    assert_eq!(
        evals("--shard 1/2 --baseline git:HEAD:before.json"),
        ["one", "three"]
    );
    suite.write(
        "before.json",
        &suite.read("before.json").replace("100.0", "101.0"),
    );
    assert_eq!(evals("--shard 1/2"), ["one", "three"], "changed since the commit");
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
