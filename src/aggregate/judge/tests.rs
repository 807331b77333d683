use std::time::Duration;

use super::{CommandEnd, Course, ExitRules, Failure, Found, Judgement, Ran, Rules, judge};
use crate::model::{
    AttemptError, CancelReason, ErrorClass, OnTimeout, Outcome, Phase, Reading, ReadingVerdict,
};

const LIMIT: CommandEnd = CommandEnd::KilledAtLimit(Duration::from_secs(1020));
const ERROR: ReadingVerdict = ReadingVerdict::Errored { retry: true };

fn reading(verdict: ReadingVerdict) -> Reading {
    Reading {
        verdict,
        checks: Vec::new(),
        score: None,
        usage: None,
        seconds: None,
        error: None,
        throttled: false,
    }
}

fn reading_with_error(verdict: ReadingVerdict, error: &str) -> Reading {
    Reading {
        error: Some(error.to_owned()),
        ..reading(verdict)
    }
}

fn infra() -> Rules {
    Rules {
        infra_exit: vec![75],
        infra_error: vec![regex::Regex::new("(?i)rate.?limit|ECONNRESET").unwrap()],
        ..Rules::default()
    }
}

fn exit_code() -> Rules {
    Rules {
        exit: Some(ExitRules {
            pass: vec![0],
            fail: vec![1],
        }),
        ..infra()
    }
}

fn ran(end: CommandEnd, result: Found<'_>, output_tail: &str, rules: &Rules) -> Judgement {
    let ran = Ran {
        end,
        result,
        full_disk: None,
        result_path: "results/a/b.json",
        output_tail,
    };
    judge(&Course::Ran(ran), rules)
}

fn with_reading(end: CommandEnd, reading: &Reading, rules: &Rules) -> Judgement {
    ran(end, Found::Reading(reading), "", rules)
}

fn by_code(code: i32, rules: &Rules) -> Judgement {
    ran(CommandEnd::Code(code), Found::Nothing, "", rules)
}

#[track_caller]
fn is_graded(judgement: &Judgement, outcome: Outcome) {
    assert_eq!(judgement.outcome, outcome);
    assert_eq!(judgement.error, None);
    assert!(!judgement.retry);
}

#[track_caller]
fn is_errored(judgement: Judgement, class: ErrorClass, retry: bool) -> AttemptError {
    assert_eq!(judgement.outcome, Outcome::Errored);
    assert_eq!(judgement.retry, retry);
    assert!(!judgement.sandbox_is_usable());
    assert_eq!(judgement.throttled(), class == ErrorClass::Throttled);
    let error = judgement.error.unwrap();
    assert_eq!(error.class, class);
    error
}

#[test]
fn a_cancelled_try_is_cancelled_with_its_reason() {
    let judgement = judge(&Course::Cancelled(CancelReason::Decided), &Rules::default());
    is_graded(&judgement, Outcome::Cancelled);
    assert_eq!(judgement.reason, Some(CancelReason::Decided));
    assert!(!judgement.sandbox_is_usable());
}

#[test]
fn a_failure_around_the_command_is_errored_with_its_class_and_evidence() {
    let failure = Failure {
        class: ErrorClass::Collect,
        phase: Phase::Collect,
        message: "cannot read the archive".to_owned(),
        end: Some(CommandEnd::Code(1)),
    };
    let error = is_errored(
        judge(&Course::Failed(failure), &exit_code()),
        ErrorClass::Collect,
        true,
    );
    assert_eq!(error.phase, Phase::Collect);
    assert_eq!(error.message, "cannot read the archive");
    assert_eq!(error.exit_code, Some(1));
}

#[test]
fn a_pass_is_never_taken_away() {
    let passed = reading_with_error(ReadingVerdict::Passed, "one rate limit on the way");
    for end in [
        CommandEnd::Code(0),
        CommandEnd::Code(1),
        CommandEnd::Code(75),
        CommandEnd::Signal(9),
        LIMIT,
    ] {
        for rules in [infra(), exit_code()] {
            let judgement = with_reading(end, &passed, &rules);
            is_graded(&judgement, Outcome::Passed);
            assert!(judgement.sandbox_is_usable());
        }
    }
}

#[test]
fn a_failure_is_a_failure_and_not_tried_again() {
    let failed = reading_with_error(ReadingVerdict::Failed, "assertion failed");
    for end in [
        CommandEnd::Code(0),
        CommandEnd::Code(1),
        CommandEnd::Signal(9),
        LIMIT,
    ] {
        let judgement = with_reading(end, &failed, &infra());
        is_graded(&judgement, Outcome::Failed);
        assert!(judgement.sandbox_is_usable());
    }
}

#[test]
fn a_failure_that_infra_matches_is_errored() {
    let failed = reading(ReadingVerdict::Failed);
    let error = is_errored(
        with_reading(CommandEnd::Code(75), &failed, &infra()),
        ErrorClass::Infra,
        true,
    );
    assert_eq!(error.message, "exit 75 is in `infra.exit`");
    let failed = reading_with_error(ReadingVerdict::Failed, "read ECONNRESET");
    let error = is_errored(
        with_reading(CommandEnd::Code(1), &failed, &infra()),
        ErrorClass::Infra,
        true,
    );
    assert_eq!(
        error.message,
        "the result's error matches `(?i)rate.?limit|ECONNRESET` of `infra.error`: read ECONNRESET"
    );
    let failed = reading_with_error(ReadingVerdict::Failed, "Rate limit reached");
    is_errored(
        with_reading(CommandEnd::Code(1), &failed, &infra()),
        ErrorClass::Throttled,
        true,
    );
}

#[test]
fn infra_sees_the_end_of_a_long_error_of_which_the_message_keeps_both_ends() {
    let text = format!("cannot run `{}é`: read ECONNRESET", "x".repeat(5_000_000));
    for verdict in [ReadingVerdict::Failed, ERROR] {
        let failed = reading_with_error(verdict, &text);
        let error = is_errored(
            with_reading(CommandEnd::Code(1), &failed, &infra()),
            ErrorClass::Infra,
            true,
        );
        let message = error.message;
        let begins =
            "the result's error matches `(?i)rate.?limit|ECONNRESET` of `infra.error`: cannot run `xxx";
        assert!(message.starts_with(begins), "{message}");
        assert!(message.ends_with("xxé`: read ECONNRESET"), "{message}");
        assert!(message.chars().count() < 2_200, "{}", message.len());
    }
    let whole = "x".repeat(2_000);
    let failed = reading_with_error(ERROR, &whole);
    let judgement = with_reading(CommandEnd::Code(1), &failed, &infra());
    assert!(judgement.error.unwrap().message.ends_with(&whole));
}

#[test]
fn a_failure_whose_error_text_looks_like_throttling_stays_a_failure_unless_infra_says_so() {
    let failed = Reading {
        throttled: true,
        ..reading_with_error(ReadingVerdict::Failed, "HTTP 429")
    };
    is_graded(
        &with_reading(CommandEnd::Code(1), &failed, &Rules::default()),
        Outcome::Failed,
    );
}

#[test]
fn a_result_that_says_something_broke_is_errored() {
    let broken = reading_with_error(ERROR, "grader crashed");
    let error = is_errored(
        with_reading(CommandEnd::Code(0), &broken, &Rules::default()),
        ErrorClass::Infra,
        true,
    );
    assert_eq!(
        error.message,
        "the result says that something broke, so there is no grade: grader crashed"
    );
    let throttled = Reading {
        throttled: true,
        ..reading(ERROR)
    };
    is_errored(
        with_reading(CommandEnd::Code(0), &throttled, &Rules::default()),
        ErrorClass::Throttled,
        true,
    );
    is_errored(
        with_reading(LIMIT, &broken, &Rules::default()),
        ErrorClass::Infra,
        true,
    );
}

#[test]
fn skipped_tests_are_errored_without_another_try() {
    let skipped = reading_with_error(ReadingVerdict::Errored { retry: false }, "no test was executed");
    is_errored(
        with_reading(CommandEnd::Code(0), &skipped, &infra()),
        ErrorClass::Infra,
        false,
    );
    // The exit code says why nothing was executed, and a fresh sandbox may do better.
    is_errored(
        with_reading(CommandEnd::Code(75), &skipped, &infra()),
        ErrorClass::Infra,
        true,
    );
}

#[test]
fn exit_codes_decide_for_the_exit_code_format() {
    is_graded(&by_code(0, &exit_code()), Outcome::Passed);
    is_graded(&by_code(1, &exit_code()), Outcome::Failed);
    is_errored(by_code(75, &exit_code()), ErrorClass::Infra, true);
    let error = is_errored(by_code(127, &exit_code()), ErrorClass::ExitCode, true);
    assert_eq!(
        error.message,
        "exit 127 is neither in `exit.pass` nor in `exit.fail`"
    );
    assert_eq!(error.exit_code, Some(127));
    let error = is_errored(
        ran(CommandEnd::Signal(11), Found::Nothing, "", &exit_code()),
        ErrorClass::ExitCode,
        true,
    );
    assert_eq!(error.signal, Some(11));
}

#[test]
fn an_exit_code_that_is_in_several_lists_passes_first_and_fails_last() {
    let rules = Rules {
        exit: Some(ExitRules {
            pass: vec![0, 75],
            fail: vec![1, 76],
        }),
        infra_exit: vec![75, 76],
        ..Rules::default()
    };
    is_graded(&by_code(75, &rules), Outcome::Passed);
    is_errored(by_code(76, &rules), ErrorClass::Infra, true);
}

#[test]
fn a_command_killed_at_its_limit_timed_out() {
    for rules in [infra(), exit_code()] {
        let judgement = ran(LIMIT, Found::Nothing, "HTTP 429", &rules);
        is_graded(&judgement, Outcome::TimedOut);
        assert!(!judgement.sandbox_is_usable());
        // Half a file is what a killed command leaves.
        is_graded(
            &ran(LIMIT, Found::Unreadable("ends early"), "", &rules),
            Outcome::TimedOut,
        );
    }
}

#[test]
fn a_time_limit_is_an_error_where_the_configuration_says_so_and_not_tried_again() {
    let rules = Rules {
        on_timeout: OnTimeout::Error,
        ..Rules::default()
    };
    let error = is_errored(
        ran(LIMIT, Found::Nothing, "still thinking\n", &rules),
        ErrorClass::TimedOut,
        false,
    );
    assert_eq!(
        error.message,
        "killed after 1020 s (timeout + grace) without a result\nstill thinking"
    );
}

#[test]
fn a_harness_that_keeps_the_time_itself_and_is_killed_hung() {
    for on_timeout in [OnTimeout::Fail, OnTimeout::Error] {
        let rules = Rules {
            owns_time: true,
            on_timeout,
            ..exit_code()
        };
        is_errored(
            ran(LIMIT, Found::Nothing, "HTTP 429", &rules),
            ErrorClass::Hung,
            true,
        );
    }
}

#[test]
fn no_result_is_errored_with_the_last_lines() {
    let output = (1..=30).map(|line| format!("line {line}\n")).collect::<String>();
    let judgement = ran(CommandEnd::Code(1), Found::Nothing, &output, &Rules::default());
    let error = is_errored(judgement, ErrorClass::NoResult, true);
    let lines: Vec<&str> = error.message.lines().collect();
    assert_eq!(lines[0], "exit 1, no result at `results/a/b.json`");
    assert_eq!(
        lines[1..],
        (21..=30).map(|n| format!("line {n}")).collect::<Vec<_>>()
    );
    let judgement = ran(CommandEnd::Signal(9), Found::Nothing, "", &Rules::default());
    let error = is_errored(judgement, ErrorClass::NoResult, true);
    assert_eq!(error.message, "signal 9, no result at `results/a/b.json`");
    assert_eq!((error.exit_code, error.signal), (None, Some(9)));
}

#[test]
fn exit_0_or_an_infra_code_without_a_result_is_no_result() {
    for code in [0, 75] {
        is_errored(by_code(code, &infra()), ErrorClass::NoResult, true);
    }
}

#[test]
fn an_invalid_result_is_errored_and_says_why() {
    let found = Found::Unreadable("`passed` is missing");
    let judgement = ran(CommandEnd::Code(0), found, "", &Rules::default());
    let error = is_errored(judgement, ErrorClass::InvalidResult, true);
    assert_eq!(
        error.message,
        "exit 0, cannot read the result at `results/a/b.json`: `passed` is missing"
    );
}

#[test]
fn throttling_in_the_output_of_a_command_without_a_result_names_the_class() {
    let output = "calling the model\nError: 429 Too Many Requests\n";
    for (found, rules) in [
        (Found::Nothing, Rules::default()),
        (Found::Unreadable("empty"), Rules::default()),
        (Found::Nothing, exit_code()),
    ] {
        let judgement = ran(CommandEnd::Code(2), found, output, &rules);
        let error = is_errored(judgement, ErrorClass::Throttled, true);
        assert!(error.message.ends_with("Error: 429 Too Many Requests"));
    }
}

#[test]
fn a_progress_bar_and_endless_lines_do_not_fill_the_message() {
    let output = format!("10 %\r50 %\r90 %\r\n\n   \n{}\n", "x".repeat(5000));
    let judgement = ran(CommandEnd::Code(1), Found::Nothing, &output, &Rules::default());
    let error = is_errored(judgement, ErrorClass::NoResult, true);
    let lines: Vec<&str> = error.message.lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[1], "90 %");
    assert_eq!(lines[2].len(), 300);
}
