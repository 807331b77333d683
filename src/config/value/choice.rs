//! Words of a fixed list: strategies, policies, gates.

use super::measure::{Percent, Points, hundredths};
use super::{FromText, Refusal, in_file};
use crate::config::problem::not_among;
use crate::model::{Gate, Policy, Strategy};

/// One of `fail-on`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::config) struct GateText(pub(in crate::config) Gate);

/// `parallel-attempts`: whether all attempts run at once, in one wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) struct OneWave(pub(in crate::config) Strategy);

impl FromText for GateText {
    const EXPECTED: &'static str = "a finding such as `incomplete`, `regression`, `drop:5pp` or `below:80%`";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        let points = |amount: &str| {
            hundredths(amount, "pp")
                .ok_or_else(|| Refusal::expected(format_args!("{} after `:`", Points::EXPECTED)))
        };
        let gate = match text.split_once(':') {
            Some(("drop", amount)) => Gate::Drop(points(amount)?),
            Some(("not-proven", amount)) => Gate::NotProven(points(amount)?),
            Some(("below", amount)) => Gate::Below(
                hundredths(amount, "%")
                    .ok_or_else(|| Refusal::expected(format_args!("{} after `:`", Percent::EXPECTED)))?,
            ),
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
        match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(Self(Strategy::Parallel)),
            "false" | "0" | "no" | "off" => Ok(Self(Strategy::Sequential)),
            "adaptive" => Ok(Self(Strategy::Adaptive)),
            _ => Err(Refusal::Unlike),
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
    "pattern": "^(incomplete|regression|significant|error|no-baseline|inconclusive|never|(drop|not-proven):[0-9]{1,3}(\\.[0-9]{1,2})?pp|below:[0-9]{1,3}(\\.[0-9]{1,2})?%)$"
});
