//! Format `agent-eval`: the `result.json` of one run of @vercel/agent-eval.

use serde::Deserialize;
use serde_json::Value;

use super::ReadError;
use super::value::{failure, lenient, not_negative, shown};
use crate::model::{Reading, ReadingVerdict};
use crate::results::json;

/// Begins the error of a run whose agent used its time up; whatever else timed out is not the agent's.
const OUT_OF_TIME: &str = "Eval timed out after ";

#[derive(Deserialize)]
struct Run {
    #[serde(default)]
    status: Value,
    error: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    duration: Option<f64>,
}

/// A run that was graded has no error: its tests ran, and passed or failed. One with an error never came to its tests,
/// because something broke, unless its time was up, which is the agent's doing.
pub(super) fn read(text: &str) -> Result<Reading, ReadError> {
    let run: Run = json::parse(text)?;
    let error = run.error.filter(|error| !error.trim().is_empty());
    let verdict = match (run.status.as_str(), &error) {
        (Some("passed"), _) => ReadingVerdict::Passed,
        (Some("failed"), Some(error)) if !error.starts_with(OUT_OF_TIME) => {
            ReadingVerdict::Errored { retry: true }
        }
        (Some("failed"), _) => ReadingVerdict::Failed,
        _ => {
            let what = format!(
                "`status` is {}: expected `passed` or `failed`",
                shown(&run.status)
            );
            return Err(ReadError::document("agent-eval", what));
        }
    };
    let (error, throttled) = failure(&error.unwrap_or_default());
    Ok(Reading {
        verdict,
        checks: Vec::new(),
        score: None,
        usage: None,
        seconds: run.duration.and_then(not_negative),
        error,
        throttled,
    })
}
