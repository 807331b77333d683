//! A run as its events tell it: the same whether they are heard live or read from a journal.

use std::collections::HashMap;

use jiff::Timestamp;

use super::attempt::{AttemptRecord, CancelReason, FailedTry, Outcome};
use super::event::Event;
use super::id::PairId;
use super::plan::{PlannedPair, RunPlan};
use super::reading::Usage;
use super::summary::Findings;

/// A run, as far as it has gone.
#[derive(Clone, Debug)]
pub struct Run {
    /// Unique name of the run.
    pub id: String,
    /// When it started.
    pub started_at: Timestamp,
    /// The commit that is measured, where known.
    pub commit: Option<String>,
    /// What was going to be done.
    pub plan: RunPlan,
    /// Its pairs, in plan order.
    pub pairs: Vec<PairRun>,
    /// Seconds from its start to its end; to the last event while it has not ended.
    pub wall_seconds: f64,
    /// It was cancelled, or has not ended.
    pub cancelled: bool,
    /// What a reader should know.
    pub notices: Vec<String>,
    /// What was found when it had ended, where it came to that.
    pub findings: Option<Box<Findings>>,
    positions: HashMap<PairId, usize>,
}

/// What a pair's attempts came to so far.
#[derive(Clone, Debug, Default)]
pub struct PairRun {
    /// Its place in the plan that the run began with, from 1: the same in every session of the run, in whatever order it
    /// goes on.
    pub number: usize,
    /// The attempts that ended, in the order of their index; without their paths, which follow from their names.
    pub records: Vec<AttemptRecord>,
    /// Seconds that sandboxes were held, all tries together.
    pub held_seconds: f64,
    /// Its results were published after the last of its attempts had ended.
    pub published: bool,
    /// The attempts that were started, in the order of their index.
    started: Vec<Started>,
}

/// How far an attempt has come.
#[derive(Clone, Debug)]
struct Started {
    index: u32,
    /// Its last try.
    tries: u32,
    /// The tries that failed, while it has not ended.
    failed: Vec<FailedTry>,
    /// When its last try began, while that has not ended.
    since: Option<f64>,
}

impl Run {
    /// A run that has only started.
    pub fn new(id: &str, started_at: Timestamp, commit: Option<String>, plan: RunPlan) -> Self {
        let positions = positions(&plan);
        let numbers = 1..=plan.pairs.len();
        Self {
            id: id.to_owned(),
            started_at,
            commit,
            pairs: numbers.map(|number| PairRun::new(number, plan.runs)).collect(),
            plan,
            wall_seconds: 0.0,
            cancelled: true,
            notices: Vec::new(),
            findings: None,
            positions,
        }
    }

    /// Takes an event in. Events of pairs outside the plan change nothing.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::RunStarted { .. }
            | Event::SandboxesAt { .. }
            | Event::SandboxNamed { .. }
            | Event::SandboxCreated { .. }
            | Event::SandboxGone { .. }
            | Event::Preparing { .. } => {}
            Event::RunResumed { offset, plan, .. } => self.resume(*offset, plan),
            Event::AttemptStarted {
                attempt,
                try_number,
                offset,
            } => {
                self.wall_seconds = self.wall_seconds.max(*offset);
                if let Some(pair) = self.pair_mut(&attempt.pair) {
                    let started = pair.started_mut(attempt.index);
                    started.tries = *try_number;
                    started.since = Some(*offset);
                }
            }
            Event::TryFailed {
                attempt,
                try_number,
                error,
                seconds,
                usage,
            } => {
                let mut ended = 0.0;
                let failed = FailedTry {
                    number: *try_number,
                    error: error.clone(),
                    seconds: *seconds,
                    usage: *usage,
                };
                // Two parts of a whole may tell of the same one.
                let pair = self.pair_mut(&attempt.pair);
                if let Some(pair) = pair.filter(|pair| !pair.knows(attempt.index, &failed)) {
                    pair.held_seconds += seconds;
                    let started = pair.started_mut(attempt.index);
                    // The try after it may have been told of before.
                    if *try_number >= started.tries {
                        started.tries = *try_number;
                        ended = started.since.take().map_or(0.0, |begun| begun + seconds);
                    }
                    started.failed.push(failed);
                }
                self.wall_seconds = self.wall_seconds.max(ended);
            }
            Event::PairEnded { pair, .. } => {
                if let Some(pair) = self.pair_mut(pair) {
                    pair.published = true;
                }
            }
            Event::AttemptEnded { pair, record, .. } => {
                let ended = record.started_offset.unwrap_or_default() + record.seconds;
                self.wall_seconds = self.wall_seconds.max(ended);
                if let Some(pair) = self.pair_mut(pair) {
                    pair.end(record);
                }
            }
            Event::RunEnded {
                offset,
                cancelled,
                notices,
            } => {
                self.wall_seconds = *offset;
                self.cancelled = *cancelled;
                self.notices.clone_from(notices);
            }
            Event::RunConcluded { findings } => self.findings = Some(findings.clone()),
        }
    }

    /// Goes on with the same pairs, in the order of `plan`. Sandboxes that were lost were held as long as anything is
    /// known of the run.
    fn resume(&mut self, offset: f64, plan: &RunPlan) {
        for pair in &mut self.pairs {
            let lost = pair.started.iter_mut().filter_map(|started| started.since.take());
            pair.held_seconds += lost
                .map(|begun| (self.wall_seconds - begun).max(0.0))
                .sum::<f64>();
        }
        let mut pairs = std::mem::take(&mut self.pairs);
        let known = (1..)
            .zip(&plan.pairs)
            .map(|(number, pair)| match self.positions.get(&pair.id) {
                Some(at) => std::mem::take(&mut pairs[*at]),
                None => PairRun::new(number, plan.runs),
            });
        self.pairs = known.collect();
        self.positions = positions(plan);
        self.plan = plan.clone();
        self.wall_seconds = self.wall_seconds.max(offset);
        self.cancelled = true;
        self.notices.clear();
        self.findings = None;
    }

    /// What a pair's attempts came to so far, with what was planned of it.
    pub fn pair(&self, id: &PairId) -> Option<(&PlannedPair, &PairRun)> {
        let at = *self.positions.get(id)?;
        Some((self.plan.pairs.get(at)?, self.pairs.get(at)?))
    }

    fn pair_mut(&mut self, id: &PairId) -> Option<&mut PairRun> {
        self.positions.get(id).and_then(|at| self.pairs.get_mut(*at))
    }
}

fn positions(plan: &RunPlan) -> HashMap<PairId, usize> {
    let pairs = plan.pairs.iter().enumerate();
    pairs.map(|(at, pair)| (pair.id.clone(), at)).collect()
}

impl PairRun {
    /// A pair that is to have so many attempts. Their place is made at once, together with that of all other pairs: what
    /// stays to the end of a run does not come to lie between what passes.
    fn new(number: usize, runs: u32) -> Self {
        let runs = runs.min(MOST_AT_ONCE) as usize;
        Self {
            number,
            records: Vec::with_capacity(runs),
            started: Vec::with_capacity(runs),
            ..Self::default()
        }
    }

    /// How often an attempt was started.
    pub fn tries(&self, index: u32) -> u32 {
        self.started(index).map_or(0, |started| started.tries)
    }

    /// The tries of an attempt that have failed since it ended last, or began: another one was to follow.
    pub fn failed(&self, index: u32) -> &[FailedTry] {
        self.started(index).map_or(&[], |started| &started.failed)
    }

    /// What each of its tries used, of those that say so, whether or not their attempts have ended.
    pub fn usages(&self) -> impl Iterator<Item = Usage> {
        let ended = self.records.iter().flat_map(AttemptRecord::usages);
        let failed = self.started.iter().flat_map(|started| &started.failed);
        ended.chain(failed.filter_map(|failed| failed.usage))
    }

    /// What an attempt comes to that is stopped without another try: its last try is the one that failed last, or that
    /// was stopped before.
    pub fn stopped(&self, index: u32, reason: CancelReason) -> AttemptRecord {
        let never = AttemptRecord::not_started(index, reason);
        let begun = |record: &&AttemptRecord| record.tries > 0;
        let known = match (self.failed(index).last(), self.record(index).filter(begun)) {
            (Some(last), _) => AttemptRecord {
                tries: last.number,
                seconds: last.seconds,
                error: Some(last.error.clone()),
                usage: last.usage,
                ..never
            },
            (None, Some(record)) => record.clone(),
            // Nothing was told of tries that were lost.
            (None, None) => AttemptRecord {
                tries: self.tries(index),
                ..never
            },
        };
        AttemptRecord {
            outcome: Outcome::Cancelled,
            reason: Some(reason),
            earlier: self.earlier(&known),
            ..known
        }
    }

    /// What an attempt came to, if it has ended.
    pub fn record(&self, index: u32) -> Option<&AttemptRecord> {
        let at = self.records.binary_search_by_key(&index, |each| each.index);
        self.records.get(at.ok()?)
    }

    /// Takes in how an attempt has ended. Its seconds are counted once, whether its last try was told as failed before,
    /// when another one was still to come, or is the one of an earlier session.
    fn end(&mut self, record: &AttemptRecord) {
        let earlier = self.earlier(record);
        let known = self.record(record.index);
        let is_counted =
            known.is_some_and(|known| known.is_same_try(record)) || self.ends_with_failed(record);
        if !is_counted {
            self.held_seconds += record.seconds;
        }
        let started = self.started_mut(record.index);
        started.tries = started.tries.max(record.tries);
        started.since = None;
        started.failed = Vec::new();
        self.published = false;
        self.put(AttemptRecord {
            earlier,
            path: None,
            ..record.clone()
        });
    }

    /// The tries before the last of an attempt that ends with this record: those of earlier sessions and of this one.
    fn earlier(&self, record: &AttemptRecord) -> Vec<FailedTry> {
        let mut failed = self.failed(record.index);
        if self.ends_with_failed(record) {
            failed = &failed[..failed.len() - 1];
        }
        let first = failed.first().map_or(record.tries, |failed| failed.number);
        let mut earlier = match self.record(record.index) {
            Some(known) if known.is_same_try(record) => known.earlier.clone(),
            // Tries that do not count on from there are those of another run that was joined.
            Some(known) if known.tries < first => {
                known.earlier.iter().cloned().chain(known.failed_try()).collect()
            }
            Some(_) | None => Vec::new(),
        };
        earlier.extend_from_slice(failed);
        earlier
    }

    /// Whether the last try of the record was told as failed already.
    fn ends_with_failed(&self, record: &AttemptRecord) -> bool {
        let last = self.failed(record.index).last();
        last.is_some_and(|last| record.failed_try().as_ref() == Some(last))
    }

    fn knows(&self, index: u32, failed: &FailedTry) -> bool {
        let of_record = self.record(index).map_or(&[][..], |record| &record.earlier);
        of_record.contains(failed)
    }

    /// Adds a record; a later one of the same attempt takes the place of an earlier one.
    fn put(&mut self, record: AttemptRecord) {
        match self
            .records
            .binary_search_by_key(&record.index, |each| each.index)
        {
            Ok(at) => self.records[at] = record,
            Err(at) => insert(&mut self.records, at, record),
        }
    }

    fn started(&self, index: u32) -> Option<&Started> {
        let at = self.started.binary_search_by_key(&index, |each| each.index);
        self.started.get(at.ok()?)
    }

    fn started_mut(&mut self, index: u32) -> &mut Started {
        let at = match self.started.binary_search_by_key(&index, |each| each.index) {
            Ok(at) => at,
            Err(at) => {
                let started = Started {
                    index,
                    tries: 0,
                    failed: Vec::new(),
                    since: None,
                };
                insert(&mut self.started, at, started);
                at
            }
        };
        &mut self.started[at]
    }
}

/// For so many attempts of a pair there is place from the beginning; a journal may claim any number.
const MOST_AT_ONCE: u32 = 16;

/// Pairs are many and have few attempts each, so no room is kept for more.
fn insert<T>(list: &mut Vec<T>, at: usize, item: T) {
    list.reserve_exact(1);
    list.insert(at, item);
}
