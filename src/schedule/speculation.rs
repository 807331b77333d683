//! When the adaptive strategy starts an attempt that may turn out not to be needed. Knows neither policies nor places.

use std::collections::BTreeSet;
use std::time::Duration;

use super::calibration::{Calibration, Seen};
use super::lanes::Lanes;
use super::{AttemptRef, PairSpec};

/// An attempt is given this much more than its prediction to end before the run's horizon.
const SLACK: f64 = 1.5;
/// What the longest prediction counts for, where the second longest is below that: one prediction alone may be wild.
const LONGEST_COUNTS: f64 = 0.5;

/// Which pairs are to start another attempt though one of theirs still runs.
///
/// The *horizon* is when the second to last of the running pairs is expected to end, or halfway to the last one where
/// that is later. A pair whose next attempt could no longer end by then, if it started only when the ones before have
/// ended, starts all that it may need at its *latest start*, horizon - (overhead + slack x prediction). Besides, any
/// pair starts its next attempt once its last one has run longer than most attempts do, so that predictions that are
/// wrong, or not there, cost time once and not twice.
#[derive(Debug)]
pub(super) struct Speculation {
    /// Predicted seconds; unknown counts as the longest known.
    predicted: Vec<f64>,
    /// Whether the pair's own prediction is known.
    is_known: Vec<bool>,
    /// Places by predicted duration, 0 for the longest.
    ranks: Vec<usize>,
    any_known: bool,
    calibration: Calibration,
    /// Tries that run, by their start, with the attempt.
    running: Vec<BTreeSet<(Duration, u32)>>,
    /// Running pairs by when they are expected to end.
    ends: BTreeSet<(Duration, usize)>,
    end_of: Vec<Option<Duration>>,
    /// Pairs that could start another attempt, by lane.
    candidates: Vec<Candidates>,
    is_candidate: Vec<bool>,
}

#[derive(Clone, Debug, Default)]
struct Candidates {
    longest_first: BTreeSet<(usize, usize)>,
    /// By the start of their last try.
    oldest_first: BTreeSet<(Duration, usize)>,
}

impl Speculation {
    pub(super) fn new(pairs: &[PairSpec], ranks: &[usize], lanes: usize, overhead: Option<Duration>) -> Self {
        let known = pairs.iter().filter_map(|pair| pair.predicted);
        let longest = known.max().unwrap_or_default();
        Self {
            predicted: pairs
                .iter()
                .map(|pair| pair.predicted.unwrap_or(longest).as_secs_f64())
                .collect(),
            is_known: pairs.iter().map(|pair| pair.predicted.is_some()).collect(),
            ranks: ranks.to_vec(),
            any_known: pairs.iter().any(|pair| pair.predicted.is_some()),
            calibration: Calibration::new(overhead),
            running: vec![BTreeSet::new(); pairs.len()],
            ends: BTreeSet::new(),
            end_of: vec![None; pairs.len()],
            candidates: vec![Candidates::default(); lanes],
            is_candidate: vec![false; pairs.len()],
        }
    }

    /// A try has started. `has_more`: the pair could start another attempt besides.
    pub(super) fn started(
        &mut self,
        AttemptRef { pair, index }: AttemptRef,
        has_more: bool,
        now: Duration,
        lanes: &Lanes,
    ) {
        self.withdraw(pair, lanes);
        self.running[pair].insert((now, index));
        self.place_end(pair);
        if has_more {
            self.propose(pair, lanes);
        }
    }

    /// A try that started at `started` was held so long, and has ended.
    pub(super) fn ended(
        &mut self,
        AttemptRef { pair, index }: AttemptRef,
        started: Duration,
        held: Duration,
        told: Told,
        lanes: &Lanes,
    ) {
        let was_candidate = self.is_candidate[pair];
        self.withdraw(pair, lanes);
        self.running[pair].remove(&(started, index));
        self.take_in(pair, held, told);
        self.place_end(pair);
        if was_candidate {
            self.propose(pair, lanes);
        }
    }

    /// The pair starts nothing more.
    pub(super) fn withdraw(&mut self, pair: usize, lanes: &Lanes) {
        if !std::mem::take(&mut self.is_candidate[pair]) {
            return;
        }
        let candidates = &mut self.candidates[lanes.of(pair)];
        candidates.longest_first.remove(&(self.ranks[pair], pair));
        if let Some(started) = last_start(&self.running[pair]) {
            candidates.oldest_first.remove(&(started, pair));
        }
    }

    /// A pair whose next attempt is to start at `now`, the most urgent first, among the lanes that are open.
    pub(super) fn next(&mut self, now: Duration, lanes: &mut Lanes) -> Option<usize> {
        if self.candidates.iter().all(|lane| lane.oldest_first.is_empty()) {
            return None;
        }
        self.calibrate(now.as_secs_f64());
        let open: Vec<usize> = (0..self.candidates.len())
            .filter(|lane| !self.candidates[*lane].oldest_first.is_empty() && lanes.is_open(*lane, now))
            .collect();
        let is_due = |found: &(Duration, usize)| found.0 <= now;
        let late = open.iter().filter_map(|lane| self.first_late(*lane));
        let late = late.min().filter(is_due);
        let unusual = || open.iter().filter_map(|lane| self.first_unusual(*lane)).min();
        let (_, pair) = late.or_else(|| unusual().filter(is_due))?;
        Some(pair)
    }

    /// When, after `now`, `next` may have something to say though nothing ends.
    pub(super) fn wake_at(&self, now: Duration) -> Option<Duration> {
        let lanes = 0..self.candidates.len();
        let times = lanes.flat_map(|lane| [self.first_late(lane), self.first_unusual(lane)]);
        times
            .flatten()
            .map(|(time, _)| time)
            .filter(|time| *time > now)
            .min()
    }

    /// The lane's longest pair with its latest start: a shorter one has a later one.
    fn first_late(&self, lane: usize) -> Option<(Duration, usize)> {
        let (_, pair) = *self.candidates[lane].longest_first.first()?;
        if !self.any_known {
            return None;
        }
        let needed = self.calibration.overhead + SLACK * self.expected(pair);
        let mut ends = self.ends.iter().rev().map(|(end, _)| end.as_secs_f64());
        let last = ends.next()?;
        // Halfway to the last end, seen from the moment of the start itself.
        let by_last = last - needed / LONGEST_COUNTS;
        let at = ends
            .next()
            .map_or(last - needed, |second| (second - needed).max(by_last));
        Some((time(at), pair))
    }

    /// The lane's pair whose last attempt has run longest, with when that is unusually long.
    fn first_unusual(&self, lane: usize) -> Option<(Duration, usize)> {
        let (started, pair) = *self.candidates[lane].oldest_first.first()?;
        if self.any_known && !self.calibration.is_wild {
            return None;
        }
        let usual = self.calibration.usual? + self.calibration.overhead;
        Some((started.saturating_add(time(usual)), pair))
    }

    fn expected(&self, pair: usize) -> f64 {
        self.calibration.bias * self.predicted[pair]
    }

    fn propose(&mut self, pair: usize, lanes: &Lanes) {
        let Some(started) = last_start(&self.running[pair]) else {
            return;
        };
        self.is_candidate[pair] = true;
        let candidates = &mut self.candidates[lanes.of(pair)];
        candidates.longest_first.insert((self.ranks[pair], pair));
        candidates.oldest_first.insert((started, pair));
    }

    fn place_end(&mut self, pair: usize) {
        let end = last_start(&self.running[pair]).map(|started| {
            let expected = self.calibration.overhead + self.expected(pair);
            started.saturating_add(time(expected))
        });
        let before = std::mem::replace(&mut self.end_of[pair], end);
        if let Some(before) = before {
            self.ends.remove(&(before, pair));
        }
        self.ends.extend(end.map(|end| (end, pair)));
    }

    fn take_in(&mut self, pair: usize, held: Duration, told: Told) {
        let seconds = match told {
            Told::Nothing => return,
            Told::Ended(Some(command)) => {
                // In a kept sandbox there is nothing around a command, and the adaptive strategy keeps none.
                self.calibration.add_overhead(held.saturating_sub(command));
                command.as_secs_f64()
            }
            Told::Ended(None) | Told::Stopped => held.as_secs_f64() - self.calibration.overhead,
        };
        if seconds > 0.0 {
            self.calibration.add(Seen {
                predicted: self.prediction(pair),
                seconds,
                ended: matches!(told, Told::Ended(_)),
            });
        }
    }

    fn prediction(&self, pair: usize) -> Option<f64> {
        let known = self.is_known[pair] && self.predicted[pair] > 0.0;
        known.then_some(self.predicted[pair])
    }

    fn calibrate(&mut self, now: f64) {
        if !self.calibration.is_due(now) {
            return;
        }
        let overhead = self.calibration.overhead;
        let mut running = Vec::new();
        for (pair, tries) in self.running.iter().enumerate() {
            let predicted = self.prediction(pair);
            running.extend(tries.iter().map(|(started, _)| Seen {
                predicted,
                seconds: now - started.as_secs_f64() - overhead,
                ended: false,
            }));
        }
        running.retain(|seen| seen.seconds > 0.0);
        let before = (self.calibration.bias, overhead);
        self.calibration.estimate(now, running.into_iter());
        if before != (self.calibration.bias, self.calibration.overhead) {
            (0..self.predicted.len()).for_each(|pair| self.place_end(pair));
        }
    }
}

/// What the end of a try says of how long its command takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Told {
    /// It gave a result; the time of its command, where that is known.
    Ended(Option<Duration>),
    /// It was stopped before its end.
    Stopped,
    /// It broke.
    Nothing,
}

fn last_start(running: &BTreeSet<(Duration, u32)>) -> Option<Duration> {
    running.last().map(|(started, _)| *started)
}

/// Seconds as a time; before the run's start is at its start.
fn time(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}
