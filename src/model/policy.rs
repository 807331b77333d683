//! How attempts decide a pair, when they start, and which findings fail a run.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How attempts decide a pair, over the attempts that gave a result.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Policy {
    /// At least one passed.
    #[default]
    Any,
    /// Every one passed.
    All,
    /// Strictly more than half passed.
    Majority,
    /// The mean score reaches the threshold.
    Mean {
        /// 0 to 1.
        threshold: f64,
        /// A pair that lacks any of its `runs` results is `error`.
        complete: bool,
    },
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::All => f.write_str("all"),
            Self::Majority => f.write_str("majority"),
            Self::Mean { threshold, complete } => {
                write!(f, "mean:{threshold}{}", if *complete { ":complete" } else { "" })
            }
        }
    }
}

/// A policy that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a policy: expected any, all, majority, mean:0.5 or mean:0.5:complete, the threshold from 0 to 1"
)]
pub struct InvalidPolicy(String);

impl std::str::FromStr for Policy {
    type Err = InvalidPolicy;

    fn from_str(text: &str) -> Result<Self, InvalidPolicy> {
        let invalid = || InvalidPolicy(text.to_owned());
        match text {
            "any" => Ok(Self::Any),
            "all" => Ok(Self::All),
            "majority" => Ok(Self::Majority),
            _ => {
                let rest = text.strip_prefix("mean:").ok_or_else(invalid)?;
                let (number, complete) = match rest.strip_suffix(":complete") {
                    Some(number) => (number, true),
                    None => (rest, false),
                };
                let threshold: f64 = number.parse().map_err(|_| invalid())?;
                if (0.0..=1.0).contains(&threshold) {
                    Ok(Self::Mean { threshold, complete })
                } else {
                    Err(invalid())
                }
            }
        }
    }
}

/// Serde form of [`Policy`] in `summary.json`: its text.
pub(crate) mod policy_text {
    use super::Policy;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(policy: &Policy, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(policy)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Policy, D::Error> {
        String::deserialize(from)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// When attempts start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// One sandbox a pair, its attempts one after another, until it is decided.
    #[default]
    Sequential,
    /// Every attempt in its own sandbox, all at once.
    Parallel,
    /// The first attempts at once, the others when waiting would cost time.
    Adaptive,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sequential => "sequential",
            Self::Parallel => "parallel",
            Self::Adaptive => "adaptive",
        })
    }
}

/// What a decided pair does with its other attempts under the parallel strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnPass {
    /// They run to their end: full evidence.
    #[default]
    Continue,
    /// They are cancelled.
    Cancel,
}

/// What a timed out attempt counts as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnTimeout {
    /// As failed.
    #[default]
    Fail,
    /// As errored: no result.
    Error,
}

/// A finding that makes the run fail (`fail-on`). Shares are fractions: 5pp is 0.05.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gate {
    /// Some pair has no verdict.
    Incomplete,
    /// A pair that is not known to be flaky went from pass to fail.
    Regression,
    /// The comparison's verdict is `regressed` or `mixed`.
    Significant,
    /// Some attempt errored for good.
    Error,
    /// The pass rate fell by more than this.
    Drop(f64),
    /// The pass rate is below this.
    Below(f64),
    /// It is not proven that the pass rate fell by less than this.
    NotProven(f64),
    /// There is nothing to compare with.
    NoBaseline,
    /// The comparison could not tell.
    Inconclusive,
    /// No finding fails the run, not even missing results.
    Never,
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Two decimals of a percentage are all that is accepted, so nothing is lost here.
        let percent = |share: f64| (share * 10_000.0).round() / 100.0;
        match self {
            Self::Incomplete => f.write_str("incomplete"),
            Self::Regression => f.write_str("regression"),
            Self::Significant => f.write_str("significant"),
            Self::Error => f.write_str("error"),
            Self::Drop(share) => write!(f, "drop:{}pp", percent(*share)),
            Self::Below(share) => write!(f, "below:{}%", percent(*share)),
            Self::NotProven(share) => write!(f, "not-proven:{}pp", percent(*share)),
            Self::NoBaseline => f.write_str("no-baseline"),
            Self::Inconclusive => f.write_str("inconclusive"),
            Self::Never => f.write_str("never"),
        }
    }
}
