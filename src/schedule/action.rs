//! What the scheduler and whoever drives it say to each other.

use std::fmt;
use std::time::Duration;

use crate::model::{CancelReason, ErrorClass, Outcome};

/// One attempt of a [`Spec`](super::Spec).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptRef {
    /// Position of its pair in the plan, from 0.
    pub pair: usize,
    /// Which of the pair's attempts, from 1.
    pub index: u32,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start a try. Its time counts from its [`Scheduler::hold`](super::Scheduler::hold) on.
    Start {
        /// Of this attempt.
        attempt: AttemptRef,
        /// From 1.
        try_number: u32,
        /// In the sandbox that the pair's attempt before left. Such a start is among the actions of the first
        /// [`Scheduler::next`](super::Scheduler::next) after that attempt's [`Scheduler::end`](super::Scheduler::end), or it never comes.
        kept: bool,
    },
    /// Stop a running attempt. It still has to [`Scheduler::end`](super::Scheduler::end), with whatever became of it.
    Cancel {
        /// This attempt.
        attempt: AttemptRef,
        /// Why.
        reason: CancelReason,
    },
    /// An attempt that waits to be started, or to be tried again, is cancelled. Nothing more is said of it.
    Skip {
        /// This attempt.
        attempt: AttemptRef,
        /// Why.
        reason: CancelReason,
    },
    /// An attempt that waits for another try does not get it: its last error is final. Nothing more is said of it.
    GiveUp {
        /// This attempt.
        attempt: AttemptRef,
    },
}

/// How a try ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ending {
    /// It gave a result.
    Graded {
        /// Passed, failed or timed out.
        outcome: Outcome,
        /// 0 to 1, where the format has scores.
        score: Option<f64>,
        /// How long its command took, where that is known apart from what was around it.
        command: Option<Duration>,
    },
    /// It gave none, for reasons that are not the agent's.
    Errored {
        /// The kind of failure.
        class: ErrorClass,
        /// Whether a fresh try could give a result.
        retry: bool,
        /// How long the next try has to wait at least.
        delay: Duration,
    },
    /// It was stopped.
    Cancelled,
}

/// What follows from the end of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The attempt has ended for good.
    Final,
    /// Another try of it comes.
    Retry,
    /// The attempt has ended for good, only because the run's retries are used up.
    RetriesUsedUp,
}

impl fmt::Display for AttemptRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attempt {} of pair {}", self.index, self.pair)
    }
}
