//! What a scheduler is told of a run. Decides nothing.

use std::time::Duration;

use super::{Budget, Used};
use crate::model::{OnPass, Outcome, Policy, Strategy};

/// Everything that decides the order of attempts. Times are since the run's start.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The pairs, in plan order.
    pub pairs: Vec<PairSpec>,
    /// Attempts of each pair.
    pub runs: u32,
    /// When attempts start.
    pub pace: Pace,
    /// How attempts decide a pair.
    pub policy: Policy,
    /// How many attempts run at once; 0 counts as 1. In sequence that is as many pairs.
    pub concurrency: usize,
    /// Most tries of one attempt; 0 counts as 1.
    pub tries: u32,
    /// Most retries of the whole run, as [`retry_budget`] reckons them.
    pub retries: usize,
    /// The time around a command in a fresh sandbox, where it is known from earlier runs.
    pub overhead: Option<Duration>,
    /// How many attempts run at once of the pairs that count against each limit.
    pub limits: Vec<usize>,
    /// What the run may use.
    pub budget: Budget,
    /// What it has used already.
    pub used: Used,
}

/// A pair as far as its place in the order depends on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PairSpec {
    /// How long the command of one attempt is expected to take; `None` is unknown, and counts as the longest known.
    pub predicted: Option<Duration>,
    /// The limits that its attempts count against, by position.
    pub limits: Vec<usize>,
    /// What its first attempts came to, where an earlier session of the run has made them: they are not made again.
    pub done: Vec<(Outcome, Option<f64>)>,
}

/// A strategy, with the choice that one of them has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// One sandbox a pair, its attempts one after another, until it is decided.
    Sequential,
    /// Every attempt in its own sandbox, all in one pool.
    Parallel(OnPass),
    /// Every attempt in its own sandbox; those that may not be needed start only when waiting would cost time.
    Adaptive,
}

impl Pace {
    /// The pace of a strategy.
    pub fn new(strategy: Strategy, on_pass: OnPass) -> Self {
        match strategy {
            Strategy::Sequential => Self::Sequential,
            Strategy::Parallel => Self::Parallel(on_pass),
            Strategy::Adaptive => Self::Adaptive,
        }
    }
}

/// Most retries of a run: a share of its planned attempts, rounded up, and never fewer than 10.
pub fn retry_budget(share: f64, planned: usize) -> usize {
    // `as` saturates: a negative share or one that is not a number is 0.
    ((share * planned as f64).ceil() as usize).max(10)
}
