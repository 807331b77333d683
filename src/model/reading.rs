//! What a harness's result file says, once it is read.

use serde::{Deserialize, Serialize};

use super::attempt::Usage;

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
