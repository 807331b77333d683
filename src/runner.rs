//! Drives a plan through an engine: starts, limits, retries and cancels attempts, and tells what happens as events.
//! Knows neither files of a run nor reports.

mod attempt;
mod collect;
mod environment;
mod output;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use camino::Utf8PathBuf;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use jiff::Timestamp;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::aggregate::{self, ExitRules, Rules};
use crate::config::{AttemptConfig, Config, Format, RetryConfig};
use crate::model::event::JOURNAL_SCHEMA;
use crate::model::{
    AttemptDetails, AttemptId, AttemptRecord, CancelReason, Event, Outcome, Policy, Produces, Run, RunPlan,
};
use crate::redact::Redactor;
use crate::sandbox::{Backend, Sandbox, Workspace};
use crate::schedule::{Action, AttemptRef, Ended, Pace, PairSpec, Scheduler, Spec, retry_budget};
use attempt::{TryContext, TryEnd};

/// An event or a directory could not be kept; the text says why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RecordError(pub String);

/// Keeps what a run tells. Called from many attempts at once.
#[async_trait]
pub trait Recorder: Send + Sync {
    /// Makes an empty directory for the files of a try.
    async fn open_try(&self, attempt: &AttemptId, try_number: u32) -> Result<Utf8PathBuf, RecordError>;

    /// Keeps an event; returns when it is safe.
    async fn record(&self, event: &Event) -> Result<(), RecordError>;
}

/// Everything that a run needs to know, besides its engine.
#[derive(Debug)]
pub struct Job {
    /// Unique name of the run.
    pub run_id: String,
    /// When it starts.
    pub started_at: Timestamp,
    /// The commit that is measured, where known.
    pub commit: Option<String>,
    /// What to do.
    pub plan: RunPlan,
    /// When attempts start, and what a decided pair does with its others.
    pub pace: Pace,
    /// How one attempt is made.
    pub attempt: AttemptConfig,
    /// Values of `attempt.env-from`.
    pub env: Vec<(String, String)>,
    /// Values of `attempt.secrets`.
    pub secrets: Vec<(String, String)>,
    /// Takes the secrets out of whatever is kept.
    pub redactor: Redactor,
    /// What an ending means.
    pub rules: Rules,
    /// Tries for infrastructure failures.
    pub retry: RetryConfig,
    /// What every sandbox receives.
    pub workspace: Workspace,
}

/// The parts of the configuration that say what an ending means.
pub fn rules(config: &Config) -> Rules {
    let attempt = &config.attempt;
    let exit = ExitRules {
        pass: attempt.exit.pass.clone(),
        fail: attempt.exit.fail.clone(),
    };
    Rules {
        exit: (attempt.format == Format::ExitCode).then_some(exit),
        infra_exit: attempt.infra.exit.clone(),
        infra_error: attempt.infra.error.clone(),
        on_timeout: config.on_timeout,
        owns_time: attempt.command.uses("timeout_sec"),
    }
}

/// How long the run waits at its end for sandboxes that are being deleted.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// Runs the plan to its end, or until it is cancelled. What goes wrong is an outcome of an attempt, or a notice.
pub async fn run(
    job: Arc<Job>,
    backend: Arc<dyn Backend>,
    recorder: Arc<dyn Recorder>,
    cancel: CancellationToken,
) -> Run {
    let mut driver = Driver::new(job, backend, recorder);
    driver.drive(&cancel).await;
    driver.finish(cancel.is_cancelled()).await
}

struct Driver {
    job: Arc<Job>,
    backend: Arc<dyn Backend>,
    recorder: Arc<dyn Recorder>,
    scheduler: Scheduler,
    run: Run,
    started: Instant,
    starting: Arc<Semaphore>,
    tries: JoinSet<TryEnd>,
    running: HashMap<tokio::task::Id, AttemptRef>,
    cancels: HashMap<AttemptRef, oneshot::Sender<CancelReason>>,
    /// The last try of attempts that wait for another one.
    failed: HashMap<AttemptRef, Ends>,
    kept: HashMap<usize, Box<dyn Sandbox>>,
    stops: JoinSet<Result<(), String>>,
    recording: FuturesUnordered<BoxFuture<'static, Recorded>>,
    unrecorded: HashMap<usize, u32>,
}

/// The attempts that ended together: one, or with `produces: pair` all of a pair.
type Ends = Vec<(AttemptRecord, AttemptDetails)>;

/// An event that was kept, or was not.
struct Recorded {
    /// The pair whose attempt ended with it.
    pair: Option<usize>,
    result: Result<(), RecordError>,
}

impl Driver {
    fn new(job: Arc<Job>, backend: Arc<dyn Backend>, recorder: Arc<dyn Recorder>) -> Self {
        let plan = &job.plan;
        let pairs = plan.pairs.iter().map(|pair| PairSpec {
            predicted: pair
                .predicted_seconds
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            limits: Vec::new(),
        });
        let spec = Spec {
            pairs: pairs.collect(),
            runs: starts_per_pair(plan),
            pace: job.pace,
            policy: scheduling_policy(plan),
            concurrency: plan.concurrency.value,
            tries: job.retry.tries,
            retries: retry_budget(job.retry.budget, plan.attempts()),
            overhead: None,
            limits: Vec::new(),
            budget: Default::default(),
        };
        let starting = Arc::new(Semaphore::new(backend.capacity().starting));
        let run = Run::new(&job.run_id, job.started_at, job.commit.clone(), plan.clone());
        let unrecorded = (0..plan.pairs.len()).map(|pair| (pair, plan.runs)).collect();
        Self {
            scheduler: Scheduler::new(spec),
            run,
            started: Instant::now(),
            starting,
            tries: JoinSet::new(),
            running: HashMap::new(),
            cancels: HashMap::new(),
            failed: HashMap::new(),
            kept: HashMap::new(),
            stops: JoinSet::new(),
            recording: FuturesUnordered::new(),
            unrecorded,
            job,
            backend,
            recorder,
        }
    }

    async fn drive(&mut self, cancel: &CancellationToken) {
        let started = Event::RunStarted {
            schema: JOURNAL_SCHEMA.to_owned(),
            run_id: self.job.run_id.clone(),
            started_at: self.job.started_at,
            commit: self.job.commit.clone(),
            plan: Box::new(self.job.plan.clone()),
        };
        self.note(self.recorder.record(&started).await);
        let mut cancelled = false;
        loop {
            self.act();
            if self.scheduler.is_done() && self.tries.is_empty() && self.recording.is_empty() {
                break;
            }
            let wake = self.scheduler.wake_at().map(|at| self.started + at);
            tokio::select! {
                Some(joined) = self.tries.join_next_with_id() => self.try_ended(joined),
                Some(recorded) = self.recording.next() => self.recorded(recorded),
                Some(stopped) = self.stops.join_next() => self.stopped(stopped),
                () = tokio::time::sleep_until(wake.unwrap_or(self.started)), if wake.is_some() => {}
                () = cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    self.scheduler.cancel();
                }
                else => break,
            }
        }
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
        let idle: Vec<usize> = self.kept.keys().copied().collect();
        for pair in idle {
            self.stop_kept(pair);
        }
    }

    fn start(&mut self, attempt: AttemptRef, try_number: u32, kept: bool) {
        let (cancel, cancelled) = oneshot::channel();
        self.cancels.insert(attempt, cancel);
        let context = TryContext {
            job: Arc::clone(&self.job),
            backend: Arc::clone(&self.backend),
            recorder: Arc::clone(&self.recorder),
            starting: Arc::clone(&self.starting),
            pair: attempt.pair,
            id: self.attempt_id(attempt),
            try_number,
            run_started: self.started,
        };
        let sandbox = if kept {
            self.kept.remove(&attempt.pair)
        } else {
            None
        };
        let handle = self.tries.spawn(context.run(sandbox, cancelled));
        self.running.insert(handle.id(), attempt);
    }

    fn try_ended(&mut self, joined: Result<(tokio::task::Id, TryEnd), JoinError>) {
        let task = match &joined {
            Ok((task, _)) => *task,
            Err(error) => error.id(),
        };
        let Some(attempt) = self.running.remove(&task) else {
            return;
        };
        self.cancels.remove(&attempt);
        let mut end = match joined {
            Ok((_, end)) => end,
            Err(error) => TryEnd::broken(attempt.index, &error.to_string()),
        };
        if let Some(sandbox) = end.sandbox.take() {
            if end.reusable {
                self.kept.insert(attempt.pair, sandbox);
            } else {
                self.stop(sandbox);
            }
        }
        self.settle(attempt, end);
    }

    /// Tells the scheduler, and records what the try came to.
    fn settle(&mut self, attempt: AttemptRef, end: TryEnd) {
        match self.scheduler.end(attempt, end.ending(), self.started.elapsed()) {
            Ended::Final => self.end_attempts(attempt.pair, end.records),
            Ended::RetriesUsedUp => {
                self.notice("the run's retries are used up (`retry.budget`): attempts errored without all their tries".to_owned());
                self.end_attempts(attempt.pair, end.records);
            }
            Ended::Retry => {
                if let Some((record, error)) = end.failure() {
                    let event = Event::TryFailed {
                        attempt: self.attempt_id(attempt),
                        try_number: record.tries,
                        error,
                        seconds: record.seconds,
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
                let indexes = match self.job.plan.produces {
                    Produces::Attempt => attempt.index..=attempt.index,
                    Produces::Pair => 1..=self.job.plan.runs,
                };
                let not_started = |index| {
                    (
                        AttemptRecord::not_started(index, reason),
                        AttemptDetails::default(),
                    )
                };
                indexes.map(not_started).collect()
            }
        };
        self.end_attempts(attempt.pair, ends);
    }

    fn end_attempts(&mut self, pair: usize, ends: Ends) {
        for (record, details) in ends {
            self.end_attempt(pair, record, details);
        }
    }

    fn end_attempt(&mut self, pair: usize, record: AttemptRecord, details: AttemptDetails) {
        let event = Event::AttemptEnded {
            pair: self.job.plan.pairs[pair].id.clone(),
            record: Box::new(record),
            details: Box::new(details),
        };
        self.record(event, Some(pair));
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
        let Some(pair) = recorded.pair else { return };
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

    fn stop_kept(&mut self, pair: usize) {
        if let Some(sandbox) = self.kept.remove(&pair) {
            self.stop(sandbox);
        }
    }

    /// Stopping is not part of an attempt's end.
    fn stop(&mut self, sandbox: Box<dyn Sandbox>) {
        self.stops
            .spawn(async move { sandbox.stop().await.map_err(|error| attempt::chain(&error)) });
    }

    fn stopped(&mut self, stopped: Result<Result<(), String>, JoinError>) {
        match stopped {
            Ok(Ok(())) => {}
            Ok(Err(why)) => self.notice(format!("cannot delete a sandbox: {why}")),
            Err(error) => self.notice(format!("cannot delete a sandbox: {error}")),
        }
    }

    fn note(&mut self, result: Result<(), RecordError>) {
        if let Err(error) = result {
            self.notice(format!("cannot keep an event: {error}"));
        }
    }

    /// The same notice is told once.
    fn notice(&mut self, text: String) {
        if !self.run.notices.contains(&text) {
            self.run.notices.push(text);
        }
    }

    fn attempt_id(&self, attempt: AttemptRef) -> AttemptId {
        AttemptId {
            pair: self.job.plan.pairs[attempt.pair].id.clone(),
            index: attempt.index,
        }
    }

    async fn finish(mut self, cancelled: bool) -> Run {
        let deadline = Instant::now() + STOP_LIMIT;
        loop {
            match tokio::time::timeout_at(deadline, self.stops.join_next()).await {
                Ok(Some(stopped)) => self.stopped(stopped),
                Ok(None) => break,
                Err(_) => {
                    self.notice(format!("{} sandboxes were not deleted in time", self.stops.len()));
                    break;
                }
            }
        }
        if let Some(stopped) = self.scheduler.stopped() {
            let why = stopped.to_string();
            self.notice(why);
        }
        let ended = Event::RunEnded {
            offset: attempt::seconds(self.started.elapsed()),
            cancelled,
            notices: self.run.notices.clone(),
        };
        self.run.apply(&ended);
        let recorded = self.recorder.record(&ended).await;
        self.note(recorded);
        self.run
    }
}

/// A command that runs its whole pair is started once.
fn starts_per_pair(plan: &RunPlan) -> u32 {
    match plan.produces {
        Produces::Attempt => plan.runs,
        Produces::Pair => 1,
    }
}

/// With one start a pair, its one ending decides it, whatever the pair's policy is.
fn scheduling_policy(plan: &RunPlan) -> Policy {
    match plan.produces {
        Produces::Attempt => plan.policy,
        Produces::Pair => Policy::Any,
    }
}

#[cfg(test)]
mod tests;
