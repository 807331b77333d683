//! What happens during a run, told as it happens. The journal keeps these, one a line.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::attempt::{AttemptDetails, AttemptError, AttemptRecord};
use super::id::{AttemptId, PairId};
use super::plan::RunPlan;
use super::reading::Usage;
use super::sandbox::Whereabouts;
use super::summary::{Findings, Verdict};

/// The value of `schema` in the first line of a journal that this version writes.
pub const JOURNAL_SCHEMA: &str = "evalwave.journal/1";

/// Something that happened. Offsets are seconds since the run's start.
///
/// Tagged externally: serde's other representations lose numbers when `serde_json` keeps their digits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The first event.
    RunStarted {
        /// [`JOURNAL_SCHEMA`].
        schema: String,
        /// Unique name of the run.
        run_id: String,
        /// When.
        started_at: Timestamp,
        /// The commit that is measured, where known.
        commit: Option<String>,
        /// What is going to be done.
        plan: Box<RunPlan>,
    },
    /// A run that had been broken off goes on. What was under way is lost; what follows is told in the same offsets.
    RunResumed {
        /// When.
        resumed_at: Timestamp,
        /// Where the offsets go on: the time between is not counted.
        offset: f64,
        /// What is going to be done, of which graded attempts are done already.
        plan: Box<RunPlan>,
    },
    /// Where the run's sandboxes are going to be.
    SandboxesAt {
        /// The run that owns them.
        run_id: String,
        /// Where.
        whereabouts: Whereabouts,
    },
    /// A sandbox is about to be created under this name.
    SandboxNamed {
        /// Unique among all runs.
        name: String,
        /// For which attempt; `None` is one that prepares what the others start from.
        attempt: Option<AttemptId>,
    },
    /// A sandbox was created, and its engine calls it something else.
    SandboxCreated {
        /// Its name.
        name: String,
        /// What its engine calls it.
        id: String,
    },
    /// A sandbox is not there any more.
    SandboxGone {
        /// Its name.
        name: String,
    },
    /// The engine makes ready what sandboxes start from, and says this line of it.
    Preparing {
        /// Without its newline.
        line: String,
    },
    /// An attempt's try began.
    AttemptStarted {
        /// Which attempt.
        attempt: AttemptId,
        /// Which try of it, from 1.
        try_number: u32,
        /// When.
        offset: f64,
    },
    /// A try failed for reasons that are not the agent's, and another one follows.
    TryFailed {
        /// Which attempt.
        attempt: AttemptId,
        /// Which try of it.
        try_number: u32,
        /// What went wrong.
        error: AttemptError,
        /// How long its sandbox was held, in seconds.
        seconds: f64,
        /// What it used, where its result says so.
        #[serde(default)]
        usage: Option<Usage>,
    },
    /// An attempt ended for good.
    AttemptEnded {
        /// Which pair.
        pair: PairId,
        /// How it ended.
        record: Box<AttemptRecord>,
        /// What else is known of it.
        details: Box<AttemptDetails>,
    },
    /// A pair has its final verdict: nothing of it runs any more.
    PairEnded {
        /// Which pair.
        pair: PairId,
        /// What is decided.
        verdict: Verdict,
        /// The attempt that stands for it.
        representative: Option<u32>,
        /// The attempts that gave a result, in order.
        graded: Vec<u32>,
    },
    /// Nothing runs any more.
    RunEnded {
        /// When.
        offset: f64,
        /// The run was cancelled.
        cancelled: bool,
        /// What a reader should know: why it ended before its plan was done, what could not be written.
        notices: Vec<String>,
    },
    /// The last event: the run was compared and held to its gates.
    RunConcluded {
        /// What its summary says beyond its attempts.
        findings: Box<Findings>,
    },
}
