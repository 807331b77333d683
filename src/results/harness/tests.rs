mod grades;
mod promptfoo;

use proptest::prelude::*;

use super::{ReadError, read};
use crate::config::{Format, Grade};
use crate::model::{Check, Reading, ReadingVerdict, Usage};

fn evals(text: &str) -> Reading {
    only(&Format::Evals, text.as_bytes())
}

fn only(format: &Format, bytes: &[u8]) -> Reading {
    let mut read = read(format, bytes).unwrap();
    assert_eq!(read.attempts.len(), 1);
    read.attempts.remove(0)
}

fn problem(format: Format, bytes: &[u8]) -> String {
    read(&format, bytes).unwrap_err().to_string()
}

#[test]
fn passed_decides_and_absent_is_failed() {
    assert_eq!(evals(r#"{"passed": true}"#).verdict, ReadingVerdict::Passed);
    assert_eq!(evals(r#"{"passed": false}"#).verdict, ReadingVerdict::Failed);
    assert_eq!(evals(r#"{"eval": "a"}"#).verdict, ReadingVerdict::Failed);
}

#[test]
fn a_verdict_that_is_not_true_or_false_is_no_result() {
    assert_eq!(
        problem(Format::Evals, br#"{"passed": "yes"}"#),
        "`passed` is the text `yes`: expected true or false"
    );
    assert_eq!(
        problem(Format::Evals, br#"{"passed": null}"#),
        "`passed` is null: expected true or false"
    );
    assert_eq!(
        problem(Format::Evals, br#"{"passed": 1}"#),
        "`passed` is the number 1: expected true or false"
    );
    assert!(
        problem(Format::Evals, br#"{"passed": true, "passed": false}"#).contains("`passed` is given twice")
    );
}

#[test]
fn checks_usage_duration_and_error_are_read_where_they_can_be() {
    let reading = evals(
        r#"{"passed": false, "checks": [{"name": "builds", "passed": true, "notes": "ok"}, {"passed": false}, 3],
            "usage": {"input_tokens": 1200, "outputTokens": 34, "costUsd": 0.25}, "durationMs": 2500,
            "error": {"message": "rate limited"}, "throttled": true}"#,
    );
    assert_eq!(
        reading.checks,
        [
            Check {
                name: "builds".to_owned(),
                passed: true,
                notes: Some("ok".to_owned())
            },
            Check {
                name: "check 2".to_owned(),
                passed: false,
                notes: None
            },
        ]
    );
    assert_eq!(
        reading.usage,
        Some(Usage {
            input_tokens: Some(1200),
            output_tokens: Some(34),
            cost_usd: Some(0.25)
        })
    );
    assert_eq!(reading.seconds, Some(2.5));
    assert_eq!(reading.error.as_deref(), Some("rate limited"));
    assert!(reading.throttled);
    assert_eq!(reading.verdict, ReadingVerdict::Errored { retry: true });
    let passed = evals(r#"{"passed": true, "throttled": true}"#);
    assert_eq!(
        passed.verdict,
        ReadingVerdict::Passed,
        "a pass is never taken away"
    );
}

#[test]
fn what_is_not_known_is_none_and_not_zero() {
    let reading =
        evals(r#"{"passed": true, "usage": {"inputTokens": -1, "costUsd": "much"}, "durationMs": null}"#);
    assert_eq!(
        (reading.usage, reading.seconds, reading.error),
        (None, None, None)
    );
    let beyond = evals(r#"{"passed": true, "usage": {"costUsd": 1e308}, "durationMs": 1e300}"#);
    assert_eq!((beyond.usage, beyond.seconds), (None, None));
}

#[test]
fn malformed_checks_do_not_take_a_pass_away() {
    let reading = evals(r#"{"passed": true, "checks": "all fine", "error": 5}"#);
    assert_eq!(
        (reading.verdict, reading.checks),
        (ReadingVerdict::Passed, vec![])
    );
}

#[test]
fn auto_takes_only_what_it_can_tell() {
    assert_eq!(
        only(&Format::Auto, br#"{"passed": true, "x": 1}"#).verdict,
        ReadingVerdict::Passed
    );
    let seen: Vec<String> = [
        &b"<html>"[..],
        b"[{\"passed\": true}]",
        b"{}",
        br#"{"status": "ok", "reward": 1}"#,
        br#"{"passed": "true"}"#,
        br#"{"passed": true, "status": "passed", "duration": 3}"#,
        b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        b"12",
        b"  \n",
        b"PASS",
        b"{\"passed\": true",
        b"{\"score\": NaN}",
        b"\xff\xfe{\0",
        b"{\"a\": \"\xc3\"}",
    ]
    .iter()
    .map(|bytes| problem(Format::Auto, bytes).lines().next().unwrap().to_owned())
    .collect();
    insta::assert_snapshot!(seen.join("\n"), @r"
    the result's format cannot be told: it begins with `<html>`
    the result's format cannot be told: it is an array
    the result's format cannot be told: it is an empty object
    the result's format cannot be told: it is an object without `passed`, with `status`, `reward`
    the result's format cannot be told: it is an object whose `passed` is the text `true`
    the result's format cannot be told: it could be `evals` or `agent-eval`
    the result's format cannot be told: it is a zip archive without `header.json`
    the result's format cannot be told: it is a number
    it is empty: expected JSON
    line 1, column 1 (byte 0): expected value, found `PASS`
    it ends at byte 15 in the middle of a value
    line 1, column 11 (byte 10): expected value, found `NaN}`
    it is UTF-16: expected UTF-8
    byte 7 is not UTF-8: expected JSON
    ");
}

#[test]
fn exit_code_has_no_document() {
    assert!(matches!(
        read(&Format::ExitCode, b"{}"),
        Err(ReadError::NoDocument)
    ));
}

#[test]
fn deep_nesting_is_an_error_and_not_a_crash() {
    let deep = format!(r#"{{"passed": true, "x": {}"#, "[".repeat(100_000));
    assert!(problem(Format::Evals, deep.as_bytes()).contains("recursion limit exceeded"));
    for format in every_format() {
        assert!(read(&format, "[".repeat(100_000).as_bytes()).is_err());
        assert!(read(&format, "{\"a\":".repeat(100_000).as_bytes()).is_err());
        assert!(read(&format, "<testsuite>".repeat(100_000).as_bytes()).is_err());
    }
}

/// Every format, the ones for any JSON with a place for the grade.
fn every_format() -> [Format; 10] {
    [
        Format::Auto,
        Format::Evals,
        Format::ExitCode,
        Format::Junit,
        Format::AgentEval,
        Format::Inspect,
        Format::Harbor,
        Format::Promptfoo,
        Format::Jsonl(Grade::of_rows()),
        Format::Json(Grade::of_rows()),
    ]
}

/// The results of real harnesses, each with its format.
fn fixtures() -> Vec<(Format, String, Vec<u8>)> {
    let formats = [
        ("junit", Format::Junit),
        ("agent-eval", Format::AgentEval),
        ("inspect", Format::Inspect),
        ("harbor", Format::Harbor),
        ("promptfoo", Format::Promptfoo),
    ];
    let root = camino::Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/formats");
    let mut fixtures = Vec::new();
    for (name, format) in formats {
        for entry in root.join(name).read_dir_utf8().unwrap() {
            let path = entry.unwrap().into_path();
            if matches!(path.extension(), Some("json" | "xml" | "eval")) {
                let shown = format!("{name}/{}", path.file_name().unwrap());
                fixtures.push((format.clone(), shown, fs_err::read(&path).unwrap()));
            }
        }
    }
    fixtures.sort_by(|one, other| one.1.cmp(&other.1));
    fixtures
}

/// What a reader makes of a result, on a line.
fn told(reading: &Reading) -> String {
    let checks: Vec<String> = reading
        .checks
        .iter()
        .map(|check| format!("{}{}", if check.passed { "+" } else { "-" }, check.name))
        .collect();
    let usage = reading.usage.map(|usage| {
        let Usage {
            input_tokens,
            output_tokens,
            cost_usd,
        } = usage;
        format!(
            " {}/{} ${}",
            input_tokens.unwrap_or_default(),
            output_tokens.unwrap_or_default(),
            cost_usd.unwrap_or_default()
        )
    });
    let seconds = reading.seconds.map(|_| " timed");
    let score = reading.score.map(|score| format!(" {score}"));
    let error: Option<String> = reading.error.as_ref().map(|error| {
        let error = error.lines().next().unwrap_or_default();
        format!(" ! {}", error.chars().take(60).collect::<String>())
    });
    format!(
        "{:?} [{}]{}{}{}{}{}",
        reading.verdict,
        checks.join(" "),
        score.unwrap_or_default(),
        usage.unwrap_or_default(),
        seconds.unwrap_or_default(),
        error.unwrap_or_default(),
        if reading.throttled { " (throttled)" } else { "" }
    )
}

#[test]
fn results_of_real_harnesses_are_read() {
    let lines: Vec<String> = fixtures()
        .iter()
        .flat_map(|(format, name, bytes)| {
            let read = read(format, bytes).unwrap();
            assert!(!read.is_evals);
            let told = read.attempts.iter().map(told).collect::<Vec<_>>();
            told.into_iter().map(move |told| format!("{name}: {told}"))
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    agent-eval/errored.json: Errored { retry: true } [] timed ! Sandbox terminated unexpectedly
    agent-eval/failed.json: Failed [] timed
    agent-eval/passed.json: Passed [] timed
    agent-eval/throttled.json: Errored { retry: true } [] timed ! API Error: 429 rate_limit_error: too many requests (throttled)
    harbor/errored.json: Errored { retry: true } [] ! SandboxBuildFailedError: the image could not be built
    harbor/failed.json: Failed [-reward] 0 1200/300 $0.0125 timed
    harbor/passed.json: Passed [+reward] 1 1200/300 $0.0125 timed
    harbor/throttled.json: Errored { retry: true } [-reward] 0 1200/300 $0.0125 timed ! ApiRateLimitError: 429 Too Many Requests: rate limit exceede (throttled)
    inspect/epochs.json: Failed [+adds -spells] 0.5 24/6 $0.0008 timed
    inspect/epochs.json: Passed [+adds +spells] 1 24/6 $0.0008 timed
    inspect/errored.json: Errored { retry: true } [+adds] 12/3 $0.0004 timed ! sample `breaks`: RuntimeError('the sandbox went away')
    inspect/failed.eval: Failed [+adds -spells] 0.5 24/6 $0.0008 timed
    inspect/failed.json: Failed [+adds -spells] 0.5 24/6 $0.0008 timed
    inspect/passed.eval: Passed [+adds +spells] 1 24/6 $0.0008 timed
    inspect/passed.json: Passed [+adds +spells] 1 24/6 $0.0008 timed
    inspect/throttled.json: Errored { retry: true } [+adds] 12/3 $0.0004 timed ! sample `breaks`: RuntimeError('Error code: 429 - rate limit  (throttled)
    inspect/unscored.json: Errored { retry: false } [] 12/3 $0.0004 timed ! sample `adds`: `unscored` has no score
    junit/errored.xml: Errored { retry: true } [+test_sums.test_adds -test_sums.test_reads] timed ! test_sums.test_reads: failed on setup with "ConnectionError:
    junit/failed.xml: Failed [+test_sums.test_adds -test_sums.test_subtracts] timed
    junit/passed.xml: Passed [+test_sums.test_adds +test_sums.test_subtracts] timed
    junit/skipped.xml: Errored { retry: false } [] timed ! every test case in it was skipped (1)
    junit/throttled.xml: Errored { retry: true } [-test_sums.test_answer] timed ! test_sums.test_answer: failed on setup with "RuntimeError: H (throttled)
    promptfoo/errored.json: Errored { retry: true } [+adds -breaks] timed ! Error: Command failed: sh agent.sh breaks? {"id":"exec: sh a
    promptfoo/failed.json: Failed [+adds -wrong] 0.5 timed
    promptfoo/passed.json: Passed [+adds +spells] 1 timed
    promptfoo/repeated.json: Failed [+adds -wrong] 0.5 timed
    promptfoo/repeated.json: Failed [+adds -wrong] 0.5 timed
    promptfoo/throttled.json: Errored { retry: true } [+adds -throttled] timed ! Error: Command failed: sh agent.sh throttled? {"id":"exec: s (throttled)
    "#);
}

#[test]
fn auto_tells_the_results_of_real_harnesses_apart() {
    for (format, name, bytes) in fixtures() {
        let by_name = read(&format, &bytes).unwrap();
        let by_content = read(&Format::Auto, &bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(by_name.attempts, by_content.attempts, "{name}");
        // None of the others takes it for one of its own.
        for other in every_format() {
            let is_any = matches!(
                other,
                Format::Auto | Format::Evals | Format::Json(_) | Format::Jsonl(_)
            );
            if other != format && !is_any {
                assert!(read(&other, &bytes).is_err(), "{name} as {other:?}");
            }
        }
    }
}

#[test]
fn a_result_that_is_cut_off_is_none() {
    for (format, name, bytes) in fixtures() {
        let text = bytes.trim_ascii_end();
        for end in (0..text.len()).step_by(text.len().div_ceil(60)) {
            let cut = &text[..end];
            assert!(read(&format, cut).is_err(), "{name} cut at {end}");
            assert!(read(&Format::Auto, cut).is_err(), "{name} cut at {end}, auto");
        }
    }
}

#[test]
fn junit_as_other_tools_write_it_is_read() {
    let told = |text: &str| told(&only(&Format::Junit, text.as_bytes()));
    let lines = [
        // Nothing that a document type declares is ever put in its place.
        told(
            r#"<!DOCTYPE a [<!ENTITY e "eeee"><!ENTITY f "&e;&e;&e;">]>
               <testsuite><testcase name="&f;" classname="c"><failure>&f; &lt;&#65;</failure></testcase></testsuite>"#,
        ),
        // Surefire: made good by a later run, and failed again.
        told(
            r#"<testsuite time="1.5"><testcase name="a"><flakyFailure message="m"/></testcase></testsuite>"#,
        ),
        told(r#"<testsuite><testcase name="a"><failure/><rerunFailure/></testcase></testsuite>"#),
        // Suites in suites, and one that did not come to its cases.
        told(
            r#"<testsuites><testsuite time="2"><testsuite time="2"><testcase name="a"/></testsuite></testsuite></testsuites>"#,
        ),
        told(r#"<testsuites><testsuite><error message="no such module"/></testsuite></testsuites>"#),
        told("<testsuites/>"),
        told(
            r#"<testsuite><testcase name="a"><failure><![CDATA[<x>]]></failure><error message="e"/></testcase></testsuite>"#,
        ),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r"
    Failed [-c.&f;]
    Passed [+a] timed
    Failed [-a]
    Passed [+a] timed
    Errored { retry: true } [-the suite itself] ! the suite itself: no such module
    Errored { retry: false } [] ! there is no test case in it
    Errored { retry: true } [-a] ! a: e
    ");
    assert_eq!(
        problem(Format::Junit, b"<html></html>"),
        "it is no result of format `junit`: it begins with `<html>`: expected `<testsuites>` or `<testsuite>`"
    );
}

#[test]
fn a_case_that_was_not_run_is_no_pass() {
    let case = |attributes: &str| {
        let report = format!("<testsuite><testcase name='a' {attributes}/></testsuite>");
        only(&Format::Junit, report.as_bytes()).verdict
    };
    assert_eq!(case("status='run' result='completed'"), ReadingVerdict::Passed);
    for attributes in [
        "status='notrun' result='suppressed'",
        "status='disabled'",
        "status='run' result='skipped'",
    ] {
        let nothing = ReadingVerdict::Errored { retry: false };
        assert_eq!(case(attributes), nothing, "{attributes}");
    }
}

#[test]
fn a_failure_that_only_an_attribute_tells_of_is_no_pass() {
    let told = |text: &str| told(&only(&Format::Junit, text.as_bytes()));
    let lines = [
        told("<testsuite><testcase name='a' status='failed'/></testsuite>"),
        told("<testsuite><testcase name='a' status='fail'><failure message='m'/></testcase></testsuite>"),
        told("<testsuite><testcase name='a' result='error'/></testsuite>"),
        told("<testsuites failures='1'><testsuite><testcase name='a'/></testsuite></testsuites>"),
        told("<testsuites><testsuite errors='2'/><testsuite><testcase name='a'/></testsuite></testsuites>"),
        told("<testsuites><error message='boom'/><testsuite><testcase name='a'/></testsuite></testsuites>"),
        // The element says which it is, as Maestro writes it.
        told(
            "<testsuite><testcase name='a' status='ERROR'><failure>Element not found</failure></testcase></testsuite>",
        ),
        // Gradle counts what it then merges with the run that made it good.
        told("<testsuite failures='1'><testcase name='a'><flakyFailure message='m'/></testcase></testsuite>"),
        // Some count their failures as errors.
        told("<testsuite errors='1'><testcase name='a'><failure/></testcase></testsuite>"),
        told("<testsuite failures='0' errors='no'><testcase name='a'/></testsuite>"),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r#"
    Failed [-a]
    Failed [-a]
    Errored { retry: true } [-a] ! a ended with an error
    Errored { retry: false } [+a] ! `<testsuites>` says `failures="1"`, and there is none in it
    Errored { retry: false } [+a] ! `<testsuite>` says `errors="2"`, and there is none in it
    Errored { retry: true } [-the suite itself +a] ! the suite itself: boom
    Failed [-a]
    Passed [+a]
    Failed [-a]
    Passed [+a]
    "#);
}

#[test]
fn a_report_ends_where_its_first_element_does() {
    let report = "<testsuite><testcase name='a'/></testsuite>";
    for more in [
        "done",
        "<testsuite/>",
        "<testsuite><testcase/></testsuite>",
        "&amp;",
    ] {
        let problem = problem(Format::Junit, format!("{report}\n{more}").as_bytes());
        assert!(
            problem.contains("there is more after its end"),
            "{more}: {problem}"
        );
    }
    only(
        &Format::Junit,
        format!("\n{report}\n<!-- made by a tool -->\n").as_bytes(),
    );
}

#[test]
fn a_clear_grade_is_not_lost_to_a_value_beside_it() {
    let verdict = |format: Format, text: &str| only(&format, text.as_bytes()).verdict;
    let passed = ReadingVerdict::Passed;
    assert_eq!(
        verdict(Format::AgentEval, r#"{"status": "passed", "duration": "12s"}"#),
        passed
    );
    for usage in [
        "null",
        "[]",
        r#"{"m": {"input_tokens": 2.0, "output_tokens": null}}"#,
    ] {
        let log = format!(
            r#"{{"status": "success", "eval": {{"task": "t", "model": "m"}}, "samples":
                [{{"id": 1, "scores": {{"s": {{"value": "C"}}}}, "model_usage": {usage}, "total_time": "1"}}]}}"#
        );
        assert_eq!(verdict(Format::Inspect, &log), passed, "{usage}");
    }
    let trial = r#"{"trial_name": "t", "verifier_result": {"rewards": {"reward": 1.0}},
        "agent_result": {"n_input_tokens": 12.0, "n_output_tokens": "many", "cost_usd": "free"}, "agent_execution": 3}"#;
    let reading = only(&Format::Harbor, trial.as_bytes());
    assert_eq!(reading.verdict, passed);
    assert_eq!(reading.usage.unwrap().input_tokens, Some(12));
    let output = r#"{"results": {"results": [{"success": true, "testCase": null, "prompt": 1, "score": "1",
        "latencyMs": "2", "tokenUsage": {"prompt": 2.0}, "gradingResult": "good"}]}}"#;
    assert_eq!(verdict(Format::Promptfoo, output), passed);
}

#[test]
fn a_grade_is_where_it_is_said_to_be() {
    let at = |passed: Option<&str>, score: Option<&str>, threshold| Grade {
        passed: passed.map(str::to_owned),
        score: score.map(str::to_owned),
        threshold,
    };
    let scored = at(None, Some("/score"), 0.8);
    let document =
        br#"{"run": {"ok": true}, "score": 0.75, "error": "HTTP 429", "usage": {"inputTokens": 3}}"#;
    let told = |grade| told(&only(&Format::Json(grade), document));
    insta::assert_snapshot!(
        [
            told(at(Some("/run/ok"), None, 1.0)),
            told(at(Some("/run/ok"), Some("/score"), 0.8)),
            told(scored.clone()),
            told(at(None, Some("/score"), 0.75)),
        ].join("\n"),
        @r"
        Passed [] 3/0 $0 ! HTTP 429
        Passed [] 0.75 3/0 $0 ! HTTP 429
        Failed [] 0.75 3/0 $0 ! HTTP 429
        Passed [] 0.75 3/0 $0 ! HTTP 429
        "
    );
    let problems = [
        problem(Format::Json(at(Some("/run"), None, 1.0)), document),
        problem(Format::Json(at(Some("/no"), Some("/none"), 1.0)), document),
        problem(Format::Json(at(None, Some("/error"), 1.0)), document),
        problem(Format::Json(scored), br#"{"score": 1, "score": 0}"#),
        problem(
            Format::Jsonl(Grade::of_rows()),
            b"{\"passed\": true}\n\n{\"passed\": 1}\n",
        ),
        problem(Format::Jsonl(Grade::of_rows()), b"\n \n"),
    ];
    insta::assert_snapshot!(problems.join("\n"), @r"
    it is no result of format `json`: `/run` is an object: expected true or false
    it is no result of format `json`: there is nothing at `/no` and `/none`
    it is no result of format `json`: `/error` is the text `HTTP 429`: expected a number
    line 1, column 24: `score` is given twice
    line 3: it is no result of format `json`: `/passed` is the number 1: expected true or false
    it is empty: expected JSON
    ");
}

#[test]
fn every_row_of_json_lines_is_an_attempt() {
    let rows = b"{\"passed\": true, \"durationMs\": 1500}\n{\"score\": 0.5}\n{\"score\": 1}\n";
    let read = read(&Format::Auto, rows).unwrap();
    let told: Vec<String> = read.attempts.iter().map(told).collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    Passed [] timed
    Failed [] 0.5
    Passed [] 1
    ");
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for format in every_format() {
            let _ = read(&format, &bytes);
        }
    }

    /// A changed byte may change what a result says, but never how it is dealt with.
    #[test]
    fn no_damaged_result_panics(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let fixtures = fixtures();
        let (format, _, bytes) = which.get(&fixtures);
        let mut bytes = bytes.clone();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = read(format, &bytes);
        let _ = read(&Format::Auto, &bytes);
        let _ = super::rows(&bytes);
    }

    #[test]
    fn no_text_that_is_nearly_xml_panics(text in r#"(<|</|>|/>|testsuite|testcase|failure|error| name="|"|&|;|<!\[CDATA\[|\]\]>|<!--|é| ){0,30}"#) {
        let _ = read(&Format::Junit, text.as_bytes());
        let _ = read(&Format::Junit, format!("<testsuite><testcase name=\"a\">{text}</testcase></testsuite>").as_bytes());
    }

    #[test]
    fn no_text_that_is_nearly_json_panics(text in r#"[\[\]{}":,truefalsn0-9eE.\\ \n-]{0,80}"#, cut in 0usize..120) {
        let document = format!(r#"{{"passed": true, "checks": [{{"name": "é"}}], "x": {text}}}"#);
        let mut end = cut.min(document.len());
        while !document.is_char_boundary(end) {
            end -= 1;
        }
        for format in every_format() {
            let _ = read(&format, document.as_bytes());
            let _ = read(&format, &document.as_bytes()[..end]);
            let _ = read(&format, text.as_bytes());
        }
    }
}
