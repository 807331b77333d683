//! Results of real harnesses through whole runs, and a run in the formats that others read.

use serde_json::{Value, json};

use crate::support::{Suite, evalwave, repository, stderr, stdout};

/// A suite whose attempts leave the fixture that their eval is called like.
fn leaving(fixtures: &[&str], attempt: &str, more: &str) -> Suite {
    let pairs: Vec<String> = fixtures
        .iter()
        .map(|name| format!("a/{}", name.replace('/', ":")))
        .collect();
    let attempt = format!(
        "{attempt}\nenv: {{ FROM: '{}' }}",
        repository().join("tests/fixtures/formats")
    );
    let script = "cp \"$FROM/$(echo \"$EVALWAVE_EVAL\" | tr : /)\" result.bin\n";
    Suite::scripted(
        &pairs.join(" "),
        &attempt,
        &format!("retry: {{ tries: 1 }}\n{more}"),
        script,
    )
}

/// Each pair with its verdict and, where there is one, the class of its error.
fn told(summary: &Value) -> Vec<String> {
    let pairs = summary["pairs"].as_array().unwrap();
    pairs
        .iter()
        .map(|pair| {
            let class = &pair["attempts"][0]["error"]["class"];
            format!(
                "{} {} {}",
                pair["eval"].as_str().unwrap(),
                pair["verdict"].as_str().unwrap(),
                class.as_str().unwrap_or("-")
            )
        })
        .collect()
}

#[test]
fn every_harness_passes_fails_errors_and_is_throttled_by_its_own_result() {
    let endings = ["passed", "failed", "errored", "throttled"];
    let harnesses = [
        ("junit", "xml"),
        ("agent-eval", "json"),
        ("inspect", "json"),
        ("harbor", "json"),
        ("promptfoo", "json"),
    ];
    let fixtures: Vec<String> = harnesses
        .iter()
        .flat_map(|(harness, ending)| endings.map(|name| format!("{harness}/{name}.{ending}")))
        .chain(["inspect/passed.eval".to_owned(), "inspect/failed.eval".to_owned()])
        .collect();
    let fixtures: Vec<&str> = fixtures.iter().map(String::as_str).collect();
    let suite = leaving(&fixtures, "result: result.bin", "");
    let (_, summary) = suite.run("");
    let expected: Vec<String> = fixtures
        .iter()
        .map(|name| {
            let how = match name.rsplit_once('/').unwrap().1.split_once('.').unwrap().0 {
                "passed" => "pass -",
                "failed" => "fail -",
                "errored" => "error infra",
                _ => "error throttled",
            };
            format!("{} {how}", name.replace('/', ":"))
        })
        .collect();
    assert_eq!(told(&summary), expected);
    let cost = summary["totals"]["cost_usd"].as_f64().unwrap();
    assert!(cost > 0.04, "{cost}");
}

#[test]
fn a_document_of_ours_stands_for_the_pair_and_the_harnesss_file_lies_beside_it() {
    let suite = leaving(
        &["junit/failed.xml", "inspect/passed.eval"],
        "result: result.bin\nformat: auto",
        "",
    );
    suite.run("");
    let published = "out/raw-results-a__junit%3Afailed.xml/junit%3Afailed.xml";
    assert_eq!(
        suite.read_json(&format!("{published}.json")),
        json!({
            "experiment": "a", "eval": "junit:failed.xml", "passed": false, "attempts": 1,
            "checks": [
                { "name": "test_sums.test_adds", "passed": true },
                { "name": "test_sums.test_subtracts", "passed": false,
                  "notes": "AssertionError: the answer is <1>\nassert (2 - 1) == 0" },
            ]
        })
    );
    let fixture =
        fs_err::read_to_string(repository().join("tests/fixtures/formats/junit/failed.xml")).unwrap();
    assert_eq!(suite.read(&format!("{published}.harness.bin")), fixture);
    let beside = suite
        .path()
        .join("out/raw-results-a__inspect%3Apassed.eval/inspect%3Apassed.eval.harness.bin");
    assert!(fs_err::read(beside).unwrap().starts_with(b"PK"));
    // The directory is a source of results like any other.
    let compared = suite
        .ev("compare --baseline out --current out --format json")
        .code(0);
    assert_eq!(crate::support::json(&compared)["compared"], 2);
}

#[test]
fn secrets_leave_an_archive_of_logs_too() {
    let suite = leaving(
        &["inspect/passed.eval"],
        "result: result.bin\nsecrets: [WORD]",
        "",
    );
    // The model's name stands for a secret that an agent has printed: it is in every file of the archive.
    let run = evalwave(suite.path())
        .args(["run", "-o", "out"])
        .env("WORD", "scripted/one")
        .assert();
    run.code(0);
    let kept = suite
        .path()
        .join("out/attempts/a__inspect%3Apassed.eval/1/result.bin");
    let compared = suite.ev_args(&[
        "compare",
        "--baseline",
        kept.as_str(),
        "--current",
        kept.as_str(),
        "--format",
        "json",
    ]);
    let text = stdout(&compared.code(0));
    assert!(
        text.contains("checks/adds") || text.contains("\"compared\": 2"),
        "{text}"
    );
    assert!(!text.contains("scripted/one"), "{text}");
}

#[test]
fn one_file_with_several_attempts_is_a_pairs_and_not_an_attempts() {
    let alone = leaving(&["inspect/epochs.json"], "result: result.bin", "");
    let (_, summary) = alone.run("");
    let message = summary["pairs"][0]["attempts"][0]["error"]["message"]
        .as_str()
        .unwrap();
    assert!(message.contains("it holds 2 attempts, 1 expected"), "{message}");
    for name in ["inspect/epochs.json", "promptfoo/repeated.json"] {
        let suite = leaving(&[name], "result: result.bin\nproduces: pair", "runs: 2");
        let (_, summary) = suite.run("");
        let attempts = &summary["pairs"][0]["attempts"];
        let outcomes = [&attempts[0]["outcome"], &attempts[1]["outcome"]];
        let expected = match name.starts_with("inspect") {
            true => ["failed", "passed"],
            false => ["failed", "failed"],
        };
        assert_eq!(outcomes, expected, "{name}");
        for attempt in [1, 2] {
            let pair = format!("a__{}", name.replace('/', "%3A"));
            assert!(
                suite
                    .path()
                    .join(format!("out/attempts/{pair}/{attempt}/result.bin"))
                    .is_file()
            );
        }
    }
}

#[test]
fn rows_of_json_lines_and_grades_of_any_json_are_read() {
    let script = "printf '{\"passed\": false}\\n\\n{\"score\": 0.9}\\n' > rows.jsonl";
    let attempt = "result: rows.jsonl\nformat: jsonl\nproduces: pair\njson: { threshold: 0.8 }";
    let suite = Suite::scripted("a/one", attempt, "runs: 2", script);
    let (_, summary) = suite.run("");
    assert_eq!(summary["pairs"][0]["attempts"][0]["outcome"], "failed");
    assert_eq!(summary["pairs"][0]["attempts"][1]["score"], 0.9);
    assert_eq!(summary["pairs"][0]["verdict"], "pass");

    let script = "echo '{\"run\": {\"ok\": true}, \"usage\": {\"input_tokens\": 7}}' > out.json";
    let attempt = "result: out.json\nformat: json\njson: { passed: /run/ok }";
    let suite = Suite::scripted("a/one", attempt, "", script);
    let (_, summary) = suite.run("");
    assert_eq!(summary["pairs"][0]["verdict"], "pass");
    assert_eq!(summary["totals"]["tokens"], 7);
}

#[test]
fn a_whole_run_in_one_file_is_compared() {
    let compare = |before: &str, now: &str| {
        let fixture = |name: &str| {
            repository()
                .join("tests/fixtures/formats")
                .join(name)
                .into_string()
        };
        let suite = Suite::new("version: 1\nattempt: { command: 'true' }\n");
        suite.ev_args(&[
            "compare",
            "--baseline",
            &fixture(before),
            "--current",
            &fixture(now),
            "--format",
            "json",
            "--fail-on",
            "never",
        ])
    };
    for before in ["inspect/passed.json", "inspect/passed.eval"] {
        let compared = crate::support::json(&compare(before, "inspect/failed.eval").code(0));
        assert_eq!(compared["compared"], 2);
        let flips = compared["flips"]["pass_to_fail"].as_array().unwrap();
        let told: Vec<[&Value; 3]> = flips
            .iter()
            .map(|flip| [&flip["eval"], &flip["before"], &flip["now"]])
            .collect();
        assert_eq!(told, [[&json!("checks/spells"), &json!("1/1"), &json!("0/1")]]);
    }
    // An attempt that errored is a lost one, not a failure.
    for name in ["promptfoo/errored.json", "inspect/errored.json"] {
        let compared = crate::support::json(&compare(name, name).code(0));
        assert_eq!(compared["compared"], 1, "{name}");
        assert_eq!(compared["not_comparable"].as_array().unwrap().len(), 1, "{name}");
    }
    let compared = crate::support::json(&compare("inspect/epochs.json", "inspect/epochs.json").code(0));
    assert_eq!(compared["test"]["level"], "attempts");

    let broken = Suite::new("version: 1\nattempt: { command: 'true' }\n");
    let archive = fs_err::read(repository().join("tests/fixtures/formats/inspect/passed.eval")).unwrap();
    fs_err::write(broken.path().join("cut.eval"), &archive[..archive.len() / 2]).unwrap();
    let refused = broken
        .ev("compare --baseline cut.eval --current cut.eval")
        .code(2);
    assert!(stderr(&refused).contains("cut.eval"), "{}", stderr(&refused));
}

#[test]
fn a_run_leaves_reports_for_tools_that_read_tests() {
    let script = "[ $EVALWAVE_EVAL = bad ] && exit 1; exit 0";
    let suite = Suite::scripted("a/good a/bad", "", "", script);
    let (run, _) = suite.run("");
    run.code(0);
    for (format, file) in [
        ("junit", "junit.xml"),
        ("ctrf", "ctrf.json"),
        ("json", "summary.json"),
    ] {
        let again = suite.ev(&format!("report out --format {format}")).code(0);
        assert_eq!(stdout(&again), suite.read(&format!("out/{file}")), "{format}");
    }
    assert!(suite.read("out/junit.xml").contains("failures=\"1\""));
    let lines = stdout(&suite.ev("report out --format jsonl").code(0));
    assert_eq!(lines.lines().count(), 2);
    let rows: Value =
        serde_json::from_str(&stdout(&suite.ev("report out --format results").code(0))).unwrap();
    assert_eq!(rows[0]["eval"], "bad");

    suite.write("rows.json", "{}");
    let refused = suite.ev("report out --format results --merge rows.json").code(2);
    assert!(stderr(&refused).contains("cannot merge into `rows.json`: it is no JSON array of rows"));
    let refused = suite.ev("report out --format junit --merge rows.json").code(2);
    assert!(stderr(&refused).contains("`--merge` is for `--format results`"));
}

#[test]
fn a_place_for_the_grade_is_needed_for_any_json_and_refused_for_others() {
    for (attempt, expected) in [
        ("result: a.json\nformat: json", "`attempt.json`"),
        (
            "result: a.json\nformat: json\njson: { threshold: 0.5 }",
            "`attempt.json`",
        ),
        (
            "result: a.json\nformat: evals\njson: { passed: /a }",
            "`format: json` or `format: jsonl`",
        ),
        (
            "result: a.json\nformat: json\njson: { passed: a/b }",
            "a JSON pointer",
        ),
        (
            "result: a.json\nformat: json\njson: { score: /a~2 }",
            "a JSON pointer",
        ),
    ] {
        let suite = Suite::scripted("a/one", attempt, "", "");
        let refused = suite.ev("plan").code(2);
        assert!(stderr(&refused).contains(expected), "{}", stderr(&refused));
    }
}

#[test]
fn rows_are_made_of_documents_whatever_names_they_were_published_by() {
    // What is kept beside the result may be called as a published document is, and may look like one.
    let script = "mkdir results; echo '{\"passed\": true, \"attempts\": 7, \"durationMs\": 1}' > results/one.json\n\
                  echo '{\"passed\": true, \"durationMs\": 2500, \"skills\": {\"loaded\": []}}' > result.json";
    let rows_of = |publish: &str, more: &str| {
        let attempt = format!("result: result.json\nkeep: {{ path: results }}\npublish: {publish}");
        let suite = Suite::scripted("a/one", &attempt, more, script);
        suite.run("").0.code(0);
        suite.write(
            "before.json",
            r#"[{"experiment": "a", "eval": "one", "stage": "s", "passed": false}]"#,
        );
        let report = suite
            .ev("report out --format results --merge before.json")
            .code(0);
        assert_eq!(stderr(&report), "");
        let rows: Vec<Value> = serde_json::from_str(&stdout(&report)).unwrap();
        (suite, rows)
    };
    let row = |source: &str| {
        json!({ "experiment": "a", "eval": "one", "stage": "s", "passed": true, "skills": { "loaded": [] },
                "durationMs": 2500, "attempts": 1, "sourcePath": source })
    };
    let (suite, rows) = rows_of("{ as: './{eval}.result.json' }", "");
    assert_eq!(rows, [row("a/one.result.json")]);
    assert!(suite.path().join("out/raw-results-a__one/one.json").is_file());
    // A directory of nothing but these is a source of results too.
    suite.write(
        "alone/raw-results-a__one/one.result.json",
        &suite.read("out/raw-results-a__one/one.result.json"),
    );
    // A file that an attempt has left there is of no other pair.
    suite.write(
        "alone/raw-results-a__one/left.json",
        r#"{"experiment": "a", "eval": "two", "passed": true, "attempts": 1}"#,
    );
    let compared = suite
        .ev("compare --baseline alone --current alone --format json")
        .code(0);
    assert_eq!(crate::support::json(&compared)["compared"], 1);

    let (_, rows) = rows_of(
        "{ what: all, as: '{attempt}.json' }",
        "runs: 2\nstrategy: parallel",
    );
    let with_run = |run: u32| {
        let mut row = row(&format!("a/{run}.json"));
        row["run"] = json!(run);
        row
    };
    assert_eq!(rows, [with_run(1), with_run(2)]);
}

#[test]
fn a_row_that_lacks_its_document_is_told_of() {
    let suite = Suite::scripted("a/one a/two", "", "", "true");
    suite.run("").0.code(0);
    fs_err::remove_file(suite.path().join("out/raw-results-a__two/two.json")).unwrap();
    let report = suite.ev("report out --format results").code(0);
    let said = stderr(&report);
    assert!(
        said.contains("notice: there is no result document of `a × two` in `out`: "),
        "{said}"
    );
    let rows: Vec<Value> = serde_json::from_str(&stdout(&report)).unwrap();
    assert_eq!(rows.len(), 2);
}
