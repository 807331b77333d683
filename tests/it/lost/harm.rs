//! What attempts and machines do to a run: a clear error on that attempt, and the run goes on.

use std::process::Command;

use serde_json::Value;

use crate::support::{Suite, stderr};

/// Where `.ci/run` says that a command is which gives a process mounts of its own.
const UNSHARE: &str = "EVALWAVE_TEST_UNSHARE";

/// Where `.ci/run` says that the library is which gives a process a clock of its own.
const FAKETIME: &str = "EVALWAVE_TEST_FAKETIME";

/// Runs a pair that does harm beside one that passes. Gives the summary's attempt of the first.
fn harmed(attempt: &str, script: &str) -> Value {
    harmed_in(attempt, script).1
}

fn harmed_in(attempt: &str, script: &str) -> (Suite, Value) {
    let script = format!(
        "[ $EVALWAVE_EVAL = good ] && {{ echo '{{\"passed\": true}}' > result.json; exit 0; }}\n{script}"
    );
    let suite = Suite::scripted("a/bad a/good", attempt, "retry: { tries: 1 }", &script);
    let (run, summary) = suite.run("");
    let told = stderr(&run.code(3));
    assert_eq!(summary["pairs"][1]["verdict"], "pass", "{told}");
    assert_eq!(summary["pairs"][0]["verdict"], "error", "{told}");
    let attempt = summary["pairs"][0]["attempts"][0].clone();
    (suite, attempt)
}

fn error(attempt: &Value) -> (&str, &str) {
    let error = &attempt["error"];
    (
        error["class"].as_str().unwrap(),
        error["message"].as_str().unwrap(),
    )
}

#[test]
fn a_result_that_is_half_written_is_an_error() {
    let attempt = harmed("result: result.json", "printf '{\"passed\": tr' > result.json");
    let (class, message) = error(&attempt);
    assert_eq!(class, "invalid_result");
    assert!(message.contains("result.json"), "{message}");
}

#[test]
fn a_result_that_is_no_text_is_an_error() {
    let attempt = harmed("result: result.json", "printf '\\377\\376\\000{}' > result.json");
    assert_eq!(error(&attempt).0, "invalid_result");
}

#[test]
fn a_result_that_is_no_file_is_an_error() {
    for (left, expected) in [
        ("mkdir result.json", "invalid_result"),
        ("mkfifo result.json", "no_result"),
        ("ln -s /dev/zero result.json", "collect"),
    ] {
        let attempt = harmed("result: result.json", left);
        let (class, message) = error(&attempt);
        assert_eq!(class, expected, "{left}: {message}");
    }
}

#[test]
fn a_result_that_is_enormous_is_an_error_and_takes_no_memory() {
    let attempt = harmed("result: result.json", "truncate -s 200M result.json");
    let (class, message) = error(&attempt);
    assert!(["invalid_result", "collect"].contains(&class), "{class}");
    assert!(message.contains("larger than"), "{message}");
}

#[test]
fn output_without_end_is_cut_in_the_middle_and_says_so() {
    // Ten times what is kept; a gigabyte goes the same way.
    let script = "echo the beginning; head -c 100000000 /dev/zero | tr '\\0' x\necho\necho the end\nexit 1";
    let (suite, attempt) = harmed_in("result: result.json", script);
    let (class, message) = error(&attempt);
    assert_eq!(class, "no_result");
    assert!(message.contains("the end"), "{message}");
    let log = suite.read("out/attempts/a__bad/1/output.log");
    assert!(log.len() < 10_000_000, "{}", log.len());
    assert!(log.starts_with("the beginning\n") && log.ends_with("\nthe end\n"));
    assert!(log.contains("\n[evalwave: 9"), "nothing says that it was cut");
    let details = suite.read_json("out/attempts/a__bad/1/attempt.json")["details"].clone();
    let notes = details["notes"].to_string();
    assert!(notes.contains("bytes of output were left out"), "{notes}");
}

#[test]
fn a_workspace_that_the_attempt_deletes_is_its_own_loss() {
    let attempt = harmed(
        "result: result.json",
        "rm -rf \"$PWD\" \"$HOME\" \"$TMPDIR\"\nexit 1",
    );
    let (class, message) = error(&attempt);
    assert_eq!(class, "collect", "{message}");
    assert!(
        message.contains("cannot bring `result.json` out of the sandbox"),
        "{message}"
    );
}

/// Runs thirty attempts at once where `limits` have been set. Gives the suite, and what was said.
fn starved(limits: &str, sandbox: &str) -> (Suite, String) {
    let suite = Suite::scripted(
        &super::pairs(30),
        "result: result.json",
        &format!("strategy: parallel\n{sandbox}"),
        "echo '{\"passed\": true}' > result.json",
    );
    let output = Command::new("sh")
        .args(["-c", &format!("{limits}; exec \"$0\" run -o out")])
        .arg(assert_cmd::cargo::cargo_bin("evalwave"))
        .current_dir(suite.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}");
    let summary = suite.read_json("out/summary.json");
    assert_eq!(summary["totals"]["passed"], 30);
    (suite, told)
}

/// Directories, by the user's own commands, which say what their limit is.
const DIRECTORIES: &str = r#"sandbox:
  kind: command
  create: ulimit -S -n >>limits; mktemp -d
  exec: ulimit -S -n >>limits; cd {sandbox} && exec sh
  delete: [sh, -c, 'ulimit -S -n >>limits; rm -rf "$0"', "{sandbox}"]"#;

#[test]
fn a_run_with_few_files_open_makes_fewer_attempts_at_once() {
    for sandbox in ["", DIRECTORIES] {
        let (_, told) = starved("ulimit -n 64", sandbox);
        let expected = "concurrency 1 = pairs x runs (30 x 1 = 30) bounded by 64 open files at 8 an attempt";
        assert!(told.contains(expected), "{sandbox}: {told}");
    }
}

#[test]
fn a_run_opens_as_many_files_as_it_may_and_a_users_commands_get_the_limit_that_it_had() {
    let (suite, told) = starved("ulimit -S -n 64", DIRECTORIES);
    let summary = suite.read_json("out/summary.json");
    assert_eq!(summary["run"]["concurrency"], 30, "{told}");
    let limits = suite.read("limits");
    assert!(limits.lines().count() >= 90, "{limits}");
    assert!(limits.lines().all(|limit| limit == "64"), "{limits}");
}

#[test]
fn all_errored_is_told_from_all_failed() {
    let run = |script: &str, more: &str| {
        let more = format!("retry: {{ tries: 1 }}\n{more}");
        let suite = Suite::scripted("a/one a/two", "result: result.json", &more, script);
        let run = suite.ev("run -o out");
        (
            run.get_output().status.code().unwrap(),
            suite.read("out/report.md"),
        )
    };
    let failed = "echo '{\"passed\": false}' > result.json";
    let (code, report) = run(failed, "");
    assert_eq!(code, 0);
    assert!(report.contains("0/2 passed (0.0 %)"), "{report}");
    assert_eq!(run(failed, "fail-on: ['below:50%']").0, 1);
    let (code, report) = run("exit 1", "fail-on: [never]");
    assert_eq!(code, 4);
    assert!(
        report.contains("no eval gave a result") && !report.contains("0.0 %"),
        "{report}"
    );
}

/// Runs a script with `sh` where it may mount, `$0` being the binary; `None` where nobody says how.
fn with_mounts(suite: &Suite, script: &str) -> Option<(i32, String)> {
    let Ok(unshare) = std::env::var(UNSHARE) else {
        eprintln!(
            "not run: `{UNSHARE}` does not name a command that gives a process its own mounts; .ci/run does"
        );
        return None;
    };
    let mut words = unshare.split_whitespace();
    let output = Command::new(words.next().unwrap())
        .args(words)
        .args(["--mount", "sh", "-e", "-c", script])
        .arg(assert_cmd::cargo::cargo_bin("evalwave"))
        .current_dir(suite.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    Some((output.status.code().unwrap(), told))
}

#[test]
fn a_full_disk_is_no_failure_of_the_agent() {
    let fills = "[ $EVALWAVE_EVAL = good ] && exit 0\nhead -c 9000000 /dev/zero > big\nexit 1";
    let more = "retry: { tries: 2 }\nconcurrency: 1";
    let suite = Suite::scripted("a/bad a/good", "format: exit-code", more, fills);
    let script = "mkdir t; mount -t tmpfs -o size=4m none t; export TMPDIR=\"$PWD/t\"; \"$0\" run -o out";
    let Some((code, told)) = with_mounts(&suite, script) else {
        return;
    };
    assert_eq!(code, 3, "{told}");
    let summary = suite.read_json("out/summary.json");
    let attempt = &summary["pairs"][0]["attempts"][0];
    let (class, message) = error(attempt);
    assert_eq!(
        (class, &attempt["tries"]),
        ("out_of_disk", &2.into()),
        "{message}"
    );
    assert!(message.contains("no space left"), "{message}");
    assert_eq!(summary["pairs"][1]["verdict"], "pass");
}

#[test]
fn a_disk_that_is_full_for_a_while_tears_no_line_of_the_journal() {
    let script = "head -c 150000 /dev/zero | tr '\\0' x\necho '{\"passed\": true}' > result.json";
    let more = "retry: { tries: 1 }\nconcurrency: 2";
    let suite = Suite::scripted(&super::pairs(12), "result: result.json", more, script);
    let script = "mkdir o; mount -t tmpfs -o size=512k none o; code=0; \"$0\" run -o o/out || code=$?
        cp o/out/journal.jsonl journal.jsonl; \"$0\" report o/out --format json > again.json
        rm -r o/out/attempts; \"$0\" run -o o/out --resume || true
        cp o/out/journal.jsonl resumed.jsonl; exit $code";
    let Some((code, told)) = with_mounts(&suite, script) else {
        return;
    };
    assert_eq!(code, 3, "{told}");
    for journal in ["journal.jsonl", "resumed.jsonl"] {
        for line in suite.read(journal).lines() {
            assert!(serde_json::from_str::<Value>(line).is_ok(), "{journal}: {line}");
        }
    }
    let summary = suite.read_json("again.json");
    let passed = summary["totals"]["passed"].as_u64().unwrap();
    assert!((1..12).contains(&passed), "{summary}");
    assert!(told.contains("No space left"), "{told}");
}

#[test]
fn a_link_to_what_is_not_there_is_said_before_anything_runs() {
    let suite = Suite::scripted(
        "a/one",
        "format: exit-code",
        "sandbox: { link: [node_modules, attempt.sh] }",
        "true",
    );
    let (run, _) = suite.run("");
    let told = stderr(&run.code(0));
    assert!(
        told.contains("`sandbox.link` names `node_modules`, which is not there"),
        "{told}"
    );
    assert!(!told.contains("names `attempt.sh`"), "{told}");
}

#[test]
fn a_clock_that_is_set_while_a_run_goes_on_changes_nothing() {
    let Ok(library) = std::env::var(FAKETIME) else {
        eprintln!("not run: `{FAKETIME}` does not name the library; .ci/run does");
        return;
    };
    // The attempts set the clock: far ahead, back to long before the run began, and ahead again.
    let script = "case $EVALWAVE_EVAL in e001) by=-30d ;; *) by=+10y ;; esac
        echo $by > \"$CLOCK\"; sleep 0.1; echo '{\"passed\": true}' > result.json";
    let attempt = "result: result.json\nenv-from: [CLOCK]\ntimeout: 1h";
    let more = "concurrency: 1\nsandbox: { landlock: off }";
    let suite = Suite::scripted(&super::pairs(3), attempt, more, script);
    let clock = suite.path().join("clock");
    suite.write("clock", "+0");
    let run = |flags: &[&str]| {
        crate::support::evalwave(suite.path())
            .args(["run", "-o", "out"])
            .args(flags)
            .env("CLOCK", &clock)
            .env("LD_PRELOAD", &library)
            .env("FAKETIME_TIMESTAMP_FILE", &clock)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .assert()
            .code(0);
        suite.read_json("out/summary.json")
    };
    let summary = run(&[]);
    // Far less than any of the jumps.
    let is_short = |seconds: &Value| (0.0..3600.0).contains(&seconds.as_f64().unwrap());
    assert!(is_short(&summary["run"]["wall_seconds"]), "{summary}");
    let attempts = summary["pairs"].as_array().unwrap().iter();
    let attempts: Vec<&Value> = attempts.map(|pair| &pair["attempts"][0]).collect();
    for attempt in &attempts {
        assert_eq!(attempt["outcome"], "passed", "{attempt}");
        assert!(is_short(&attempt["seconds"]) && is_short(&attempt["started_offset"]));
    }
    let starts = attempts
        .iter()
        .map(|attempt| attempt["started_offset"].as_f64().unwrap());
    assert!(starts.is_sorted(), "{summary}");
    let ctrf = suite.read_json("out/ctrf.json")["results"]["summary"].clone();
    assert!(
        ctrf["start"].as_i64().unwrap() < ctrf["stop"].as_i64().unwrap(),
        "{ctrf}"
    );
    // Years later by the clock, and then before it all began, the run is still the same one.
    assert_eq!(run(&["--resume"])["pairs"], summary["pairs"]);
    let journal = suite.read("out/journal.jsonl");
    let told = |key: &str| journal.split(key).nth(1).unwrap()[3..7].parse::<i32>().unwrap();
    assert!(
        told("resumed_at") - told("started_at") >= 9,
        "its clock was not set"
    );
    suite.write("clock", "-30d");
    let again = run(&["--resume"]);
    assert_eq!(again["pairs"], summary["pairs"]);
    assert_eq!(again["run"]["started_at"], summary["run"]["started_at"]);
    assert!(is_short(&again["run"]["wall_seconds"]), "{again}");
}
