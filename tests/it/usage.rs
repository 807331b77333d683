//! Wrong input, as a new user would give it: one clear message, the documented exit code, and nothing run.

use crate::support::{Suite, ev, evalwave, git, repository, stderr, stdout};

/// A configuration that is right, for cases that change one thing.
const RIGHT: &str = "version: 1\nsuite: { name: t, pairs: [{ experiment: a, eval: one }] }\nattempt:\n  command: 'true'\n  format: exit-code\n";

fn refused(suite: &Suite, arguments: &str, expected: &[&str]) {
    let refused = suite.ev(arguments).code(2);
    let message = stderr(&refused);
    assert!(message.starts_with("error: "), "{arguments}: {message}");
    for part in expected {
        assert!(
            message.contains(part),
            "{arguments}: expected `{part}` in: {message}"
        );
    }
    assert_eq!(stdout(&refused), "", "{arguments}");
    assert!(
        !suite.path().join("evalwave-out").exists(),
        "{arguments}: something was run"
    );
}

#[test]
fn a_wrong_key_is_answered_with_file_line_and_the_nearest_known_one() {
    let cases: [(&str, &str, &[&str]); 11] = [
        (
            "  command: 'true'",
            "  comand: 'true'",
            &["evalwave.yml:4:3", "attempt.comand", "`command`"],
        ),
        ("version: 1\n", "version: 2\n", &["evalwave.yml", "version", "1"]),
        (
            "attempt:\n",
            "runs: 0\nattempt:\n",
            &["evalwave.yml:3:", "`runs`", "0"],
        ),
        ("attempt:\n", "runs: many\nattempt:\n", &["runs", "many"]),
        (
            "attempt:\n",
            "strategy: paralel\nattempt:\n",
            &["strategy", "paralel", "parallel"],
        ),
        (
            "  format: exit-code\n",
            "  format: exit-code\n  timeout: 12\n",
            &["attempt.timeout", "12m"],
        ),
        (
            "  format: exit-code\n",
            "  format: exit-code\n  timeout: 0s\n",
            &["attempt.timeout"],
        ),
        ("eval: one", "eval: ''", &["eval", "empty"]),
        (
            "eval: one }",
            "eval: one }, { experiment: a, eval: one }",
            &["suite.pairs[1]", "same pair"],
        ),
        (
            "command: 'true'",
            "command: run {evl}",
            &["evl", "eval", "attempt.command"],
        ),
        (
            "attempt:\n",
            "sandbox: { kind: docker }\nattempt:\n",
            &["sandbox.image", "what containers are made of"],
        ),
    ];
    for (from, to, expected) in cases {
        assert!(RIGHT.contains(from));
        let suite = Suite::new(&RIGHT.replacen(from, to, 1));
        refused(&suite, "run", expected);
        refused(&suite, "plan", expected);
    }
}

#[test]
fn a_wrong_flag_or_variable_is_named() {
    let suite = Suite::new(RIGHT);
    refused(&suite, "run --runs 0", &["--runs", "0"]);
    refused(&suite, "run --shard 3/2", &["3/2"]);
    refused(&suite, "run --label x", &["NAME=VALUE"]);
    refused(&suite, "run --eval tow", &["tow", "one"]);
    refused(
        &suite,
        "run --parallel-attempts=maybe",
        &["--parallel-attempts", "maybe", "true"],
    );
    refused(
        &suite,
        "run --strategy sequential --parallel-attempts",
        &["--strategy", "--parallel-attempts"],
    );
    refused(&suite, "run -c missing.yml", &["missing.yml"]);
    refused(&suite, "run --pairs missing.json", &["missing.json"]);
    refused(&suite, "run --pairs-json {}", &["--pairs-json"]);
    refused(&suite, "run --changed-since HEAD", &["git"]);
    refused(&suite, "run --fail-on regresion", &["regresion", "regression"]);
    refused(&suite, "run --nonsense", &["--nonsense"]);
    refused(&suite, "report missing", &["missing"]);
    refused(
        &suite,
        "compare --baseline - --current -",
        &["standard input twice"],
    );
    let variable = evalwave(suite.path())
        .arg("plan")
        .env("EVAL_PARALLEL_ATTEMPTS", "maybe")
        .assert()
        .code(2);
    assert!(
        stderr(&variable).contains("EVAL_PARALLEL_ATTEMPTS"),
        "{}",
        stderr(&variable)
    );
}

#[test]
fn the_variable_turns_the_parallel_mode_on_and_off() {
    let suite = Suite::new(&RIGHT.replace("attempt:\n", "runs: 2\nconcurrency: 1\nattempt:\n"));
    let plan = |value: &str| {
        let plan = evalwave(suite.path())
            .args(["plan", "--format", "json"])
            .env("EVAL_PARALLEL_ATTEMPTS", value)
            .assert()
            .code(0);
        let plan: serde_json::Value = serde_json::from_str(&stdout(&plan)).unwrap();
        format!("{} {}", plan["strategy"].as_str().unwrap(), plan["concurrency"])
    };
    for on in ["true", "1", "YES", " on "] {
        assert_eq!(plan(on), "parallel 2", "{on}");
    }
    for off in ["false", "0", "no", "Off", "", "  "] {
        assert_eq!(plan(off), "sequential 1", "{off}");
    }
}

#[test]
fn a_directory_without_a_configuration_says_where_one_was_looked_for() {
    let empty = tempfile::TempDir::new().unwrap();
    let path = camino::Utf8Path::from_path(empty.path()).unwrap();
    let refused = ev(path, "run").code(2);
    assert!(
        stderr(&refused).contains(".github/evalwave.yml"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn what_a_run_leaves_is_not_offered_to_git() {
    let suite = Suite::new(RIGHT);
    git(suite.path(), &["init", "--quiet"]);
    git(suite.path(), &["add", "evalwave.yml"]);
    suite.ev("run").code(0);
    assert!(suite.path().join("evalwave-out/latest/report.html").is_file());
    let mut status = assert_cmd::Command::new("git");
    let status = status
        .args(["status", "--porcelain"])
        .current_dir(suite.path())
        .assert();
    assert_eq!(stdout(&status), "A  evalwave.yml\n");
}

#[test]
fn an_empty_suite_measures_nothing_and_a_selection_without_changes_is_skipped() {
    let suite = Suite::new(
        "version: 1\nsuite: { name: t, pairs: [] }\nattempt: { command: 'true', format: exit-code }\n",
    );
    let (run, summary) = suite.run("");
    run.code(4);
    assert_eq!(summary["run"]["conclusion"], "empty");

    let pairs = "pairs: [{ experiment: a, eval: one }, { experiment: b, eval: two }], changed: { evals: 'evals/{eval}/**' }";
    let suite = Suite::new(&format!(
        "version: 1\nsuite: {{ name: t, {pairs} }}\nattempt: {{ command: 'true', format: exit-code }}\n"
    ));
    git(suite.path(), &["init", "-q"]);
    git(suite.path(), &["add", "."]);
    git(suite.path(), &["commit", "-q", "-m", "suite"]);
    let (run, summary) = suite.run("--changed-since HEAD");
    run.code(0);
    assert_eq!(summary["run"]["conclusion"], "skipped");
    suite.ev("plan --changed-since HEAD").code(0);
    suite.ev("run -o shard --shard 3/3").code(0);
    // Flags that leave nothing between them are no reason to call it done.
    suite.ev("run -o none --experiment a --eval two").code(4);
    suite.ev("plan --experiment a --eval two").code(4);
}

#[test]
fn an_empty_flag_is_not_set() {
    let suite = Suite::new(RIGHT);
    suite
        .ev_args(&["run", "-o", "out", "--pairs", "", "--baseline", " ", "--runs", ""])
        .code(0);
}

#[test]
fn help_and_version_are_answered_on_standard_output() {
    let version = ev(&repository(), "--version").code(0);
    assert_eq!(
        stdout(&version),
        format!("evalwave {}\n", env!("CARGO_PKG_VERSION"))
    );
    let help = ev(&repository(), "--help").code(0);
    for command in ["plan", "run", "compare", "report", "schema"] {
        assert!(stdout(&help).contains(command), "{command}");
        let help = ev(&repository(), &format!("{command} --help")).code(0);
        assert!(stdout(&help).contains("Usage: evalwave"), "{command}");
    }
}
