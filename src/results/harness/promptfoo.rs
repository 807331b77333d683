//! Format `promptfoo`: what `promptfoo eval -o out.json` writes.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use serde::Deserialize;
use serde_json::Value;

use super::ReadError;
use super::value::{amount, as_name, count, failure, known, lenient, not_negative, note, score, total};
use super::{Row, RowEnding};
use crate::model::{Check, Reading, ReadingVerdict, Usage};
use crate::results::json;

/// `failureReason` of a row that something broke.
const ERROR: u64 = 2;

#[derive(Deserialize)]
struct Output {
    results: Results,
}

#[derive(Deserialize)]
struct Results {
    results: Vec<Answer>,
}

/// One prompt for one provider with one test.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    success: bool,
    #[serde(default, deserialize_with = "lenient")]
    score: Option<f64>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    failure_reason: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    grading_result: Option<Grading>,
    #[serde(default)]
    provider: Value,
    #[serde(default, deserialize_with = "lenient")]
    prompt: Prompt,
    #[serde(default)]
    prompt_idx: u32,
    /// Counts the tests, each repetition of one for itself.
    #[serde(default, deserialize_with = "count")]
    test_idx: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    test_case: Test,
    #[serde(default)]
    vars: Value,
    #[serde(default, deserialize_with = "lenient")]
    latency_ms: Option<f64>,
    #[serde(default)]
    cost: Value,
    #[serde(default, deserialize_with = "lenient")]
    token_usage: Option<Tokens>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Grading {
    #[serde(default, deserialize_with = "lenient")]
    component_results: Option<Vec<Component>>,
}

#[derive(Deserialize)]
struct Component {
    pass: bool,
    #[serde(default, deserialize_with = "lenient")]
    reason: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    assertion: Option<Assertion>,
}

#[derive(Deserialize)]
struct Assertion {
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    kind: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    metric: Option<String>,
    #[serde(default)]
    value: Value,
}

#[derive(Default, Deserialize)]
struct Prompt {
    #[serde(default, deserialize_with = "lenient")]
    label: Option<String>,
}

#[derive(Default, Deserialize)]
struct Test {
    #[serde(default, deserialize_with = "lenient")]
    description: Option<String>,
    #[serde(default)]
    assert: Value,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default, deserialize_with = "count")]
    prompt: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    completion: Option<u64>,
}

/// A reading for each repetition (`--repeat`): it passes where every row does, and a row that errored makes it an
/// error.
pub(super) fn read(text: &str) -> Result<Vec<Reading>, ReadError> {
    let rows = parse(text)?;
    let runs = runs(&rows);
    let most = runs.iter().copied().max().unwrap_or_default();
    let mut attempts: Vec<Vec<&Answer>> = vec![Vec::new(); most];
    for (row, run) in rows.iter().zip(runs) {
        attempts[run - 1].push(row);
    }
    Ok(attempts.iter().map(|rows| reading(rows)).collect())
}

/// A row for each result; the experiment is the provider, with the prompt's name where there are several prompts. What has
/// a name a second time is another repetition.
pub(super) fn rows(text: &str) -> Result<Vec<Row>, ReadError> {
    let results = parse(text)?;
    let experiments = experiments(&results);
    let evals = evals(&results, &experiments);
    let mut seen: HashMap<(&str, &str), u32> = HashMap::new();
    let named = results.iter().zip(experiments.iter().zip(&evals));
    let rows = named.map(|(result, (experiment, eval))| {
        let run = seen.entry((experiment, eval)).or_default();
        *run += 1;
        Row {
            experiment: experiment.clone(),
            eval: eval.clone(),
            run: *run,
            ending: match result.verdict() {
                ReadingVerdict::Passed => RowEnding::Passed,
                ReadingVerdict::Failed => RowEnding::Failed,
                ReadingVerdict::Errored { .. } => RowEnding::Errored,
            },
            labels: vec![("provider", result.provider_name())],
        }
    });
    Ok(rows.collect())
}

/// The experiment of each row. `promptIdx` counts the prompts of all providers together.
fn experiments(rows: &[Answer]) -> Vec<String> {
    let mut prompts: HashMap<String, BTreeMap<u32, Option<String>>> = HashMap::new();
    for row in rows {
        let of_provider = prompts.entry(row.provider_name()).or_default();
        of_provider
            .entry(row.prompt_idx)
            .or_insert_with(|| row.prompt_name());
    }
    let many_prompts = prompts.values().any(|prompts| prompts.len() > 1);
    let experiment = |row: &Answer| {
        let provider = row.provider_name();
        if !many_prompts {
            return provider;
        }
        let prompts = &prompts[&provider];
        let name = &prompts[&row.prompt_idx];
        let is_its_own = prompts.values().filter(|other| *other == name).count() == 1;
        match name {
            Some(name) if is_its_own => format!("{provider} · {name}"),
            _ => format!("{provider} · prompt {}", prompts.range(..=row.prompt_idx).count()),
        }
    };
    rows.iter().map(experiment).collect()
}

/// The eval of each row: a test's name, with its variables where those of the same name differ in them, and with a number,
/// in the order of the tests, where they differ in what they assert.
fn evals(rows: &[Answer], experiments: &[String]) -> Vec<String> {
    let names: Vec<String> = rows.iter().map(Answer::test_name).collect();
    let variables = namesakes(rows, experiments, &names, |row| row.vars.to_string());
    let with_vars = rows
        .iter()
        .zip(&variables)
        .zip(names)
        .map(
            |((row, variables), name)| match variables.len() > 1 && row.description().is_some() {
                true => format!("{name} {}", row.vars),
                false => name,
            },
        );
    let names: Vec<String> = with_vars.collect();
    let tests = namesakes(rows, experiments, &names, Answer::test_key);
    let with_number = rows.iter().zip(&tests).zip(names).map(|((row, tests), name)| {
        let own = tests[&row.test_key()];
        match tests.len() {
            1 => name,
            _ => format!(
                "{name} · test {}",
                tests.values().filter(|at| **at <= own).count()
            ),
        }
    });
    with_number.collect()
}

/// For each row, what those of its name in its experiment are told apart by, and where each of that stands first.
fn namesakes(
    rows: &[Answer],
    experiments: &[String],
    names: &[String],
    by: impl Fn(&Answer) -> String,
) -> Vec<Rc<BTreeMap<String, u64>>> {
    let named = || experiments.iter().zip(names);
    let mut groups: HashMap<(&String, &String), BTreeMap<String, u64>> = HashMap::new();
    for ((row, name), position) in rows.iter().zip(named()).zip(0..) {
        let at = row.test_idx.unwrap_or(position);
        let first = groups.entry(name).or_default().entry(by(row)).or_insert(at);
        *first = at.min(*first);
    }
    let groups: HashMap<_, _> = groups
        .into_iter()
        .map(|(name, group)| (name, Rc::new(group)))
        .collect();
    named().map(|name| Rc::clone(&groups[&name])).collect()
}

fn parse(text: &str) -> Result<Vec<Answer>, ReadError> {
    let output: Output = json::parse(text)?;
    match output.results.results.is_empty() {
        true => Err(ReadError::document("promptfoo", "there are no results in it")),
        false => Ok(output.results.results),
    }
}

/// Which repetition of its test each row of an attempt's result is, from 1. Tests that are written twice look like
/// repetitions, but then not every one has as many: so all rows are of one run.
fn runs(rows: &[Answer]) -> Vec<usize> {
    let mut seen: HashMap<(String, u32, String), usize> = HashMap::new();
    let runs: Vec<usize> = rows
        .iter()
        .map(|row| {
            let count = seen
                .entry((row.provider_name(), row.prompt_idx, row.test_key()))
                .or_default();
            *count += 1;
            *count
        })
        .collect();
    let first = seen.values().next().copied().unwrap_or_default();
    match seen.values().all(|count| *count == first) {
        true => runs,
        false => vec![1; rows.len()],
    }
}

fn reading(rows: &[&Answer]) -> Reading {
    let verdicts = || rows.iter().map(|row| row.verdict());
    let errored = rows
        .iter()
        .find(|row| matches!(row.verdict(), ReadingVerdict::Errored { .. }));
    let verdict = match errored {
        Some(_) => ReadingVerdict::Errored { retry: true },
        None if verdicts().all(|verdict| verdict == ReadingVerdict::Passed) => ReadingVerdict::Passed,
        None => ReadingVerdict::Failed,
    };
    let checks = match rows {
        [row] => row.checks(),
        _ => rows.iter().map(|row| row.as_check()).collect(),
    };
    let usage = total(rows.iter().map(|row| row.usage()));
    let latency: f64 = rows.iter().filter_map(|row| not_negative(row.latency_ms?)).sum();
    let broke = |row: &&Answer| {
        row.error
            .clone()
            .unwrap_or_else(|| "a row ended with an error".to_owned())
    };
    let (error, throttled) = failure(&errored.map(broke).unwrap_or_default());
    let scores: Vec<f64> = rows.iter().filter_map(|row| row.score).collect();
    Reading {
        verdict,
        checks,
        score: match (errored, scores.len() == rows.len()) {
            (None, true) => score(scores.iter().sum::<f64>() / rows.len() as f64),
            _ => None,
        },
        usage: known(usage),
        seconds: (latency > 0.0).then_some(latency / 1000.0),
        error,
        throttled,
    }
}

impl Answer {
    /// An assertion that does not hold fills `error` too; a row that something broke has no grade.
    fn verdict(&self) -> ReadingVerdict {
        let broke = match self.failure_reason {
            Some(reason) => reason == ERROR,
            None => self.error.is_some() && self.grading_result.is_none(),
        };
        match (self.success, broke) {
            (true, _) => ReadingVerdict::Passed,
            (false, true) => ReadingVerdict::Errored { retry: true },
            (false, false) => ReadingVerdict::Failed,
        }
    }

    fn provider_name(&self) -> String {
        let named = |key: &str| self.provider[key].as_str().filter(|name| !name.trim().is_empty());
        let name = named("label").or(named("id")).or(self.provider.as_str());
        as_name(name.unwrap_or("a provider without a name"))
    }

    fn prompt_name(&self) -> Option<String> {
        let name = self.prompt.label.as_deref().map(as_name);
        name.filter(|name| !name.is_empty())
    }

    /// What repetitions of a test have in common, and other tests do not.
    fn test_key(&self) -> String {
        let Test { description, assert } = &self.test_case;
        format!(
            "{} {} {assert}",
            description.as_deref().unwrap_or_default(),
            self.vars
        )
    }

    fn description(&self) -> Option<String> {
        let described = self.test_case.description.as_deref().map(as_name);
        described.filter(|text| !text.is_empty())
    }

    /// A test's description, or else its variables, which tell it from the others.
    fn test_name(&self) -> String {
        self.description().unwrap_or_else(|| self.vars.to_string())
    }

    fn checks(&self) -> Vec<Check> {
        let components = self
            .grading_result
            .iter()
            .flat_map(|grading| &grading.component_results);
        components
            .flatten()
            .zip(1..)
            .map(|(component, position): (_, usize)| Check {
                name: component
                    .name()
                    .unwrap_or_else(|| format!("assertion {position}")),
                passed: component.pass,
                notes: component.reason.as_deref().and_then(note),
            })
            .collect()
    }

    fn as_check(&self) -> Check {
        let failing = self.checks().into_iter().find(|check| !check.passed);
        Check {
            name: self.test_name(),
            passed: self.success,
            notes: failing.and_then(|check| check.notes),
        }
    }

    /// A provider that counts nothing reports zeros.
    fn usage(&self) -> Usage {
        let tokens = self.token_usage.as_ref();
        let counted = |count: Option<u64>| count.filter(|count| *count > 0);
        Usage {
            input_tokens: tokens.and_then(|tokens| counted(tokens.prompt)),
            output_tokens: tokens.and_then(|tokens| counted(tokens.completion)),
            cost_usd: amount(&self.cost).filter(|cost| *cost > 0.0),
        }
    }
}

impl Component {
    fn name(&self) -> Option<String> {
        let assertion = self.assertion.as_ref()?;
        if let Some(metric) = &assertion.metric {
            return Some(metric.clone());
        }
        let kind = assertion.kind.as_ref()?;
        Some(match &assertion.value {
            Value::String(value) => format!("{kind} {}", json::excerpt(value, 0)),
            _ => kind.clone(),
        })
    }
}
