//! Format `inspect`: a log of inspect_ai, as one JSON document or as an archive of them (`.eval`).

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::ReadError;
use super::once::parse_once;
use super::value::{
    as_name, beyond_a_score, count, failure, known, lenient, not_negative, note, score, total,
};
use super::{Row, RowEnding};
use crate::model::{Check, Reading, ReadingVerdict, Usage};
use crate::results::json;
use crate::zip::{Archive, Limits};

/// Limits of an archive, which is of whoever wrote it.
pub(super) const LIMITS: Limits = Limits {
    file: 64 << 20,
    total: 256 << 20,
    entries: 100_000,
    ratio: 1_000,
};
/// In an archive: everything but the samples.
pub(super) const HEADER: &str = "header.json";

#[derive(Deserialize)]
struct Log {
    status: String,
    eval: Eval,
    #[serde(default)]
    results: Option<Results>,
    #[serde(default)]
    error: Option<LogError>,
    #[serde(default)]
    samples: Option<Vec<Sample>>,
}

#[derive(Deserialize)]
struct Eval {
    task: String,
    model: String,
}

#[derive(Deserialize)]
struct Results {
    #[serde(default)]
    headline: Option<Headline>,
    /// Samples times epochs.
    #[serde(default, deserialize_with = "count")]
    total_samples: Option<u64>,
    /// What decided that samples need not run.
    #[serde(default)]
    early_stopping: Value,
}

#[derive(Deserialize)]
struct Headline {
    #[serde(default)]
    scorer: Option<String>,
}

#[derive(Deserialize)]
struct LogError {
    #[serde(default, deserialize_with = "lenient")]
    message: String,
}

#[derive(Deserialize)]
struct Sample {
    /// A text or a number.
    id: Value,
    #[serde(default = "first")]
    epoch: u32,
    #[serde(default)]
    scores: Option<BTreeMap<String, Score>>,
    #[serde(default)]
    error: Option<LogError>,
    /// Who said afterwards that it does not count, and why.
    #[serde(default)]
    invalidation: Value,
    #[serde(default, deserialize_with = "lenient")]
    model_usage: BTreeMap<String, ModelUsage>,
    #[serde(default, deserialize_with = "lenient")]
    total_time: Option<f64>,
}

#[derive(Deserialize)]
struct Score {
    #[serde(default)]
    value: Value,
    #[serde(default, deserialize_with = "lenient")]
    explanation: Option<String>,
}

#[derive(Deserialize)]
struct ModelUsage {
    #[serde(default, deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    total_cost: Option<f64>,
}

fn first() -> u32 {
    1
}

/// A reading for each epoch: it passes where every sample does, and a sample that errored makes it an error. The score
/// is the mean of the samples'.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<Reading>, ReadError> {
    let log = Log::parse(bytes)?;
    if let Some(error) = log.broken() {
        return Ok(vec![errored(&error)]);
    }
    let samples = log.samples()?;
    let mut epochs: BTreeMap<u32, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        epochs.entry(sample.epoch).or_default().push(sample);
    }
    epochs
        .into_values()
        .map(|samples| log.reading(&samples))
        .collect()
}

/// A row for each sample and epoch, of an experiment that is called as the model is.
pub(super) fn rows(bytes: &[u8]) -> Result<Vec<Row>, ReadError> {
    let log = Log::parse(bytes)?;
    if let Some(error) = log.broken() {
        return Err(ReadError::document("inspect", error));
    }
    let samples = log.samples()?;
    let rows = samples.iter().map(|sample| {
        let grade = log.grade(sample);
        Ok(Row {
            experiment: log.eval.model.clone(),
            eval: format!("{}/{}", log.eval.task, sample.name()),
            run: sample.epoch,
            ending: match &grade {
                Grade::Errored { .. } => RowEnding::Errored,
                Grade::Scored { passed: true, .. } => RowEnding::Passed,
                Grade::Scored { passed: false, .. } => RowEnding::Failed,
            },
            labels: vec![("task", log.eval.task.clone()), ("model", log.eval.model.clone())],
        })
    });
    rows.collect()
}

/// What a sample came to.
enum Grade {
    Scored {
        passed: bool,
        score: f64,
        checks: Vec<Check>,
    },
    Errored {
        why: String,
        retry: bool,
    },
}

impl Log {
    fn parse(bytes: &[u8]) -> Result<Self, ReadError> {
        if !crate::zip::is_zip(bytes) {
            return Ok(parse_once(&without_constants(json::text(bytes)?))?);
        }
        let mut archive = Archive::open(bytes, LIMITS)?;
        let names = archive.names();
        if !names.iter().any(|name| name == HEADER) {
            let what = format!("there is no `{HEADER}` in it\nwas it written to its end?");
            return Err(ReadError::document("inspect", what));
        }
        let mut log: Self = entry(&mut archive, HEADER)?;
        let mut samples = Vec::new();
        for name in names {
            if name.starts_with("samples/") && name.ends_with(".json") {
                samples.push(entry(&mut archive, &name)?);
            }
        }
        log.samples = Some(samples);
        Ok(log)
    }

    /// Why the log holds no grades.
    fn broken(&self) -> Option<String> {
        let what = format!("the log's status is `{}`", json::excerpt(&self.status, 0));
        match (&*self.status, &self.error) {
            ("success", _) => None,
            (_, Some(error)) => Some(format!("{what}: {}", error.message.trim())),
            _ => Some(what),
        }
    }

    fn samples(&self) -> Result<&[Sample], ReadError> {
        let samples = self.samples.as_deref().unwrap_or_default();
        let missing = |what: &str| Err(ReadError::document("inspect", what));
        let results = self
            .results
            .as_ref()
            .filter(|results| results.early_stopping.is_null());
        let total = results
            .and_then(|results| results.total_samples)
            .unwrap_or_default();
        match samples.len() {
            0 => missing("there are no samples in it\nwas the eval run with `--no-log-samples`?"),
            here if (here as u64) < total => missing(&format!("{here} of its {total} samples are in it")),
            _ => Ok(samples),
        }
    }

    fn reading(&self, samples: &[&Sample]) -> Result<Reading, ReadError> {
        let mut checks = Vec::new();
        let (mut passed, mut sum, mut seconds) = (true, 0.0, None);
        let mut broken: Option<(String, bool)> = None;
        for sample in samples {
            if let Some(time) = sample.total_time.and_then(not_negative) {
                *seconds.get_or_insert(0.0) += time;
            }
            match self.grade(sample) {
                Grade::Scored {
                    passed: one,
                    score,
                    checks: of_sample,
                } => {
                    passed &= one;
                    sum += score;
                    if samples.len() == 1 {
                        checks = of_sample;
                    } else {
                        checks.push(Check {
                            name: sample.name(),
                            passed: one,
                            notes: of_sample.into_iter().find_map(|check| check.notes),
                        });
                    }
                }
                Grade::Errored { why, retry } => {
                    let why = format!("sample `{}`: {why}", sample.name());
                    // A fresh try helps only where it helps every sample that has no grade.
                    broken = Some(match broken.take() {
                        Some((first, earlier)) => (first, earlier && retry),
                        None => (why, retry),
                    });
                }
            }
        }
        let (verdict, error) = match broken {
            Some((why, retry)) => (ReadingVerdict::Errored { retry }, Some(why)),
            None if passed => (ReadingVerdict::Passed, None),
            None => (ReadingVerdict::Failed, None),
        };
        let (error, throttled) = failure(&error.unwrap_or_default());
        let used = samples.iter().flat_map(|sample| sample.model_usage.values());
        Ok(Reading {
            verdict,
            checks,
            score: match error {
                None => score(sum / samples.len() as f64),
                Some(_) => None,
            },
            usage: known(total(used.map(ModelUsage::usage))),
            seconds,
            error,
            throttled,
        })
    }

    /// What a sample's scores say: the log's headline scorer alone where it names one, else all of them together.
    fn grade(&self, sample: &Sample) -> Grade {
        if let Some(error) = &sample.error {
            return Grade::Errored {
                why: error.message.trim().to_owned(),
                retry: true,
            };
        }
        if !sample.invalidation.is_null() {
            return Grade::Errored {
                why: "it was invalidated".to_owned(),
                retry: false,
            };
        }
        let scores = sample.scores.iter().flatten();
        let headline = self
            .results
            .as_ref()
            .and_then(|results| results.headline.as_ref());
        let headline = headline.and_then(|headline| headline.scorer.as_deref());
        let named = headline.filter(|name| sample.scores.iter().flatten().any(|(each, _)| each == name));
        let mut checks = Vec::new();
        let mut sum = 0.0;
        for (name, given) in scores.filter(|(name, _)| named.is_none_or(|named| named == *name)) {
            for (name, value) in given.values(name) {
                let Some(value) = value else {
                    return Grade::Errored {
                        why: format!("`{name}` has no score"),
                        retry: false,
                    };
                };
                let Some(value) = self::score(value) else {
                    return Grade::Errored {
                        why: beyond_a_score(&name, value, "scorer"),
                        retry: false,
                    };
                };
                sum += value;
                checks.push(Check {
                    name,
                    passed: value >= 1.0,
                    notes: given.explanation.as_deref().and_then(note),
                });
            }
        }
        match checks.is_empty() {
            true => Grade::Errored {
                why: "it has no score".to_owned(),
                retry: false,
            },
            false => Grade::Scored {
                passed: checks.iter().all(|check| check.passed),
                score: sum / checks.len() as f64,
                checks,
            },
        }
    }
}

impl Sample {
    fn name(&self) -> String {
        match &self.id {
            Value::String(id) => as_name(id),
            other => other.to_string(),
        }
    }
}

impl Score {
    /// Its values by name: one, or those of a score with several.
    fn values(&self, name: &str) -> Vec<(String, Option<f64>)> {
        match &self.value {
            Value::Object(values) => of_several(name, values),
            Value::Array(values) => values
                .iter()
                .zip(1..)
                .map(|(value, position): (_, usize)| (format!("{name} {position}"), number(value)))
                .collect(),
            value => vec![(name.to_owned(), number(value))],
        }
    }
}

fn of_several(name: &str, values: &Map<String, Value>) -> Vec<(String, Option<f64>)> {
    let values = values.iter();
    values
        .map(|(each, value)| (format!("{name}: {each}"), number(value)))
        .collect()
}

/// A score as inspect's own metrics count it: correct is 1, partly so a half, incorrect and no answer 0.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => match text.to_lowercase().as_str() {
            "c" | "yes" | "true" => Some(1.0),
            "p" => Some(0.5),
            "i" | "n" | "no" | "false" => Some(0.0),
            text => text.parse().ok().filter(|number: &f64| number.is_finite()),
        },
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        Value::Number(number) => number.as_f64(),
        _ => None,
    }
}

impl ModelUsage {
    fn usage(&self) -> Usage {
        Usage {
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cost_usd: self.total_cost.and_then(not_negative),
        }
    }
}

fn errored(error: &str) -> Reading {
    let (error, throttled) = failure(error);
    Reading {
        verdict: ReadingVerdict::Errored { retry: true },
        checks: Vec::new(),
        score: None,
        usage: None,
        seconds: None,
        error,
        throttled,
    }
}

fn entry<T: for<'de> Deserialize<'de>>(archive: &mut Archive<'_>, name: &str) -> Result<T, ReadError> {
    let bytes = archive.read(name)?;
    let parsed = json::text(&bytes).and_then(|text| parse_once(&without_constants(text)));
    parsed.map_err(|problem| ReadError::Entry {
        name: name.to_owned(),
        problem,
    })
}

/// Python writes `NaN` and `Infinity` for a score that is none, which JSON does not have.
pub(super) fn without_constants(text: &str) -> Cow<'_, str> {
    const CONSTANTS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];
    if !text.contains("NaN") && !text.contains("Infinity") {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let (mut rest, mut in_text) = (text, false);
    while let Some(at) = rest.find(['"', '\\', 'N', 'I', '-']) {
        let (before, from) = rest.split_at(at);
        clean.push_str(before);
        let constant = CONSTANTS.iter().find(|constant| from.starts_with(**constant));
        let taken = match (from.as_bytes()[0], constant) {
            (_, Some(constant)) if !in_text => {
                clean.push_str("null");
                rest = &from[constant.len()..];
                continue;
            }
            (b'"', _) => {
                in_text = !in_text;
                1
            }
            // Whatever is escaped ends no text; a character may be longer than a byte.
            (b'\\', _) => 1 + from[1..].chars().next().map_or(0, char::len_utf8),
            _ => 1,
        };
        clean.push_str(&from[..taken]);
        rest = &from[taken..];
    }
    clean.push_str(rest);
    Cow::Owned(clean)
}
