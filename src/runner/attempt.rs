//! One try of one attempt, from an empty sandbox to its outcome: every time limit, and the only place that kills.

use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::clock::{Clock, seconds};
use super::collect::{self, Collected, Located};
use super::ending::{TryEnd, indexes};
use super::failure::{
    failure, judged, past_limit, sandbox_failed, sandbox_gone, store_failed, with_output, within,
    within_limit,
};
use super::ledger::Account;
use super::line::Place;
use super::output::OutputLog;
use super::{Job, RecordError, Recorder, environment, evidence, prepare};
use crate::aggregate::{CommandEnd, Course, Failure, Judgement, Ran, round_seconds};
use crate::config::template::{CommandError, CommandTemplate, Values};
use crate::model::layout::OUTPUT_FILE;
use crate::model::{
    AttemptDetails, AttemptId, AttemptRecord, Boot, CancelReason, ErrorClass, Event, Outcome, Phase, Phases,
    Reading,
};
use crate::sandbox::{Backend, Command, Exit, Sandbox, SandboxSpec};
use crate::schedule::AttemptRef;

/// Pieces of output that may wait to be written.
pub(super) const OUTPUT_BACKLOG: usize = 16;

/// What a try needs; it owns it all, so that tries run as tasks.
pub(super) struct TryContext {
    pub(super) job: Arc<Job>,
    pub(super) backend: Arc<dyn Backend>,
    pub(super) recorder: Arc<dyn Recorder>,
    pub(super) account: Arc<Account>,
    /// Hears when a try has its turn to hold a sandbox.
    pub(super) turns: mpsc::UnboundedSender<(AttemptRef, Instant)>,
    /// The attempt, as the scheduler means it.
    pub(super) attempt: AttemptRef,
    pub(super) id: AttemptId,
    pub(super) try_number: u32,
    pub(super) clock: Clock,
}

impl TryContext {
    /// Lives the try, in the sandbox that the attempt before left or in a fresh one that `place` is for, until it ends
    /// or `cancel` says that it is to stop, and why.
    pub(super) async fn run(
        self,
        kept: Option<Box<dyn Sandbox>>,
        place: Option<Place>,
        cancel: oneshot::Receiver<CancelReason>,
    ) -> TryEnd {
        let mut life = Life {
            sandbox: kept,
            place,
            phases: Phases::default(),
            boot: None,
            notes: Vec::new(),
            last: String::new(),
            begun: Instant::now(),
            turn: None,
        };
        if life.sandbox.is_some() {
            self.take_turn(&mut life);
        }
        let graded = match self.live(&mut life, cancel).await {
            Ok(graded) => graded,
            Err(course) => {
                let judgement = judged(&course, &self.job);
                let each = indexes(&self.job.plan, self.id.index);
                each.map(|_| Graded::without_result(judgement.clone())).collect()
            }
        };
        let mut end = self.end(life, graded);
        if end.retry {
            // Whatever becomes of the run from here on, what the try came to is with its files.
            for (record, details) in &end.records {
                let kept = self.recorder.close_try(record, details).await;
                end.kept = end.kept.and(kept);
            }
        }
        end
    }

    async fn live(
        &self,
        life: &mut Life,
        cancel: oneshot::Receiver<CancelReason>,
    ) -> Result<Vec<Graded>, Course<'static>> {
        let directory = self.open(life.begun).await.map_err(Course::Failed)?;
        let redactor = &self.job.redactor;
        let mut log = OutputLog::new(&directory.join(OUTPUT_FILE), redactor);
        let lived = tokio::select! {
            biased;
            lived = self.work(life, &directory, &mut log) => Ok(lived),
            Ok(reason) = cancel => Err(Course::Cancelled(reason)),
        };
        // However the try ended, what it printed is kept.
        let finished = log.finish(redactor).await;
        let lived = lived?;
        let finished = finished.map_err(|error| Course::Failed(store_failed(error)))?;
        life.notes.extend(finished.note);
        life.last.clone_from(&finished.last);
        let ended = lived.map_err(|failure| Course::Failed(with_output(failure, &finished.last)))?;
        Ok(self.grade(ended, &finished.last, life))
    }

    /// Says that the try begins. Returns where its files go.
    async fn open(&self, begun: Instant) -> Result<Utf8PathBuf, Failure> {
        // The files of the try before it are put away first, so that a run which dies here knows whose files it finds.
        let opened = self.open_directories().await;
        let started = Event::AttemptStarted {
            attempt: self.id.clone(),
            try_number: self.try_number,
            offset: self.clock.offset(begun),
        };
        self.recorder.record(&started).await.map_err(store_failed)?;
        opened.map_err(store_failed)
    }

    /// A directory for each attempt that the try makes. Gives the first.
    async fn open_directories(&self) -> Result<Utf8PathBuf, RecordError> {
        for index in indexes(&self.job.plan, self.id.index).skip(1) {
            let pair = self.id.pair.clone();
            let further = AttemptId { pair, index };
            self.recorder.open_try(&further, self.try_number).await?;
        }
        self.recorder.open_try(&self.id, self.try_number).await
    }

    /// Everything that writes output: sandbox, setup, boot, command; then the collection.
    async fn work(
        &self,
        life: &mut Life,
        directory: &Utf8Path,
        log: &mut OutputLog<'_>,
    ) -> Result<Ended, Failure> {
        let values = &environment::values(&self.job, self.attempt.pair, &self.id);
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
        let end = match run_command(sandbox.as_mut(), &command, log, Phase::Command, limit).await? {
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
        .await
        .flatten()
        .map_err(|failure| Failure {
            end: Some(end),
            ..failure
        })?;
        life.phases.set(Phase::Collect, seconds(begun.elapsed()));
        let mut ended = Ended {
            end,
            full_disk: None,
            collected,
        };
        if !self.has_passed(&ended) {
            ended.full_disk = self.full_disk(sandbox.as_mut()).await;
        }
        Ok(ended)
    }

    /// Looks at the disk, which may be far away; what is not told in time is not told.
    async fn full_disk(&self, sandbox: &mut dyn Sandbox) -> Option<String> {
        let limit = self.job.attempt.phases.collect;
        tokio::time::timeout(limit, sandbox.full_disk()).await.ok()?
    }

    /// An empty sandbox with the workspace in it. Only so many may be starting at once.
    async fn provision(&self, life: &mut Life) -> Result<(), Failure> {
        // A try holds no sandbox while it waits for its turn to start one.
        let _starting = match life.place.take() {
            Some(place) => Some(place.turn().await),
            None => None,
        };
        let spec = self.spec();
        let _admitted = self.backend.admit(&spec).await;
        self.take_turn(life);
        let named = self.account.name(&spec.name, Some(&self.id)).await;
        named.map_err(store_failed)?;
        let limit = self.job.attempt.phases.provision;
        let begun = Instant::now();
        let sandbox = within(
            limit,
            Phase::Provision,
            self.backend.start(&spec, self.account.as_ref()),
        )
        .await?;
        life.phases.set(Phase::Provision, seconds(begun.elapsed()));
        life.boot = Some(sandbox.boot());
        life.notes.extend(sandbox.notes());
        let sandbox = life.sandbox.insert(sandbox);
        let begun = Instant::now();
        within(limit, Phase::Upload, sandbox.upload(&self.job.workspace)).await?;
        life.phases.set(Phase::Upload, seconds(begun.elapsed()));
        Ok(())
    }

    /// From now on the try counts as holding a sandbox.
    fn take_turn(&self, life: &mut Life) {
        let now = Instant::now();
        life.turn = Some(now);
        // The driver hears of a try until that has ended.
        let _ = self.turns.send((self.attempt, now));
    }

    fn spec(&self) -> SandboxSpec {
        // A run that goes on may have its pairs in another order, and its sandboxes keep their names.
        let earlier = self.job.earlier.as_ref();
        let known = earlier.and_then(|earlier| earlier.run.pair(&self.id.pair));
        let number = known.map_or(self.attempt.pair + 1, |(_, pair)| pair.number);
        let name = format!("{number}-{}-{}", self.id.index, self.try_number);
        let labels = vec![
            ("experiment", self.id.pair.experiment.to_string()),
            ("eval", self.id.pair.eval.to_string()),
            ("attempt", format!("{}.{}", self.id.index, self.try_number)),
        ];
        prepare::spec(&self.job, &name, labels)
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
            let exit = run_command(sandbox.as_mut(), &command, log, phase, attempt.phases.setup).await?;
            life.phases.set(phase, seconds(begun.elapsed()));
            let why = match exit {
                Some(Exit::Code(0)) => continue,
                Some(Exit::Code(code)) => format!("`attempt.{phase}` ended with exit code {code}"),
                Some(Exit::Signal(signal)) => format!("`attempt.{phase}` was killed by signal {signal}"),
                None => past_limit(phase, attempt.phases.setup),
            };
            let full = self.full_disk(sandbox.as_mut()).await;
            return Err(match full {
                Some(full) => failure(phase, ErrorClass::OutOfDisk, format!("{why}: {full}")),
                None => failure(phase, class, why),
            });
        }
        Ok(())
    }

    fn command(&self, template: &CommandTemplate, values: &Values, phase: Phase) -> Result<Command, Failure> {
        let refused = |error: CommandError| failure(phase, ErrorClass::Exec, error.to_string());
        Ok(Command {
            line: template.render(values).map_err(refused)?,
            env: environment::variables(&self.job, values, self.try_number, phase != Phase::Setup)
                .map_err(|unknown| refused(unknown.into()))?,
            // What boot starts serves the attempts after it.
            keeps_daemons: phase == Phase::Boot,
        })
    }

    /// Whether every attempt of the try has passed, whatever else there is to know.
    fn has_passed(&self, ended: &Ended) -> bool {
        let missing = Located::missing(&ended.collected.expected_at);
        indexes(&self.job.plan, self.id.index)
            .zip(ended.collected.results.iter().chain(std::iter::repeat(&missing)))
            .all(|(_, located)| self.judgement(ended, located, "").outcome == Outcome::Passed)
    }

    fn judgement(&self, ended: &Ended, located: &Located, last: &str) -> Judgement {
        let ran = Ran {
            end: ended.end,
            result: located.result.found(),
            full_disk: ended.full_disk.as_deref(),
            result_path: &located.path,
            output_tail: last,
        };
        judged(&Course::Ran(ran), &self.job)
    }

    fn grade(&self, mut ended: Ended, last: &str, life: &mut Life) -> Vec<Graded> {
        life.notes.append(&mut ended.collected.notes);
        let results = std::mem::take(&mut ended.collected.results);
        let missing = std::iter::repeat_with(|| Located::missing(&ended.collected.expected_at));
        results
            .into_iter()
            .chain(missing)
            .zip(indexes(&self.job.plan, self.id.index))
            .map(|(located, _)| Graded {
                judgement: self.judgement(&ended, &located, last),
                reading: located.result.into_reading(),
                harness_file: located.harness_file,
            })
            .collect()
    }

    fn end(&self, life: Life, graded: Vec<Graded>) -> TryEnd {
        // Attempts that one command made share its time; one that was still waiting for its turn has used none.
        let held = life.turn.map_or(Duration::ZERO, |turn| turn.elapsed());
        let each = round_seconds(held.as_secs_f64() / graded.len() as f64);
        let sandbox = life.sandbox.as_ref();
        let confinement = sandbox.map(|sandbox| sandbox.confinement()).unwrap_or_default();
        let reusable = graded.iter().all(|each| each.judgement.sandbox_is_usable());
        // Where any attempt of the try gave a result, its command is never run again.
        let retry = graded.iter().all(|each| each.judgement.retry);
        let throttled = graded.iter().any(|each| each.judgement.throttled());
        let output = evidence::excerpt(&life.last);
        let redacted = |note: &String| self.job.redactor.text(note).into_owned();
        let notes: Vec<String> = life.notes.iter().map(redacted).collect();
        let ends = graded.into_iter().zip(indexes(&self.job.plan, self.id.index));
        let records = ends.map(|(graded, index)| {
            let judgement = graded.judgement;
            let (checks, score, usage) = match graded.reading {
                Some(reading) => (reading.checks, reading.score, reading.usage),
                None => (Vec::new(), None, None),
            };
            let id = AttemptId {
                pair: self.id.pair.clone(),
                index,
            };
            // The message of an error has the end of the output already.
            let failed = matches!(judgement.outcome, Outcome::Failed | Outcome::TimedOut);
            let record = AttemptRecord {
                index,
                outcome: judgement.outcome,
                reason: judgement.reason,
                seconds: each,
                started_offset: Some(self.clock.offset(life.turn.unwrap_or(life.begun))),
                phases: life.phases,
                boot: life.boot,
                tries: self.try_number,
                earlier: Vec::new(),
                error: judgement.error,
                checks_failed: evidence::failed(&checks),
                check_notes: evidence::check_notes(&checks),
                checks: (!checks.is_empty()).then_some(checks.len()),
                output: output.clone().filter(|_| failed),
                score,
                usage,
                path: Some(id.path()),
            };
            let details = AttemptDetails {
                checks,
                confinement: confinement.clone(),
                notes: notes.clone(),
                harness_file: graded.harness_file,
            };
            (record, details)
        });
        TryEnd {
            records: records.collect(),
            sandbox: life.sandbox,
            reusable,
            retry,
            throttled,
            kept: Ok(()),
        }
    }
}

/// What a command came to.
struct Ended {
    end: CommandEnd,
    /// The sandbox's disk was full then, in words.
    full_disk: Option<String>,
    collected: Collected,
}

/// A judgement with the reading it rests on.
struct Graded {
    judgement: Judgement,
    reading: Option<Box<Reading>>,
    harness_file: Option<String>,
}

impl Graded {
    fn without_result(judgement: Judgement) -> Self {
        Self {
            judgement,
            reading: None,
            harness_file: None,
        }
    }
}

/// What a try has come by so far; outlives the work on it when that is cut off.
struct Life {
    sandbox: Option<Box<dyn Sandbox>>,
    /// In the line of those that start one.
    place: Option<Place>,
    phases: Phases,
    boot: Option<Boot>,
    /// What a reader should know.
    notes: Vec<String>,
    /// The end of its output.
    last: String,
    begun: Instant,
    /// When it had its turn to hold a sandbox, where it has come to that.
    turn: Option<Instant>,
}

/// Runs a command with its output going to the log; `None` is killed at its limit.
async fn run_command(
    sandbox: &mut dyn Sandbox,
    command: &Command,
    log: &mut OutputLog<'_>,
    phase: Phase,
    limit: Duration,
) -> Result<Option<Exit>, Failure> {
    let (chunks, mut incoming) = mpsc::channel::<Vec<u8>>(OUTPUT_BACKLOG);
    let executing = async move {
        let exit = sandbox.exec_within(limit, command, &chunks).await;
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
    exit.map_err(|error| sandbox_failed(phase, &error))
}
