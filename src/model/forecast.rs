//! What a run is expected to take and cost, and how that compares with what it took.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::comparison::PairRef;
use super::policy::Strategy;

/// What is likely, and what one run in ten stays below and goes beyond.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Range {
    /// One run in ten stays below it.
    pub low: f64,
    /// As many runs below as above.
    pub likely: f64,
    /// One run in ten goes beyond it.
    pub high: f64,
}

impl Range {
    /// The same in another unit.
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self {
            low: change(self.low),
            likely: change(self.likely),
            high: change(self.high),
        }
    }
}

/// What a strategy is expected to come to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outlook {
    /// When attempts start.
    pub strategy: Strategy,
    /// How many attempts (sequential: pairs) at once.
    pub concurrency: usize,
    /// From the run's start to its end.
    pub wall_seconds: Range,
    /// Of all sandboxes together.
    pub sandbox_seconds: Range,
    /// USD; `None` where nothing says what attempts cost.
    #[serde(default)]
    pub cost_usd: Option<Range>,
}

/// What is expected of a run, by simulation from the durations of earlier ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Forecast {
    /// Pairs whose own duration is known.
    pub known_pairs: usize,
    /// The run as it is planned.
    pub run: Outlook,
    /// The strategies, each at a few concurrencies.
    pub strategies: Vec<Outlook>,
}

/// What a run's wall-clock was bounded by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BoundKind {
    /// One attempt that ran from its start to its end.
    SlowestAttempt,
    /// Attempts of one pair, one after another.
    OneAfterAnother,
    /// The last attempt had to wait for a place: fewer ran at once than there were.
    Concurrency,
    /// The last attempt had to wait for a place of a limit on a label of its pair.
    Limit,
    /// It had to wait for tries that failed.
    Retries,
    /// The budget was used up.
    Budget,
    /// It was stopped before it was done.
    Stopped,
}

/// What bounded a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bound {
    /// What kind of thing.
    pub kind: BoundKind,
    /// The pair that ended last, where the kind is about one.
    #[serde(default)]
    pub pair: Option<PairRef>,
    /// How long its attempts took, or waited for a place, in seconds.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// The same in words: lower-case, without a full stop.
    pub why: String,
}

/// What a strategy came to, or would have.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Taken {
    /// When attempts start.
    pub strategy: Strategy,
    /// How many attempts (sequential: pairs) at once.
    pub concurrency: usize,
    /// It was simulated from this run's durations.
    pub simulated: bool,
    /// From the run's start to its end.
    pub wall_seconds: f64,
    /// Of all sandboxes together.
    pub sandbox_seconds: f64,
    /// USD; `None` where it is not known of every attempt.
    #[serde(default)]
    pub cost_usd: Option<f64>,
}

/// How well a run was predicted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Accuracy {
    /// Pairs whose own duration was known.
    pub known_pairs: usize,
    /// What was expected.
    pub expected: Outlook,
    /// By how much, as a share of it, the attempt in the middle missed its prediction; `None` where no attempt had one.
    pub median_error: Option<f64>,
}

/// How a run was scheduled, seen from its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scheduling {
    /// What its wall-clock was bounded by.
    pub bounded_by: Bound,
    /// This run, then what other strategies and other concurrencies would have come to.
    pub strategies: Vec<Taken>,
    /// How well it was predicted; `None` where nothing was.
    #[serde(default)]
    pub accuracy: Option<Accuracy>,
}
