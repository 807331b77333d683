//! One attempt, as it ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reading::{Check, Usage};

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A valid result says passed.
    Passed,
    /// A valid result says failed.
    Failed,
    /// The command was killed at its time limit without a result; counts as failed.
    TimedOut,
    /// No result, for reasons that are not the agent's.
    Errored,
    /// Stopped, or never started, before it could give a result.
    Cancelled,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

impl Outcome {
    /// Whether the attempt gave a result: passed, failed or timed out.
    pub fn is_graded(self) -> bool {
        matches!(self, Self::Passed | Self::Failed | Self::TimedOut)
    }
}

/// Why an attempt was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    /// The whole run was cancelled.
    Run,
    /// A sibling decided the pair.
    Decided,
    /// The first tries all died in the same way, so the run was stopped.
    Breaker,
    /// The run's budget was used up.
    Budget,
}

/// A part of an attempt's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Getting an empty sandbox.
    Provision,
    /// Bringing the workspace in.
    Upload,
    /// `attempt.setup`, in cold sandboxes.
    Setup,
    /// `attempt.boot`, in every sandbox.
    Boot,
    /// `attempt.command`.
    Command,
    /// Bringing the result out.
    Collect,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Provision => "provision",
            Self::Upload => "upload",
            Self::Setup => "setup",
            Self::Boot => "boot",
            Self::Command => "command",
            Self::Collect => "collect",
        })
    }
}

/// Seconds spent in each phase; `None` where the phase did not run in this try.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[expect(missing_docs, reason = "each field is the phase of the same name")]
pub struct Phases {
    pub provision: Option<f64>,
    pub upload: Option<f64>,
    pub setup: Option<f64>,
    pub boot: Option<f64>,
    pub command: Option<f64>,
    pub collect: Option<f64>,
}

impl Phases {
    /// Notes how long a phase took, in seconds.
    pub fn set(&mut self, phase: Phase, seconds: f64) {
        *match phase {
            Phase::Provision => &mut self.provision,
            Phase::Upload => &mut self.upload,
            Phase::Setup => &mut self.setup,
            Phase::Boot => &mut self.boot,
            Phase::Command => &mut self.command,
            Phase::Collect => &mut self.collect,
        } = Some(seconds);
    }
}

/// Whether a sandbox started from a prepared image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Boot {
    /// From a snapshot or image that holds `attempt.setup`.
    Warm,
    /// From nothing: `attempt.setup` ran.
    Cold,
}

/// The kind of an infrastructure failure, told from evidence, never from how long it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// No sandbox could be had.
    Provision,
    /// The engine refuses for good: it knows the credentials not, or does not allow what is asked for. Another try
    /// would be refused too.
    Refused,
    /// The workspace could not be brought in.
    Upload,
    /// `attempt.setup` failed or ran past its limit.
    Setup,
    /// `attempt.boot` failed or ran past its limit.
    Boot,
    /// The command could not be started or watched.
    Exec,
    /// The result could not be brought out.
    Collect,
    /// The sandbox went away.
    SandboxLost,
    /// The disk was full.
    OutOfDisk,
    /// The memory was used up.
    OutOfMemory,
    /// The harness owns the time limit and did not keep it.
    Hung,
    /// The command was killed at its limit, and `on-timeout` is `error`.
    TimedOut,
    /// The command left no result.
    NoResult,
    /// The command left a result that cannot be read.
    InvalidResult,
    /// A provider throttled the agent.
    Throttled,
    /// The result itself, or `attempt.infra`, says that the infrastructure failed.
    Infra,
    /// An exit code that is neither a pass nor a failure, or a signal.
    ExitCode,
    /// The attempt's files could not be written here.
    Store,
}

impl std::fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// What went wrong, with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptError {
    /// The kind of failure.
    pub class: ErrorClass,
    /// Where in the attempt's life it happened.
    pub phase: Phase,
    /// One or a few lines for a reader.
    pub message: String,
    /// The command's exit code, where it had one.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// The signal that ended the command, where one did.
    #[serde(default)]
    pub signal: Option<i32>,
}

/// A try of an attempt that failed for reasons that are not the agent's, and had another one after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailedTry {
    /// Which try, from 1. Its files are in `tries/` and this number, below those of the attempt.
    pub number: u32,
    /// What went wrong.
    pub error: AttemptError,
    /// How long its sandbox was held, in seconds.
    pub seconds: f64,
    /// What it used, where its result says so.
    #[serde(default)]
    pub usage: Option<Usage>,
}

/// One attempt as it ended: what `summary.json` and the journal keep of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptRecord {
    /// From 1.
    pub index: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it was cancelled, where it was.
    #[serde(default)]
    pub reason: Option<CancelReason>,
    /// Seconds from the start of its last try's sandbox to the end of its collection; 0 if it never started.
    pub seconds: f64,
    /// Seconds from the run's start to the start of its last try's sandbox; `None` if it never started.
    #[serde(default)]
    pub started_offset: Option<f64>,
    /// Seconds by phase, of its last try.
    #[serde(default)]
    pub phases: Phases,
    /// How its sandbox started; `None` where it had none, or that of the attempt before.
    #[serde(default)]
    pub boot: Option<Boot>,
    /// How often it was started; 0 if never.
    pub tries: u32,
    /// The tries before the last, in their order, as far as they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<FailedTry>,
    /// The last try's error, where it has one.
    #[serde(default)]
    pub error: Option<AttemptError>,
    /// Names of the checks that failed, in the harness's order.
    #[serde(default)]
    pub checks_failed: Vec<String>,
    /// What the grader wrote about the first of them, shortened, in their order; empty where it wrote nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub check_notes: Vec<String>,
    /// How many checks it had, where it had any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<usize>,
    /// The last lines that it printed, where it failed or timed out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// 0 to 1, where the harness gives one.
    #[serde(default)]
    pub score: Option<f64>,
    /// What it used, where the harness says so.
    #[serde(default)]
    pub usage: Option<Usage>,
    /// Its directory below the run directory, with `/`; `None` if it never started.
    #[serde(default)]
    pub path: Option<String>,
}

impl AttemptRecord {
    /// What each of its tries used, of those that say so.
    pub fn usages(&self) -> impl Iterator<Item = Usage> {
        let earlier = self.earlier.iter().filter_map(|failed| failed.usage);
        earlier.chain(self.usage)
    }

    /// Its last try, where that failed for reasons that are not the agent's, as one that another follows.
    pub fn failed_try(&self) -> Option<FailedTry> {
        let error = self.error.as_ref().filter(|_| self.tries > 0)?;
        Some(FailedTry {
            number: self.tries,
            error: error.clone(),
            seconds: self.seconds,
            usage: self.usage,
        })
    }

    /// Whether the last try of both is the same one.
    pub fn is_same_try(&self, other: &Self) -> bool {
        let of = |record: &Self| (record.tries, record.started_offset, record.seconds);
        self.tries > 0 && of(self) == of(other)
    }

    /// Seconds that its sandbox was held besides its command; `None` where that had not both a start and an end, or
    /// where the attempt had the sandbox of the one before.
    pub fn overhead_seconds(&self) -> Option<f64> {
        self.phases.provision?;
        Some((self.seconds - self.phases.command?).max(0.0))
    }

    /// The record of an attempt that never started.
    pub fn not_started(index: u32, reason: CancelReason) -> Self {
        Self {
            index,
            outcome: Outcome::Cancelled,
            reason: Some(reason),
            seconds: 0.0,
            started_offset: None,
            phases: Phases::default(),
            boot: None,
            tries: 0,
            earlier: Vec::new(),
            error: None,
            checks_failed: Vec::new(),
            check_notes: Vec::new(),
            checks: None,
            output: None,
            score: None,
            usage: None,
            path: None,
        }
    }
}

/// What `attempt.json` holds of an attempt besides its record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptDetails {
    /// Its checks, in the harness's order.
    pub checks: Vec<Check>,
    /// What confined it.
    pub confinement: Vec<String>,
    /// What a reader should know: files left out, output cut.
    pub notes: Vec<String>,
    /// In its directory: the file that its harness left, where that is no document which can stand for the pair.
    pub harness_file: Option<String>,
}
