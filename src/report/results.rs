//! `results.json`: the array of result rows that supabase/evals publishes, made of a run's published documents and
//! grafted into rows that are there already. Knows no files.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use icu_collator::options::CollatorOptions;
use icu_collator::{Collator, CollatorBorrowed, CollatorPreferences};
use serde_json::value::RawValue;

use crate::aggregate::{Members, Published};
use crate::model::{Labels, PairId, PairSummary, Summary, Verdict};

/// The keys of a row, in their order.
const KEYS: [&str; 23] = [
    "experiment",
    "experimentSuite",
    "experimentDisplay",
    "eval",
    "stage",
    "product",
    "topic",
    "suite",
    "interface",
    "cliVersion",
    "passed",
    "checks",
    "skills",
    "docs",
    "usage",
    "stepCount",
    "toolCallCount",
    "durationMs",
    "prompt",
    "promptSourcePath",
    "attempts",
    "run",
    "sourcePath",
];
/// Keys that describe a pair, whatever its result: a row that replaces another keeps them where it has none itself.
const DESCRIBING: [&str; 9] = [
    "experimentSuite",
    "experimentDisplay",
    "stage",
    "product",
    "topic",
    "suite",
    "interface",
    "prompt",
    "promptSourcePath",
];
/// Keys whose values are lists, also of one.
const LISTS: [&str; 2] = ["product", "topic"];
/// Keys that a label fills, by the names that the label may have.
const LABELS: [(&str, &[&str]); 6] = [
    ("experimentSuite", &["experimentSuite", "experiment_suite"]),
    ("stage", &["stage"]),
    ("product", &["product"]),
    ("topic", &["topic"]),
    ("suite", &["suite", "eval_suite"]),
    ("interface", &["interface"]),
];

/// Rows that cannot be merged into.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// Not an array of JSON.
    #[error("it is no JSON array of rows")]
    NotRows(#[source] serde_json::Error),
    /// A row that names no pair.
    #[error("row {0} is no object with the texts `experiment` and `eval`")]
    Row(usize),
    /// A value that JSON cannot hold.
    #[error("cannot write a row")]
    Write(#[from] serde_json::Error),
}

/// The rows of a run, sorted by experiment, eval and run; with `existing`, grafted into these.
///
/// A pair's new rows replace its rows there. Rows of pairs that this run was to measure and that gave nothing go, for
/// they would be taken for its results; rows of a pair that gave too little for its policy stay. Every other row stays
/// as it is written, byte for byte, and so does every value of a harness's own.
///
/// # Errors
/// What `existing` is instead of an array of rows.
pub fn render(
    summary: &Summary,
    published: &[Published],
    existing: Option<&str>,
) -> Result<String, MergeError> {
    let existing = existing.map(parse).transpose()?.unwrap_or_default();
    let mut before: HashMap<(&str, &str), &Row> = HashMap::new();
    for row in &existing {
        before.entry(row.pair()).or_insert(row);
    }
    let mut documents: HashMap<&PairId, Vec<&Published>> = HashMap::new();
    for document in published {
        documents.entry(&document.pair).or_default().push(document);
    }
    let mut rows = Vec::new();
    let mut replaced: HashSet<(&str, &str)> = HashSet::new();
    for pair in &summary.pairs {
        let names = (pair.experiment.as_str(), pair.eval.as_str());
        match pair.verdict {
            Verdict::Pass | Verdict::Fail => {
                let before = before.get(&names).copied();
                match documents.get(&pair.id()) {
                    Some(documents) => {
                        for document in documents {
                            rows.push(row_of(pair, Some(document), before)?);
                        }
                    }
                    None => rows.push(row_of(pair, None, before)?),
                }
                replaced.insert(names);
            }
            Verdict::Error | Verdict::NotRun if pair.graded_attempts == 0 => {
                replaced.insert(names);
            }
            Verdict::Error | Verdict::NotRun => {}
        }
    }
    let kept = existing.iter().filter(|row| !replaced.contains(&row.pair()));
    let mut all: Vec<&Row> = kept.chain(&rows).collect();
    let collator = collator();
    // The order of JavaScript's `localeCompare`, by which these rows are kept sorted where they come from.
    all.sort_by(|one, other| one.compare(other, &collator));
    let mut text = String::from("[");
    for (at, row) in all.iter().enumerate() {
        text.push_str(if at == 0 { "\n  " } else { ",\n  " });
        text.push_str(&row.text);
    }
    text.push_str(if all.is_empty() { "]\n" } else { "\n]\n" });
    Ok(text)
}

/// The root collation, which needs no data but its own.
fn collator() -> CollatorBorrowed<'static> {
    let preferences = CollatorPreferences::default();
    Collator::try_new(preferences, CollatorOptions::default()).expect("the root collation is built in")
}

struct Row {
    experiment: String,
    eval: String,
    run: f64,
    text: String,
}

impl Row {
    fn pair(&self) -> (&str, &str) {
        (&self.experiment, &self.eval)
    }

    fn compare(&self, other: &Self, collator: &CollatorBorrowed<'_>) -> Ordering {
        collator
            .compare(&self.experiment, &other.experiment)
            .then_with(|| collator.compare(&self.eval, &other.eval))
            .then_with(|| self.run.total_cmp(&other.run))
    }
}

fn parse(text: &str) -> Result<Vec<Row>, MergeError> {
    let text = text.trim_start_matches('\u{feff}');
    let rows: Vec<&RawValue> = serde_json::from_str(text).map_err(MergeError::NotRows)?;
    let rows = rows.into_iter().zip(1..).map(|(row, position)| {
        let members: Members<'_> = serde_json::from_str(row.get()).map_err(|_| MergeError::Row(position))?;
        let text_of = |key: &str| serde_json::from_str::<String>(members.get(key)?).ok();
        let eval = text_of("eval").or_else(|| text_of("eval_id"));
        let (Some(experiment), Some(eval)) = (text_of("experiment"), eval) else {
            return Err(MergeError::Row(position));
        };
        Ok(Row {
            experiment,
            eval,
            run: run_of(&members),
            text: row.get().to_owned(),
        })
    });
    rows.collect()
}

fn run_of(members: &Members<'_>) -> f64 {
    let run = members.get("run").and_then(|run| run.parse().ok());
    run.filter(|run: &f64| run.is_finite()).unwrap_or_default()
}

/// The row of a document, or of what the summary alone knows.
fn row_of(pair: &PairSummary, document: Option<&Published>, before: Option<&Row>) -> Result<Row, MergeError> {
    let (experiment, eval) = (pair.experiment.as_str(), pair.eval.as_str());
    let text = document.map_or("{}", |document| &document.text);
    let members: Members<'_> = serde_json::from_str(text).unwrap_or_default();
    let earlier: Members<'_> = before
        .and_then(|row| serde_json::from_str(&row.text).ok())
        .unwrap_or_default();
    let mut row = String::from("{");
    for key in KEYS {
        let value = match key {
            "experiment" => Some(json(experiment)?),
            "eval" => Some(json(eval)?),
            "sourcePath" => match document {
                Some(document) => Some(json(&format!("{experiment}/{}", document.path))?),
                None => None,
            },
            "passed" => Some(
                members
                    .get(key)
                    .map_or_else(|| (pair.verdict == Verdict::Pass).to_string(), str::to_owned),
            ),
            "attempts" => Some(
                members
                    .get(key)
                    .map_or_else(|| pair.graded_attempts.to_string(), str::to_owned),
            ),
            "run" => document
                .and_then(|document| document.run)
                .map(|run| run.to_string()),
            _ => given(key, &members)
                .or_else(|| of_labels(key, &pair.labels))
                .or_else(|| DESCRIBING.contains(&key).then(|| given(key, &earlier)).flatten()),
        };
        if let Some(value) = value {
            row.push_str(if row.len() == 1 { "\n    " } else { ",\n    " });
            row.push_str(&json(key)?);
            row.push_str(": ");
            indent(&value, 2, &mut row);
        }
    }
    row.push_str("\n  }");
    Ok(Row {
        experiment: experiment.to_owned(),
        eval: eval.to_owned(),
        run: document.and_then(|document| document.run).map_or(0.0, f64::from),
        text: row,
    })
}

fn json(text: &str) -> Result<String, MergeError> {
    Ok(serde_json::to_string(text)?)
}

/// A document's own value, where it is one; suites were once called profiles.
fn given(key: &str, members: &Members<'_>) -> Option<String> {
    let other = (key == "experimentSuite").then_some("profile");
    let value = members.get(key).or_else(|| members.get(other?))?;
    (value != "null").then(|| value.to_owned())
}

fn of_labels(key: &str, labels: &Labels) -> Option<String> {
    let (_, names) = LABELS.iter().find(|(each, _)| *each == key)?;
    let values = names
        .iter()
        .map(|name| labels.values(name))
        .find(|values| !values.is_empty())?;
    match values {
        [one] if !LISTS.contains(&key) => serde_json::to_string(one).ok(),
        several => serde_json::to_string(several).ok(),
    }
}

/// Writes a JSON value with two spaces for each level, as `JSON.stringify` does; texts and numbers stay as they are.
fn indent(value: &str, level: usize, to: &mut String) {
    let mut level = level;
    let line = |level: usize, to: &mut String| {
        to.push('\n');
        to.extend(std::iter::repeat_n("  ", level));
    };
    let mut characters = value.chars().peekable();
    let mut in_text = false;
    while let Some(character) = characters.next() {
        if in_text {
            to.push(character);
            match character {
                '\\' => to.extend(characters.next()),
                '"' => in_text = false,
                _ => {}
            }
            continue;
        }
        match character {
            '"' => {
                in_text = true;
                to.push('"');
            }
            '{' | '[' => {
                to.push(character);
                while characters.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                match characters.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => to.push(end),
                    None => {
                        level += 1;
                        line(level, to);
                    }
                }
            }
            '}' | ']' => {
                level = level.saturating_sub(1);
                line(level, to);
                to.push(character);
            }
            ',' => {
                to.push(',');
                line(level, to);
            }
            ':' => to.push_str(": "),
            character if character.is_ascii_whitespace() => {}
            character => to.push(character),
        }
    }
}

#[cfg(test)]
mod tests;
