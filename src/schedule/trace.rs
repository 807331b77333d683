//! Attempts whose durations and outcomes are known, to be simulated under any strategy. Does not know where they come from.

use std::time::Duration;

use super::{AttemptRef, Budget, Ending, Pace, PairSpec, Spec, Timeline, Used, simulate};
use crate::model::{Outcome, Policy};

/// What each attempt of a run would take and give, whether it is started or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The time around a command in a fresh sandbox.
    pub overhead: Duration,
    /// How attempts decide a pair.
    pub policy: Policy,
    /// Attempts of each pair.
    pub runs: u32,
    /// The pairs, in plan order.
    pub pairs: Vec<TracePair>,
    /// How many attempts run at once of the pairs that count against each limit.
    pub limits: Vec<usize>,
}

/// A pair of a [`Trace`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TracePair {
    /// What decides its place in the order.
    pub spec: PairSpec,
    /// Its attempts, `runs` of them.
    pub attempts: Vec<TraceAttempt>,
}

/// An attempt of a [`Trace`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceAttempt {
    /// How long its command takes.
    pub command: Duration,
    /// How it ends, unless it is stopped.
    pub outcome: Outcome,
    /// 0 to 1, where the format has scores.
    pub score: Option<f64>,
}

impl Trace {
    /// What the scheduler is told of it: everything but what its attempts take and give.
    pub fn spec(&self, pace: Pace, concurrency: usize) -> Spec {
        Spec {
            pairs: self.pairs.iter().map(|pair| pair.spec.clone()).collect(),
            runs: self.runs,
            pace,
            policy: self.policy,
            concurrency,
            tries: 1,
            retries: 0,
            overhead: Some(self.overhead),
            limits: self.limits.clone(),
            budget: Budget::default(),
            used: Used::default(),
        }
    }

    /// How long the command of an attempt takes, and how it ends.
    pub fn course(&self, attempt: AttemptRef) -> (Duration, Ending) {
        let TraceAttempt {
            command,
            outcome,
            score,
        } = self.pairs[attempt.pair].attempts[attempt.index as usize - 1];
        let ending = match outcome {
            Outcome::Passed | Outcome::Failed | Outcome::TimedOut => Ending::Graded {
                outcome,
                score,
                command: Some(command),
            },
            Outcome::Errored | Outcome::Cancelled => Ending::Errored {
                class: crate::model::ErrorClass::NoResult,
                retry: false,
                delay: Duration::ZERO,
            },
        };
        (command, ending)
    }

    /// The run that it would have been.
    pub fn simulate(&self, pace: Pace, concurrency: usize) -> Timeline {
        simulate(
            self.spec(pace, concurrency),
            |attempt, _| self.course(attempt),
            |_| self.overhead,
        )
    }
}
