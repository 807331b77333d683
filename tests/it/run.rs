//! Whole runs in local sandboxes, by the real binary.

use serde_json::json;

use crate::support::{Suite, evalwave, json, quickstart, stderr, stdout, with_time_enough};

/// Writes a result of the given `passed` for the attempt that runs it.
const PASS_BY_ATTEMPT: &str = r#"
case " $PASSES " in *" $EVALWAVE_EVAL-$EVALWAVE_ATTEMPT "*) passed=true ;; *) passed=false ;; esac
printf '{ "passed": %s, "zeta": 1.50, "alpha": {"deep": [1e400, -0]} }' $passed > result.json
"#;

fn outcomes(summary: &serde_json::Value) -> Vec<String> {
    let pairs = summary["pairs"].as_array().unwrap();
    pairs
        .iter()
        .map(|pair| {
            let attempts = pair["attempts"].as_array().unwrap();
            let outcomes: Vec<&str> = attempts
                .iter()
                .map(|attempt| attempt["outcome"].as_str().unwrap())
                .collect();
            let verdict = pair["verdict"].as_str().unwrap();
            format!(
                "{}: {} = {verdict}",
                pair["eval"].as_str().unwrap(),
                outcomes.join(" ")
            )
        })
        .collect()
}

#[test]
fn the_quickstart_shows_passes_flips_a_retry_and_a_timeout() {
    let (run, summary) = quickstart();
    run.code(0);
    assert_eq!(summary["totals"]["pairs"], 12);
    assert_eq!(summary["totals"]["passed"], 9);
    assert_eq!(summary["totals"]["attempts"]["timed_out"], 2);
    assert_eq!(summary["totals"]["attempts"]["retried"], 2);
    assert_eq!(
        summary["totals"]["distribution"],
        json!({ "0/2": 3, "1/2": 1, "2/2": 8 })
    );
    let flips = &summary["comparison"]["flips"];
    assert_eq!(flips["pass_to_fail"][0]["eval"], "reverse-words");
    assert_eq!(flips["fail_to_pass"][0]["eval"], "sort-lines");
    assert_eq!(summary["comparison"]["compared"], 12);
    assert_eq!(summary["run"]["conclusion"], "success");
}

#[test]
fn strategies_give_the_same_verdicts_and_sequential_stops_when_decided() {
    let more = "runs: 3\n";
    let attempt = "result: result.json\nenv: { PASSES: 'one-1 two-2 three-3' }";
    let suite = Suite::scripted("a/one a/two a/three a/four", attempt, more, PASS_BY_ATTEMPT);
    let (_, sequential) = suite.run("");
    assert_eq!(
        outcomes(&sequential),
        [
            "one: passed cancelled cancelled = pass",
            "two: failed passed cancelled = pass",
            "three: failed failed passed = pass",
            "four: failed failed failed = fail"
        ]
    );
    let (_, parallel) = suite.run("--overwrite --parallel-attempts");
    assert_eq!(
        outcomes(&parallel),
        [
            "one: passed failed failed = pass",
            "two: failed passed failed = pass",
            "three: failed failed passed = pass",
            "four: failed failed failed = fail"
        ]
    );
    assert_eq!(parallel["run"]["concurrency"], 12);
}

#[test]
fn a_published_result_keeps_every_key_of_the_harness() {
    let attempt = "result: result.json\nenv: { PASSES: 'one-2' }";
    let suite = Suite::scripted("a/one", attempt, "runs: 2\nstrategy: parallel", PASS_BY_ATTEMPT);
    suite.run("");
    let expected = "{\n  \"passed\": true,\n  \"zeta\": 1.50,\n  \"alpha\": {\"deep\": [1e400, -0]},\n  \"attempts\": 2\n}\n";
    assert_eq!(suite.read("out/raw-results-a__one/one.json"), expected);
    assert_eq!(
        suite.read_json("out/attempts/a__one/1/result.json")["passed"],
        false
    );
}

#[test]
fn an_infrastructure_failure_is_tried_again_and_every_try_is_kept() {
    let script = "echo \"try $EVALWAVE_TRY\"\n[ $EVALWAVE_TRY = 3 ] || exit 9\necho '{\"passed\": true}' > result.json";
    let suite = Suite::scripted("a/one", "result: result.json", "", script);
    let (run, summary) = suite.run("");
    run.code(0);
    assert_eq!(summary["pairs"][0]["attempts"][0]["tries"], 3);
    assert_eq!(summary["totals"]["attempts"]["retried"], 1);
    assert_eq!(suite.read("out/attempts/a__one/1/tries/1/output.log"), "try 1\n");
    assert_eq!(suite.read("out/attempts/a__one/1/tries/2/output.log"), "try 2\n");
    assert_eq!(suite.read("out/attempts/a__one/1/output.log"), "try 3\n");
    let attempt = suite.path().join("out/attempts/a__one/1");
    let kept = files(&attempt);
    let kept: Vec<_> = kept
        .iter()
        .map(|file| file.strip_prefix(&attempt).unwrap().as_str())
        .collect();
    assert_eq!(
        kept,
        [
            "attempt.json",
            "output.log",
            "result.json",
            "tries/1/attempt.json",
            "tries/1/output.log",
            "tries/2/attempt.json",
            "tries/2/output.log"
        ],
        "and nothing that was in passing"
    );
}

#[test]
fn a_graded_fail_is_never_tried_again() {
    let script = "echo '{\"passed\": false}' > result.json; exit 1";
    let suite = Suite::scripted("a/one", "result: result.json", "", script);
    let (run, summary) = suite.run("");
    run.code(0);
    assert_eq!(outcomes(&summary), ["one: failed = fail"]);
    assert_eq!(summary["pairs"][0]["attempts"][0]["tries"], 1);
}

#[test]
fn a_result_that_came_with_the_workspace_is_not_a_result() {
    let suite = Suite::scripted("a/one", "result: result.json", "retry: { tries: 1 }", "true");
    suite.write("result.json", "{\"passed\": true}");
    let (run, summary) = suite.run("");
    run.code(4);
    let error = &summary["pairs"][0]["attempts"][0]["error"];
    assert_eq!(error["class"], "no_result");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .starts_with("exit 0, no result at `result.json`"),
        "{error}"
    );
}

#[test]
fn some_pairs_without_a_result_are_incomplete_and_none_with_one_is_nothing_measured() {
    let script = "[ $EVALWAVE_EVAL = one ] && echo '{\"passed\": true}' > result.json; true";
    let suite = Suite::scripted("a/one a/two", "result: result.json", "", script);
    let (run, summary) = suite.run("");
    run.code(3);
    assert_eq!(summary["run"]["conclusion"], "incomplete");
    assert_eq!(summary["run"]["complete"], false);
    let (run, _) = suite.run("--overwrite --fail-on never");
    run.code(0);
    let (run, summary) = suite.run("--overwrite --eval two");
    run.code(4);
    assert_eq!(summary["totals"]["pass_rate"], serde_json::Value::Null);
    assert_eq!(
        summary["run"]["selection"],
        json!({ "kind": "subset", "selected": 1, "of": 2 })
    );
}

#[test]
fn a_hanging_command_is_killed_and_counts_as_failed() {
    let attempt = "result: result.json\ntimeout: 200ms\ngrace: 100ms";
    let suite = Suite::scripted("a/one", attempt, "", "sleep 1000 & sleep 1000");
    let (run, summary) = suite.run("");
    run.code(0);
    assert_eq!(outcomes(&summary), ["one: timed_out = fail"]);
}

#[test]
fn a_result_written_before_the_kill_still_counts() {
    let script = "echo '{\"passed\": true}' > result.json; : > \"$WRITTEN\"; sleep 1000";
    let attempt = "result: result.json\nenv-from: [WRITTEN]\ntimeout: 300ms\ngrace: 100ms";
    let suite = Suite::scripted("a/one", attempt, "sandbox: { landlock: off }", script);
    let written = suite.path().join("written");
    let run = |timeout: &&str| {
        evalwave(suite.path())
            .args(["run", "-o", "out", "--overwrite", "--timeout", timeout])
            .env("WRITTEN", &written)
            .assert()
            .code(0);
        suite.read_json("out/summary.json")
    };
    let summary = with_time_enough(&["300ms", "3s", "30s"], run, |_| written.exists());
    assert_eq!(outcomes(&summary), ["one: passed = pass"]);
}

#[test]
fn an_earlier_run_is_left_untouched_unless_it_is_to_be_replaced() {
    let suite = Suite::scripted("a/one", "format: exit-code", "", "exit 0");
    suite.run("");
    let before = suite.read("out/summary.json");
    let refused = suite.ev("run -o out").code(2);
    assert!(
        stderr(&refused).contains("out` already holds a run"),
        "{}",
        stderr(&refused)
    );
    assert_eq!(suite.read("out/summary.json"), before);
    suite.ev("run -o out --overwrite").code(0);
    assert_ne!(suite.read("out/summary.json"), before);
}

#[test]
fn a_secret_reaches_the_command_and_nothing_that_is_kept() {
    let attempt = "result: out/result.json\nsecrets: [API_KEY]\nsetup: env > setup.txt\nkeep: { path: out }";
    let script = "mkdir out; cp setup.txt out; env > out/env.txt; env\nprintf '{\"passed\": true, \"key\": \"%s\"}' $API_KEY > out/result.json";
    let suite = Suite::scripted("a/one", attempt, "", script);
    let missing = suite.ev("run -o out").code(2);
    assert!(
        stderr(&missing).contains("missing in the environment: `API_KEY`"),
        "{}",
        stderr(&missing)
    );
    assert!(!suite.path().join("out").exists());
    let secret = "canary-7f3a91c2";
    evalwave(suite.path())
        .args(["run", "-o", "out"])
        .env("API_KEY", secret)
        .assert()
        .code(0);
    assert!(
        suite
            .read("out/attempts/a__one/1/files/env.txt")
            .contains("API_KEY=***")
    );
    assert!(
        !suite
            .read("out/attempts/a__one/1/files/setup.txt")
            .contains("API_KEY")
    );
    for file in files(&suite.path().join("out")) {
        let bytes = fs_err::read(&file).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains(secret), "{file}");
    }
}

#[test]
fn kept_files_are_published_beside_the_result() {
    let attempt = "result: results/{experiment}/{eval}.json\nkeep: { path: 'results/{experiment}', exclude: ['**/*.tmp'] }";
    let script = "mkdir -p results/a/deep\necho '{\"passed\": true}' > results/a/one.json\necho hi > results/a/deep/transcript.txt\necho no > results/a/x.tmp";
    let suite = Suite::scripted("a/one", attempt, "", script);
    suite.run("");
    let published = files(&suite.path().join("out/raw-results-a__one"));
    let names: Vec<_> = published
        .iter()
        .map(|file| file.strip_prefix(suite.path()).unwrap().as_str())
        .collect();
    assert_eq!(
        names,
        [
            "out/raw-results-a__one/deep/transcript.txt",
            "out/raw-results-a__one/one.json"
        ]
    );
}

#[test]
fn paths_may_begin_with_a_dot() {
    let attempt = "result: ./out/{eval}.json\nkeep: { path: ., exclude: [./attempt.sh, evalwave.yml] }";
    let keys = "sandbox: { link: [./modules] }";
    let script = "mkdir out; cp modules/m out/m; echo '{\"passed\": true}' >out/one.json";
    let suite = Suite::scripted("a/one", attempt, keys, script);
    suite.write("modules/m", "linked");
    let (run, summary) = suite.run("");
    assert_eq!(outcomes(&summary), ["one: passed = pass"], "{}", stderr(&run));
    let kept = suite.path().join("out/attempts/a__one/1/files");
    let names: Vec<String> = files(&kept)
        .iter()
        .map(|file| file.strip_prefix(&kept).unwrap().to_string())
        .collect();
    assert_eq!(names, ["out/m", "out/one.json"]);
}

#[cfg(unix)]
#[test]
fn what_was_left_out_of_the_kept_files_is_noted_with_the_attempt() {
    let attempt = "format: exit-code\nkeep: { path: kept, max-size: 10B }\npublish: { as: '{eval}-{timeout_sec}.json' }\ntimeout: 90s";
    let script = "mkdir kept; ln -s /etc/passwd kept/link; echo short > kept/short; seq 9 > kept/long";
    let suite = Suite::scripted("a/one", attempt, "", script);
    suite.run("");
    let details = &suite.read_json("out/attempts/a__one/1/attempt.json")["details"];
    assert_eq!(
        details["notes"],
        json!([
            "1 kept paths were left out: links and special files are not kept",
            "1 kept paths were left out: `keep.max-size` is 10 bytes"
        ])
    );
    assert!(
        !details["confinement"].as_array().unwrap().is_empty(),
        "{details}"
    );
    assert_eq!(suite.read("out/raw-results-a__one/short"), "short\n");
    assert_eq!(
        suite.read_json("out/raw-results-a__one/one-90.json")["passed"],
        true
    );
}

#[test]
fn a_command_that_makes_all_attempts_of_its_pair_is_read_file_by_file() {
    let attempt = "produces: pair\nresult: 'runs/*/result.json'";
    let script = "for n in 1 2 3; do mkdir -p runs/$n; done\necho '{\"passed\": false}' > runs/1/result.json\necho '{\"passed\": true}' > runs/2/result.json";
    let suite = Suite::scripted("a/one", attempt, "runs: 3", script);
    let (_, summary) = suite.run("");
    assert_eq!(outcomes(&summary), ["one: failed passed errored = pass"]);
    let refused = suite.ev("run -o again --parallel-attempts").code(2);
    assert!(stderr(&refused).contains("produces"), "{}", stderr(&refused));
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_keeps_what_it_has_and_says_so() {
    let script = "[ $EVALWAVE_EVAL = one ] || [ -e \"$STARTED\" ] || { touch \"$STARTED\"; sleep 1000; }\necho '{\"passed\": true}' > result.json";
    let suite = Suite::scripted(
        "a/one a/two",
        "result: result.json\nenv-from: [STARTED]",
        "concurrency: 1",
        script,
    );
    let started = suite.path().join("started");
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("evalwave"))
        .args(["run", "-o", "out"])
        .current_dir(suite.path())
        .env("STARTED", &started)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !started.exists() {
        assert!(child.try_wait().unwrap().is_none(), "the run ended early");
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let summary = suite.read_json("out/summary.json");
    assert_eq!(
        outcomes(&summary),
        ["one: passed = pass", "two: cancelled = not_run"]
    );
    assert_eq!(summary["run"]["conclusion"], "cancelled");
    // What was cancelled before its pair was decided runs when the run goes on.
    evalwave(suite.path())
        .args(["run", "-o", "out", "--resume"])
        .env("STARTED", &started)
        .assert()
        .code(0);
    let summary = suite.read_json("out/summary.json");
    assert_eq!(outcomes(&summary), ["one: passed = pass", "two: passed = pass"]);
    assert_eq!(summary["pairs"][0]["attempts"][0]["tries"], 1);
}

#[test]
fn a_failed_attempt_keeps_what_a_reader_asks_for_first() {
    let result = r#"{"passed": false, "checks": [{"name": "a", "passed": true}, {"name": "b", "passed": false, "notes": "b is 2"}, {"name": "c", "passed": false}]}"#;
    let script = format!("echo starting; echo 'FAIL b'; echo '{result}' > result.json");
    let suite = Suite::scripted("x/one", "result: result.json", "baseline: before.json", &script);
    suite.write(
        "before.json",
        r#"[{"experiment": "x", "eval": "one", "passed": true}]"#,
    );
    let (_, summary) = suite.run("");
    let pair = &summary["pairs"][0];
    assert_eq!(
        pair["before"],
        serde_json::json!({ "verdict": "pass", "result": "pass", "seconds": null })
    );
    let attempt = &pair["attempts"][0];
    assert_eq!(attempt["checks"], 3);
    assert_eq!(attempt["checks_failed"], serde_json::json!(["b", "c"]));
    assert_eq!(attempt["check_notes"], serde_json::json!(["b is 2", ""]));
    assert_eq!(attempt["output"], "starting\nFAIL b");
}

#[test]
fn a_report_rendered_again_is_the_same() {
    let suite = Suite::scripted(
        "a/one b/one",
        "format: exit-code",
        "",
        "[ $EVALWAVE_EXPERIMENT = a ]",
    );
    suite.run("");
    let again = suite.ev("report out --format markdown").code(0);
    assert_eq!(stdout(&again), suite.read("out/report.md"));
    let again = suite.ev("report out --format html").code(0);
    assert_eq!(stdout(&again), suite.read("out/report.html"));
    let again = suite.ev("report out --format json").code(0);
    assert_eq!(stdout(&again), suite.read("out/summary.json"));
    suite.write("out/summary.json", r#"{ "schema": "evalwave.summary/9" }"#);
    let newer = suite.ev("report out").code(2);
    assert!(
        stderr(&newer).contains("reads `evalwave.summary/1`"),
        "{}",
        stderr(&newer)
    );
    fs_err::remove_file(suite.path().join("out/summary.json")).unwrap();
    let from_journal = json(&suite.ev("report out --format json").code(0));
    assert_eq!(from_journal["totals"]["passed"], 1);
}

/// All files below a directory, in name order.
fn files(directory: &camino::Utf8Path) -> Vec<camino::Utf8PathBuf> {
    let mut found = Vec::new();
    for entry in directory.read_dir_utf8().unwrap() {
        let path = entry.unwrap().into_path();
        if path.is_dir() {
            found.extend(files(&path))
        } else {
            found.push(path)
        }
    }
    found.sort();
    found
}
