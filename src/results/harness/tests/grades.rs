//! What a result of a harness is, where one value in it decides between a pass, a failure and an error.

use super::{evals, every_format, fixtures, only, problem, told};
use crate::config::{Format, Grade};
use crate::model::{ReadingVerdict, Usage};
use crate::results::harness::read;

const GAVE_NO_GRADE: ReadingVerdict = ReadingVerdict::Errored { retry: false };

#[test]
fn half_a_character_takes_no_grade_away() {
    for (format, name, bytes) in fixtures()
        .into_iter()
        .filter(|(_, name, _)| name.ends_with(".json"))
    {
        let text = String::from_utf8(bytes).unwrap();
        let with = text.replacen('{', r#"{"log": "cut: \uD83d", "\udc80": "🙂\ud83d\ude42", "#, 1);
        let whole: Vec<String> = read(&format, text.as_bytes())
            .unwrap()
            .attempts
            .iter()
            .map(told)
            .collect();
        for format in [format, Format::Auto] {
            let read = read(&format, with.as_bytes()).unwrap();
            assert_eq!(
                read.attempts.iter().map(told).collect::<Vec<_>>(),
                whole,
                "{name}"
            );
        }
    }
    let row = br#"{"score": 1, "passed": true, "log": "\ud83d\u0041", "checks": [{"name": "\\ud83d\ud83d\ud83d\ude42", "passed": true}]}"#;
    for format in every_format() {
        if matches!(
            format,
            Format::Auto | Format::Evals | Format::Json(_) | Format::Jsonl(_)
        ) {
            let reading = only(&format, row);
            assert_eq!(reading.verdict, ReadingVerdict::Passed, "{format:?}");
            assert_eq!(reading.checks[0].name, "\\ud83d\u{fffd}\u{1f642}", "{format:?}");
        }
    }
    let rows = [&row[..], b"\n", &row[..]].concat();
    assert_eq!(read(&Format::Auto, &rows).unwrap().attempts.len(), 2);
    assert_eq!(
        problem(Format::Evals, br#"{"log": "\ud83d", "passed": tru}"#),
        "line 1, column 32 (byte 31): expected ident, found `}`"
    );
    for broken in [
        r#"{"passed": true, "log": "\ud83"}"#,
        r#"{"passed": true, "log": "\udé"}"#,
        r#"{"passed": true, "log": "\ud83d\"#,
    ] {
        assert!(read(&Format::Evals, broken.as_bytes()).is_err(), "{broken}");
    }
}

#[test]
fn a_log_of_inspect_that_lacks_samples_has_no_grade() {
    let log = |results: &str, more: &str| {
        format!(
            r#"{{"status": "success", "eval": {{"task": "t", "model": "m"}}, "results": {results},
                "samples": [{{"id": 1, "scores": {{"s": {{"value": "C"}}}}{more}}}]}}"#
        )
    };
    let of_ten = log(r#"{"total_samples": 10}"#, "");
    let lacking = "it is no result of format `inspect`: 1 of its 10 samples are in it";
    assert_eq!(problem(Format::Inspect, of_ten.as_bytes()), lacking);
    let verdict = |log: String| only(&Format::Inspect, log.as_bytes()).verdict;
    let stopped = r#"{"total_samples": 10, "early_stopping": {"manager": "enough"}}"#;
    for whole in [
        "null",
        "{}",
        r#"{"total_samples": 1, "early_stopping": null}"#,
        stopped,
    ] {
        assert_eq!(verdict(log(whole, "")), ReadingVerdict::Passed, "{whole}");
    }
    let invalidated = log(
        "null",
        r#", "invalidation": {"author": "a", "reason": "the answer was in the prompt"}"#,
    );
    assert_eq!(verdict(invalidated), GAVE_NO_GRADE);
    let kept = log("null", r#", "invalidation": null"#);
    assert_eq!(verdict(kept), ReadingVerdict::Passed);
}

#[test]
fn two_grades_of_inspect_or_harbor_are_none() {
    let log = r#"{"status": "success", "eval": {"task": "t", "model": "m"}, "samples": [{"id": 1, "scores":
        {"a": {"value": "I"}, "a": {"value": "C"}}}]}"#;
    let trial = r#"{"trial_name": "t", "verifier_result": {"rewards": {"reward": 0.0, "reward": 1.0}}}"#;
    for (format, text, key) in [(Format::Inspect, log, "a"), (Format::Harbor, trial, "reward")] {
        let said = problem(format, text.as_bytes());
        assert!(said.ends_with(&format!("`{key}` is given twice")), "{said}");
    }
}

#[test]
fn weights_that_are_added_up_reach_the_threshold_that_they_are_meant_to() {
    let of = |threshold, score: f64| {
        let at = Grade {
            passed: None,
            score: Some("/score".to_owned()),
            threshold,
        };
        only(&Format::Json(at), format!(r#"{{"score": {score}}}"#).as_bytes()).verdict
    };
    assert_eq!(of(1.0, (0..10).map(|_| 0.1).sum()), ReadingVerdict::Passed);
    assert_eq!(of(0.8, 0.1 + 0.7), ReadingVerdict::Passed);
    assert_eq!(of(0.8, 0.799), ReadingVerdict::Failed);
}

#[test]
fn of_agent_evals_time_outs_only_its_own_limit_is_a_failure() {
    let verdict = |error: &str| {
        let run = format!(r#"{{"status": "failed", "error": "{error}", "duration": 600}}"#);
        only(&Format::AgentEval, run.as_bytes()).verdict
    };
    assert_eq!(verdict("Eval timed out after 600s"), ReadingVerdict::Failed);
    for error in [
        "API Error: Request timed out.",
        "npm install failed: Connection timed out",
        "Command timed out after 60000ms",
    ] {
        let broke = ReadingVerdict::Errored { retry: true };
        assert_eq!(verdict(error), broke, "{error}");
    }
}

#[test]
fn a_score_that_is_not_from_0_to_1_is_no_grade() {
    let sample = |value: &str| {
        format!(
            r#"{{"status": "success", "eval": {{"task": "t", "model": "m"}}, "samples":
                [{{"id": "s", "scores": {{"quality": {{"value": {value}}}}}}}]}}"#
        )
    };
    let trial =
        |rewards: &str| format!(r#"{{"trial_name": "t", "verifier_result": {{"rewards": {{{rewards}}}}}}}"#);
    let inspect = |value: &str| told(&only(&Format::Inspect, sample(value).as_bytes()));
    let harbor = |rewards: &str| told(&only(&Format::Harbor, trial(rewards).as_bytes()));
    insta::assert_snapshot!(
        [
            inspect("1"),
            inspect("0.5"),
            inspect("3"),
            inspect("-1"),
            // Weights that are added up: 0.2 + 0.4 + 0.3 + 0.1 and 0.1 + 0.2 + 0.7.
            inspect("1.0000000000000002"),
            inspect("0.9999999999999999"),
            inspect(r#""7""#),
            inspect(r#"{"style": 1, "depth": 8}"#),
            harbor(r#""reward": 1"#),
            harbor(r#""reward": 1.0000000000000002"#),
            harbor(r#""reward": 3"#),
            // What is measured beside the reward is no grade.
            harbor(r#""reward": 1, "seconds": 12.5"#),
            harbor(r#""correct": 1, "style": 0.5"#),
            harbor(r#""correct": 1, "quality": 4"#),
        ]
        .join("\n"),
        @r"
    Passed [+quality] 1
    Failed [-quality] 0.5
    Errored { retry: false } [] ! sample `s`: `quality` is 3: expected 0 to 1, where 1 passes:
    Errored { retry: false } [] ! sample `s`: `quality` is -1: expected 0 to 1, where 1 passes
    Passed [+quality] 1
    Passed [+quality] 1
    Errored { retry: false } [] ! sample `s`: `quality` is 7: expected 0 to 1, where 1 passes:
    Errored { retry: false } [] ! sample `s`: `quality: depth` is 8: expected 0 to 1, where 1 
    Passed [+reward] 1
    Passed [+reward] 1
    Errored { retry: false } [] ! `reward` is 3: expected 0 to 1, where 1 passes: let the veri
    Passed [+reward] 1
    Failed [+correct -style] 0.5
    Errored { retry: false } [+correct] ! `quality` is 4: expected 0 to 1, where 1 passes: let the ver
    "
    );
    let reading = only(&Format::Harbor, trial(r#""reward": 3"#).as_bytes());
    assert_eq!(
        (reading.verdict, reading.error.as_deref()),
        (
            GAVE_NO_GRADE,
            Some(
                "`reward` is 3: expected 0 to 1, where 1 passes: let the verifier divide by the highest value"
            )
        )
    );
}

#[test]
fn what_the_parts_of_an_attempt_used_is_added_up_as_far_as_they_tell() {
    let usage = |models: &str| {
        let text = format!(r#"{{"passed": true, "usage": {models}}}"#);
        let usage = evals(&text).usage.unwrap_or_default();
        (usage.input_tokens, usage.output_tokens, usage.cost_usd)
    };
    assert_eq!(
        usage(r#"[{"inputTokens": 5, "costUsd": 0.25}, {"inputTokens": 7, "costUsd": 0.5}]"#),
        (Some(12), None, Some(0.75))
    );
    // A budget has to count what is known to be spent.
    assert_eq!(
        usage(r#"[{"inputTokens": 5, "costUsd": 0.25}, {"inputTokens": 7}]"#),
        (Some(12), None, Some(0.25))
    );
    let log = r#"{"status": "success", "eval": {"task": "t", "model": "m"}, "samples": [{"id": 1,
        "scores": {"s": {"value": "C"}}, "model_usage": {
            "priced": {"input_tokens": 10, "output_tokens": 2, "total_cost": 0.5},
            "local": {"input_tokens": 3, "output_tokens": 1}}}]}"#;
    let trial = r#"{"trial_name": "t", "verifier_result": {"rewards": {"reward": 1}}, "step_results": [
        {"agent_result": {"n_input_tokens": 10, "n_output_tokens": 2, "cost_usd": 0.5}},
        {"agent_result": {"n_input_tokens": 3, "n_output_tokens": 1}}]}"#;
    for (format, text) in [(Format::Inspect, log), (Format::Harbor, trial)] {
        let whole = Usage {
            input_tokens: Some(13),
            output_tokens: Some(3),
            cost_usd: Some(0.5),
        };
        assert_eq!(only(&format, text.as_bytes()).usage, Some(whole), "{format:?}");
    }
}

#[test]
fn an_error_is_read_to_its_end() {
    let command = "x".repeat(5_000);
    let trial = format!(
        r#"{{"trial_name": "t", "exception_info": {{"exception_type": "SandboxError",
            "exception_message": "{command} stderr: ECONNRESET"}}}}"#
    );
    let report = format!(
        "<testsuite><testcase name='a'><error>{command}{command}{command} ECONNRESET</error></testcase></testsuite>"
    );
    let run = format!(r#"{{"status": "failed", "error": "{command} ECONNRESET", "duration": 1}}"#);
    for (format, text) in [
        (Format::Harbor, trial),
        (Format::Junit, report),
        (Format::AgentEval, run),
    ] {
        let reading = only(&format, text.as_bytes());
        assert!(reading.error.unwrap().ends_with("ECONNRESET"), "{format:?}");
        let notes = reading.checks.iter().filter_map(|check| check.notes.as_ref());
        assert!(
            notes.into_iter().all(|note| note.chars().count() <= 2_001),
            "{format:?}"
        );
    }
}

#[test]
fn a_report_that_is_no_text_is_said_to_be_no_xml() {
    assert_eq!(
        problem(Format::Junit, b" \n"),
        "it is no result of format `junit`: it is empty: expected XML"
    );
    assert_eq!(
        problem(Format::Junit, b"<testsuite name='caf\xe9'/>"),
        "it is no result of format `junit`: byte 20 is not UTF-8: expected XML"
    );
}
