//! Rows and summaries as pairs with a verdict. Knows neither files nor JSON.

use std::collections::HashMap;

use super::error::{Problem, ResultsError};
use super::rows::Row;
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

/// Several sets as one; of the facts about their runs, those that all agree on.
pub(super) fn merge(sets: Vec<ResultSet>) -> Result<ResultSet, ResultsError> {
    let mut sets = sets.into_iter();
    let Some(mut merged) = sets.next() else {
        return Err(Problem::NoSource.at(""));
    };
    let mut source_of: HashMap<PairId, String> = HashMap::new();
    for pair in &merged.pairs {
        source_of.insert(pair.id.clone(), merged.source.clone());
    }
    for set in sets {
        for pair in &set.pairs {
            if let Some(other) = source_of.insert(pair.id.clone(), set.source.clone()) {
                let pair = pair.id.clone();
                return Err(Problem::Overlap { pair, other }.at(&set.source));
            }
        }
        merged.source = format!("{}, {}", merged.source, set.source);
        merged.policy = merged.policy.filter(|_| merged.policy == set.policy);
        merged.runs = merged.runs.filter(|_| merged.runs == set.runs);
        keep_equal(&mut merged.commit, &set.commit);
        keep_equal(&mut merged.reference, &set.reference);
        keep_equal(&mut merged.started_at, &set.started_at);
        keep_equal(&mut merged.run_url, &set.run_url);
        merged.wall_seconds = None;
        // A set that is a part of its suite makes the whole one a part, whatever the others are.
        if !merged.is_partial_selection() && (set.is_partial_selection() || merged.selection != set.selection)
        {
            merged.selection = set.selection.filter(|_| set.is_partial_selection());
        }
        merged.pairs.extend(set.pairs);
    }
    Ok(merged)
}

fn keep_equal<T: PartialEq>(merged: &mut Option<T>, other: &Option<T>) {
    if merged != other {
        *merged = None;
    }
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
        PairResult {
            id: self.id.clone(),
            labels: self.labels,
            verdict,
            firm,
            graded: u32::try_from(known.len()).ok(),
            samples: Some(known),
        }
    }
}

impl Told {
    fn sample(&self) -> Option<Sample> {
        Some(Sample {
            index: self.run?,
            outcome: if self.passed {
                Outcome::Passed
            } else {
                Outcome::Failed
            },
            stopped_early: false,
            command_seconds: None,
            score: None,
        })
    }
}

/// The verdict of a pair's samples, and whether it is firm: whatever the missing ones of `planned` had given, it
/// would be the same.
fn decide(policy: Policy, samples: &[Sample], planned: u32) -> (Verdict, bool) {
    let graded: Vec<&Sample> = samples
        .iter()
        .filter(|sample| sample.outcome.is_graded())
        .collect();
    let missing = (planned as usize).saturating_sub(graded.len());
    if graded.is_empty() {
        return (Verdict::Error, missing == 0);
    }
    if let Policy::Mean { complete: true, .. } = policy
        && missing > 0
    {
        return (Verdict::Error, false);
    }
    let passes = |lost_passes: usize, lost_graded: usize| {
        let passed = lost_passes
            + graded
                .iter()
                .filter(|sample| sample.outcome == Outcome::Passed)
                .count();
        let of = lost_graded + graded.len();
        match policy {
            Policy::Any => passed > 0,
            Policy::All => passed == of,
            Policy::Majority => 2 * passed > of,
            Policy::Mean { threshold, .. } => {
                let score: f64 = graded.iter().map(|sample| score(sample)).sum();
                // Thirds and tenths do not add up exactly, and a mean at the threshold reaches it.
                (score + lost_passes as f64) / of as f64 >= threshold - 1e-9
            }
        }
    };
    let verdict = passes(0, 0);
    // Every policy is monotone: if neither all lost attempts passing nor all failing changes it, nothing does.
    let firm = passes(missing, missing) == verdict && passes(0, missing) == verdict;
    (if verdict { Verdict::Pass } else { Verdict::Fail }, firm)
}

fn score(sample: &Sample) -> f64 {
    match (sample.outcome, sample.score) {
        (Outcome::TimedOut, _) => 0.0,
        (_, Some(score)) => score,
        (Outcome::Passed, None) => 1.0,
        (_, None) => 0.0,
    }
}
