//! CTRF, the Common Test Report Format: <https://ctrf.io>.

use std::collections::BTreeMap;

use serde::Serialize;

use super::attempts::why;
use crate::model::{AttemptRecord, Outcome, PairSummary, Summary, Verdict};

/// The version of the format that is written here.
const VERSION: &str = "0.0.0";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Document<'a> {
    report_format: &'static str,
    spec_version: &'static str,
    run_id: &'a str,
    timestamp: String,
    generated_by: &'a str,
    results: Results<'a>,
}

#[derive(Serialize)]
struct Results<'a> {
    tool: Tool<'a>,
    summary: Counts,
    tests: Vec<Test<'a>>,
    environment: Environment<'a>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    version: &'a str,
}

#[derive(Serialize)]
struct Counts {
    tests: usize,
    passed: usize,
    failed: usize,
    skipped: usize,
    pending: usize,
    other: usize,
    flaky: usize,
    /// Milliseconds since the epoch.
    start: i64,
    stop: i64,
    duration: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Test<'a> {
    test_id: String,
    name: &'a str,
    status: Status,
    /// Milliseconds.
    duration: i64,
    suite: [&'a str; 2],
    raw_status: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<&'a str, &'a Vec<String>>,
    retries: usize,
    flaky: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retry_attempts: Vec<Attempt>,
}

#[derive(Serialize)]
struct Attempt {
    attempt: u32,
    status: Status,
    duration: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Environment<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    build_url: Option<&'a str>,
}

#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Passed,
    Failed,
    Skipped,
    Other,
}

/// A test for each pair. What never had a grade is neither passed nor failed: `other`, and `skipped` where it was not
/// run to its end.
pub(super) fn of_summary(summary: &Summary) -> Document<'_> {
    let run = &summary.run;
    let start = run.started_at.as_millisecond();
    let duration = milliseconds(run.wall_seconds);
    let tests: Vec<Test<'_>> = summary.pairs.iter().map(|pair| test(pair, &run.suite)).collect();
    let count = |status| tests.iter().filter(|test| test.status == status).count();
    let stop = start.saturating_add(duration);
    Document {
        report_format: "CTRF",
        spec_version: VERSION,
        run_id: &run.id,
        timestamp: jiff::Timestamp::from_millisecond(stop)
            .unwrap_or(run.started_at)
            .to_string(),
        generated_by: &summary.tool.name,
        results: Results {
            tool: Tool {
                name: &summary.tool.name,
                version: &summary.tool.version,
            },
            summary: Counts {
                tests: tests.len(),
                passed: count(Status::Passed),
                failed: count(Status::Failed),
                skipped: count(Status::Skipped),
                pending: 0,
                other: count(Status::Other),
                flaky: tests.iter().filter(|test| test.flaky).count(),
                start,
                stop,
                duration,
            },
            tests,
            environment: Environment {
                commit: run.commit.as_deref(),
                build_url: run.url.as_deref(),
            },
        },
    }
}

fn test<'a>(pair: &'a PairSummary, suite: &'a str) -> Test<'a> {
    let started = pair.attempts.iter().filter(|attempt| attempt.tries > 0);
    let mut started: Vec<&AttemptRecord> = started.collect();
    // The attempt that stands for the pair comes last: the format shows that one, and the others as those before it.
    let standing = started
        .iter()
        .position(|attempt| Some(attempt.index) == pair.representative);
    let standing = match standing {
        Some(at) => Some(started.remove(at)),
        None => started.pop(),
    };
    let labels = pair.labels.0.iter();
    Test {
        test_id: pair.id().directory(),
        name: pair.eval.as_str(),
        status: match pair.verdict {
            Verdict::Pass => Status::Passed,
            Verdict::Fail => Status::Failed,
            Verdict::Error => Status::Other,
            Verdict::NotRun => Status::Skipped,
        },
        duration: milliseconds(pair.seconds),
        suite: [suite, pair.experiment.as_str()],
        raw_status: pair.verdict,
        message: match pair.verdict {
            Verdict::Pass => None,
            _ => standing.and_then(why),
        },
        labels: labels
            .filter(|(_, values)| !values.is_empty())
            .map(|(name, values)| (&**name, values))
            .collect(),
        retries: started.len(),
        flaky: pair.verdict == Verdict::Pass && pair.passed_attempts < pair.graded_attempts,
        retry_attempts: started.into_iter().map(attempt).collect(),
    }
}

fn attempt(record: &AttemptRecord) -> Attempt {
    Attempt {
        attempt: record.index.max(1),
        status: match record.outcome {
            Outcome::Passed => Status::Passed,
            Outcome::Failed | Outcome::TimedOut => Status::Failed,
            Outcome::Errored => Status::Other,
            Outcome::Cancelled => Status::Skipped,
        },
        duration: milliseconds(record.seconds),
        message: why(record),
    }
}

/// A number that is no time at all, which a summary from elsewhere may have, saturates.
fn milliseconds(seconds: f64) -> i64 {
    ((seconds * 1000.0).round() as i64).max(0)
}
