//! What failed a try that is not its command's doing, and the time limits of everything around the command.

use std::future::Future;
use std::time::Duration;

use super::Job;
use crate::aggregate::{Course, Failure, Judgement, judge, with_last_lines};
use crate::model::{ErrorClass, Phase, with_causes};
use crate::sandbox::SandboxError;

/// What became of an attempt of the job. An engine's own words in it may hold what it was given.
pub(super) fn judged(course: &Course<'_>, job: &Job) -> Judgement {
    let mut judgement = judge(course, &job.rules);
    if let Some(error) = &mut judgement.error {
        error.message = job.redactor.text(&error.message).into_owned();
    }
    judgement
}

/// Waits for an engine, no longer than the phase may take.
pub(super) async fn within<T>(
    limit: Duration,
    phase: Phase,
    work: impl Future<Output = Result<T, SandboxError>>,
) -> Result<T, Failure> {
    within_limit(limit, phase, work)
        .await?
        .map_err(|error| sandbox_failed(phase, &error))
}

/// Waits for anything, no longer than the phase may take.
pub(super) async fn within_limit<T>(
    limit: Duration,
    phase: Phase,
    work: impl Future<Output = T>,
) -> Result<T, Failure> {
    tokio::time::timeout(limit, work)
        .await
        .map_err(|_| failure(phase, own_class(phase), past_limit(phase, limit)))
}

pub(super) fn past_limit(phase: Phase, limit: Duration) -> String {
    format!("{phase} took longer than its limit of {} s", limit.as_secs_f64())
}

pub(super) fn failure(phase: Phase, class: ErrorClass, message: String) -> Failure {
    Failure {
        phase,
        class,
        message,
        end: None,
    }
}

pub(super) fn sandbox_failed(phase: Phase, error: &SandboxError) -> Failure {
    let class = error.class.unwrap_or_else(|| own_class(phase));
    failure(phase, class, with_causes(error))
}

/// The attempt's own files could not be written here.
pub(super) fn store_failed(error: impl std::error::Error) -> Failure {
    let why = format!("cannot keep the attempt's files: {}", with_causes(&error));
    failure(Phase::Collect, ErrorClass::Store, why)
}

pub(super) fn sandbox_gone() -> Failure {
    let why = "the sandbox is gone".to_owned();
    failure(Phase::Command, ErrorClass::SandboxLost, why)
}

/// The message of a broken step with the last lines that it printed.
pub(super) fn with_output(mut failure: Failure, last: &str) -> Failure {
    if matches!(failure.phase, Phase::Setup | Phase::Boot) {
        failure.message = with_last_lines(&failure.message, last);
    }
    failure
}

fn own_class(phase: Phase) -> ErrorClass {
    match phase {
        Phase::Provision => ErrorClass::Provision,
        Phase::Upload => ErrorClass::Upload,
        Phase::Setup => ErrorClass::Setup,
        Phase::Boot => ErrorClass::Boot,
        Phase::Command => ErrorClass::Exec,
        Phase::Collect => ErrorClass::Collect,
    }
}
