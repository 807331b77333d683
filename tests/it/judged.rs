//! What a run is judged by, by the real binary: history, quarantine, gates of labels, fresh attempts, a measured base.

use serde_json::{Value, json};

use crate::support::{Suite, ev, evalwave, json, repository, stderr, stdout, with_time_enough};

/// Passes where the eval's name is not listed in `$FAILS`.
const FAIL_LISTED: &str = r#"
case " $FAILS " in *" $EVALWAVE_EVAL "*) passed=false ;; *) passed=true ;; esac
echo "{\"passed\": $passed}" > result.json
"#;

fn rows(verdicts: &[(&str, bool)]) -> String {
    let row = |(eval, passed): &(&str, bool)| json!({ "experiment": "a", "eval": eval, "passed": passed });
    json!(verdicts.iter().map(row).collect::<Vec<Value>>()).to_string()
}

fn failing(more: &str, fails: &str) -> Suite {
    let attempt = format!("result: result.json\nenv: {{ FAILS: '{fails}' }}");
    let suite = Suite::scripted("a/one a/two a/three", &attempt, more, FAIL_LISTED);
    suite.write(
        "before.json",
        &rows(&[("one", true), ("two", true), ("three", true)]),
    );
    suite
}

fn git(suite: &Suite, arguments: &str) -> String {
    let output = std::process::Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.com",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(arguments.split_whitespace())
        .current_dir(suite.path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn history_makes_a_known_flaky_pair_no_regression_and_says_what_noise_predicts() {
    let suite = failing("", "two");
    suite.write(
        "old/1.json",
        &rows(&[("one", true), ("two", false), ("three", true)]),
    );
    suite.write(
        "old/2.json",
        &rows(&[("one", true), ("two", true), ("three", true)]),
    );
    let gate = "run -o out --overwrite --baseline before.json --fail-on regression";
    let without = suite.ev(gate).code(1);
    assert!(!stdout(&without).contains("noise alone"), "{}", stdout(&without));
    let with = suite
        .ev(&format!("{gate} --history old/1.json old/2.json"))
        .code(0);
    let text = stdout(&with);
    assert!(
        text.contains("2 earlier runs: noise alone predicts 0.5 PASS→FAIL and 0.0 FAIL→PASS, and there are 1 and 0; 1 pair went both ways"),
        "{text}"
    );
    assert!(text.contains("1 PASS→FAIL (1 known flaky)"), "{text}");
    let report = suite.read("out/report.md");
    assert!(report.contains("noise alone predicts 0.5 PASS→FAIL"), "{report}");

    let compared = suite
        .ev("compare --baseline before.json --current old/1.json --history old/2.json --format json --fail-on regression")
        .code(1);
    assert_eq!(json(&compared)["history"]["runs"], 1);
    let broken = suite.ev(&format!("{gate} --history old/3.json")).code(2);
    assert!(
        stderr(&broken).contains("cannot read the history"),
        "{}",
        stderr(&broken)
    );
}

#[test]
fn a_quarantined_pair_runs_is_shown_with_its_reason_and_does_not_gate_until_it_expires() {
    let list = |until: &str| {
        format!("flaky: [{{ eval: 't*', until: {until}, why: the service is slow }}, {{ eval: gone }}]")
    };
    let run = "run -o out --baseline before.json --fail-on regression,below:90%";
    let suite = failing(&list("2999-12-31"), "two");
    let held = suite.ev(run).code(0);
    let text = stdout(&held);
    assert!(
        text.contains("2 pairs in quarantine: shown, and no gate looks at them"),
        "{text}"
    );
    assert!(
        text.contains("two    fail  2999-12-31  the service is slow"),
        "{text}"
    );
    assert!(text.contains("0/1 (in quarantine)"), "{text}");
    assert!(
        text.contains("flaky: `* × gone` matches no pair: take it out of the list"),
        "{text}"
    );
    let summary = suite.read_json("out/summary.json");
    assert_eq!(summary["totals"]["failed"], 1, "it ran");
    assert_eq!(summary["quarantined"][0]["eval"], "two");

    let suite = failing(&list("2020-01-01"), "two");
    let expired = suite.ev(run).code(1);
    let text = stdout(&expired);
    assert!(
        text.contains("flaky: `* × t*` has expired on 2020-01-01: what it matches gates again"),
        "{text}"
    );
    assert!(text.contains("2 of 2 gates failed"), "{text}");
}

#[test]
fn the_gates_of_a_label_decide_over_its_pairs() {
    let config = |gates: &str| {
        format!(
            "version: 1\nsuite: {{ pairs: [{{ experiment: a, eval: one, tier: critical }}, {{ experiment: a, eval: two, tier: other }}] }}\nattempt: {{ command: '[ $EVALWAVE_EVAL = one ]' }}\nfail-on: never\ngates: [{{ label: tier={gates} }}]\n"
        )
    };
    let fine = Suite::new(&config("critical, fail-on: ['below:100%', incomplete]"));
    fine.ev("run -o out").code(0);
    let fell = Suite::new(&config("other, fail-on: 'below:100%'"));
    let run = fell.ev("run -o out").code(1);
    assert!(
        stdout(&run).contains("below:100% (tier=other)  0 of 1 pairs passed, 0 %, and the limit is 100 %"),
        "{}",
        stdout(&run)
    );
    assert_eq!(fell.read_json("out/summary.json")["run"]["conclusion"], "failure");
}

/// Fails `broken` always, and `noisy` the first time.
const NOISY: &str = r#"
passed=true
[ $EVALWAVE_EVAL = broken ] && passed=false
if [ $EVALWAVE_EVAL = noisy ] && [ ! -e "$STATE/seen" ]; then passed=false; touch "$STATE/seen"; fi
echo "{\"passed\": $passed}" > result.json
"#;

#[test]
fn fresh_attempts_tell_a_flip_that_is_there_again_from_one_that_is_not() {
    let state = tempfile::TempDir::new().unwrap();
    let attempt = format!(
        "result: result.json\nenv: {{ STATE: '{}' }}",
        state.path().display()
    );
    let more = "confirm: 2\nsandbox: { landlock: off }\nbaseline: before.json\nfail-on: regression";
    let suite = Suite::scripted("a/stable a/noisy a/broken", &attempt, more, NOISY);
    let before = [("stable", true), ("noisy", true), ("broken", true)];
    suite.write("before.json", &rows(&before));
    let plan = stdout(&suite.ev("plan").code(0));
    assert!(
        plan.contains("confirm         2 fresh attempts of each pair that flips"),
        "{plan}"
    );
    assert!(plan.contains("at most         9 attempts in all"), "{plan}");

    let (run, summary) = suite.run("");
    let text = stdout(&run.code(1));
    assert!(
        text.lines()
            .next()
            .unwrap()
            .ends_with("1 of 2 PASS→FAIL did not reproduce"),
        "{text}"
    );
    assert!(
        text.contains("2 fresh attempts of 2 flipped pairs: 1 flipped again (`confirm/`)"),
        "{text}"
    );
    let flips = summary["comparison"]["flips"]["pass_to_fail"].as_array().unwrap();
    let confirmed: Vec<(&str, &Value)> = flips
        .iter()
        .map(|flip| (flip["eval"].as_str().unwrap(), &flip["confirmed"]))
        .collect();
    assert_eq!(confirmed, [("broken", &json!(true)), ("noisy", &json!(false))]);
    assert_eq!(summary["totals"]["passed"], 1, "the first samples stand");
    assert_eq!(
        summary["gates"][0]["why"],
        "1 PASS→FAIL in the 3 pairs compared, besides 1 flaky or not reproduced: a × broken"
    );
    let fresh = suite.read_json("out/confirm/summary.json");
    assert_eq!(
        (&fresh["run"]["runs"], &fresh["totals"]["pairs"]),
        (&json!(2), &json!(2))
    );

    suite.write("before.json", &rows(&[("stable", true)]));
    let (run, _) = suite.run("--overwrite");
    run.code(0);
    assert!(
        !suite.path().join("out/confirm").exists(),
        "nothing flipped, and the old run is gone"
    );
}

#[test]
fn drops_of_passes_without_a_flip_are_listed_with_mean() {
    let script = "[ $EVALWAVE_ATTEMPT = 1 ] && passed=true || passed=false; echo \"{\\\"passed\\\": $passed}\" > result.json";
    let suite = Suite::scripted(
        "a/one",
        "result: result.json",
        "runs: 2\nstrategy: parallel\npolicy: { mean: 0.5 }",
        script,
    );
    let row = |run: u32| json!({ "experiment": "a", "eval": "one", "run": run, "passed": true });
    suite.write("before.json", &json!([row(1), row(2)]).to_string());
    let (run, summary) = suite.run("--baseline before.json");
    let text = stdout(&run.code(0));
    assert!(
        text.contains("1 pair passes less often without a flip\n"),
        "{text}"
    );
    assert_eq!(summary["comparison"]["fewer_passes"][0]["before"], "2/2");
    assert_eq!(summary["comparison"]["fewer_passes"][0]["now"], "1/2");
}

fn measured(more: &str) -> Suite {
    let suite = failing(more, "");
    git(&suite, "init -q -b main");
    suite.write(".gitignore", "out\n");
    git(&suite, "add -A");
    git(&suite, "commit -q -m base");
    git(&suite, "update-ref refs/remotes/origin/main HEAD");
    let script = suite.read("attempt.sh").replace("$FAILS", "two");
    suite.write("attempt.sh", &script);
    git(&suite, "commit -q -a -m change");
    suite
}

#[test]
fn a_measured_baseline_runs_the_base_revision_beside_this_one() {
    let suite = measured("runs: 2\nstrategy: parallel\nbaseline: measure\nfail-on: regression\nconfirm: 1\n");
    let plan = stdout(&suite.ev("plan").code(0));
    assert!(
        plan.contains("the base revision runs beside this one and costs as much again: 6 attempts more"),
        "{plan}"
    );
    let (run, summary) = suite.run("");
    let run = run.code(1);
    let comparison = &summary["comparison"];
    assert_eq!(comparison["test"]["level"], "attempts");
    assert_eq!(comparison["baseline"]["source"], "measure:origin/main");
    let base = git(&suite, "rev-parse origin/main");
    assert_eq!(comparison["baseline"]["commit"], base.trim());
    assert_eq!(summary["run"]["commit"], git(&suite, "rev-parse HEAD").trim());
    let flip = &comparison["flips"]["pass_to_fail"][0];
    assert_eq!((&flip["before"], &flip["now"]), (&json!("2/2"), &json!("0/2")));
    assert_eq!(flip["confirmed"], true);
    assert_eq!(
        suite.read_json("out/baseline/summary.json")["totals"]["passed"],
        3
    );
    assert_eq!(suite.read_json("out/confirm/summary.json")["totals"]["failed"], 1);
    assert_eq!(
        suite.read_json("out/confirm/baseline/summary.json")["totals"]["passed"],
        1
    );
    assert!(stderr(&run).contains("baseline 1/6 passed"), "{}", stderr(&run));
    assert_eq!(
        git(&suite, "worktree list").lines().count(),
        1,
        "the checkout is gone"
    );

    let (_, narrow) = suite.run("--overwrite --concurrency 5");
    assert_eq!(narrow["run"]["concurrency"], 3);
    assert_eq!(
        narrow["run"]["concurrency_reason"],
        "3 of the 5 that can run at once, shared with the other revision: 2 waves"
    );
    assert_eq!(
        suite.read_json("out/baseline/summary.json")["run"]["concurrency"],
        2
    );
}

#[test]
fn a_base_revision_that_its_half_of_the_budget_stopped_makes_the_run_incomplete_and_is_told_of() {
    let run = |minutes: &&str| {
        let budget = format!("budget: {{ sandbox-minutes: {minutes}, allow-unknown: true }}");
        let suite = measured(&format!("baseline: measure\n{budget}\n"));
        // What the base still does, this revision does no more.
        git(&suite, "checkout -q -b slow origin/main");
        let quick = suite.read("attempt.sh");
        suite.write(
            "attempt.sh",
            &format!("[ $EVALWAVE_EVAL = one ] || sleep 600\n{quick}"),
        );
        git(&suite, "commit -q -a -m slow");
        git(&suite, "update-ref refs/remotes/origin/main HEAD");
        suite.write("attempt.sh", &quick);
        git(&suite, "commit -q -a -m quick");
        let (run, summary) = suite.run("");
        (run, summary, suite)
    };
    let (run, summary, suite) = with_time_enough(&["0.1", "1", "5"], run, |(_, summary, _)| {
        summary["totals"]["passed"] == 3
    });
    let text = stdout(&run.code(3));
    assert_eq!(
        (&summary["run"]["conclusion"], &summary["run"]["complete"]),
        (&json!("incomplete"), &json!(false))
    );
    assert_eq!(
        suite.read_json("out/baseline/summary.json")["run"]["reason"],
        "budget"
    );
    assert!(
        text.contains("the base revision was stopped: its half of the budget was used up"),
        "{text}"
    );
}

#[test]
fn a_base_revision_of_which_every_first_try_died_is_told_of_and_makes_the_run_incomplete() {
    let suite = measured("baseline: measure\nruns: 6\nretry: { tries: 1 }\n");
    git(&suite, "checkout -q -b broken origin/main");
    let works = suite.read("attempt.sh");
    suite.write("attempt.sh", "exit 1");
    git(&suite, "commit -q -a -m broken");
    git(&suite, "update-ref refs/remotes/origin/main HEAD");
    suite.write("attempt.sh", &works);
    git(&suite, "commit -q -a -m works");
    let (run, summary) = suite.run("");
    let text = stdout(&run.code(3));
    assert_eq!(
        (&summary["run"]["conclusion"], &summary["run"]["complete"]),
        (&json!("incomplete"), &json!(false))
    );
    for said in [
        "the base revision was stopped: its first tries all died alike, so pairs that it has no verdict of are not compared",
        "the base revision: the first 10 tries all ended with the error",
    ] {
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn shards_that_measured_the_base_are_compared_with_what_they_measured_of_it_together() {
    let suite = measured("baseline: measure\nfail-on: [regression, incomplete]\n");
    for shard in 1..=2 {
        suite.ev(&format!("run -o s{shard} --shard {shard}/2 --fail-on never"));
    }
    suite.ev("merge s1 s2 -o all").code(1);
    let comparison = &suite.read_json("all/summary.json")["comparison"];
    let base = git(&suite, "rev-parse origin/main");
    assert_eq!(comparison["baseline"]["commit"], base.trim());
    assert_eq!(comparison["compared"], 3);
    assert_eq!(comparison["flips"]["pass_to_fail"][0]["eval"], "two");
    assert_eq!(
        suite.read_json("all/baseline/summary.json")["totals"]["passed"],
        3
    );

    // What is missing of the base is missing of the whole.
    fs_err::remove_dir_all(suite.path().join("s2/baseline")).unwrap();
    suite.ev("merge s1 s2 -o half --fail-on incomplete").code(3);
    let half = suite.read_json("half/summary.json");
    assert_eq!(half["run"]["conclusion"], "incomplete");
    let notices = half["notices"].to_string();
    assert!(
        notices.contains("the base revision: ") && notices.contains("no part is of shard 2/2"),
        "{notices}"
    );
    fs_err::remove_dir_all(suite.path().join("s1/baseline")).unwrap();
    suite.ev("merge s1 s2 -o none --fail-on no-baseline").code(1);
}

#[test]
fn a_shard_and_the_base_that_it_measures_have_the_places_of_the_shard_between_them() {
    let suite = measured("runs: 2\nstrategy: parallel\nmax-concurrency: 4\nbaseline: measure\n");
    suite.ev("run -o s1 --shard 1/2");
    let at_once = |run: &str| {
        let summary = suite.read_json(&format!("s1/{run}summary.json"));
        summary["run"]["concurrency"].as_u64().unwrap()
    };
    assert_eq!(at_once("") + at_once("baseline/"), 2);
}

#[test]
fn what_shards_have_confirmed_of_their_flips_counts_in_the_whole() {
    let state = tempfile::TempDir::new().unwrap();
    let attempt = format!(
        "result: result.json\nenv: {{ STATE: '{}' }}",
        state.path().display()
    );
    let more = "confirm: 1\nsandbox: { landlock: off }\nbaseline: before.json\nfail-on: regression";
    let suite = Suite::scripted("a/noisy a/stable", &attempt, more, NOISY);
    suite.write("before.json", &rows(&[("noisy", true), ("stable", true)]));
    for shard in 1..=2 {
        suite.ev(&format!("run -o s{shard} --shard {shard}/2 --fail-on never"));
    }
    let whole = suite.ev("merge s1 s2 -o all").code(0);
    assert!(stdout(&whole).contains("did not reproduce"), "{}", stdout(&whole));
    let flips = &suite.read_json("all/summary.json")["comparison"]["flips"]["pass_to_fail"];
    assert_eq!(
        (&flips[0]["eval"], &flips[0]["confirmed"]),
        (&json!("noisy"), &json!(false))
    );
}

#[test]
fn a_base_is_named_or_found_and_where_it_is_neither_that_is_said_before_anything_runs() {
    let suite = measured("");
    let (run, named) = suite.run("--baseline measure:HEAD");
    assert_eq!(named["comparison"]["verdict"], "unchanged");
    let text = stdout(&run);
    assert!(
        text.contains("p = 1.00; no drop of any size would have shown\n"),
        "{text}"
    );
    let unknown = suite.ev("run -o no --baseline measure:v9").code(2);
    assert!(
        stderr(&unknown).contains("cannot measure `v9`: it names no commit"),
        "{}",
        stderr(&unknown)
    );
    git(&suite, "update-ref -d refs/remotes/origin/main");
    let none = suite.ev("run -o no --baseline measure").code(2);
    assert!(
        stderr(&none).contains("no default branch of the remote `origin` is known"),
        "{}",
        stderr(&none)
    );
    assert!(!suite.path().join("no").exists());
}

#[test]
fn pairs_that_the_base_does_not_have_are_added() {
    let config = "version: 1\nsuite: { evals: { glob: 'evals/*/PROMPT.md' } }\nattempt: { command: 'true' }\nbaseline: measure:HEAD\n";
    let suite = Suite::new(config);
    suite.write("evals/old/PROMPT.md", "x");
    git(&suite, "init -q");
    git(&suite, "add -A");
    git(&suite, "commit -q -m base");
    suite.write("evals/new/PROMPT.md", "x");
    let (run, summary) = suite.run("");
    run.code(0);
    assert_eq!(summary["comparison"]["compared"], 1);
    assert_eq!(summary["comparison"]["added"][0]["eval"], "new");
    let (run, summary) = suite.run("--overwrite --eval new");
    run.code(0);
    assert_eq!(summary["comparison"], Value::Null);
    assert_eq!(
        summary["notices"][0],
        "no baseline: the base revision has none of these pairs"
    );
}

/// Published results of a real suite lie beside some checkouts, never in this repository.
#[test]
fn two_published_runs_of_the_same_suite_are_no_regression_though_pairs_flip() {
    let data = repository().join("../shared/data/supabase-evals");
    if !data.is_dir() {
        eprintln!("not run: there are no published results beside this checkout");
        return;
    }
    for suite in ["benchmark", "regression"] {
        let mut command = evalwave(&repository());
        command.args(["calibrate", "--format", "json", "--group-by", "provider"]);
        command.args(["--fail-on", "significant,regression"]);
        let run = |name: &str| data.join(format!("{name}-{suite}.json"));
        let calibration = json(&command.args([run("C"), run("D")]).assert().code(0));
        let failed: Vec<&Value> = calibration["gates"]
            .as_array()
            .unwrap()
            .iter()
            .map(|gate| &gate["failed"])
            .collect();
        // The 17 pairs of the other suite pass in both runs.
        let flips = i32::from(suite == "benchmark");
        assert_eq!(failed, [&json!(0), &json!(flips)], "{suite}");
    }
    // The other way round, the same holds.
    let mut command = evalwave(&repository());
    command.args([
        "compare",
        "--group-by",
        "provider",
        "--fail-on",
        "significant",
        "--format",
        "json",
    ]);
    command.args(["--baseline", data.join("D-benchmark.json").as_str()]);
    let mirrored = json(
        &command
            .args(["--current", data.join("C-benchmark.json").as_str()])
            .assert()
            .code(0),
    );
    assert_eq!(mirrored["test"]["p_value"], 0.4545);
    assert_eq!(mirrored["flips"]["pass_to_fail"].as_array().unwrap().len(), 6);
}

#[test]
fn calibrate_shows_how_noisy_a_suite_is() {
    let suite = Suite::new("");
    let four = [("one", true), ("two", true), ("three", false), ("four", true)];
    suite.write("1.json", &rows(&four));
    suite.write("2.json", &rows(&four));
    suite.write(
        "3.json",
        &rows(&[("one", true), ("two", false), ("three", false), ("four", true)]),
    );
    let text = stdout(
        &suite
            .ev("calibrate 1.json 2.json 3.json --fail-on regression,drop:5pp")
            .code(0),
    );
    let head: Vec<&str> = text.lines().take(6).collect();
    insta::assert_snapshot!(head.join("\n"), @"
    3 runs of the same thing: 16.7 % of their pairs flip from one run to another
    2 flips in 3 comparisons of 12 pairs in all · 1 of 4 pairs went both ways

    gate        would have failed  with the other runs as history
    regression  2 of 3             2 of 3
    drop:5pp    2 of 3             2 of 3
    ");
    // Four pairs see nothing with one attempt each.
    let outlook = text
        .split("What two runs of this suite would see")
        .nth(1)
        .unwrap();
    let first = outlook.lines().nth(2).unwrap();
    assert_eq!(
        first.split_whitespace().take(2).collect::<Vec<_>>(),
        ["1", "none"]
    );
    let document = json(&suite.ev("calibrate 1.json 2.json 3.json --format json").code(0));
    assert_eq!(document["outlook"][0]["detectable"], Value::Null);
    assert_eq!(document["schema"], "evalwave.calibration/1");
    assert_eq!(document["outlook"].as_array().unwrap().len(), 8);
    let one = suite.ev("calibrate 1.json").code(2);
    assert!(stderr(&one).contains("2 values required"), "{}", stderr(&one));
    ev(suite.path(), "calibrate 1.json absent.json").code(2);
}
