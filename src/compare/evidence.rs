//! Which pairs of two result sets can be compared, and what each side's samples of them are. Knows no statistics.

use std::collections::HashMap;

use super::stats::{Count, Stratum};
use crate::model::comparison::{Level, NotComparable};
use crate::model::{Outcome, PairId, PairResult, ResultSet, Sample, Verdict};

/// A pair with a firm verdict and evidence on both sides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compared<'a> {
    pub(super) baseline: &'a PairResult,
    pub(super) current: &'a PairResult,
    pub(super) stratum: Stratum,
}

impl<'a> Compared<'a> {
    pub(super) fn id(&self) -> &'a PairId {
        &self.current.id
    }

    pub(super) fn passed_before(&self) -> bool {
        self.baseline.verdict == Verdict::Pass
    }

    pub(super) fn passed_now(&self) -> bool {
        self.current.verdict == Verdict::Pass
    }

    /// The values of a label: this run's, or the baseline's where this run has none.
    pub(super) fn label_values(&self, name: &str) -> &'a [String] {
        match self.current.labels.values(name) {
            [] => self.baseline.labels.values(name),
            values => values,
        }
    }
}

/// All pairs of two result sets, sorted out; each list in the order of the ids.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    pub(super) level: Level,
    pub(super) compared: Vec<Compared<'a>>,
    pub(super) not_comparable: Vec<NotComparable>,
    pub(super) added: Vec<&'a PairId>,
    pub(super) removed: Vec<&'a PairId>,
    pub(super) not_selected: usize,
}

/// Sorts out all pairs, and takes the evidence of those that can be compared at the first level that holds for all.
pub(super) fn gather<'a>(baseline: &'a ResultSet, current: &'a ResultSet) -> Evidence<'a> {
    let mut only_before: HashMap<&PairId, &PairResult> =
        baseline.pairs.iter().map(|pair| (&pair.id, pair)).collect();
    let (mut firm, mut not_comparable, mut added) = (Vec::new(), Vec::new(), Vec::new());
    for now in &current.pairs {
        let Some(before) = only_before.remove(&now.id) else {
            added.push(&now.id);
            continue;
        };
        match both(check_firm(before), check_firm(now)) {
            Ok(_) => firm.push((before, now)),
            Err(reason) => not_comparable.push(not_comparable_pair(&now.id, reason)),
        }
    }
    let mut removed: Vec<&PairId> = only_before.into_keys().collect();
    let not_selected = if current.is_partial_selection() {
        std::mem::take(&mut removed).len()
    } else {
        0
    };

    let sampling = Sampling::new(&firm, baseline, current);
    let mut compared = Vec::with_capacity(firm.len());
    for (before, now) in firm {
        match sampling.stratum(before, now) {
            Ok(stratum) => compared.push(Compared {
                baseline: before,
                current: now,
                stratum,
            }),
            Err(reason) => not_comparable.push(not_comparable_pair(&now.id, reason)),
        }
    }
    compared.sort_by_key(Compared::id);
    not_comparable.sort_by(|a, b| (&a.experiment, &a.eval).cmp(&(&b.experiment, &b.eval)));
    added.sort();
    removed.sort();
    Evidence {
        level: sampling.level,
        compared,
        not_comparable,
        added,
        removed,
        not_selected,
    }
}

/// Both values, where both are known and differ.
pub(super) fn differing<T: PartialEq>(before: Option<T>, now: Option<T>) -> Option<(T, T)> {
    before.zip(now).filter(|(before, now)| before != now)
}

/// Whether every attempt of the pair ran and they disagree: the pair goes both ways without a change.
pub(super) fn is_split(pair: &PairResult) -> bool {
    pair.samples.as_ref().is_some_and(|samples| {
        let count = graded(samples);
        samples.iter().all(ran) && 0 < count.hits && count.hits < count.of
    })
}

/// The attempts of each pair as far as they are evidence of one attempt's probability to pass: all of them where the
/// set ran every attempt, else the first; of pairs whose attempts are not known one by one, the firm verdict.
pub(super) fn attempts(set: &ResultSet) -> Vec<Count> {
    let nothing = Count { hits: 0, of: 0 };
    let known = set.pairs.iter().filter(|pair| pair.samples.is_some());
    let every_attempt = ran_every_attempt(known, set.runs);
    let of = |pair: &PairResult| {
        let level = match pair.samples {
            Some(_) => Level::Attempts,
            None if check_firm(pair).is_ok() => Level::Verdicts,
            None => return nothing,
        };
        samples(pair, level, every_attempt).unwrap_or(nothing)
    };
    set.pairs.iter().map(of).collect()
}

fn not_comparable_pair(id: &PairId, reason: String) -> NotComparable {
    NotComparable {
        experiment: id.experiment.clone(),
        eval: id.eval.clone(),
        reason,
    }
}

/// What both sides have, or why one or both have not.
fn both<T>(before: Result<T, String>, now: Result<T, String>) -> Result<(T, T), String> {
    match (before, now) {
        (Ok(before), Ok(now)) => Ok((before, now)),
        (Err(before), Ok(_)) => Err(format!("baseline: {before}")),
        (Ok(_), Err(now)) => Err(format!("this run: {now}")),
        (Err(before), Err(now)) => Err(format!("baseline: {before}; this run: {now}")),
    }
}

/// Nothing, or why the pair has no firm verdict.
fn check_firm(pair: &PairResult) -> Result<(), String> {
    let graded = graded_of(pair);
    match pair.verdict {
        Verdict::NotRun => Err("not run".to_owned()),
        Verdict::Error => Err(match graded {
            Some((graded, of)) if graded > 0 => format!("error, {graded} of {of} graded"),
            _ => "error, no attempt gave a result".to_owned(),
        }),
        Verdict::Pass | Verdict::Fail if pair.firm => Ok(()),
        Verdict::Pass | Verdict::Fail => Err(match graded {
            Some((graded, of)) => format!("{graded} of {of} graded"),
            None => "some attempts gave no result".to_owned(),
        }),
    }
}

/// Attempts that gave a result, of how many; `None` where attempts are not known one by one.
fn graded_of(pair: &PairResult) -> Option<(u32, usize)> {
    let samples = pair.samples.as_ref()?;
    Some((graded(samples).of, samples.len()))
}

/// How samples are taken, the same for all pairs.
struct Sampling {
    level: Level,
    every_attempt_before: bool,
    every_attempt_now: bool,
}

impl Sampling {
    fn new(firm: &[(&PairResult, &PairResult)], baseline: &ResultSet, current: &ResultSet) -> Self {
        let every_attempt_before = ran_every_attempt(firm.iter().map(|pair| pair.0), baseline.runs);
        let every_attempt_now = ran_every_attempt(firm.iter().map(|pair| pair.1), current.runs);
        let same_meaning = differing(baseline.policy, current.policy).is_none()
            && differing(baseline.runs, current.runs).is_none();
        let level = if every_attempt_before && every_attempt_now {
            Level::Attempts
        } else if same_meaning {
            Level::Verdicts
        } else {
            Level::FirstAttempts
        };
        Self {
            level,
            every_attempt_before,
            every_attempt_now,
        }
    }

    /// Both sides' samples of a pair, or why there are none.
    fn stratum(&self, before: &PairResult, now: &PairResult) -> Result<Stratum, String> {
        let before = samples(before, self.level, self.every_attempt_before);
        let now = samples(now, self.level, self.every_attempt_now);
        both(before, now).map(|(before, now)| Stratum { before, now })
    }
}

/// Whether the attempts of these pairs are all of them: known one by one, none stopped, none missing.
fn ran_every_attempt<'a>(pairs: impl Iterator<Item = &'a PairResult>, runs: Option<u32>) -> bool {
    let known: Option<Vec<&[Sample]>> = pairs.map(|pair| pair.samples.as_deref()).collect();
    let Some(known) = known else {
        return false;
    };
    // Where the number of runs is not known, a pair with fewer attempts than another may have been stopped.
    let most = known.iter().map(|samples| samples.len()).max().unwrap_or(0);
    let planned = runs.map_or(most, |runs| runs as usize);
    let complete = |samples: &&[Sample]| samples.len() >= planned && samples.iter().all(ran);
    most > 0 && known.iter().all(complete)
}

/// Whether an attempt was neither stopped nor kept from starting.
fn ran(sample: &Sample) -> bool {
    !sample.stopped_early && sample.outcome != Outcome::Cancelled
}

/// One side's samples of a pair, or why there are none.
fn samples(pair: &PairResult, level: Level, every_attempt: bool) -> Result<Count, String> {
    if level == Level::Verdicts {
        return Ok(one_sample(pair.verdict == Verdict::Pass));
    }
    let Some(samples) = &pair.samples else {
        return Err("its attempts are not known one by one".to_owned());
    };
    if every_attempt {
        let count = graded(samples);
        return if count.of > 0 {
            Ok(count)
        } else {
            Err("no attempt gave a result".to_owned())
        };
    }
    match samples.iter().find(|sample| sample.index == 1) {
        Some(first) if first.outcome.is_graded() => Ok(one_sample(first.outcome == Outcome::Passed)),
        Some(first) if first.stopped_early => {
            Err("attempt 1 was stopped when another decided the pair".to_owned())
        }
        _ => Err("attempt 1 gave no result".to_owned()),
    }
}

fn one_sample(passed: bool) -> Count {
    Count {
        hits: u32::from(passed),
        of: 1,
    }
}

fn graded(samples: &[Sample]) -> Count {
    samples.iter().filter(|sample| sample.outcome.is_graded()).fold(
        Count { hits: 0, of: 0 },
        |count, sample| Count {
            hits: count.hits + u32::from(sample.outcome == Outcome::Passed),
            of: count.of + 1,
        },
    )
}
