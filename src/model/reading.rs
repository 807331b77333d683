//! What a harness's result file says, once it is read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One named check of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The harness's name for it.
    pub name: String,
    /// Whether it held.
    pub passed: bool,
    /// What the grader wrote about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

/// What an attempt used, as its harness reports it. Unknown is `None`, never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// Tokens read by the model.
    pub input_tokens: Option<u64>,
    /// Tokens written by the model.
    pub output_tokens: Option<u64>,
    /// US dollars.
    pub cost_usd: Option<f64>,
}

/// What the result decides of the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadingVerdict {
    /// It says passed.
    Passed,
    /// It says failed.
    Failed,
    /// It says that there is nothing to grade because something broke.
    Errored {
        /// Whether a fresh try could give a result.
        retry: bool,
    },
}

/// A result that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Passed, failed, or an error.
    pub verdict: ReadingVerdict,
    /// Its checks, in its order.
    pub checks: Vec<Check>,
    /// 0 to 1, where the format has scores.
    pub score: Option<f64>,
    /// Tokens and cost, where it says so.
    pub usage: Option<Usage>,
    /// How long the harness says the attempt took, in seconds.
    pub seconds: Option<f64>,
    /// The result's own error text, which `attempt.infra.error` is matched against.
    pub error: Option<String>,
    /// The harness says that a provider throttled it.
    pub throttled: bool,
}
