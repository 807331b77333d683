//! Which attempt starts next, and when: all strategies as one state machine to which time is a value. Starts nothing itself.

mod action;
mod breaker;
mod queue;
mod simulate;

use std::time::Duration;

use crate::aggregate::Tally;
use crate::model::{CancelReason, OnPass, Outcome, Policy, Strategy};
pub use action::{Action, AttemptRef, Ended, Ending};
use breaker::Breaker;
pub use breaker::Stopped;
use queue::Queue;
pub use simulate::{Span, Timeline, simulate};

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
}

/// A pair as far as its place in the order depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairSpec {
    /// How long one attempt is expected to take; `None` is unknown, and counts as the longest known.
    pub predicted: Option<Duration>,
}

/// A strategy that is built in, with the choice that it alone has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// One sandbox a pair, its attempts one after another, until it is decided.
    Sequential,
    /// Every attempt in its own sandbox, all in one pool.
    Parallel(OnPass),
}

/// A strategy that is not built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the strategy `{0}` is not built in yet\nuse `sequential` or `parallel`")]
pub struct NotBuiltIn(pub Strategy);

impl Pace {
    /// The pace of a strategy.
    ///
    /// # Errors
    /// The strategy is not built in.
    pub fn new(strategy: Strategy, on_pass: OnPass) -> Result<Self, NotBuiltIn> {
        match strategy {
            Strategy::Sequential => Ok(Self::Sequential),
            Strategy::Parallel => Ok(Self::Parallel(on_pass)),
            Strategy::Adaptive => Err(NotBuiltIn(strategy)),
        }
    }
}

/// Most retries of a run: a share of its planned attempts, rounded up, and never fewer than 10.
pub fn retry_budget(share: f64, planned: usize) -> usize {
    // `as` saturates: a negative share or one that is not a number is 0.
    ((share * planned as f64).ceil() as usize).max(10)
}

/// The state machine. Between a change and the next wait: [`Scheduler::next`].
///
/// - **Order.** Whatever waits for a free place starts longest predicted first; of equal predictions every pair's
///   attempt 1 before any attempt 2, then in plan order. So a wave that does not fit ends early, and where nothing is
///   predicted, pairs that are decided by their first attempt are known before a second is spent on them.
/// - **In sequence** a pair that has begun goes on at once in its place; it gives the place up only to wait for a
///   delayed retry, or when it is done.
/// - **Retries** are for errored tries alone, as many as the attempt's tries and the run's budget allow.
#[derive(Debug)]
pub struct Scheduler {
    spec: Spec,
    attempts: Vec<Attempt>,
    pairs: Vec<PairState>,
    queue: Queue,
    /// Said at the next call of `next`, before anything starts.
    pending: Vec<Action>,
    running: usize,
    open: usize,
    retries_left: usize,
    retries_used_up: bool,
    breaker: Breaker,
    halted: bool,
    stopped: Option<Stopped>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Attempt {
    state: State,
    tries: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Its turn has not come: the pair's attempt before is not done.
    #[default]
    Waiting,
    /// It may start.
    Queued,
    Running,
    /// It runs and was told to stop.
    Stopping,
    Ended,
}

#[derive(Clone, Debug)]
struct PairState {
    tally: Tally,
    /// Attempts that have not ended.
    open: u32,
    /// It was decided, and its other attempts were stopped.
    stopped: bool,
}

impl Scheduler {
    /// A run at its start.
    pub fn new(spec: Spec) -> Self {
        let attempts = spec.pairs.len() * spec.runs as usize;
        let tries = attempts.saturating_mul(spec.tries.max(1) as usize);
        let pair = PairState {
            tally: Tally::default(),
            open: spec.runs,
            stopped: false,
        };
        let mut scheduler = Self {
            attempts: vec![Attempt::default(); attempts],
            pairs: vec![pair; spec.pairs.len()],
            queue: Queue::new(&spec.pairs),
            pending: Vec::new(),
            running: 0,
            open: attempts,
            retries_left: spec.retries,
            retries_used_up: false,
            breaker: Breaker::new(tries),
            halted: false,
            stopped: None,
            spec,
        };
        let at_once = match scheduler.spec.pace {
            Pace::Sequential => scheduler.spec.runs.min(1),
            Pace::Parallel(_) => scheduler.spec.runs,
        };
        for pair in 0..scheduler.pairs.len() {
            for index in 1..=at_once {
                let attempt = AttemptRef { pair, index };
                scheduler.attempt(attempt).state = State::Queued;
                scheduler.queue.push(attempt);
            }
        }
        scheduler
    }

    /// What is to be done at `now`, in this order.
    pub fn next(&mut self, now: Duration) -> Vec<Action> {
        let mut actions = std::mem::take(&mut self.pending);
        self.queue.wake(now);
        // A pair that goes on does so in the place that its last try has just left, so there is room for all of these.
        while let Some((attempt, kept)) = self.queue.pop_continuing() {
            self.start(attempt, kept, &mut actions);
        }
        while self.running < self.spec.concurrency.max(1)
            && let Some(attempt) = self.queue.pop()
        {
            self.start(attempt, false, &mut actions);
        }
        actions
    }

    /// Takes note that a running attempt's try has ended.
    pub fn end(&mut self, attempt: AttemptRef, ending: Ending, now: Duration) -> Ended {
        let Attempt { state, tries } = *self.attempt(attempt);
        debug_assert!(
            matches!(state, State::Running | State::Stopping),
            "{attempt} ends but does not run"
        );
        self.running -= 1;
        self.breaker.note(&ending);
        match ending {
            Ending::Graded { outcome, score } => self.finish(attempt, outcome, score),
            Ending::Cancelled => self.finish(attempt, Outcome::Cancelled, None),
            Ending::Errored { retry, delay, .. } => {
                let worth_it = retry && state == State::Running && tries < self.spec.tries;
                if let Some(stopped) = self.breaker.tripped()
                    && !self.halted
                    && (worth_it || self.open > 1)
                {
                    self.stopped = Some(stopped);
                    self.finish(attempt, Outcome::Errored, None);
                    self.halt(CancelReason::Breaker);
                } else if worth_it && self.retries_left > 0 {
                    self.retries_left -= 1;
                    self.try_again(attempt, delay, now);
                    return Ended::Retry;
                } else {
                    self.finish(attempt, Outcome::Errored, None);
                    if worth_it {
                        self.retries_used_up = true;
                        return Ended::RetriesUsedUp;
                    }
                }
            }
        }
        Ended::Final
    }

    /// When `next` may have something to do though nothing ends: the first delayed retry's time.
    pub fn wake_at(&self) -> Option<Duration> {
        self.queue.wake_at()
    }

    /// Cancels the run: what waits is skipped, what runs is told to stop, at the next call of `next`.
    pub fn cancel(&mut self) {
        if !self.halted {
            self.halt(CancelReason::Run);
        }
    }

    /// Whether every attempt has ended and nothing is left to be done.
    pub fn is_done(&self) -> bool {
        self.open == 0 && self.pending.is_empty()
    }

    /// Why the run was stopped before its plan was done, where it was: its first tries all died in the same way.
    pub fn stopped(&self) -> Option<&Stopped> {
        self.stopped.as_ref()
    }

    /// Whether an attempt ended for good only because the run's retries were used up.
    pub fn retries_used_up(&self) -> bool {
        self.retries_used_up
    }

    fn start(&mut self, attempt: AttemptRef, kept: bool, actions: &mut Vec<Action>) {
        let entry = self.attempt(attempt);
        entry.state = State::Running;
        entry.tries += 1;
        let try_number = entry.tries;
        self.running += 1;
        actions.push(Action::Start {
            attempt,
            try_number,
            kept,
        });
    }

    fn try_again(&mut self, attempt: AttemptRef, delay: Duration, now: Duration) {
        self.attempt(attempt).state = State::Queued;
        if !delay.is_zero() {
            self.queue.push_delayed(attempt, now.saturating_add(delay));
        } else if self.spec.pace == Pace::Sequential {
            self.queue.push_continuing(attempt, false);
        } else {
            self.queue.push(attempt);
        }
    }

    /// Ends an attempt for good, and does what follows for its pair.
    fn finish(&mut self, attempt: AttemptRef, outcome: Outcome, score: Option<f64>) {
        self.close(attempt);
        let Spec { policy, runs, .. } = self.spec;
        let pair = &mut self.pairs[attempt.pair];
        pair.tally.add(outcome, score);
        if self.halted || pair.stopped {
            return;
        }
        let stops_when_decided = self.spec.pace != Pace::Parallel(OnPass::Continue);
        if stops_when_decided && pair.tally.decided(policy, runs, pair.open).is_some() {
            pair.stopped = true;
            for index in 1..=runs {
                let other = AttemptRef { index, ..attempt };
                self.stop(other, CancelReason::Decided);
            }
        } else if self.spec.pace == Pace::Sequential && attempt.index < runs {
            let following = AttemptRef {
                index: attempt.index + 1,
                ..attempt
            };
            self.attempt(following).state = State::Queued;
            let kept = matches!(outcome, Outcome::Passed | Outcome::Failed);
            self.queue.push_continuing(following, kept);
        }
    }

    /// Stops the whole run.
    fn halt(&mut self, reason: CancelReason) {
        self.halted = true;
        for pair in 0..self.pairs.len() {
            for index in 1..=self.spec.runs {
                self.stop(AttemptRef { pair, index }, reason);
            }
        }
    }

    fn stop(&mut self, attempt: AttemptRef, reason: CancelReason) {
        let entry = self.attempt(attempt);
        match entry.state {
            State::Running => {
                entry.state = State::Stopping;
                self.pending.push(Action::Cancel { attempt, reason });
            }
            State::Waiting | State::Queued => {
                // An attempt that has died shows why the run was stopped, which one that is cancelled would not.
                let gives_up = reason == CancelReason::Breaker && entry.tries > 0;
                self.pending.push(if gives_up {
                    Action::GiveUp { attempt }
                } else {
                    Action::Skip { attempt, reason }
                });
                self.queue.forget(attempt);
                self.close(attempt);
            }
            State::Stopping | State::Ended => {}
        }
    }

    fn close(&mut self, attempt: AttemptRef) {
        self.attempt(attempt).state = State::Ended;
        self.pairs[attempt.pair].open -= 1;
        self.open -= 1;
    }

    fn attempt(&mut self, attempt: AttemptRef) -> &mut Attempt {
        let position = attempt.pair * self.spec.runs as usize + attempt.index as usize - 1;
        &mut self.attempts[position]
    }
}

#[cfg(test)]
mod tests;
