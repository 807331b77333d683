//! A run as its events tell it: the same whether they are heard live or read from a journal.

use std::collections::HashMap;

use jiff::Timestamp;

use super::attempt::{AttemptRecord, FailedTry};
use super::event::Event;
use super::id::PairId;
use super::plan::{PlannedPair, RunPlan};
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
        Self {
            id: id.to_owned(),
            started_at,
            commit,
            pairs: plan.pairs.iter().map(|_| PairRun::new(plan.runs)).collect(),
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
                if let Some(pair) = self.pair_mut(&attempt.pair) {
                    pair.held_seconds += seconds;
                    let started = pair.started_mut(attempt.index);
                    started.tries = started.tries.max(*try_number);
                    started.failed.push(FailedTry {
                        number: *try_number,
                        error: error.clone(),
                        seconds: *seconds,
                        usage: *usage,
                    });
                    started.since = None;
                }
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
                    // An attempt may end with a try that was told as failed when another was still to come.
                    let started = pair.started_mut(record.index);
                    started.tries = started.tries.max(record.tries);
                    started.since = None;
                    let mut earlier = std::mem::take(&mut started.failed);
                    if earlier.last().map(|last| last.number) == Some(record.tries) {
                        earlier.pop();
                    } else {
                        pair.held_seconds += record.seconds;
                    }
                    pair.published = false;
                    pair.put(AttemptRecord {
                        earlier,
                        path: None,
                        ..(**record).clone()
                    });
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
        let known = plan.pairs.iter().map(|pair| match self.positions.get(&pair.id) {
            Some(at) => std::mem::take(&mut pairs[*at]),
            None => PairRun::new(plan.runs),
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
    fn new(runs: u32) -> Self {
        let runs = runs.min(MOST_AT_ONCE) as usize;
        Self {
            records: Vec::with_capacity(runs),
            started: Vec::with_capacity(runs),
            ..Self::default()
        }
    }

    /// How often an attempt was started.
    pub fn tries(&self, index: u32) -> u32 {
        let at = self.started.binary_search_by_key(&index, |each| each.index);
        at.map_or(0, |at| self.started[at].tries)
    }

    /// What an attempt came to, if it has ended.
    pub fn record(&self, index: u32) -> Option<&AttemptRecord> {
        let at = self.records.binary_search_by_key(&index, |each| each.index);
        self.records.get(at.ok()?)
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
