//! The nouns of evalwave and the documents it exchanges: plain values, no input or output, no knowledge of any other module.

pub mod attempt;
pub mod cause;
pub mod comparison;
pub mod event;
pub mod exit;
pub mod forecast;
pub mod id;
pub mod layout;
pub mod plan;
pub mod policy;
pub mod reading;
pub mod result_set;
pub mod run;
pub mod sandbox;
pub mod summary;

pub use attempt::{
    AttemptDetails, AttemptError, AttemptRecord, Boot, CancelReason, ErrorClass, Outcome, Phase, Phases,
};
pub use cause::with_causes;
pub use comparison::Comparison;
pub use event::Event;
pub use exit::ExitCode;
pub use forecast::{Forecast, Outlook, Range, Scheduling};
pub use id::{AttemptId, EvalId, ExperimentId, InvalidId, Labels, Pair, PairId, file_name};
pub use plan::{
    Concurrency, MOST_RUNS, PlannedBudget, PlannedLimit, PlannedPair, PlannedShard, Produces, RunPlan,
    Selection, SelectionKind,
};
pub use policy::{Gate, OnPass, OnTimeout, Policy, Strategy};
pub use reading::{Check, Reading, ReadingVerdict, Usage};
pub use result_set::{PairResult, ResultSet, Sample};
pub use run::{PairRun, Run};
pub use sandbox::{LeftSandbox, Whereabouts};
pub use summary::{Before, Findings, PairSummary, RunFacts, Summary, Totals, Verdict};
