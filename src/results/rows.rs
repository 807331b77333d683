//! Result rows: what a row of a published array, or a raw result document, says of its pair. Knows no files.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::error::Problem;
use super::harness::{self, RowEnding};
use super::json;
use crate::model::Labels;

/// Fields that are texts but no marks of a pair.
const NOT_LABELS: [&str; 5] = ["checks", "error", "notes", "sourcePath", "source_path"];

/// A text longer than this, in bytes, tells something and marks nothing.
const LONGEST_LABEL: usize = 100;

/// One row, read narrowly: a published array has megabytes of checks that nobody here looks at.
#[derive(Debug, Default)]
pub(super) struct Row {
    pub(super) experiment: Option<String>,
    pub(super) eval: Option<String>,
    pub(super) eval_id: Option<String>,
    pub(super) passed: Option<bool>,
    pub(super) attempts: Option<u32>,
    pub(super) run: Option<u32>,
    /// A provider throttled it.
    pub(super) throttled: bool,
    pub(super) labels: Labels,
}

/// Reads an array of rows.
pub(super) fn parse(text: &str) -> Result<Vec<Row>, Problem> {
    let reached = Cell::new(0);
    let clean = json::without_lone_surrogates(text);
    let mut from = serde_json::Deserializer::from_str(&clean);
    let rows = from.deserialize_seq(RowsVisitor { reached: &reached });
    rows.and_then(|rows| from.end().map(|()| rows)).map_err(|error| {
        let problem = json::describe(text, &error);
        match reached.get() {
            0 => problem.into(),
            row => Problem::Row { row, problem },
        }
    })
}

struct RowsVisitor<'a> {
    /// The row that is being read, from 1; 0 before the first and after the last.
    reached: &'a Cell<usize>,
}

impl<'de> Visitor<'de> for RowsVisitor<'_> {
    type Value = Vec<Row>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<Row>, A::Error> {
        let mut rows = Vec::new();
        loop {
            self.reached.set(rows.len() + 1);
            match seq.next_element()? {
                Some(row) => rows.push(row),
                None => break,
            }
        }
        self.reached.set(0);
        Ok(rows)
    }
}

/// A key, borrowed where there are no escapes in it.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(RowVisitor)
    }
}

struct RowVisitor;

impl<'de> Visitor<'de> for RowVisitor {
    type Value = Row;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `experiment`, `eval` and `passed`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row, A::Error> {
        let mut row = Row::default();
        while let Some(Key(key)) = map.next_key()? {
            match &*key {
                "experiment" => set(&mut map, &key, &mut row.experiment)?,
                "eval" => set(&mut map, &key, &mut row.eval)?,
                "eval_id" => set(&mut map, &key, &mut row.eval_id)?,
                "attempts" => set(&mut map, &key, &mut row.attempts)?,
                "run" => set(&mut map, &key, &mut row.run)?,
                "passed" => {
                    // Not through `Option`: a null is no verdict, and must not read as an absent one.
                    let passed = named(map.next_value(), &key)?;
                    fill(Some(passed), &key, &mut row.passed)?;
                }
                "experimentDisplay" => {
                    let display: Option<Display> = named(map.next_value(), &key)?;
                    let display = display.unwrap_or_default();
                    row.label("provider", display.model_provider);
                    row.label("model", display.model_id);
                    row.label("agent", display.agent);
                }
                "throttled" => {
                    let value: Value = map.next_value()?;
                    row.throttled |= value == Value::Bool(true);
                    row.label(&key, value);
                }
                name if NOT_LABELS.contains(&name) => {
                    map.next_value::<IgnoredAny>()?;
                }
                name => row.label(name, map.next_value()?),
            }
        }
        // What a provider did not let happen was not graded.
        if row.throttled && row.passed != Some(true) {
            row.passed = None;
            row.attempts = Some(0);
        }
        Ok(row)
    }
}

/// What a row shows its experiment as.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Display {
    model_provider: Value,
    model_id: Value,
    agent: Value,
}

impl Row {
    /// A row of a whole run that one of a harness's documents holds.
    pub(super) fn of_harness(row: harness::Row) -> Self {
        let mut labels = Labels::default();
        for (name, value) in &row.labels {
            labels.add(name, value);
        }
        let errored = row.ending == RowEnding::Errored;
        Self {
            experiment: Some(row.experiment),
            eval: Some(row.eval),
            passed: Some(row.ending == RowEnding::Passed).filter(|_| !errored),
            // An attempt that gave no result.
            attempts: errored.then_some(0),
            run: Some(row.run),
            labels,
            ..Self::default()
        }
    }

    /// Adds a label where `value` is a text, or a list of nothing but texts, short enough to be one.
    fn label(&mut self, name: &str, value: Value) {
        let values = match value {
            Value::Array(values) if values.iter().all(is_label) => values,
            value if is_label(&value) => vec![value],
            _ => return,
        };
        let labels = self.labels.0.entry(name.to_owned()).or_default();
        for value in values {
            match value {
                Value::String(text) if !labels.contains(&text) => labels.push(text),
                _ => {}
            }
        }
    }
}

fn is_label(value: &Value) -> bool {
    let fits = |text: &str| (1..=LONGEST_LABEL).contains(&text.len()) && !text.contains(char::is_control);
    value.as_str().is_some_and(fits)
}

fn set<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    map: &mut A,
    key: &str,
    slot: &mut Option<T>,
) -> Result<(), A::Error> {
    let given = named(map.next_value(), key)?;
    fill(given, key, slot)
}

/// Two values under one key leave open which is meant.
fn fill<T, E: Error>(given: Option<T>, key: &str, slot: &mut Option<T>) -> Result<(), E> {
    if slot.is_some() {
        return Err(E::custom(format!("`{key}` is given twice")));
    }
    *slot = given;
    Ok(())
}

fn named<T, E: Error>(result: Result<T, E>, key: &str) -> Result<T, E> {
    result.map_err(|error| {
        let message = error.to_string();
        // Only a value of another shape: broken JSON has its place, and loses its kind by a new message.
        match message.starts_with("invalid ") {
            true => E::custom(format!("`{key}`: {message}")),
            false => error,
        }
    })
}
