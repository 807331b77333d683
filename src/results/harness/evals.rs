//! Format `evals`: one JSON object an attempt, `{experiment?, eval?, passed, checks?, usage?, durationMs?, …}`.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::ReadError;
use super::value::{amount, known, shown, total};
use crate::model::{Check, Reading, ReadingVerdict, Usage};
use crate::results::json::{self, BadJson};

const INPUT_TOKENS: [&str; 4] = ["inputTokens", "input_tokens", "promptTokens", "prompt_tokens"];
const OUTPUT_TOKENS: [&str; 4] = [
    "outputTokens",
    "output_tokens",
    "completionTokens",
    "completion_tokens",
];
const COST: [&str; 5] = ["costUsd", "costUSD", "cost_usd", "totalCostUsd", "total_cost_usd"];
/// Names of a duration, with how many of its units are a second.
const DURATIONS: [(&str, f64); 4] = [
    ("durationMs", 1000.0),
    ("duration_ms", 1000.0),
    ("durationSeconds", 1.0),
    ("duration_seconds", 1.0),
];

/// The document of a result, which is an object.
pub(super) fn parse(text: &str) -> Result<Map<String, Value>, BadJson> {
    json::parse::<Document>(text).map(|document| document.0)
}

/// `passed` alone decides: absent is failed, and anything but true or false is no result. What else cannot be read is
/// left out of the reading, for a grade is never lost to the words around it.
pub(super) fn read(document: Map<String, Value>) -> Result<Reading, ReadError> {
    let verdict = match document.get("passed") {
        Some(Value::Bool(true)) => ReadingVerdict::Passed,
        Some(Value::Bool(false)) | None => ReadingVerdict::Failed,
        Some(other) => return Err(ReadError::Passed(shown(other))),
    };
    Ok(with_verdict(&document, verdict, None))
}

/// A reading of a document whose verdict is known; what it says besides is read by the names that this format has.
pub(super) fn with_verdict(
    document: &Map<String, Value>,
    verdict: ReadingVerdict,
    score: Option<f64>,
) -> Reading {
    let throttled = document.get("throttled") == Some(&Value::Bool(true));
    Reading {
        // What a provider did not let happen was not graded.
        verdict: match verdict {
            ReadingVerdict::Failed if throttled => ReadingVerdict::Errored { retry: true },
            verdict => verdict,
        },
        checks: checks(document.get("checks")),
        score,
        usage: usage(document),
        seconds: DURATIONS
            .iter()
            .find_map(|(name, units)| Some(amount(document.get(*name)?)? / units)),
        error: error(document.get("error")),
        throttled,
    }
}

fn checks(checks: Option<&Value>) -> Vec<Check> {
    let Some(Value::Array(checks)) = checks else {
        return Vec::new();
    };
    checks
        .iter()
        .enumerate()
        .filter_map(|(position, check)| {
            let name = check["name"].as_str().filter(|name| !name.trim().is_empty());
            Some(Check {
                passed: check["passed"].as_bool()?,
                name: name.map_or_else(|| format!("check {}", position + 1), str::to_owned),
                notes: check["notes"].as_str().map(str::to_owned),
            })
        })
        .collect()
}

/// Tokens and cost; a list has an entry for each model.
fn usage(document: &Map<String, Value>) -> Option<Usage> {
    let of_models = match document.get("usage") {
        Some(Value::Array(models)) => total(models.iter().map(one_usage)),
        Some(usage) => one_usage(usage),
        None => Usage::default(),
    };
    // Some harnesses report the cost beside the tokens, not with them.
    let beside = || COST.iter().find_map(|name| amount(document.get(*name)?));
    known(Usage {
        cost_usd: of_models.cost_usd.or_else(beside),
        ..of_models
    })
}

fn one_usage(usage: &Value) -> Usage {
    let tokens = |names: &[&str]| names.iter().find_map(|name| usage[*name].as_u64());
    Usage {
        input_tokens: tokens(&INPUT_TOKENS),
        output_tokens: tokens(&OUTPUT_TOKENS),
        cost_usd: COST.iter().find_map(|name| amount(&usage[*name])),
    }
}

fn error(error: Option<&Value>) -> Option<String> {
    match error? {
        Value::String(text) => Some(text.clone()),
        Value::Object(error) => error.get("message")?.as_str().map(str::to_owned),
        _ => None,
    }
    .filter(|text| !text.trim().is_empty())
}

/// An object that gives `passed` at most once: two verdicts are none.
struct Document(Map<String, Value>);

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct DocumentVisitor;
        impl<'de> Visitor<'de> for DocumentVisitor {
            type Value = Document;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with `passed`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
                let mut document = Map::new();
                while let Some((key, value)) = map.next_entry::<String, Value>()? {
                    if key == "passed" && document.contains_key(&key) {
                        return Err(A::Error::custom("`passed` is given twice"));
                    }
                    document.insert(key, value);
                }
                Ok(Document(document))
            }
        }
        from.deserialize_map(DocumentVisitor)
    }
}
