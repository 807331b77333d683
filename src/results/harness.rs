//! Reads what a harness's command leaves as the result of one attempt. Knows no files, and nothing of how the command
//! ended.

mod evals;

use serde_json::{Map, Value};

use super::json::{self, BadJson};
use crate::config::Format;
use crate::model::Reading;

/// A result that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Not JSON, or two verdicts.
    #[error(transparent)]
    Json(#[from] BadJson),
    /// `passed` is something else than true or false.
    #[error("`passed` is {0}: expected true or false")]
    Passed(String),
    /// `auto` found no format that it knows.
    #[error("the result's format cannot be told: {0}\nname it with `attempt.format`")]
    Unknown(String),
    /// `exit-code` has no document.
    #[error("with `format: exit-code` there is no document to read")]
    NoDocument,
}

/// Reads one attempt's result.
///
/// `auto` takes an object with a `passed` of true or false for a document of format `evals`, and nothing else for
/// anything. The verdict of `exit-code` is in no document: asking for it is an error.
///
/// # Errors
/// What the bytes are instead of a result.
pub fn read_attempt(format: Format, bytes: &[u8]) -> Result<Reading, ReadError> {
    match format {
        Format::Evals => evals::read(evals::parse(json::text(bytes)?)?),
        Format::Auto => recognise(json::text(bytes)?),
        Format::ExitCode => Err(ReadError::NoDocument),
    }
}

/// Reads a format that the content itself tells; the error says what was seen.
fn recognise(text: &str) -> Result<Reading, ReadError> {
    let start = text.trim_ascii_start();
    let seen = if start.starts_with('{') {
        let document = evals::parse(text)?;
        match document.get("passed") {
            Some(Value::Bool(_)) => return evals::read(document),
            Some(other) => format!("it is an object whose `passed` is {}", evals::shown(other)),
            None if document.is_empty() => "it is an empty object".to_owned(),
            None => format!("it is an object without `passed`, with {}", keys(&document)),
        }
    } else if start.starts_with('<') {
        match text.contains("<testsuite") {
            true => "it is JUnit XML, which is not built in yet".to_owned(),
            false => format!("it begins with `{}`", json::excerpt(text, 0)),
        }
    } else {
        format!("it is {}", evals::kind(&json::parse(text)?))
    };
    Err(ReadError::Unknown(seen))
}

/// The first keys of an object, for a message.
fn keys(document: &Map<String, Value>) -> String {
    const SHOWN: usize = 8;
    let mut shown: Vec<String> = document
        .keys()
        .take(SHOWN)
        .map(|key| format!("`{}`", json::excerpt(key, 0)))
        .collect();
    if document.len() > SHOWN {
        shown.push(format!("{} more", document.len() - SHOWN));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests;
