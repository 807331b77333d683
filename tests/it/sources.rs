//! `compare` on results that exist already, by the real binary.

use camino::Utf8PathBuf;
use serde_json::{Value, json};

use crate::support::{Suite, ev, evalwave, git, json, repository, stderr, stdout};

fn counts(comparison: &Value) -> Value {
    json!({
        "compared": comparison["compared"],
        "passed": [comparison["baseline"]["passed"], comparison["current"]["passed"]],
        "flips": [
            comparison["flips"]["pass_to_fail"].as_array().unwrap().len(),
            comparison["flips"]["fail_to_pass"].as_array().unwrap().len()
        ],
        "p": comparison["test"]["p_value"],
        "verdict": comparison["verdict"],
    })
}

#[test]
fn the_fixture_suite_gives_its_known_numbers() {
    let arguments =
        "compare --baseline tests/fixtures/before.json --current tests/fixtures/after.json --format json";
    let comparison = json(&ev(&repository(), arguments).code(0));
    let expected = json!({ "compared": 237, "passed": [211, 207], "flips": [10, 6], "p": 0.4545, "verdict": "within_noise" });
    assert_eq!(counts(&comparison), expected);
    assert_eq!(
        comparison["pass_rate"],
        json!({ "baseline": 0.8903, "current": 0.8734, "delta": -0.0169 })
    );
    assert_eq!(comparison["test"]["detectable"], 0.0667);
}

/// Published results of a real suite lie beside some checkouts, never in this repository.
#[test]
fn published_results_of_a_real_suite_give_their_known_numbers() {
    let data = repository().join("../shared/data/supabase-evals");
    if !data.is_dir() {
        eprintln!("not run: there are no published results beside this checkout");
        return;
    }
    let expected: Value = serde_json::from_slice(&fs_err::read(data.join("expected.json")).unwrap()).unwrap();
    let suites: [&[&str]; 2] = [&["benchmark"], &["benchmark", "regression"]];
    for (suites, expected) in suites.iter().zip(expected.as_array().unwrap()) {
        let mut command = evalwave(&repository());
        command.args(["compare", "--format", "json"]);
        for suite in *suites {
            command.args(["--baseline", data.join(format!("C-{suite}.json")).as_str()]);
            command.args(["--current", data.join(format!("D-{suite}.json")).as_str()]);
        }
        let comparison = json(&command.assert().code(0));
        assert_eq!(comparison["compared"], expected["compared"]);
        assert_eq!(comparison["baseline"]["passed"], expected["passed_baseline"]);
        assert_eq!(comparison["current"]["passed"], expected["passed_current"]);
        assert_eq!(comparison["test"]["p_value"], expected["p_value"]);
        for direction in ["pass_to_fail", "fail_to_pass"] {
            let mut flips: Vec<String> = comparison["flips"][direction]
                .as_array()
                .unwrap()
                .iter()
                .map(|flip| {
                    format!(
                        "{} × {}",
                        flip["experiment"].as_str().unwrap(),
                        flip["eval"].as_str().unwrap()
                    )
                })
                .collect();
            flips.sort();
            assert_eq!(json!(flips), expected[direction]);
        }
    }
}

const BEFORE: &str = r#"[{"experiment": "a", "eval": "one", "passed": true}, {"experiment": "a", "eval": "two", "passed": true}]"#;

/// The same results as every source that needs no network gives them.
#[test]
fn every_source_reads_the_same_results() {
    let suite = Suite::scripted(
        "a/one a/two",
        "result: result.json",
        "",
        "echo '{\"passed\": true}' > result.json",
    );
    suite.ev("run -o out").code(0);
    suite.write("before.json", BEFORE);
    suite.write("raw/a/one.json", r#"{"passed": true}"#);
    suite.write("raw/a/two.json", r#"{"passed": true}"#);
    suite.write("runs/a/one/run-1/result.json", r#"{"passed": true}"#);
    suite.write("runs/a/two/run-1/result.json", r#"{"passed": true}"#);
    git(suite.path(), &["init", "-q"]);
    git(suite.path(), &["add", "before.json"]);
    git(suite.path(), &["commit", "-q", "-m", "results"]);
    for source in [
        "before.json",
        "raw",
        "runs",
        "out",
        "out/summary.json",
        "git:HEAD:before.json",
    ] {
        let compared = suite
            .ev(&format!(
                "compare --baseline before.json --current {source} --format json"
            ))
            .code(0);
        let expected =
            json!({ "compared": 2, "passed": [2, 2], "flips": [0, 0], "p": 1.0, "verdict": "unchanged" });
        assert_eq!(counts(&json(&compared)), expected, "{source}");
    }
    // As in a hook, where git speaks of another repository in the environment.
    let hooked = evalwave(suite.path())
        .args([
            "compare",
            "--baseline",
            "before.json",
            "--current",
            "git:HEAD:before.json",
        ])
        .env("GIT_DIR", "/nowhere")
        .assert();
    hooked.code(0);
    let piped = evalwave(suite.path())
        .args([
            "compare",
            "--baseline",
            "before.json",
            "--current",
            "-",
            "--format",
            "json",
        ])
        .write_stdin(BEFORE)
        .assert()
        .code(0);
    assert_eq!(json(&piped)["compared"], 2);
}

#[test]
fn gates_decide_the_exit_code_and_say_why() {
    let suite = Suite::new("");
    suite.write("before.json", BEFORE);
    suite.write(
        "after.json",
        r#"[{"experiment": "a", "eval": "one", "passed": false}, {"experiment": "a", "eval": "two", "passed": true}]"#,
    );
    let compare = |fail_on: &str| {
        suite.ev(&format!(
            "compare --baseline before.json --current after.json --fail-on {fail_on}"
        ))
    };
    compare("incomplete").code(0);
    let failed = compare("regression").code(1);
    assert!(
        stderr(&failed).contains("gate `regression` failed"),
        "{}",
        stderr(&failed)
    );
    compare("drop:40pp").code(1);
    compare("drop:60pp").code(0);
    compare("below:60%").code(1);
    compare("below:50%").code(0);
    compare("never").code(0);
}

#[test]
fn sources_that_cannot_be_read_are_named_with_what_was_expected() {
    let suite = Suite::new("");
    suite.write("before.json", BEFORE);
    suite.write(
        "broken.json",
        "[{\"experiment\": \"a\", \"eval\": \"one\", \"passed\": tru",
    );
    suite.write("object.json", "{}");
    suite.write("twice.json", r#"[{"experiment": "a", "eval": "one", "passed": true}, {"experiment": "a", "eval": "one", "passed": false}]"#);
    suite.write("empty.json", "[]");
    let cases = [
        ("missing.json", "missing.json"),
        ("broken.json", "broken.json"),
        ("object.json", "expected an array of rows"),
        ("twice.json", "row 1 and row 2"),
        ("git:HEAD:x.json", "git"),
        ("artifact:evals", "not built in yet"),
        ("none", "none"),
    ];
    for (source, expected) in cases {
        let refused = suite
            .ev(&format!("compare --baseline before.json --current {source}"))
            .code(2);
        assert_eq!(stdout(&refused), "", "{source}");
        let message = stderr(&refused);
        assert!(
            message.starts_with("error: ") && message.contains(expected),
            "{source}: {message}"
        );
        assert!(message.lines().count() <= 3, "{source}: {message}");
    }
    // Nothing was measured, which is a result, and not a rate of zero.
    let empty = json(
        &suite
            .ev("compare --baseline before.json --current empty.json --format json")
            .code(4),
    );
    assert_eq!(empty["verdict"], "inconclusive");
    assert_eq!(
        empty["pass_rate"],
        json!({ "baseline": null, "current": null, "delta": null })
    );
}

#[test]
fn a_run_compares_itself_with_its_baseline_file() {
    let suite = Suite::scripted(
        "a/one a/two",
        "format: exit-code",
        "baseline: before.json",
        "[ $EVALWAVE_EVAL = one ]",
    );
    suite.write("before.json", BEFORE);
    let (run, summary) = suite.run("--fail-on regression");
    run.code(1);
    assert_eq!(summary["comparison"]["flips"]["pass_to_fail"][0]["eval"], "two");
    assert_eq!(summary["run"]["conclusion"], "failure");
    // A broken baseline costs nothing: nothing is run.
    let refused = suite.ev("run -o again --baseline broken.json").code(2);
    assert!(
        stderr(&refused).contains("cannot read the baseline"),
        "{}",
        stderr(&refused)
    );
    assert!(!Utf8PathBuf::from(suite.path()).join("again").exists());
}
