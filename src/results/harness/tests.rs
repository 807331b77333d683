use proptest::prelude::*;

use super::{ReadError, read_attempt};
use crate::config::Format;
use crate::model::{Check, Reading, ReadingVerdict, Usage};

fn evals(text: &str) -> Reading {
    read_attempt(Format::Evals, text.as_bytes()).unwrap()
}

fn problem(format: Format, bytes: &[u8]) -> String {
    read_attempt(format, bytes).unwrap_err().to_string()
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
}

#[test]
fn what_is_not_known_is_none_and_not_zero() {
    let reading =
        evals(r#"{"passed": true, "usage": {"inputTokens": -1, "costUsd": "much"}, "durationMs": null}"#);
    assert_eq!(
        (reading.usage, reading.seconds, reading.error),
        (None, None, None)
    );
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
        read_attempt(Format::Auto, br#"{"passed": true, "x": 1}"#)
            .unwrap()
            .verdict,
        ReadingVerdict::Passed
    );
    let seen: Vec<String> = [
        &br#"<?xml version="1.0"?><testsuites/>"#[..],
        b"<html>",
        b"[{\"passed\": true}]",
        b"{}",
        br#"{"status": "ok", "reward": 1}"#,
        br#"{"passed": "true"}"#,
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
    the result's format cannot be told: it is JUnit XML, which is not built in yet
    the result's format cannot be told: it begins with `<html>`
    the result's format cannot be told: it is an array
    the result's format cannot be told: it is an empty object
    the result's format cannot be told: it is an object without `passed`, with `status`, `reward`
    the result's format cannot be told: it is an object whose `passed` is the text `true`
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
    assert_eq!(read_attempt(Format::ExitCode, b"{}"), Err(ReadError::NoDocument));
}

#[test]
fn deep_nesting_is_an_error_and_not_a_crash() {
    let deep = format!(r#"{{"passed": true, "x": {}"#, "[".repeat(100_000));
    assert!(problem(Format::Evals, deep.as_bytes()).contains("recursion limit exceeded"));
    assert!(read_attempt(Format::Auto, "[".repeat(100_000).as_bytes()).is_err());
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for format in [Format::Auto, Format::Evals, Format::ExitCode] {
            let _ = read_attempt(format, &bytes);
        }
    }

    #[test]
    fn no_text_that_is_nearly_json_panics(text in r#"[\[\]{}":,truefalsn0-9eE.\\ \n-]{0,80}"#, cut in 0usize..120) {
        let document = format!(r#"{{"passed": true, "checks": [{{"name": "é"}}], "x": {text}}}"#);
        let mut end = cut.min(document.len());
        while !document.is_char_boundary(end) {
            end -= 1;
        }
        for format in [Format::Auto, Format::Evals] {
            let _ = read_attempt(format, document.as_bytes());
            let _ = read_attempt(format, &document.as_bytes()[..end]);
            let _ = read_attempt(format, text.as_bytes());
        }
    }
}
