//! Formats `json` and `jsonl`: any JSON, with its grade where the configuration says. What a document says besides
//! (checks, usage, duration, error) is read by the names of format `evals`.

use serde_json::{Map, Value};

use super::ReadError;
use super::evals;
use super::once::parse_once;
use super::value::{reaches, score, shown};
use crate::config::Grade;
use crate::model::{Reading, ReadingVerdict};
use crate::results::json;

/// More attempts than any pair has.
const MOST_ROWS: usize = 10_000;

/// Reads one document of any JSON.
pub(super) fn read(text: &str, at: &Grade) -> Result<Reading, ReadError> {
    grade(parse_once(text)?, at)
}

/// Reads JSON Lines, a row an attempt; lines with nothing in them are none.
pub(super) fn read_lines(text: &str, at: &Grade) -> Result<Vec<Reading>, ReadError> {
    let mut readings = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.trim().is_empty() {
            continue;
        }
        if readings.len() == MOST_ROWS {
            return Err(ReadError::document(
                "jsonl",
                format!("it has more than {MOST_ROWS} rows"),
            ));
        }
        let in_line = |problem: ReadError| ReadError::Line {
            number,
            problem: Box::new(problem),
        };
        readings.push(read(line, at).map_err(in_line)?);
    }
    match readings.is_empty() {
        true => Err(ReadError::document("jsonl", "it has no row")),
        false => Ok(readings),
    }
}

/// Whether every line that is not empty is an object which grades itself: what `auto` takes for JSON Lines.
pub(super) fn are_rows(text: &str) -> bool {
    let mut rows = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    rows.peek().is_some()
        && rows.all(|row| match json::parse::<Value>(row) {
            Ok(Value::Object(row)) => {
                row.get("passed").is_some_and(Value::is_boolean) || row.contains_key("score")
            }
            _ => false,
        })
}

fn grade(document: Value, at: &Grade) -> Result<Reading, ReadError> {
    let found = |pointer: &Option<String>| pointer.as_ref().and_then(|pointer| document.pointer(pointer));
    let passed = match found(&at.passed) {
        None => None,
        Some(Value::Bool(passed)) => Some(*passed),
        Some(other) => return Err(misplaced(at.passed.as_deref(), "true or false", other)),
    };
    let number = match found(&at.score) {
        None => None,
        Some(other) => Some(
            other
                .as_f64()
                .filter(|number| number.is_finite())
                .ok_or_else(|| misplaced(at.score.as_deref(), "a number", other))?,
        ),
    };
    let passed = match (passed, number) {
        (Some(passed), _) => passed,
        (None, Some(number)) => reaches(number, at.threshold),
        (None, None) => {
            let places: Vec<String> = [&at.passed, &at.score]
                .into_iter()
                .flatten()
                .map(|pointer| format!("`{pointer}`"))
                .collect();
            return Err(ReadError::document(
                "json",
                format!("there is nothing at {}", places.join(" and ")),
            ));
        }
    };
    let verdict = match passed {
        true => ReadingVerdict::Passed,
        false => ReadingVerdict::Failed,
    };
    let score = number.and_then(score);
    let document = match document {
        Value::Object(document) => document,
        _ => Map::new(),
    };
    Ok(evals::with_verdict(&document, verdict, score))
}

fn misplaced(pointer: Option<&str>, expected: &str, found: &Value) -> ReadError {
    let pointer = pointer.unwrap_or_default();
    ReadError::document(
        "json",
        format!("`{pointer}` is {}: expected {expected}", shown(found)),
    )
}
