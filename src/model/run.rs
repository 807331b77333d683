//! A run as its events tell it: the same whether they are heard live or read from a journal.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;

use super::attempt::AttemptRecord;
use super::event::Event;
use super::id::PairId;
use super::plan::{PlannedPair, RunPlan};

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
    positions: HashMap<PairId, usize>,
}

/// What a pair's attempts came to so far.
#[derive(Clone, Debug, Default)]
pub struct PairRun {
    /// The attempts that ended, in the order of their index.
    pub records: Vec<AttemptRecord>,
    /// Seconds that sandboxes were held, all tries together.
    pub held_seconds: f64,
    /// The last failed try, by attempt.
    failed_tries: BTreeMap<u32, u32>,
}

impl Run {
    /// A run that has only started.
    pub fn new(id: &str, started_at: Timestamp, commit: Option<String>, plan: RunPlan) -> Self {
        let positions = plan
            .pairs
            .iter()
            .enumerate()
            .map(|(at, pair)| (pair.id.clone(), at))
            .collect();
        Self {
            id: id.to_owned(),
            started_at,
            commit,
            pairs: vec![PairRun::default(); plan.pairs.len()],
            plan,
            wall_seconds: 0.0,
            cancelled: true,
            notices: Vec::new(),
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
            | Event::Preparing { .. }
            | Event::PairEnded { .. } => {}
            Event::AttemptStarted { offset, .. } => self.wall_seconds = self.wall_seconds.max(*offset),
            Event::TryFailed {
                attempt,
                try_number,
                seconds,
                ..
            } => {
                if let Some(pair) = self.pair_mut(&attempt.pair) {
                    pair.held_seconds += seconds;
                    pair.failed_tries.insert(attempt.index, *try_number);
                }
            }
            Event::AttemptEnded { pair, record, .. } => {
                let ended = record.started_offset.unwrap_or_default() + record.seconds;
                self.wall_seconds = self.wall_seconds.max(ended);
                if let Some(pair) = self.pair_mut(pair) {
                    // An attempt may end with a try that was told as failed when another was still to come.
                    if pair.failed_tries.get(&record.index) != Some(&record.tries) {
                        pair.held_seconds += record.seconds;
                    }
                    pair.put(record);
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
        }
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

impl PairRun {
    /// Adds a record; a later one of the same attempt takes the place of an earlier one.
    fn put(&mut self, record: &AttemptRecord) {
        match self
            .records
            .binary_search_by_key(&record.index, |each| each.index)
        {
            Ok(at) => record.clone_into(&mut self.records[at]),
            Err(at) => self.records.insert(at, record.clone()),
        }
    }
}
