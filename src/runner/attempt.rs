//! One try of one attempt, from an empty sandbox to its outcome: every time limit, and the only place that kills.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::Instant;

use super::collect::{self, Collected, ResultFile};
use super::environment;
use super::output::{Finished, OutputLog};
use super::{Job, Recorder};
use crate::aggregate::{CommandEnd, Evidence, Failure, Judgement, Ran, judge, with_last_lines};
use crate::config::template::{CommandTemplate, Values};
use crate::model::{
    AttemptDetails, AttemptError, AttemptId, AttemptRecord, Boot, CancelReason, ErrorClass, Event, Outcome,
    Phase, Phases, Produces,
};
use crate::sandbox::{Backend, Command, Exit, Sandbox, SandboxError, SandboxSpec};
use crate::schedule::Ending;

/// How long a throttled attempt waits before its second try; doubled for each further one.
const THROTTLED_DELAY: Duration = Duration::from_secs(10);
/// Pieces of output that may wait to be written.
const OUTPUT_BACKLOG: usize = 16;

/// What a try needs; it owns it all, so that tries run as tasks.
pub(super) struct TryContext {
    pub(super) job: Arc<Job>,
    pub(super) backend: Arc<dyn Backend>,
    pub(super) recorder: Arc<dyn Recorder>,
    pub(super) starting: Arc<Semaphore>,
    /// Position of the pair in the plan.
    pub(super) pair: usize,
    pub(super) id: AttemptId,
    pub(super) try_number: u32,
    pub(super) run_started: Instant,
}

/// What a try came to.
pub(super) struct TryEnd {
    /// One record; with `produces: pair` one for each attempt of the pair.
    pub(super) records: Vec<(AttemptRecord, AttemptDetails)>,
    /// The sandbox, to be used again or stopped.
    pub(super) sandbox: Option<Box<dyn Sandbox>>,
    /// Whether another attempt of the pair may use it.
    pub(super) reusable: bool,
    retry: bool,
    throttled: bool,
}

impl TryEnd {
    /// What is left to say where the try's own task broke.
    pub(super) fn broken(index: u32, why: &str) -> Self {
        let error = AttemptError {
            class: ErrorClass::Exec,
            phase: Phase::Command,
            message: format!("the attempt broke inside evalwave: {why}"),
            exit_code: None,
            signal: None,
        };
        let mut record = AttemptRecord::not_started(index, CancelReason::Run);
        record.outcome = Outcome::Errored;
        record.reason = None;
        record.error = Some(error);
        record.tries = 1;
        Self {
            records: vec![(record, AttemptDetails::default())],
            sandbox: None,
            reusable: false,
            retry: false,
            throttled: false,
        }
    }

    /// What the scheduler is told.
    pub(super) fn ending(&self) -> Ending {
        if let Some((record, _)) = self.records.iter().find(|(record, _)| record.outcome.is_graded()) {
            return Ending::Graded {
                outcome: record.outcome,
                score: record.score,
                command: record
                    .phases
                    .command
                    .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            };
        }
        match self.failure() {
            Some((record, error)) => Ending::Errored {
                class: error.class,
                retry: self.retry,
                delay: if self.throttled {
                    throttled_delay(record.tries)
                } else {
                    Duration::ZERO
                },
            },
            None => Ending::Cancelled,
        }
    }

    /// The error that the try died of.
    pub(super) fn failure(&self) -> Option<(&AttemptRecord, AttemptError)> {
        let (record, _) = self.records.first()?;
        record
            .error
            .clone()
            .filter(|_| record.outcome == Outcome::Errored)
            .map(|error| (record, error))
    }
}

impl TryContext {
    /// Lives the try, in the sandbox that the attempt before left or in a fresh one, until it ends or `cancel` says
    /// that it is to stop, and why.
    pub(super) async fn run(
        self,
        kept: Option<Box<dyn Sandbox>>,
        cancel: oneshot::Receiver<CancelReason>,
    ) -> TryEnd {
        let started = Instant::now();
        let mut life = Life {
            sandbox: kept,
            phases: Phases::default(),
            boot: None,
            details: AttemptDetails::default(),
            started,
        };
        let lived = tokio::select! {
            biased;
            lived = self.live(&mut life) => Ok(lived),
            Ok(reason) = cancel => Err(reason),
        };
        let graded = match lived {
            Ok(Ok(graded)) => graded,
            Ok(Err(failure)) => vec![(self.judge(None, Err(failure)), None)],
            Err(reason) => {
                // What the try came to does not count any more.
                let unknown = failure(Phase::Command, ErrorClass::Exec, String::new());
                vec![(self.judge(Some(reason), Err(unknown)), None)]
            }
        };
        self.end(life, graded)
    }

    async fn live(&self, life: &mut Life) -> Result<Vec<Graded>, Failure> {
        let values = environment::values(&self.job, self.pair, &self.id);
        let started = Event::AttemptStarted {
            attempt: self.id.clone(),
            try_number: self.try_number,
            offset: seconds(life.started - self.run_started),
        };
        self.recorder.record(&started).await.map_err(store_failed)?;
        let directory = self
            .recorder
            .open_try(&self.id, self.try_number)
            .await
            .map_err(store_failed)?;
        let mut log = OutputLog::create(&directory.join(collect::OUTPUT_FILE), &self.job.redactor)
            .await
            .map_err(store_failed)?;
        let lived = self.live_logged(life, &values, &directory, &mut log).await;
        let finished = log.finish(&self.job.redactor).await.map_err(store_failed)?;
        life.details.notes.extend(finished.note.clone());
        let (end, collected) = lived.map_err(|failure| with_output(failure, &finished))?;
        Ok(self.grade(end, collected, &finished))
    }

    /// Everything that writes output: sandbox, setup, boot, command; then the collection.
    async fn live_logged(
        &self,
        life: &mut Life,
        values: &Values,
        directory: &Utf8Path,
        log: &mut OutputLog<'_>,
    ) -> Result<(CommandEnd, Collected), Failure> {
        if life.sandbox.is_none() {
            self.provision(life).await?;
            self.prepare(life, values, log).await?;
        }
        let limits = self.job.attempt.phases;
        let paths = collect::Paths::of(&self.job.attempt, values)
            .map_err(|error| failure(Phase::Collect, ErrorClass::Collect, error.to_string()))?;
        let sandbox = life.sandbox.as_mut().ok_or_else(sandbox_gone)?;
        if let Some(result) = &paths.result {
            // An old result, also one that came with the workspace, is never this attempt's.
            within(limits.provision, Phase::Upload, sandbox.remove(&result.pattern)).await?;
        }
        let limit = self.job.attempt.timeout + self.job.attempt.grace;
        let command = self.command(&self.job.attempt.command, values, Phase::Command)?;
        let begun = Instant::now();
        let end = match run_command(sandbox.as_mut(), &command, log, limit).await? {
            Some(Exit::Code(code)) => CommandEnd::Code(code),
            Some(Exit::Signal(signal)) => CommandEnd::Signal(signal),
            None => CommandEnd::KilledAtLimit(limit),
        };
        life.phases.set(Phase::Command, seconds(begun.elapsed()));
        let begun = Instant::now();
        let collected = within_limit(
            limits.collect,
            Phase::Collect,
            collect::collect(sandbox.as_mut(), &paths, &self.job, directory),
        )
        .await??;
        life.phases.set(Phase::Collect, seconds(begun.elapsed()));
        Ok((end, collected))
    }

    /// An empty sandbox with the workspace in it. Only so many may be starting at once.
    async fn provision(&self, life: &mut Life) -> Result<(), Failure> {
        let _starting = self.starting.acquire().await.map_err(store_failed)?;
        let spec = SandboxSpec {
            name: format!(
                "{}-{}-{}-{}",
                self.job.run_id,
                self.pair + 1,
                self.id.index,
                self.try_number
            ),
        };
        let named = Event::SandboxNamed {
            name: spec.name.clone(),
            attempt: self.id.clone(),
            try_number: self.try_number,
        };
        self.recorder.record(&named).await.map_err(store_failed)?;
        let limit = self.job.attempt.phases.provision;
        let begun = Instant::now();
        let sandbox = within(limit, Phase::Provision, self.backend.start(&spec)).await?;
        life.phases.set(Phase::Provision, seconds(begun.elapsed()));
        life.boot = Some(sandbox.boot());
        life.details.confinement = sandbox.confinement();
        let sandbox = life.sandbox.insert(sandbox);
        let begun = Instant::now();
        within(limit, Phase::Upload, sandbox.upload(&self.job.workspace)).await?;
        life.phases.set(Phase::Upload, seconds(begun.elapsed()));
        Ok(())
    }

    /// `setup` where the sandbox is cold, then `boot`.
    async fn prepare(
        &self,
        life: &mut Life,
        values: &Values,
        log: &mut OutputLog<'_>,
    ) -> Result<(), Failure> {
        let attempt = &self.job.attempt;
        let cold = life.boot == Some(Boot::Cold);
        let steps = [
            (
                Phase::Setup,
                attempt.setup.as_ref().filter(|_| cold),
                ErrorClass::Setup,
            ),
            (Phase::Boot, attempt.boot.as_ref(), ErrorClass::Boot),
        ];
        for (phase, template, class) in steps {
            let Some(template) = template else { continue };
            let command = self.command(template, values, phase)?;
            let sandbox = life.sandbox.as_mut().ok_or_else(sandbox_gone)?;
            let begun = Instant::now();
            let exit = run_command(sandbox.as_mut(), &command, log, attempt.phases.setup).await?;
            life.phases.set(phase, seconds(begun.elapsed()));
            let why = match exit {
                Some(Exit::Code(0)) => continue,
                Some(Exit::Code(code)) => format!("`attempt.{phase}` ended with exit code {code}"),
                Some(Exit::Signal(signal)) => format!("`attempt.{phase}` was killed by signal {signal}"),
                None => past_limit(phase, attempt.phases.setup),
            };
            return Err(failure(phase, class, why));
        }
        Ok(())
    }

    fn command(&self, template: &CommandTemplate, values: &Values, phase: Phase) -> Result<Command, Failure> {
        let unknown = |error: crate::config::template::UnknownPlaceholder| {
            failure(Phase::Command, ErrorClass::Exec, error.to_string())
        };
        Ok(Command {
            line: template.render(values).map_err(unknown)?,
            env: environment::variables(&self.job, values, self.try_number, phase != Phase::Setup)
                .map_err(unknown)?,
            // What boot starts serves the attempts after it.
            keeps_daemons: phase == Phase::Boot,
        })
    }

    fn grade(&self, end: CommandEnd, collected: Collected, finished: &Finished) -> Vec<Graded> {
        let grade = |path: &str, result: ResultFile| {
            let ran = Ran {
                end,
                result: result.found(),
                result_path: path,
                output_tail: &finished.last,
            };
            (self.judge(None, Ok(ran)), result.into_reading())
        };
        let mut graded: Vec<Graded> = collected
            .results
            .into_iter()
            .map(|(path, result)| grade(&path, result))
            .collect();
        let expected = match self.job.plan.produces {
            Produces::Attempt => 1,
            Produces::Pair => self.job.plan.runs as usize,
        };
        while graded.len() < expected {
            graded.push(grade(&collected.expected_at, ResultFile::Missing));
        }
        graded
    }

    fn judge(&self, cancelled: Option<CancelReason>, course: Result<Ran<'_>, Failure>) -> Judgement {
        judge(&Evidence { cancelled, course }, &self.job.rules)
    }

    fn end(&self, life: Life, graded: Vec<Graded>) -> TryEnd {
        let elapsed = seconds(life.started.elapsed());
        let started_offset = seconds(life.started - self.run_started);
        let all_reusable = graded.iter().all(|(judgement, _)| judgement.sandbox_is_usable());
        // Where any attempt of the try gave a result, its command is never run again.
        let retry = graded.iter().all(|(judgement, _)| judgement.retry);
        let throttled = graded.iter().any(|(judgement, _)| judgement.throttled());
        let shared = graded.len() as f64;
        let records = graded
            .into_iter()
            .zip(self.id.index..)
            .map(|((judgement, reading), index)| {
                let reading = reading.as_deref();
                let id = AttemptId {
                    pair: self.id.pair.clone(),
                    index,
                };
                let checks = reading.map(|reading| reading.checks.clone()).unwrap_or_default();
                let failed = checks
                    .iter()
                    .filter(|check| !check.passed)
                    .map(|check| check.name.clone());
                let record = AttemptRecord {
                    index,
                    outcome: judgement.outcome,
                    reason: judgement.reason,
                    // Attempts that one command made share its time.
                    seconds: round(elapsed / shared),
                    started_offset: Some(started_offset),
                    phases: life.phases,
                    boot: life.boot,
                    tries: self.try_number,
                    error: judgement.error,
                    checks_failed: failed.collect(),
                    score: reading.and_then(|reading| reading.score),
                    usage: reading.and_then(|reading| reading.usage),
                    path: Some(id.path()),
                };
                (
                    record,
                    AttemptDetails {
                        checks,
                        ..life.details.clone()
                    },
                )
            });
        TryEnd {
            records: records.collect(),
            sandbox: life.sandbox,
            reusable: all_reusable,
            retry,
            throttled,
        }
    }
}

/// A judgement with the reading it rests on.
type Graded = (Judgement, Option<Box<crate::model::Reading>>);

/// What a try has come by so far; outlives the work on it when that is cut off.
struct Life {
    sandbox: Option<Box<dyn Sandbox>>,
    phases: Phases,
    boot: Option<Boot>,
    details: AttemptDetails,
    started: Instant,
}

/// Runs a command with its output going to the log; `None` is killed at its limit.
async fn run_command(
    sandbox: &mut dyn Sandbox,
    command: &Command,
    log: &mut OutputLog<'_>,
    limit: Duration,
) -> Result<Option<Exit>, Failure> {
    let (chunks, mut incoming) = mpsc::channel::<Vec<u8>>(OUTPUT_BACKLOG);
    let executing = async move {
        let exit = tokio::time::timeout(limit, sandbox.exec(command, &chunks)).await;
        drop(chunks);
        exit
    };
    let logging = async {
        let mut written = Ok(());
        while let Some(chunk) = incoming.recv().await {
            // After a failed write the rest is still read, so that the command can end.
            if written.is_ok() {
                written = log.push(&chunk).await;
            }
        }
        written
    };
    let (exit, written) = tokio::join!(executing, logging);
    written.map_err(store_failed)?;
    match exit {
        Ok(Ok(exit)) => Ok(Some(exit)),
        Ok(Err(error)) => Err(sandbox_failed(Phase::Command, &error)),
        Err(_) => Ok(None),
    }
}

/// Waits for an engine, no longer than the phase may take.
async fn within<T>(
    limit: Duration,
    phase: Phase,
    work: impl Future<Output = Result<T, SandboxError>>,
) -> Result<T, Failure> {
    within_limit(limit, phase, work)
        .await?
        .map_err(|error| sandbox_failed(phase, &error))
}

async fn within_limit<T>(limit: Duration, phase: Phase, work: impl Future<Output = T>) -> Result<T, Failure> {
    tokio::time::timeout(limit, work)
        .await
        .map_err(|_| failure(phase, phase_class(phase), past_limit(phase, limit)))
}

fn throttled_delay(tries: u32) -> Duration {
    THROTTLED_DELAY.saturating_mul(2_u32.saturating_pow(tries.saturating_sub(1)))
}

fn past_limit(phase: Phase, limit: Duration) -> String {
    format!("{phase} took longer than its limit of {} s", limit.as_secs_f64())
}

fn failure(phase: Phase, class: ErrorClass, message: String) -> Failure {
    Failure {
        phase,
        class,
        message,
        end: None,
    }
}

fn sandbox_failed(phase: Phase, error: &SandboxError) -> Failure {
    failure(
        phase,
        error.class.unwrap_or_else(|| phase_class(phase)),
        chain(error),
    )
}

fn store_failed(error: impl std::error::Error) -> Failure {
    failure(
        Phase::Collect,
        ErrorClass::Store,
        format!("cannot keep the attempt's files: {}", chain(&error)),
    )
}

fn sandbox_gone() -> Failure {
    failure(
        Phase::Command,
        ErrorClass::SandboxLost,
        "the sandbox is gone".to_owned(),
    )
}

/// The message of a broken step with the last lines that it printed.
fn with_output(mut failure: Failure, finished: &Finished) -> Failure {
    if matches!(failure.phase, Phase::Setup | Phase::Boot) {
        failure.message = with_last_lines(&failure.message, &finished.last);
    }
    failure
}

fn phase_class(phase: Phase) -> ErrorClass {
    match phase {
        Phase::Provision => ErrorClass::Provision,
        Phase::Upload => ErrorClass::Upload,
        Phase::Setup => ErrorClass::Setup,
        Phase::Boot => ErrorClass::Boot,
        Phase::Command => ErrorClass::Exec,
        Phase::Collect => ErrorClass::Collect,
    }
}

/// An error with its causes, in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// Seconds, to the millisecond.
pub(super) fn seconds(duration: Duration) -> f64 {
    round(duration.as_secs_f64())
}

fn round(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}
