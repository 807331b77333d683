//! Attempts that may start, in their order: at once, when a place is free, or not before a time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use super::lanes::Lanes;
use super::{AttemptRef, PairSpec};

#[derive(Debug)]
pub(super) struct Queue {
    /// Each pair's place by predicted duration, 0 for the longest; equal durations share a place.
    ranks: Vec<usize>,
    /// Attempts of pairs that go on in their place, and whether they do so in the sandbox that is there.
    continuing: BTreeMap<AttemptRef, bool>,
    /// By lane.
    ready: Vec<BTreeSet<Key>>,
    delayed: BTreeSet<(Duration, AttemptRef)>,
    /// When each of `delayed` may start, so that one can be forgotten without a search.
    delays: HashMap<AttemptRef, Duration>,
}

/// The order of what waits for a free place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    rank: usize,
    index: u32,
    pair: usize,
}

impl Queue {
    pub(super) fn new(pairs: &[PairSpec], lanes: usize) -> Self {
        Self {
            ranks: ranks(pairs),
            continuing: BTreeMap::new(),
            ready: vec![BTreeSet::new(); lanes],
            delayed: BTreeSet::new(),
            delays: HashMap::new(),
        }
    }

    /// Each pair's place by predicted duration, 0 for the longest.
    pub(super) fn ranks(&self) -> &[usize] {
        &self.ranks
    }

    /// Adds an attempt that starts when a place is free.
    pub(super) fn push(&mut self, attempt: AttemptRef, lanes: &Lanes) {
        let key = self.key(attempt);
        self.ready[lanes.of(attempt.pair)].insert(key);
    }

    /// Adds an attempt whose pair goes on in its place.
    pub(super) fn push_continuing(&mut self, attempt: AttemptRef, kept: bool) {
        self.continuing.insert(attempt, kept);
    }

    /// Adds an attempt that waits until `time`, and for a free place then.
    pub(super) fn push_delayed(&mut self, attempt: AttemptRef, time: Duration) {
        self.delayed.insert((time, attempt));
        self.delays.insert(attempt, time);
    }

    /// Lets everything wait for a free place that need not wait for its time any more.
    pub(super) fn wake(&mut self, now: Duration, lanes: &Lanes) {
        while let Some(&(time, attempt)) = self.delayed.first()
            && time <= now
        {
            self.delayed.pop_first();
            self.delays.remove(&attempt);
            self.push(attempt, lanes);
        }
    }

    /// The next pair that goes on in its place.
    pub(super) fn pop_continuing(&mut self) -> Option<(AttemptRef, bool)> {
        self.continuing.pop_first()
    }

    /// The first that waits for a free place and may have one.
    pub(super) fn pop(&mut self, now: Duration, lanes: &mut Lanes) -> Option<AttemptRef> {
        let firsts = self.ready.iter().enumerate();
        let firsts = firsts.filter_map(|(lane, ready)| Some((*ready.first()?, lane)));
        let (_, lane) = firsts.filter(|(_, lane)| lanes.is_open(*lane, now)).min()?;
        let Key { pair, index, .. } = self.ready[lane].pop_first()?;
        Some(AttemptRef { pair, index })
    }

    /// Drops an attempt, wherever it waits.
    pub(super) fn forget(&mut self, attempt: AttemptRef, lanes: &Lanes) {
        let key = self.key(attempt);
        self.ready[lanes.of(attempt.pair)].remove(&key);
        self.continuing.remove(&attempt);
        if let Some(time) = self.delays.remove(&attempt) {
            self.delayed.remove(&(time, attempt));
        }
    }

    /// The first time that something waits for.
    pub(super) fn wake_at(&self) -> Option<Duration> {
        self.delayed.first().map(|(time, _)| *time)
    }

    fn key(&self, attempt: AttemptRef) -> Key {
        let AttemptRef { pair, index } = attempt;
        Key {
            rank: self.ranks[pair],
            index,
            pair,
        }
    }
}

fn ranks(pairs: &[PairSpec]) -> Vec<usize> {
    let longest = pairs
        .iter()
        .filter_map(|pair| pair.predicted)
        .max()
        .unwrap_or_default();
    let predicted = |pair: &PairSpec| Reverse(pair.predicted.unwrap_or(longest));
    let mut durations: Vec<Reverse<Duration>> = pairs.iter().map(predicted).collect();
    durations.sort_unstable();
    durations.dedup();
    pairs
        .iter()
        .map(|pair| durations.partition_point(|duration| *duration < predicted(pair)))
        .collect()
}
