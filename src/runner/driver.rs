//! The loop of a run: carries out what the scheduler asks for, and tells each event once it has happened. Decides
//! nothing itself.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::attempt::TryContext;
use super::clock::Clock;
use super::ending::{Ends, TryEnd, indexes};
use super::failure::judged;
use super::ledger::Account;
use super::line::Line;
use super::remainder::{self, Remainder};
use super::{Job, RecordError, Recorder, prepare};
use crate::aggregate::{self, Course, Failure};
use crate::model::{
    AttemptDetails, AttemptId, AttemptRecord, CancelReason, Event, Outcome, Run, with_causes,
};
use crate::plan;
use crate::sandbox::{Backend, Sandbox, Warm};
use crate::schedule::{Action, AttemptRef, Ended, Scheduler, retry_budget};

/// How long the run waits at its end for sandboxes that are being deleted.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// How long it waits after that for the last try to delete them.
const REAP_LIMIT: Duration = Duration::from_secs(20);

/// Events that may wait to be kept. Beyond that nothing is begun: attempts that end faster than the disk takes them are
/// not to fill the memory.
const MOST_UNKEPT: usize = 1000;

/// A run under way.
pub(super) struct Driver {
    job: Arc<Job>,
    backend: Arc<dyn Backend>,
    recorder: Arc<dyn Recorder>,
    account: Arc<Account>,
    scheduler: Scheduler,
    run: Run,
    remainder: Remainder,
    started: Instant,
    line: Line,
    tries: JoinSet<TryEnd>,
    /// Tries that have their turn to hold a sandbox, and since when.
    turns: mpsc::UnboundedReceiver<(AttemptRef, Instant)>,
    turn: mpsc::UnboundedSender<(AttemptRef, Instant)>,
    /// Which try of which attempt a task is.
    running: HashMap<Id, (AttemptRef, u32)>,
    cancels: HashMap<AttemptRef, oneshot::Sender<CancelReason>>,
    /// The last try of attempts that wait for another one.
    failed: HashMap<AttemptRef, Ends>,
    /// Sandboxes that a pair's next attempt may use, by the pair.
    kept: HashMap<usize, Box<dyn Sandbox>>,
    stops: JoinSet<Result<(), String>>,
    recording: FuturesUnordered<BoxFuture<'static, Recorded>>,
    /// How many attempts of a pair are not kept yet.
    unrecorded: HashMap<usize, u32>,
}

/// An event that was kept, or was not.
struct Recorded {
    /// The pair whose attempt ended with it.
    pair: Option<usize>,
    result: Result<(), RecordError>,
}

impl Driver {
    pub(super) fn new(job: Arc<Job>, backend: Arc<dyn Backend>, recorder: Arc<dyn Recorder>) -> Self {
        let plan = &job.plan;
        let retries = retry_budget(job.retry.budget, plan.attempts());
        let mut spec = plan::spec(plan, job.retry.tries, retries, &job.price);
        let line = Line::new(backend.capacity().starting);
        let mut run = job.run();
        run.apply(&job.begins());
        let remainder = Remainder::of(&job, &run, &mut spec.pairs);
        spec.used = remainder::used(&job, &run);
        let left = run.pairs.iter().map(|pair| remainder::left(&job, pair));
        let unrecorded = left.enumerate().collect();
        let (turn, turns) = mpsc::unbounded_channel();
        Self {
            remainder,
            scheduler: Scheduler::new(spec),
            run,
            started: Instant::now(),
            line,
            tries: JoinSet::new(),
            turns,
            turn,
            running: HashMap::new(),
            cancels: HashMap::new(),
            failed: HashMap::new(),
            kept: HashMap::new(),
            stops: JoinSet::new(),
            recording: FuturesUnordered::new(),
            unrecorded,
            job,
            backend,
            account: Arc::new(Account::new(Arc::clone(&recorder))),
            recorder,
        }
    }

    /// Goes on until every attempt has ended and is kept, then waits for sandboxes that are being deleted.
    pub(super) async fn run(mut self, cancel: &CancellationToken) -> Run {
        let cancelled = self.drive(cancel).await;
        self.finish(cancelled).await
    }

    /// Returns whether the run was cancelled before it was done.
    async fn drive(&mut self, cancel: &CancellationToken) -> bool {
        self.note(self.recorder.record(&self.job.begins()).await);
        let whereabouts = Event::SandboxesAt {
            run_id: self.job.run_id.clone(),
            whereabouts: self.backend.reaper().whereabouts(),
        };
        self.note(self.recorder.record(&whereabouts).await);
        self.go_on();
        // A run that is cancelled before it begins starts nothing.
        let mut cancelled = cancel.is_cancelled();
        match self.prepare(cancel).await {
            None => {
                cancelled = true;
                self.scheduler.cancel();
            }
            Some(Ok(Warm::From(_) | Warm::Cold(None))) => {}
            Some(Ok(Warm::Cold(Some(why)))) => {
                self.notice(format!("every sandbox is set up from nothing: {why}"))
            }
            Some(Err(failure)) => return self.give_up(failure).await,
        }
        loop {
            let may_begin = self.recording.len() < MOST_UNKEPT;
            if may_begin {
                self.act();
            }
            if self.scheduler.is_done() && self.tries.is_empty() && self.recording.is_empty() {
                return cancelled;
            }
            let wake = self.scheduler.wake_at().filter(|_| may_begin);
            let wake = wake.map(|at| self.started + at);
            tokio::select! {
                // What has ended is kept first, so that it does not pile up.
                biased;
                () = cancel.cancelled(), if !cancelled && !self.scheduler.is_done() => {
                    cancelled = true;
                    self.scheduler.cancel();
                }
                Some(recorded) = self.recording.next() => self.recorded(recorded),
                Some(stopped) = self.stops.join_next() => self.stopped(stopped),
                Some((attempt, at)) = self.turns.recv(), if !self.tries.is_empty() => self.holds(attempt, at),
                Some(joined) = self.tries.join_next_with_id() => self.try_ended(joined),
                () = tokio::time::sleep_until(wake.unwrap_or(self.started)), if wake.is_some() => {}
                else => return cancelled,
            }
        }
    }

    /// Publishes what an earlier session of the run had no time to.
    fn go_on(&mut self) {
        let Some(earlier) = &self.job.earlier else {
            return;
        };
        let notices = earlier.run.notices.clone();
        self.notice(format!(
            "resumed after {:.1} s with {} of {} attempts: those were kept",
            self.remainder.since.as_secs_f64(),
            self.job.kept(),
            self.job.plan.attempts()
        ));
        for notice in notices {
            self.notice(notice);
        }
        let done = self.unrecorded.iter().filter(|(_, left)| **left == 0);
        let mut done: Vec<usize> = done.map(|(pair, _)| *pair).collect();
        done.sort_unstable();
        for pair in done {
            self.unrecorded.remove(&pair);
            if !self.run.pairs[pair].published {
                self.end_pair(pair);
            }
        }
    }

    /// Makes ready what sandboxes start from; `None` where the run is cancelled first.
    async fn prepare(&self, cancel: &CancellationToken) -> Option<Result<Warm, Failure>> {
        if self.scheduler.is_done() {
            return Some(Ok(Warm::Cold(None)));
        }
        let prepared = prepare::prepare(&self.job, self.backend.as_ref(), &self.account, &self.recorder);
        cancel.run_until_cancelled(prepared).await
    }

    /// Ends every attempt with what kept all of them from starting, or with what it has died of in an earlier session. It is
    /// not tried again: nothing of it is an attempt's.
    async fn give_up(&mut self, failure: Failure) -> bool {
        let judgement = judged(&Course::Failed(failure), &self.job);
        if let Some(error) = judgement.error.as_ref().filter(|_| self.job.earlier.is_some()) {
            self.notice(format!("nothing was started again: {}", error.message));
        }
        for pair in 0..self.job.plan.pairs.len() {
            if !self.unrecorded.contains_key(&pair) {
                continue;
            }
            let known = &self.run.pairs[pair];
            let errored = |index| {
                let stopped = known.stopped(index, CancelReason::Run);
                AttemptRecord {
                    outcome: judgement.outcome,
                    reason: None,
                    error: stopped.error.clone().or_else(|| judgement.error.clone()),
                    ..stopped
                }
            };
            let (mut ends, mut standing) = (Ends::new(), 0);
            for index in 1..=self.job.plan.runs {
                match known.record(index) {
                    Some(record) if record.outcome.is_graded() => {}
                    Some(_) if self.stands(pair, index) => standing += 1,
                    _ => ends.push((errored(index), AttemptDetails::default())),
                }
            }
            for _ in 0..standing {
                self.told(pair);
            }
            self.end_attempts(pair, ends);
        }
        while let Some(recorded) = self.recording.next().await {
            self.recorded(recorded);
        }
        false
    }

    /// Does what the scheduler asks for now.
    fn act(&mut self) {
        for action in self.scheduler.next(self.started.elapsed()) {
            match action {
                Action::Start {
                    attempt,
                    try_number,
                    kept,
                } => self.start(attempt, try_number, kept),
                Action::Cancel { attempt, reason } => {
                    if let Some(cancel) = self.cancels.remove(&attempt) {
                        // A try that has ended meanwhile does not listen any more.
                        let _ = cancel.send(reason);
                    }
                }
                Action::Skip { attempt, reason } => self.skip(attempt, reason),
                Action::GiveUp { attempt } => {
                    if let Some(ends) = self.failed.remove(&attempt) {
                        self.end_attempts(attempt.pair, ends);
                    }
                }
            }
        }
        // Whatever the scheduler did not take up again is not needed any more.
        for (_, sandbox) in std::mem::take(&mut self.kept) {
            self.stop(sandbox);
        }
    }

    fn start(&mut self, attempt: AttemptRef, try_number: u32, kept: bool) {
        let (cancel, cancelled) = oneshot::channel();
        self.cancels.insert(attempt, cancel);
        let id = self.attempt_id(attempt);
        // A try of an earlier session of the run has its number for good.
        let try_number = try_number + self.earlier_tries(attempt);
        let context = TryContext {
            job: Arc::clone(&self.job),
            backend: Arc::clone(&self.backend),
            recorder: Arc::clone(&self.recorder),
            account: Arc::clone(&self.account),
            turns: self.turn.clone(),
            attempt,
            id,
            try_number,
            clock: self.clock(),
        };
        let sandbox = kept.then(|| self.kept.remove(&attempt.pair)).flatten();
        let place = sandbox.is_none().then(|| self.line.join());
        let handle = self.tries.spawn(context.run(sandbox, place, cancelled));
        self.running.insert(handle.id(), (attempt, try_number));
    }

    fn holds(&mut self, attempt: AttemptRef, at: Instant) {
        self.scheduler
            .hold(attempt, at.saturating_duration_since(self.started));
    }

    fn try_ended(&mut self, joined: Result<(Id, TryEnd), JoinError>) {
        // What a try has said of its turn is heard before its end.
        while let Ok((attempt, at)) = self.turns.try_recv() {
            self.holds(attempt, at);
        }
        let task = joined.as_ref().map_or_else(JoinError::id, |(task, _)| *task);
        let Some((attempt, try_number)) = self.running.remove(&task) else {
            return;
        };
        self.cancels.remove(&attempt);
        let mut end = match joined {
            Ok((_, end)) => end,
            Err(error) => {
                let indexes = self.indexes(attempt);
                TryEnd::broken(indexes, try_number, &self.job.redactor.text(&error.to_string()))
            }
        };
        if let Some(sandbox) = end.sandbox.take() {
            if end.reusable {
                self.kept.insert(attempt.pair, sandbox);
            } else {
                self.stop(sandbox);
            }
        }
        self.settle(attempt, try_number, end);
    }

    /// Tells the scheduler, and records what the try came to.
    fn settle(&mut self, attempt: AttemptRef, try_number: u32, end: TryEnd) {
        let ending = end.ending(try_number - self.earlier_tries(attempt));
        self.note(end.kept);
        let labels = &self.job.plan.pairs[attempt.pair].labels;
        let usages = end.records.iter().filter_map(|(record, _)| record.usage);
        let costs = usages.filter_map(|usage| plan::cost_of(usage, labels, &self.job.price));
        self.scheduler.spend(costs.sum());
        match self.scheduler.end(attempt, ending, self.started.elapsed()) {
            Ended::Final => self.end_attempts(attempt.pair, end.records),
            Ended::RetriesUsedUp => {
                self.notice("the run's retries are used up (`retry.budget`): attempts errored without all their tries".to_owned());
                self.end_attempts(attempt.pair, end.records);
            }
            Ended::Retry => {
                for (record, _) in &end.records {
                    let Some(error) = record.error.clone() else {
                        continue;
                    };
                    let index = record.index;
                    let pair = self.job.plan.pairs[attempt.pair].id.clone();
                    let event = Event::TryFailed {
                        attempt: AttemptId { pair, index },
                        try_number: record.tries,
                        error,
                        seconds: record.seconds,
                        usage: record.usage,
                    };
                    self.record(event, None);
                }
                self.failed.insert(attempt, end.records);
            }
        }
    }

    fn skip(&mut self, attempt: AttemptRef, reason: CancelReason) {
        let ends = match self.failed.remove(&attempt) {
            // It waited for another try.
            Some(mut ends) => {
                for (record, _) in &mut ends {
                    record.outcome = Outcome::Cancelled;
                    record.reason = Some(reason);
                }
                ends
            }
            None => {
                let (stand, others): (Vec<u32>, Vec<u32>) = self
                    .indexes(attempt)
                    .partition(|index| self.stands(attempt.pair, *index));
                let known = &self.run.pairs[attempt.pair];
                let stopped = |index| (known.stopped(index, reason), AttemptDetails::default());
                let ends = others.into_iter().map(stopped).collect();
                for _ in stand {
                    self.told(attempt.pair);
                }
                ends
            }
        };
        self.end_attempts(attempt.pair, ends);
    }

    fn end_attempts(&mut self, pair: usize, ends: Ends) {
        for (record, details) in ends {
            let event = Event::AttemptEnded {
                pair: self.job.plan.pairs[pair].id.clone(),
                record: Box::new(record),
                details: Box::new(details),
            };
            self.record(event, Some(pair));
        }
    }

    /// Takes an event into the run and hands it to the recorder.
    fn record(&mut self, event: Event, pair: Option<usize>) {
        self.run.apply(&event);
        let recorder = Arc::clone(&self.recorder);
        self.recording.push(Box::pin(async move {
            let result = recorder.record(&event).await;
            Recorded { pair, result }
        }));
    }

    fn recorded(&mut self, recorded: Recorded) {
        self.note(recorded.result);
        if let Some(pair) = recorded.pair {
            self.told(pair);
        }
    }

    /// One attempt less of a pair is to be told of.
    fn told(&mut self, pair: usize) {
        let Some(left) = self.unrecorded.get_mut(&pair) else {
            return;
        };
        *left -= 1;
        if *left == 0 {
            self.unrecorded.remove(&pair);
            self.end_pair(pair);
        }
    }

    /// All attempts of the pair are kept, so its results can be published.
    fn end_pair(&mut self, pair: usize) {
        let plan = &self.job.plan;
        let summary = aggregate::summarize_pair(&plan.pairs[pair], plan, &self.run.pairs[pair]);
        let graded = summary
            .attempts
            .iter()
            .filter(|attempt| attempt.outcome.is_graded());
        let event = Event::PairEnded {
            pair: plan.pairs[pair].id.clone(),
            verdict: summary.verdict,
            representative: summary.representative,
            graded: graded.map(|attempt| attempt.index).collect(),
        };
        self.record(event, None);
    }

    /// Stopping is not part of an attempt's end.
    fn stop(&mut self, sandbox: Box<dyn Sandbox>) {
        let account = Arc::clone(&self.account);
        self.stops.spawn(async move {
            let name = sandbox.name().to_owned();
            sandbox.stop().await.map_err(|error| with_causes(&error))?;
            account.close(&name).await.map_err(|error| error.to_string())
        });
    }

    fn stopped(&mut self, stopped: Result<Result<(), String>, JoinError>) {
        match stopped {
            Ok(Ok(())) => {}
            Ok(Err(why)) => self.notice(format!("cannot delete a sandbox: {why}")),
            Err(broke) => self.notice(format!("cannot delete a sandbox: {broke}")),
        }
    }

    fn note(&mut self, result: Result<(), RecordError>) {
        if let Err(error) = result {
            self.notice(format!("cannot keep an event: {error}"));
        }
    }

    /// The same notice is told once. What an engine says in it may hold what it was given.
    fn notice(&mut self, text: String) {
        let text = self.job.redactor.text(&text).into_owned();
        if !self.run.notices.contains(&text) {
            self.run.notices.push(text);
        }
    }

    fn attempt_id(&self, attempt: AttemptRef) -> AttemptId {
        AttemptId {
            pair: self.job.plan.pairs[attempt.pair].id.clone(),
            index: self.remainder.index(attempt),
        }
    }

    fn indexes(&self, attempt: AttemptRef) -> RangeInclusive<u32> {
        indexes(&self.job.plan, self.remainder.index(attempt))
    }

    /// How often an earlier session of the run has started an attempt.
    fn earlier_tries(&self, attempt: AttemptRef) -> u32 {
        let earlier = self.job.earlier.as_ref();
        let pair = earlier.and_then(|earlier| earlier.run.pair(&self.job.plan.pairs[attempt.pair].id));
        pair.map_or(0, |(_, pair)| pair.tries(self.remainder.index(attempt)))
    }

    /// Whether what an earlier session of the run says of an attempt is its last word.
    fn stands(&self, pair: usize, index: u32) -> bool {
        self.job.earlier.is_some() && remainder::stands(&self.run.pairs[pair], index)
    }

    fn clock(&self) -> Clock {
        Clock {
            started: self.started,
            since: self.remainder.since,
        }
    }

    /// Deletes what could not be stopped, or never came to be used; what is left even so is told.
    async fn reap(&mut self, deadline: Instant) {
        let left = self.account.left();
        if left.is_empty() {
            return;
        }
        let reaped = self.backend.reaper().reap(&self.job.run_id, &left);
        let (many, why) =
            match tokio::time::timeout_at(deadline.max(Instant::now() + REAP_LIMIT), reaped).await {
                Ok(Ok(reaped)) => match reaped.failed.first() {
                    Some(first) => (reaped.failed.len(), with_causes(first)),
                    None => {
                        for sandbox in left {
                            let closed = self.account.close(&sandbox.name).await;
                            self.note(closed);
                        }
                        return;
                    }
                },
                Ok(Err(error)) => (left.len(), with_causes(&error)),
                Err(_) => (left.len(), "not in time".to_owned()),
            };
        let (many, them) = match many {
            1 => ("1 sandbox".to_owned(), "it"),
            many => (format!("{many} sandboxes"), "them"),
        };
        self.notice(format!(
            "{many} could not be deleted: {why}; `evalwave cleanup` deletes {them}"
        ));
    }

    async fn finish(mut self, cancelled: bool) -> Run {
        let deadline = Instant::now() + STOP_LIMIT;
        loop {
            match tokio::time::timeout_at(deadline, self.stops.join_next()).await {
                Ok(Some(stopped)) => self.stopped(stopped),
                Ok(None) => break,
                Err(_) => break,
            }
        }
        self.reap(deadline).await;
        let stopped = self.scheduler.stopped().map(ToString::to_string);
        let exhausted = self.scheduler.exhausted().map(ToString::to_string);
        for why in stopped.into_iter().chain(exhausted) {
            self.notice(why);
        }
        let ended = Event::RunEnded {
            offset: self.clock().offset(Instant::now()),
            cancelled,
            notices: self.run.notices.clone(),
        };
        self.run.apply(&ended);
        let recorded = self.recorder.record(&ended).await;
        self.note(recorded);
        self.run
    }
}
