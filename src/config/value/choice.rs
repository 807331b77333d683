//! Words of a fixed list: strategies, policies, gates.

use super::measure::hundredths;
use super::{FromText, Refusal, in_file};
use crate::config::CommentMode;
use crate::config::problem::not_among;
use crate::model::{Gate, Policy, Strategy};

/// One of `fail-on`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::config) struct GateText(pub(in crate::config) Gate);

/// `parallel-attempts`: whether all attempts run at once, in one wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) struct OneWave(pub(in crate::config) Strategy);

/// True or false, as workflows write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) struct Truth(pub(in crate::config) bool);

impl FromText for GateText {
    const EXPECTED: &'static str = "a finding such as `incomplete`, `regression`, `drop:5pp` or `below:80%`";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        let percent = |word: &str, amount: &str, suffix: &str| {
            hundredths(amount, suffix).ok_or_else(|| {
                let most = format!("{word}:100{suffix}");
                Refusal::Expected(format!(
                    "`{word}:0{suffix}` to `{most}`, with at most two decimals"
                ))
            })
        };
        let (word, amount) = text.split_once(':').unwrap_or((text, ""));
        let gate = match word {
            "drop" => Gate::Drop(percent(word, amount, "pp")?),
            "not-proven" => Gate::NotProven(percent(word, amount, "pp")?),
            "below" => Gate::Below(percent(word, amount, "%")?),
            _ => match text {
                "incomplete" => Gate::Incomplete,
                "regression" => Gate::Regression,
                "significant" => Gate::Significant,
                "error" => Gate::Error,
                "no-baseline" => Gate::NoBaseline,
                "inconclusive" => Gate::Inconclusive,
                "never" => Gate::Never,
                _ => return Err(Refusal::Because(not_among(text, &GATES))),
            },
        };
        Ok(Self(gate))
    }
}

const GATES: [&str; 10] = [
    "incomplete",
    "regression",
    "significant",
    "error",
    "drop:5pp",
    "below:80%",
    "not-proven:5pp",
    "no-baseline",
    "inconclusive",
    "never",
];

impl FromText for OneWave {
    const EXPECTED: &'static str = "true or false (1/0, yes/no, on/off, in any case) or `adaptive`";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        if text.eq_ignore_ascii_case("adaptive") {
            return Ok(Self(Strategy::Adaptive));
        }
        Truth::from_text(text).map(|Truth(parallel)| match parallel {
            true => Self(Strategy::Parallel),
            false => Self(Strategy::Sequential),
        })
    }
}

impl FromText for Truth {
    const EXPECTED: &'static str = "true or false (1/0, yes/no, on/off, in any case)";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(Self(true)),
            "false" | "0" | "no" | "off" => Ok(Self(false)),
            _ => Err(Refusal::Unlike),
        }
    }
}

impl FromText for CommentMode {
    const EXPECTED: &'static str = "`always`, `changes`, `failures` or `never`";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        match text {
            "always" => Ok(Self::Always),
            "changes" => Ok(Self::Changes),
            "failures" => Ok(Self::Failures),
            "never" => Ok(Self::Never),
            _ => Err(Refusal::Because(not_among(
                text,
                &["always", "changes", "failures", "never"],
            ))),
        }
    }
}

impl FromText for Strategy {
    const EXPECTED: &'static str = "`sequential`, `parallel` or `adaptive`";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        match text {
            "sequential" => Ok(Self::Sequential),
            "parallel" => Ok(Self::Parallel),
            "adaptive" => Ok(Self::Adaptive),
            _ => Err(Refusal::Because(not_among(
                text,
                &["sequential", "parallel", "adaptive"],
            ))),
        }
    }
}

impl FromText for Policy {
    const EXPECTED: &'static str =
        "`any`, `all`, `majority`, `mean:0.5` or `mean:0.5:complete`, the threshold from 0 to 1";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        text.parse().map_err(|_| Refusal::Unlike)
    }
}

in_file!(GateText, {
    "type": "string",
    "pattern": "^(incomplete|regression|significant|error|no-baseline|inconclusive|never|(drop|not-proven):[0-9]{1,3}(\\.[0-9]{1,2})? *pp|below:[0-9]{1,3}(\\.[0-9]{1,2})? *%)$"
});
