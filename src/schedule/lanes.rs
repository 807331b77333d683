//! Which pairs share which limits, and whether one of them may start another attempt. Does not know what waits.

use std::collections::BTreeMap;
use std::time::Duration;

use super::PairSpec;
use super::limit::Limit;

/// Pairs that count against the same limits are one lane: if one of them may start, each of them may.
#[derive(Debug)]
pub(super) struct Lanes {
    limits: Vec<(Limit, usize)>,
    /// The limits of each lane.
    lanes: Vec<Vec<usize>>,
    lane_of: Vec<usize>,
}

impl Lanes {
    /// Lanes of `pairs`, whose limits are positions in `limits`; positions beyond it are no limits.
    pub(super) fn new(pairs: &[PairSpec], limits: &[usize]) -> Self {
        let mut known: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        let lane_of = pairs.iter().map(|pair| {
            let mut of: Vec<usize> = pair
                .limits
                .iter()
                .copied()
                .filter(|limit| *limit < limits.len())
                .collect();
            of.sort_unstable();
            of.dedup();
            let next = known.len();
            *known.entry(of).or_insert(next)
        });
        let lane_of = lane_of.collect();
        let mut lanes = vec![Vec::new(); known.len()];
        for (limits, lane) in known {
            lanes[lane] = limits;
        }
        Self {
            limits: limits.iter().map(|most| (Limit::new(*most), 0)).collect(),
            lanes,
            lane_of,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.lanes.len()
    }

    pub(super) fn of(&self, pair: usize) -> usize {
        self.lane_of[pair]
    }

    /// Takes the limits to this time, also those that nothing waits for.
    pub(super) fn grow(&mut self, now: Duration) {
        for (limit, _) in &mut self.limits {
            limit.at(now);
        }
    }

    /// Whether an attempt of the lane's pairs may start now.
    pub(super) fn is_open(&mut self, lane: usize, now: Duration) -> bool {
        let limits = &mut self.limits;
        self.lanes[lane].iter().all(|limit| {
            let (limit, running) = &mut limits[*limit];
            *running < limit.at(now)
        })
    }

    pub(super) fn start(&mut self, pair: usize) {
        for limit in &self.lanes[self.lane_of[pair]] {
            self.limits[*limit].1 += 1;
        }
    }

    pub(super) fn end(&mut self, pair: usize) {
        for limit in &self.lanes[self.lane_of[pair]] {
            self.limits[*limit].1 -= 1;
        }
    }

    /// Takes note that a try of the pair, which started at `started`, was throttled.
    pub(super) fn throttled(&mut self, pair: usize, started: Duration, now: Duration) {
        for limit in &self.lanes[self.lane_of[pair]] {
            self.limits[*limit].0.throttled(started, now);
        }
    }

    /// When the first limit that is cut grows again.
    pub(super) fn grows_at(&self) -> Option<Duration> {
        self.limits.iter().filter_map(|(limit, _)| limit.grows_at()).min()
    }
}
