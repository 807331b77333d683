//! Drives a plan through an engine: starts, limits, retries and cancels attempts, and tells what happens as events.
//! Knows neither files of a run nor reports.

mod attempt;
mod clock;
mod collect;
mod driver;
mod ending;
mod environment;
mod evidence;
mod failure;
mod ledger;
mod line;
mod output;
mod prepare;
mod remainder;

use std::sync::Arc;

use async_trait::async_trait;
use camino::Utf8PathBuf;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::aggregate::{ExitRules, Rules};
use crate::config::{AttemptConfig, Config, Format, PriceConfig, RetryConfig};
use crate::model::event::JOURNAL_SCHEMA;
use crate::model::{AttemptDetails, AttemptId, AttemptRecord, Event, Run, RunPlan};
use crate::redact::Redactor;
use crate::sandbox::{Backend, Setup, Workspace};
use driver::Driver;

/// An event or a directory could not be kept; the text says why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RecordError(pub String);

/// Keeps what a run tells. Called from many attempts at once.
#[async_trait]
pub trait Recorder: Send + Sync {
    /// Makes an empty directory for the files of a try; those of the one before it are kept elsewhere.
    async fn open_try(&self, attempt: &AttemptId, try_number: u32) -> Result<Utf8PathBuf, RecordError>;

    /// Keeps what a try came to that another one may follow with the try's files; returns when it is there.
    async fn close_try(&self, record: &AttemptRecord, details: &AttemptDetails) -> Result<(), RecordError>;

    /// Keeps an event; returns when it is safe.
    async fn record(&self, event: &Event) -> Result<(), RecordError>;
}

/// Everything that a run needs to know, besides its engine.
#[derive(Debug)]
pub struct Job {
    /// Unique name of the run.
    pub run_id: String,
    /// When it starts; of one that goes on, when it started first.
    pub started_at: Timestamp,
    /// Tells the time, for when sandboxes expire.
    pub now: fn() -> Timestamp,
    /// The run so far, where it goes on.
    pub earlier: Option<Earlier>,
    /// The commit that is measured, where known.
    pub commit: Option<String>,
    /// What to do.
    pub plan: RunPlan,
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
    /// What attempts cost.
    pub price: PriceConfig,
    /// What every sandbox receives.
    pub workspace: Workspace,
}

/// A run that was broken off, or that lacks results, and goes on.
#[derive(Debug)]
pub struct Earlier {
    /// What it came to so far; its notices are what a reader should know of its files.
    pub run: Run,
    /// When it goes on.
    pub resumed_at: Timestamp,
}

impl Job {
    /// The run as it begins, or goes on.
    pub fn run(&self) -> Run {
        match &self.earlier {
            Some(earlier) => earlier.run.clone(),
            None => Run::new(
                &self.run_id,
                self.started_at,
                self.commit.clone(),
                self.plan.clone(),
            ),
        }
    }

    /// How many attempts of it have a result already.
    pub fn kept(&self) -> usize {
        let earlier = self.earlier.iter().flat_map(|earlier| &earlier.run.pairs);
        let records = earlier.flat_map(|pair| &pair.records);
        records.filter(|record| record.outcome.is_graded()).count()
    }

    /// The event that it begins with.
    fn begins(&self) -> Event {
        match &self.earlier {
            Some(earlier) => Event::RunResumed {
                resumed_at: earlier.resumed_at,
                offset: earlier.run.wall_seconds,
                plan: Box::new(self.plan.clone()),
            },
            None => Event::RunStarted {
                schema: JOURNAL_SCHEMA.to_owned(),
                run_id: self.run_id.clone(),
                started_at: self.started_at,
                commit: self.commit.clone(),
                plan: Box::new(self.plan.clone()),
            },
        }
    }
}

/// What the sandboxes of a job have in common, for an engine that makes something ready for them.
pub fn setup(job: &Job) -> Setup {
    prepare::setup(job)
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

/// Runs the plan to its end, or until it is cancelled. What goes wrong is an outcome of an attempt, or a notice.
pub async fn run(
    job: Arc<Job>,
    backend: Arc<dyn Backend>,
    recorder: Arc<dyn Recorder>,
    cancel: CancellationToken,
) -> Run {
    Driver::new(job, backend, recorder).run(&cancel).await
}

#[cfg(test)]
mod tests;
