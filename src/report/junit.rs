//! JUnit XML with Surefire's additions for runs that were tried again: what test reporters of CI systems read.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestRerun, TestSuite};

use super::attempts::why;
use crate::model::{AttemptRecord, ExperimentId, Outcome, PairSummary, Summary, Verdict};

/// A suite for each experiment, in the order of their first pairs; a test case for each pair.
pub(super) fn render(summary: &Summary) -> String {
    let mut report = Report::new(&*summary.run.suite);
    report.set_time(seconds(summary.run.wall_seconds));
    let mut experiments: Vec<&ExperimentId> = Vec::new();
    for pair in &summary.pairs {
        if !experiments.contains(&&pair.experiment) {
            experiments.push(&pair.experiment);
        }
    }
    for experiment in experiments {
        let pairs = || summary.pairs.iter().filter(|pair| pair.experiment == *experiment);
        let mut suite = TestSuite::new(experiment.as_str());
        suite.set_time(seconds(pairs().fold(0.0, |sum, pair| sum + pair.seconds)));
        suite.add_test_cases(pairs().map(case));
        report.add_test_suite(suite);
    }
    let text = report.to_string();
    let text = text.expect("text is written into memory, and its control characters are left out of it");
    // Two characters more that XML cannot hold.
    text.replace(['\u{FFFE}', '\u{FFFF}'], "\u{FFFD}")
}

fn case(pair: &PairSummary) -> TestCase {
    let mut unsuccessful = pair.attempts.iter().filter(|attempt| kind(attempt).is_some());
    let graded = match pair.graded_attempts {
        0 => "no attempt gave a result".to_owned(),
        graded => format!("{} of {graded} attempts passed", pair.passed_attempts),
    };
    let status = match pair.verdict {
        Verdict::Pass => {
            let mut status = TestCaseStatus::success();
            status.add_reruns(unsuccessful.filter_map(rerun));
            status
        }
        Verdict::NotRun => {
            let mut status = TestCaseStatus::skipped();
            status.set_message("the run ended before it had a result");
            status
        }
        Verdict::Fail | Verdict::Error => {
            let (of_verdict, outcome) = match pair.verdict {
                Verdict::Fail => (NonSuccessKind::Failure, Outcome::Failed),
                _ => (NonSuccessKind::Error, Outcome::Errored),
            };
            let mut status = TestCaseStatus::non_success(of_verdict);
            // The first of its kind stands for the pair, the others were tried after or beside it.
            let attempts: Vec<&AttemptRecord> = unsuccessful.by_ref().collect();
            let first = attempts
                .iter()
                .position(|attempt| kind(attempt) == Some(of_verdict));
            let words = first.and_then(|first| why(attempts[first]));
            status.set_message(match (&words, pair.firm || pair.verdict == Verdict::Error) {
                (Some(words), true) => format!("{graded}; the first {}", first_line(words)),
                (Some(words), false) => format!(
                    "{graded}, {} planned, so that it is not firm; the first {}",
                    pair.planned_attempts,
                    first_line(words)
                ),
                (None, _) => graded.clone(),
            });
            status.set_type(first.map_or_else(|| outcome.to_string(), |first| cause(attempts[first])));
            status.set_description(words.unwrap_or(graded));
            let others = attempts.iter().enumerate().filter(|(at, _)| Some(*at) != first);
            status.add_reruns(others.filter_map(|(_, attempt)| rerun(attempt)));
            status
        }
    };
    let mut case = TestCase::new(pair.eval.as_str(), status);
    case.set_classname(pair.experiment.as_str());
    case.set_time(seconds(pair.seconds));
    case
}

/// A failure is the agent's, an error is not; an attempt that passed or never came to its end is neither.
fn kind(attempt: &AttemptRecord) -> Option<NonSuccessKind> {
    match attempt.outcome {
        Outcome::Failed | Outcome::TimedOut => Some(NonSuccessKind::Failure),
        Outcome::Errored => Some(NonSuccessKind::Error),
        Outcome::Passed | Outcome::Cancelled => None,
    }
}

fn rerun(attempt: &AttemptRecord) -> Option<TestRerun> {
    let mut rerun = TestRerun::new(kind(attempt)?);
    let words = why(attempt)?;
    rerun.set_time(seconds(attempt.seconds));
    rerun.set_message(format!("attempt {} {}", attempt.index, first_line(&words)));
    rerun.set_type(cause(attempt));
    rerun.set_stack_trace(words);
    Some(rerun)
}

/// The class of an attempt's error, or else how it ended: what Surefire has an exception's name for.
fn cause(attempt: &AttemptRecord) -> String {
    match &attempt.error {
        Some(error) => error.class.to_string(),
        None => attempt.outcome.to_string(),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// A number that is no time at all, which a summary from elsewhere may have, is none.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
