//! Which attempt starts next, and when: all strategies as one state machine to which time is a value. Starts nothing itself.

mod action;
mod breaker;
mod calibration;
mod lanes;
mod limit;
mod meter;
mod queue;
mod simulate;
mod spec;
mod speculation;
mod trace;

use std::time::Duration;

use crate::aggregate::Tally;
use crate::model::{CancelReason, ErrorClass, OnPass, Outcome};
pub use action::{Action, AttemptRef, Ended, Ending};
use breaker::Breaker;
pub use breaker::Stopped;
use lanes::Lanes;
pub use limit::Limit;
use meter::Meter;
pub use meter::{Budget, Exhausted, Used};
use queue::Queue;
pub use simulate::{Span, Timeline, simulate};
pub use spec::{Pace, PairSpec, Spec, retry_budget};
use speculation::{Speculation, Told};
pub use trace::{Trace, TraceAttempt, TracePair};

/// The state machine. Between a change and the next wait: [`Scheduler::next`].
///
/// - **Order.** Whatever waits for a free place starts longest predicted first; of equal predictions every pair's
///   attempt 1 before any attempt 2, then in plan order. So a wave that does not fit ends early, and where nothing is
///   predicted, pairs that are decided by their first attempt are known before a second is spent on them.
/// - **In sequence** a pair that has begun goes on at once in its place; it gives the place up only to wait for a
///   delayed retry, or when it is done.
/// - **Adaptive.** Attempts that are certain to be needed, whatever those before them give, wait in the order above.
///   Places that they leave free go to attempts that may be needed, when their time has come.
/// - **Retries** are for errored tries alone, as many as the attempt's tries and the run's budget allow.
#[derive(Debug)]
pub struct Scheduler {
    spec: Spec,
    attempts: Vec<Attempt>,
    pairs: Vec<PairState>,
    queue: Queue,
    lanes: Lanes,
    /// Of the adaptive strategy.
    speculation: Option<Speculation>,
    meter: Meter,
    /// Said at the next call of `next`, before anything starts.
    pending: Vec<Action>,
    running: usize,
    open: usize,
    retries_left: usize,
    retries_used_up: bool,
    breaker: Breaker,
    halted: bool,
    stopped: Option<Stopped>,
    exhausted: Option<Exhausted>,
    /// The time of the last call of `next`.
    now: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Attempt {
    state: State,
    tries: u32,
    /// When its last try started.
    started: Duration,
    /// That try holds a sandbox.
    holds: bool,
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
    /// Attempts whose turn has come, from the first on.
    released: u32,
    /// It was decided, and its other attempts were stopped.
    stopped: bool,
}

impl PairState {
    fn new(spec: &PairSpec, runs: u32) -> Self {
        let mut tally = Tally::default();
        let done = spec.done.iter().take(runs as usize);
        let mut released = 0;
        for (outcome, score) in done {
            tally.add(*outcome, *score);
            released += 1;
        }
        Self {
            tally,
            open: runs - released,
            released,
            stopped: false,
        }
    }
}

impl Scheduler {
    /// A run at its start, or where it goes on.
    pub fn new(spec: Spec) -> Self {
        let attempts = spec.pairs.len() * spec.runs as usize;
        let pairs: Vec<PairState> = spec
            .pairs
            .iter()
            .map(|pair| PairState::new(pair, spec.runs))
            .collect();
        let open = pairs.iter().map(|pair| pair.open as usize).sum::<usize>();
        let tries = open.saturating_mul(spec.tries.max(1) as usize);
        let lanes = Lanes::new(&spec.pairs, &spec.limits);
        let queue = Queue::new(&spec.pairs, lanes.len());
        let speculation = (spec.pace == Pace::Adaptive)
            .then(|| Speculation::new(&spec.pairs, queue.ranks(), lanes.len(), spec.overhead));
        let mut scheduler = Self {
            attempts: vec![Attempt::default(); attempts],
            pairs,
            queue,
            lanes,
            speculation,
            meter: Meter::new(spec.budget, spec.used),
            pending: Vec::new(),
            running: 0,
            open,
            retries_left: spec.retries,
            retries_used_up: false,
            breaker: Breaker::new(tries),
            halted: false,
            stopped: None,
            exhausted: None,
            now: Duration::ZERO,
            spec,
        };
        for pair in 0..scheduler.pairs.len() {
            let done = scheduler.pairs[pair].released;
            for index in 1..=done {
                scheduler.attempt(AttemptRef { pair, index }).state = State::Ended;
            }
            if done > 0 {
                scheduler.stop_if_decided(pair);
            }
            while scheduler.is_next_certain(pair) {
                let attempt = scheduler.release(pair);
                scheduler.queue.push(attempt, &scheduler.lanes);
            }
        }
        scheduler
    }

    /// What is to be done at `now`, in this order.
    pub fn next(&mut self, now: Duration) -> Vec<Action> {
        self.now = now;
        self.lanes.grow(now);
        if !self.halted
            && self.open > 0
            && let Some(exhausted) = self.meter.exhausted(now)
        {
            self.exhausted = Some(exhausted);
            self.halt(CancelReason::Budget);
        }
        let mut actions = std::mem::take(&mut self.pending);
        self.queue.wake(now, &self.lanes);
        // A pair that goes on does so in the place that its last try has just left, so there is room for all of these.
        while let Some((attempt, kept)) = self.queue.pop_continuing() {
            self.start(attempt, kept, &mut actions);
        }
        while self.running < self.spec.concurrency.max(1)
            && let Some(attempt) = self.queue.pop(now, &mut self.lanes)
        {
            self.start(attempt, false, &mut actions);
        }
        while self.running < self.spec.concurrency.max(1)
            && let Some(pair) = self
                .speculation
                .as_mut()
                .and_then(|speculation| speculation.next(now, &mut self.lanes))
        {
            let attempt = self.release(pair);
            self.start(attempt, false, &mut actions);
        }
        actions
    }

    /// Takes note that a running attempt's try has its turn to hold a sandbox, since `at`. What it waited before is no
    /// time of a sandbox.
    pub fn hold(&mut self, attempt: AttemptRef, at: Duration) {
        let entry = self.attempt(attempt);
        debug_assert!(
            matches!(entry.state, State::Running | State::Stopping),
            "{attempt} holds a sandbox but does not run"
        );
        entry.holds = true;
        self.meter.start(at);
    }

    /// Takes note that a running attempt's try has ended.
    pub fn end(&mut self, attempt: AttemptRef, ending: Ending, now: Duration) -> Ended {
        let Attempt {
            state,
            tries,
            started,
            holds,
        } = *self.attempt(attempt);
        debug_assert!(
            matches!(state, State::Running | State::Stopping),
            "{attempt} ends but does not run"
        );
        self.running -= 1;
        if holds {
            self.meter.end(now);
        }
        self.lanes.end(attempt.pair);
        self.breaker.note(&ending);
        self.tell_speculation(attempt, started, &ending, now);
        match ending {
            Ending::Graded { outcome, score, .. } => self.finish(attempt, outcome, score),
            Ending::Cancelled => self.finish(attempt, Outcome::Cancelled, None),
            Ending::Errored { class, retry, delay } => {
                if class == ErrorClass::Throttled {
                    self.lanes.throttled(attempt.pair, started, now);
                }
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

    /// Takes note that an attempt cost so much, in USD, besides its sandbox.
    pub fn spend(&mut self, usd: f64) {
        self.meter.spend(usd);
    }

    /// When `next` may have something to do though nothing ends: a delayed retry's time, an attempt's latest start, a
    /// limit that grows again, a budget that is used up.
    pub fn wake_at(&self) -> Option<Duration> {
        let has_place = self.running < self.spec.concurrency.max(1);
        let speculation = self.speculation.as_ref().filter(|_| has_place);
        let speculation = speculation.and_then(|speculation| speculation.wake_at(self.now));
        let budget = self.meter.exhausted_at().filter(|_| !self.halted);
        let limit = self.lanes.grows_at().filter(|_| has_place && self.open > 0);
        let times = [self.queue.wake_at(), speculation, limit, budget];
        times.into_iter().flatten().min()
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

    /// The budget that was used up, where one was.
    pub fn exhausted(&self) -> Option<&Exhausted> {
        self.exhausted.as_ref()
    }

    /// Whether an attempt ended for good only because the run's retries were used up.
    pub fn retries_used_up(&self) -> bool {
        self.retries_used_up
    }

    /// Whether the pair's next attempt is certain to be needed, whatever those that are under way give. All attempts
    /// of the parallel strategy count as that.
    fn is_next_certain(&self, pair: usize) -> bool {
        let Spec {
            policy, runs, pace, ..
        } = self.spec;
        let PairState {
            tally,
            open,
            released,
            stopped,
        } = self.pairs[pair];
        if stopped || released >= runs {
            return false;
        }
        let under_way = released - (runs - open);
        match pace {
            Pace::Parallel(_) => true,
            Pace::Sequential => under_way == 0,
            Pace::Adaptive => !tally.could_be_decided(policy, runs, open, under_way),
        }
    }

    fn release(&mut self, pair: usize) -> AttemptRef {
        self.pairs[pair].released += 1;
        let attempt = AttemptRef {
            pair,
            index: self.pairs[pair].released,
        };
        self.attempt(attempt).state = State::Queued;
        attempt
    }

    fn start(&mut self, attempt: AttemptRef, kept: bool, actions: &mut Vec<Action>) {
        let now = self.now;
        let entry = self.attempt(attempt);
        entry.state = State::Running;
        entry.started = now;
        entry.holds = false;
        entry.tries += 1;
        let try_number = entry.tries;
        self.running += 1;
        self.lanes.start(attempt.pair);
        if let Some(speculation) = &mut self.speculation {
            let has_more = self.pairs[attempt.pair].released < self.spec.runs;
            speculation.started(attempt, has_more, now, &self.lanes);
        }
        actions.push(Action::Start {
            attempt,
            try_number,
            kept,
        });
    }

    fn tell_speculation(&mut self, attempt: AttemptRef, started: Duration, ending: &Ending, now: Duration) {
        let Some(speculation) = &mut self.speculation else {
            return;
        };
        let told = match ending {
            Ending::Graded { command, .. } => Told::Ended(*command),
            Ending::Cancelled => Told::Stopped,
            Ending::Errored { .. } => Told::Nothing,
        };
        speculation.ended(attempt, started, now.saturating_sub(started), told, &self.lanes);
    }

    fn try_again(&mut self, attempt: AttemptRef, delay: Duration, now: Duration) {
        self.attempt(attempt).state = State::Queued;
        if !delay.is_zero() {
            self.queue.push_delayed(attempt, now.saturating_add(delay));
        } else if self.spec.pace == Pace::Sequential {
            self.queue.push_continuing(attempt, false);
        } else {
            self.queue.push(attempt, &self.lanes);
        }
    }

    /// Ends an attempt for good, and does what follows for its pair.
    fn finish(&mut self, attempt: AttemptRef, outcome: Outcome, score: Option<f64>) {
        self.close(attempt);
        let runs = self.spec.runs;
        let pair = &mut self.pairs[attempt.pair];
        pair.tally.add(outcome, score);
        if self.halted || pair.stopped {
            return;
        }
        if self.stop_if_decided(attempt.pair) {
            return;
        }
        while self.is_next_certain(attempt.pair) {
            let following = self.release(attempt.pair);
            if self.spec.pace == Pace::Sequential {
                let kept = matches!(outcome, Outcome::Passed | Outcome::Failed);
                self.queue.push_continuing(following, kept);
            } else {
                self.queue.push(following, &self.lanes);
            }
        }
        if self.pairs[attempt.pair].released == runs
            && let Some(speculation) = &mut self.speculation
        {
            speculation.withdraw(attempt.pair, &self.lanes);
        }
    }

    /// Stops what is left of a pair once it is decided, where the strategy says so. Returns whether it did.
    fn stop_if_decided(&mut self, pair: usize) -> bool {
        let Spec {
            policy, runs, pace, ..
        } = self.spec;
        let state = &mut self.pairs[pair];
        let stops_when_decided = pace != Pace::Parallel(OnPass::Continue);
        if !stops_when_decided || state.tally.decided(policy, runs, state.open).is_none() {
            return false;
        }
        state.stopped = true;
        if let Some(speculation) = &mut self.speculation {
            speculation.withdraw(pair, &self.lanes);
        }
        for index in 1..=runs {
            self.stop(AttemptRef { pair, index }, CancelReason::Decided);
        }
        true
    }

    /// Stops the whole run.
    fn halt(&mut self, reason: CancelReason) {
        self.halted = true;
        self.speculation = None;
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
                self.queue.forget(attempt, &self.lanes);
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
