//! The machine formats: valid by their schemas, and saying what the run says.

use serde_json::Value;

use super::fixtures::{attempt, errored, pair, run_of};
use crate::model::{AttemptRecord, CancelReason, ErrorClass, Outcome, Summary, Verdict};
use crate::report;

/// A run with a pair of each kind, whose names try to be something else.
fn run() -> Summary {
    let passed = |index| attempt(index, Outcome::Passed, 1.5);
    let failed = |index| attempt(index, Outcome::Failed, 2.25);
    let mut not_run = pair(
        "opus",
        "not-run",
        vec![AttemptRecord::not_started(1, CancelReason::Run)],
    );
    not_run.verdict = Verdict::NotRun;
    let mut lost = pair(
        "opus",
        "lost",
        vec![
            failed(1),
            errored(2, ErrorClass::SandboxLost, "it went \u{7}away]]>\nbye"),
        ],
    );
    lost.firm = false;
    let mut pairs = vec![
        pair("opus", "passes", vec![passed(1), passed(2)]),
        pair(
            "<x> & \"y\"",
            "]]><failure/>",
            vec![failed(1), attempt(2, Outcome::TimedOut, 9.0)],
        ),
        pair("opus", "flaky", vec![failed(1), passed(2)]),
        pair(
            "opus",
            "throttled",
            vec![errored(1, ErrorClass::Throttled, "HTTP 429")],
        ),
        lost,
        not_run,
    ];
    pairs[0].labels.add("provider", "anthropic");
    pairs[2].representative = Some(2);
    run_of(pairs)
}

#[test]
fn junit_holds_nothing_that_xml_cannot_hold() {
    let mut summary = run();
    summary.run.suite = "a\u{fffe}b\u{ffff}c\u{1}d".into();
    let text = report::junit(&summary);
    assert!(text.contains("name=\"a\u{fffd}b\u{fffd}cd\""), "{text}");
}

#[test]
fn junit_has_a_case_for_each_pair_and_tells_failures_from_errors() {
    insta::assert_snapshot!(report::junit(&run()), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="all" tests="6" skipped="1" failures="2" errors="1" time="1032.400">
        <testsuite name="opus" tests="5" skipped="1" errors="1" failures="1" time="11.000">
            <testcase name="passes" classname="opus" time="3.000"/>
            <testcase name="flaky" classname="opus" time="3.750">
                <flakyFailure time="2.250" message="attempt 1 failed: the page loads" type="failed">
                    <stackTrace>failed: the page loads</stackTrace>
                </flakyFailure>
            </testcase>
            <testcase name="throttled" classname="opus" time="1.000">
                <error message="no attempt gave a result; the first throttled: HTTP 429" type="throttled">throttled: HTTP 429</error>
            </testcase>
            <testcase name="lost" classname="opus" time="3.250">
                <failure message="0 of 1 attempts passed, 2 planned, so that it is not firm; the first failed: the page loads" type="failed">failed: the page loads</failure>
                <rerunError time="1.000" message="attempt 2 sandbox_lost: it went away]]&gt;" type="sandbox_lost">
                    <stackTrace>sandbox_lost: it went away]]&gt;
    bye</stackTrace>
                </rerunError>
            </testcase>
            <testcase name="not-run" classname="opus" time="0.000">
                <skipped message="the run ended before it had a result"/>
            </testcase>
        </testsuite>
        <testsuite name="&lt;x&gt; &amp; &quot;y&quot;" tests="1" skipped="0" errors="0" failures="1" time="11.250">
            <testcase name="]]&gt;&lt;failure/&gt;" classname="&lt;x&gt; &amp; &quot;y&quot;" time="11.250">
                <failure message="0 of 2 attempts passed; the first failed: the page loads" type="failed">failed: the page loads</failure>
                <rerunFailure time="9.000" message="attempt 2 ran past its time limit" type="timed_out">
                    <stackTrace>ran past its time limit</stackTrace>
                </rerunFailure>
            </testcase>
        </testsuite>
    </testsuites>
    "#);
}

#[test]
fn ctrf_is_valid_by_its_published_schema() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ctrf/schema.json");
    let schema: Value = serde_json::from_slice(&fs_err::read(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for summary in [run(), run_of(Vec::new())] {
        let document: Value = serde_json::from_str(&report::ctrf(&summary).unwrap()).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&document)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{errors:#?}");
        let mut broken = document.clone();
        broken["results"]["tests"] = serde_json::json!([{ "name": "a", "status": "maybe", "duration": 1 }]);
        assert!(!validator.is_valid(&broken));
    }
}

#[test]
fn ctrf_says_what_became_of_each_pair() {
    let document: Value = serde_json::from_str(&report::ctrf(&run()).unwrap()).unwrap();
    let tests = document["results"]["tests"].as_array().unwrap();
    let told: Vec<String> = tests
        .iter()
        .map(|test| {
            let text = |key: &str| test[key].as_str().unwrap_or("-").to_owned();
            format!(
                "{} {} {} retries {} flaky {}: {}",
                text("testId"),
                text("status"),
                text("rawStatus"),
                test["retries"],
                test["flaky"],
                text("message")
            )
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    opus__passes passed pass retries 1 flaky false: -
    %3Cx%3E%20%26%20%22y%22__%5D%5D%3E%3Cfailure%2F%3E failed fail retries 1 flaky false: failed: the page loads
    opus__flaky passed pass retries 1 flaky true: -
    opus__throttled other error retries 0 flaky false: throttled: HTTP 429
    opus__lost failed fail retries 1 flaky false: failed: the page loads
    opus__not-run skipped not_run retries 0 flaky false: -
    ");
    insta::assert_snapshot!(document["results"]["summary"].to_string(), @r#"
    {"tests":6,"passed":2,"failed":2,"skipped":1,"pending":0,"other":1,"flaky":1,"start":1767225600000,"stop":1767226632400,"duration":1032400}
    "#);
}

#[test]
fn every_attempt_has_a_line_that_is_json() {
    let summary = run();
    let text = report::jsonl(&summary).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let attempts: usize = summary.pairs.iter().map(|pair| pair.attempts.len()).sum();
    assert_eq!(lines.len(), attempts);
    assert_eq!(
        (
            &lines[0]["experiment"],
            &lines[0]["labels"]["provider"][0],
            &lines[0]["outcome"]
        ),
        (&"opus".into(), &"anthropic".into(), &"passed".into())
    );
}
