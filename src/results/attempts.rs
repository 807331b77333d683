//! Rows and summaries as pairs with a verdict. Knows neither files nor JSON.

use std::collections::HashMap;

use super::error::Problem;
use super::rows::Row;
use crate::aggregate::Tally;
use crate::model::{Labels, Outcome, PairId, PairResult, Policy, ResultSet, Sample, Summary, Verdict};

/// Joins rows into pairs, in the order of their first rows. `name` is what a message calls a row, by its position.
pub(super) fn assemble(
    source: &str,
    rows: Vec<Row>,
    policy: Option<Policy>,
    name: &dyn Fn(usize) -> String,
) -> Result<ResultSet, Problem> {
    let ids = rows
        .iter()
        .enumerate()
        .map(|(position, row)| id_of(row, || name(position)))
        .collect::<Result<Vec<_>, _>>()?;
    // Some harnesses count their attempts from 0, and then some row has 0.
    let shift = u32::from(rows.iter().any(|row| row.run == Some(0)));
    let runs = rows
        .iter()
        .filter_map(|row| row.run)
        .max()
        .map(|run| run.saturating_add(shift));

    let mut index_of: HashMap<&PairId, usize> = HashMap::with_capacity(ids.len());
    let mut drafts: Vec<Draft> = Vec::with_capacity(ids.len());
    for (position, (row, id)) in rows.into_iter().zip(&ids).enumerate() {
        let passed = match (row.passed, row.attempts) {
            (None, Some(0)) => false,
            (Some(true), Some(0)) => {
                return Err(Problem::PassedNothing { item: name(position) });
            }
            (Some(passed), _) => passed,
            (None, _) => {
                return Err(Problem::Lacks {
                    item: name(position),
                    field: "passed",
                });
            }
        };
        let told = Told {
            position,
            run: row.run.map(|run| run.saturating_add(shift)),
            passed,
            attempts: row.attempts,
        };
        let index = *index_of.entry(id).or_insert_with(|| {
            drafts.push(Draft {
                id,
                labels: Labels::default(),
                told: Vec::with_capacity(1),
            });
            drafts.len() - 1
        });
        drafts[index].add(told, row.labels, name)?;
    }

    let by_attempt = drafts.iter().filter(|draft| draft.told[0].run.is_some()).count();
    let decided_by = policy.unwrap_or_default();
    let pairs = drafts
        .into_iter()
        .map(|draft| draft.decide(decided_by, runs.unwrap_or_default()))
        .collect::<Vec<_>>();
    let mut set = ResultSet::of_pairs(source, pairs);
    if by_attempt > 0 && by_attempt == set.pairs.len() {
        set.policy = Some(decided_by);
        set.runs = runs;
    }
    Ok(set)
}

/// The results of a run of ours, decided anew where `policy` is not the run's own.
pub(super) fn of_summary(source: &str, summary: &Summary, policy: Option<Policy>) -> ResultSet {
    let mut set = ResultSet::of_summary(source, summary);
    if let Some(policy) = policy.filter(|policy| *policy != summary.run.policy) {
        for (pair, planned) in set.pairs.iter_mut().zip(&summary.pairs) {
            if let Some(samples) = &pair.samples {
                (pair.verdict, pair.firm) = decide(policy, samples, planned.planned_attempts);
            }
        }
        set.policy = Some(policy);
    }
    set
}

fn id_of(row: &Row, item: impl Fn() -> String) -> Result<PairId, Problem> {
    let lacks = |field| Problem::Lacks { item: item(), field };
    let experiment = row.experiment.as_deref().ok_or_else(|| lacks("experiment"))?;
    let eval = match (row.eval.as_deref(), row.eval_id.as_deref()) {
        (Some(eval), Some(eval_id)) if eval != eval_id => {
            return Err(Problem::TwoEvals {
                item: item(),
                eval: eval.to_owned(),
                eval_id: eval_id.to_owned(),
            });
        }
        (Some(eval), _) | (None, Some(eval)) => eval,
        (None, None) => return Err(lacks("eval")),
    };
    PairId::new(experiment, eval).map_err(|problem| Problem::Id {
        item: item(),
        problem,
    })
}

/// What one row says.
struct Told {
    position: usize,
    run: Option<u32>,
    passed: bool,
    attempts: Option<u32>,
}

/// A pair while its rows come in; it has at least one.
struct Draft<'a> {
    id: &'a PairId,
    labels: Labels,
    told: Vec<Told>,
}

impl Draft<'_> {
    fn add(&mut self, told: Told, labels: Labels, name: &dyn Fn(usize) -> String) -> Result<(), Problem> {
        let clash = self
            .told
            .iter()
            .find(|earlier| earlier.run.is_none() || told.run.is_none() || earlier.run == told.run);
        if let Some(earlier) = clash {
            return Err(Problem::Duplicate {
                first: name(earlier.position),
                second: name(told.position),
                what: match (earlier.run, told.run) {
                    (Some(run), Some(_)) => format!("run {run} of `{}`", self.id),
                    _ => format!("`{}`", self.id),
                },
            });
        }
        if self.told.is_empty() {
            self.labels = labels;
        } else {
            for (label, values) in &labels.0 {
                values.iter().for_each(|value| self.labels.add(label, value));
            }
        }
        self.told.push(told);
        Ok(())
    }

    fn decide(mut self, policy: Policy, runs: u32) -> PairResult {
        self.told.sort_unstable_by_key(|told| told.run);
        let known: Vec<Sample> = self.told.iter().filter_map(Told::sample).collect();
        if known.is_empty() {
            let graded = self.told.first().and_then(|told| told.attempts);
            let verdict = match self.told.first() {
                _ if graded == Some(0) => Verdict::Error,
                Some(told) if told.passed => Verdict::Pass,
                _ => Verdict::Fail,
            };
            return PairResult {
                id: self.id.clone(),
                labels: self.labels,
                verdict,
                firm: verdict != Verdict::Error,
                samples: None,
                graded,
            };
        }
        let (verdict, firm) = decide(policy, &known, runs);
        let graded = known.iter().filter(|sample| sample.outcome.is_graded()).count();
        PairResult {
            id: self.id.clone(),
            labels: self.labels,
            verdict,
            firm,
            graded: u32::try_from(graded).ok(),
            samples: Some(known),
        }
    }
}

impl Told {
    fn sample(&self) -> Option<Sample> {
        Some(Sample {
            index: self.run?,
            outcome: match (self.passed, self.attempts) {
                (true, _) => Outcome::Passed,
                (false, Some(0)) => Outcome::Errored,
                (false, _) => Outcome::Failed,
            },
            stopped_early: false,
            command_seconds: None,
            overhead_seconds: None,
            score: None,
            usage: None,
        })
    }
}

/// The verdict of a pair's samples, and whether it is firm: whatever the missing ones of `planned` had given, it
/// would be the same. A sample that was stopped early is missing too, for it was another policy that it was decided by.
fn decide(policy: Policy, samples: &[Sample], planned: u32) -> (Verdict, bool) {
    let mut tally = Tally::default();
    let mut missing = planned;
    for sample in samples.iter().filter(|sample| sample.outcome.is_graded()) {
        tally.add(sample.outcome, sample.score);
        missing = missing.saturating_sub(1);
    }
    let decided = tally.decided(policy, planned, missing);
    let is_firm = matches!(decided, Some(Verdict::Pass | Verdict::Fail));
    match tally.verdict(policy, planned) {
        Verdict::NotRun => (Verdict::Error, false),
        verdict => (verdict, is_firm),
    }
}
