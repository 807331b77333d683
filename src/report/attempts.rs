//! Attempts one by one: each as a line of JSON, and what it came to in a sentence.

use serde::Serialize;

use crate::model::{AttemptRecord, Labels, Outcome, Summary, Verdict};

/// A line of the JSON Lines.
#[derive(Serialize)]
struct Line<'a> {
    experiment: &'a str,
    eval: &'a str,
    labels: &'a Labels,
    /// Of the pair.
    verdict: Verdict,
    #[serde(flatten)]
    attempt: &'a AttemptRecord,
}

pub(super) fn render(summary: &Summary) -> Result<String, serde_json::Error> {
    let mut lines = String::new();
    for pair in &summary.pairs {
        for attempt in &pair.attempts {
            lines.push_str(&serde_json::to_string(&Line {
                experiment: pair.experiment.as_str(),
                eval: pair.eval.as_str(),
                labels: &pair.labels,
                verdict: pair.verdict,
                attempt,
            })?);
            lines.push('\n');
        }
    }
    Ok(lines)
}

/// Why an attempt did not pass, in its first words; `None` where it did.
pub(super) fn why(attempt: &AttemptRecord) -> Option<String> {
    Some(match attempt.outcome {
        Outcome::Passed => return None,
        Outcome::Failed => match attempt.checks_failed.as_slice() {
            [] => "failed".to_owned(),
            [check] => format!("failed: {check}"),
            [check, rest @ ..] => format!("failed: {check} and {} more", rest.len()),
        },
        Outcome::TimedOut => "ran past its time limit".to_owned(),
        Outcome::Errored => match &attempt.error {
            Some(error) => format!("{}: {}", error.class, error.message),
            None => "errored".to_owned(),
        },
        Outcome::Cancelled => "was cancelled".to_owned(),
    })
}
