//! Single values of a harness's document: what they are in words, and what they say of cost and time.

use serde::de::{Deserialize as _, DeserializeOwned, Deserializer};
use serde_json::Value;

use crate::aggregate::shows_throttling;
use crate::model::Usage;
use crate::results::json;

/// A note longer than this, in characters, is cut: a grader's whole reasoning is in its own document.
const LONGEST_NOTE: usize = 2_000;

/// A value in a message: its text where that is short.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Number(number) => format!("the number {}", json::excerpt(&number.to_string(), 0)),
        Value::String(text) => format!("the text `{}`", json::excerpt(text, 0)),
        other => kind(other).to_owned(),
    }
}

/// A harness's free text as a name: on one line, as names are.
pub(super) fn as_name(text: &str) -> String {
    let words = text.split(|char: char| char.is_whitespace() || char.is_control());
    words
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// What a value is, in words.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Reads what says nothing of the verdict: of another type than expected it is as if it were not there.
pub(super) fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// Reads a count, such as of tokens, in the same way; some tools write it with a decimal point.
pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    /// Up to here every whole number is one of `f64` too.
    const MOST: f64 = 9_007_199_254_740_992.0;
    let value = Value::deserialize(deserializer)?;
    let whole = || amount(&value).filter(|number| number.fract() == 0.0 && *number <= MOST);
    Ok(value.as_u64().or_else(|| whole().map(|number| number as u64)))
}

/// A finite number that is not negative.
pub(super) fn amount(value: &Value) -> Option<f64> {
    value.as_f64().and_then(not_negative)
}

/// More dollars or seconds than any attempt takes; of less, sums stay numbers.
const BEYOND: f64 = 1e12;

/// The number, where it can be an amount: not negative, and not beyond all reason.
pub(super) fn not_negative(number: f64) -> Option<f64> {
    (0.0..BEYOND).contains(&number).then_some(number)
}

/// What rounding may leave of a sum that is meant to be 0, 1 or a threshold.
const ROUNDING: f64 = 1e-9;

/// The number, where it can be a score of ours, which is from 0 to 1. All but 1 is 1: weights are added up.
pub(super) fn score(number: f64) -> Option<f64> {
    let is_one = (number - 1.0).abs() <= ROUNDING;
    let number = if is_one { 1.0 } else { number };
    (-ROUNDING..=1.0).contains(&number).then(|| number.max(0.0))
}

/// Whether a score comes up to a threshold: weights that are added up may come out a little below it.
pub(super) fn reaches(number: f64, threshold: f64) -> bool {
    number >= threshold - ROUNDING
}

/// A grader's words, cut where they are long.
pub(super) fn note(text: &str) -> Option<String> {
    let text = text.trim();
    let mut characters = text.chars();
    let mut note: String = characters.by_ref().take(LONGEST_NOTE).collect();
    if characters.next().is_some() {
        note.push('…');
    }
    (!note.is_empty()).then_some(note)
}

/// Why a grade is none: it is not from 0 to 1, and how much of it is a pass is not known.
pub(super) fn beyond_a_score(name: &str, value: f64, grader: &str) -> String {
    format!(
        "`{name}` is {value}: expected 0 to 1, where 1 passes: let the {grader} divide by the highest value"
    )
}

/// A result's own error text, whole, and whether it shows that a provider throttled the attempt.
pub(super) fn failure(text: &str) -> (Option<String>, bool) {
    let text = text.trim();
    (
        (!text.is_empty()).then(|| text.to_owned()),
        shows_throttling(text),
    )
}

/// What the parts of an attempt used together, as far as they tell: a limit has to count that much at least.
pub(super) fn total(parts: impl IntoIterator<Item = Usage>) -> Usage {
    fn sum<T>(one: Option<T>, other: Option<T>, add: impl Fn(T, T) -> T) -> Option<T> {
        match (one, other) {
            (Some(one), Some(other)) => Some(add(one, other)),
            (one, other) => one.or(other),
        }
    }
    parts.into_iter().fold(Usage::default(), |one, other| Usage {
        input_tokens: sum(one.input_tokens, other.input_tokens, u64::saturating_add),
        output_tokens: sum(one.output_tokens, other.output_tokens, u64::saturating_add),
        cost_usd: sum(one.cost_usd, other.cost_usd, |one, other| one + other),
    })
}

/// A usage, where any of it is known.
pub(super) fn known(usage: Usage) -> Option<Usage> {
    (usage != Usage::default()).then_some(usage)
}

#[cfg(test)]
mod tests {
    use super::as_name;

    #[test]
    fn free_text_becomes_a_name_of_one_line() {
        let prompt = "prompts/a.txt: You are helpful.\r\n\tAnswer {{question}} \u{1b}[1m\n";
        assert_eq!(
            as_name(prompt),
            "prompts/a.txt: You are helpful. Answer {{question}} [1m"
        );
        assert_eq!(as_name(" \n "), "");
    }
}
