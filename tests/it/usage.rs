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

#[test]
fn an_empty_flag_is_not_set_and_an_empty_path_is_not_the_current_directory() {
    let suite = Suite::new(RIGHT);
    let rows = r#"[{ "experiment": "b", "eval": "two" }]"#;
    let given = suite.ev_args(&[
        "run",
        "-o",
        "out",
        "--pairs",
        "",
        "--pairs-json",
        rows,
        "--shard",
        "",
    ]);
    assert!(stderr(&given.code(0)).contains("results in out"));
    assert_eq!(suite.read_json("out/summary.json")["pairs"][0]["eval"], "two");
    let both = suite.ev_args(&["plan", "--pairs", "pairs.json", "--pairs-json", rows]);
    assert!(stderr(&both.code(2)).contains("expected one source of pairs"));
    let calibrated = suite.ev_args(&["calibrate", "out", "out", "--fail-on", "", "--format", "json"]);
    let gates = crate::support::json(&calibrated.code(0))["gates"].clone();
    assert_eq!(gates.as_array().map(Vec::len), Some(5), "{gates:#}");

    for arguments in [
        &["merge", "out", "-o", ""][..],
        &["merge", "", "-o", "all"],
        &["report", ""],
        &["comment", " "],
    ] {
        let said = stderr(&suite.ev_args(arguments).code(2));
        assert!(said.contains("expected a path, found an empty text"), "{said}");
    }
    assert!(!suite.path().join("summary.json").exists());
    suite.ev("run").code(0);
    assert_eq!(
        stderr(&suite.ev_args(&["cleanup", ""]).code(0)),
        "nothing to clean up\n"
    );
    suite.ev_args(&["man", ""]).success();
}

#[cfg(unix)]
#[test]
fn a_configuration_may_come_through_a_pipe() {
    let suite = Suite::new(RIGHT);
    fs_err::remove_file(suite.path().join("evalwave.yml")).unwrap();
    let piped = evalwave(suite.path())
        .args(["plan", "-c", "/dev/stdin"])
        .write_stdin(RIGHT)
        .assert();
    assert!(stdout(&piped.code(0)).contains("1 pair"), "a plan of one pair");
    refused(&suite, "plan -c .", &["cannot find the configuration `.`"]);
}

#[test]
fn a_part_of_more_parts_than_pairs_is_merged_with_what_is_missing() {
    let suite = Suite::new(&RIGHT.replace("eval: one }", "eval: one }, { experiment: a, eval: two }"));
    suite.ev("run -o part --shard 1/9223372036854775807").code(0);
    suite.ev("merge part -o whole").code(3);
    let notices = suite.read_json("whole/summary.json")["notices"].to_string();
    let missing = "1 of 2 planned attempts are missing; no part is of shard 2/9223372036854775807: a × two";
    assert!(notices.contains(missing), "{notices}");
}

#[test]
fn pairs_that_are_given_may_be_those_without_the_labels_of_the_configuration() {
    let labelled = "limits: [{ label: tier=critical, concurrency: 1 }]\ngates: [{ label: tier=critical, fail-on: regression }]\n";
    let config = format!(
        "{}{labelled}",
        RIGHT.replace("eval: one }", "eval: one, tier: critical }")
    );
    let suite = Suite::new(&config);
    let rows = r#"[{ "experiment": "a", "eval": "two", "tier": "other" }]"#;
    suite.write("pairs.json", rows);
    for given in [["--pairs", "pairs.json"], ["--pairs-json", rows]] {
        let mut arguments = vec!["run", "-o", "out", "--overwrite"];
        arguments.extend(given);
        suite.ev_args(&arguments).code(0);
        let summary = suite.read_json("out/summary.json");
        assert_eq!(
            summary["gates"][1]["why"], "this run has no such pair",
            "{summary:#}"
        );
        let notices = summary["notices"].to_string();
        assert!(
            notices.contains("gates: no pair has the label `tier=critical`"),
            "{notices}"
        );
    }
    suite.write(
        "evalwave.yml",
        &config.replace("tier: critical }", "tier: other }"),
    );
    let said = stderr(&suite.ev("run -o out --overwrite").code(2));
    assert!(said.contains("cannot use the label `tier=critical`"), "{said}");
}

#[test]
fn a_configuration_whose_pairs_are_given_serves_what_needs_none() {
    let suite = Suite::new(&RIGHT.replace(", pairs: [{ experiment: a, eval: one }]", ""));
    refused(
        &suite,
        "plan",
        &["evalwave.yml", "`suite.pairs`: missing", "--pairs"],
    );
    suite.write(
        "pairs.json",
        r#"[{ "experiment": "a", "eval": "one" }, { "experiment": "a", "eval": "two" }]"#,
    );
    for part in ["1/2", "2/2"] {
        let run = format!("run --pairs pairs.json --shard {part} -o parts/{}", &part[..1]);
        suite.ev(&run).code(0);
    }
    suite.ev("merge parts -o whole").code(0);
    let whole = suite.read_json("whole/summary.json");
    assert_eq!(
        (&whole["run"]["suite"], &whole["totals"]["passed"]),
        (&"t".into(), &2.into())
    );
    evalwave(suite.path())
        .arg("init")
        .env("EVAL_PAIRS", suite.read("pairs.json"))
        .assert()
        .code(0);
    assert!(suite.path().join(".github/workflows/evals.yml").exists());
}
