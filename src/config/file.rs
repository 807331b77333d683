//! `evalwave.yml` as it is written: every key, each value checked by itself. What the keys say together is settled in
//! `resolve`.

pub(super) mod attempt;
mod engine;
pub(super) mod sandbox;
pub(super) mod shape;
pub(super) mod suite;
mod vercel;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::node::Node;
use super::problem::{KeyPath, Problem};
use super::value::{
    Amount, Confidence, Day, FromText, GateText, IdGlob, LabelName, LabelText, Percent, Points, Ratio,
    Refusal, SourceText, Text, Version, Whole,
};
use crate::model::{MOST_RUNS, OnPass, OnTimeout, Policy, Strategy};
use sandbox::{Sandbox, SandboxKeys};
use shape::{List, OneOrList, by_shape};

/// The configuration of evalwave. A key that is `null` or has no value counts as not written; a name of your own (of a
/// variable in `env`, of a label) needs one.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a mapping with `version`, `suite` and `attempt`"
)]
#[schemars(title = "evalwave.yml")]
pub(super) struct File {
    /// The version of this format.
    #[expect(dead_code, reason = "there is one version, and it has been looked at")]
    version: Version,
    /// Which pairs there are.
    pub(super) suite: Option<suite::Suite>,
    /// How one attempt is made.
    pub(super) attempt: attempt::Attempt,
    /// Attempts of each pair. Default: 1.
    pub(super) runs: Option<Runs>,
    /// When attempts start. Default: `sequential`.
    pub(super) strategy: Option<Strategy>,
    /// How many at once: `auto` is all of them, pairs x runs (sequential: pairs). Default: `auto`.
    pub(super) concurrency: Option<Concurrency>,
    /// A hard cap on whatever `concurrency` comes to.
    pub(super) max_concurrency: Option<AtOnce>,
    /// How attempts decide a pair. Default: `any`.
    pub(super) policy: Option<PolicyKeys>,
    /// What a decided pair does with its other attempts; parallel only. Default: `continue`.
    pub(super) on_pass: Option<OnPass>,
    /// What a timed out attempt counts as. Default: `fail`.
    pub(super) on_timeout: Option<OnTimeout>,
    /// Tries for infrastructure failures. A graded result is never tried again.
    pub(super) retry: Option<Retry>,
    /// How many attempts of pairs with a label run at once.
    pub(super) limits: Option<List<Limit>>,
    /// Caps on what a run may use: refused before it is spent, and a hard stop.
    pub(super) budget: Option<Budget>,
    /// Where attempts run. Default: on this machine.
    #[expect(dead_code, reason = "it is read by `Sandbox::read`")]
    sandbox: Option<SandboxKeys>,
    /// What the run is compared with: a source of results, or a list of them read as one. Default: `auto`.
    pub(super) baseline: Option<OneOrList<SourceText>>,
    /// How many earlier baseline runs are read to know the flaky pairs. Default: 10.
    pub(super) history: Option<Whole<0, 1_000>>,
    /// Fresh attempts of each flipped pair before it is called a flip. Default: 0.
    pub(super) confirm: Option<Confirm>,
    /// Findings that fail the run. Default: `[incomplete]`.
    pub(super) fail_on: Option<OneOrList<GateText>>,
    /// Stricter gates for part of the suite.
    pub(super) gates: Option<List<LabelGate>>,
    /// How sure a comparison has to be.
    pub(super) compare: Option<Compare>,
    /// Pairs that are known to go both ways.
    pub(super) flaky: Option<List<Flaky>>,
    /// What reports show.
    pub(super) report: Option<Report>,
    /// Prices in USD, for costs.
    pub(super) price: Option<Price>,
}

/// A file, and its `sandbox`.
#[derive(Clone, Debug)]
pub(super) struct Parsed {
    pub(super) file: File,
    pub(super) sandbox: Option<Sandbox>,
}

impl Parsed {
    /// Reads every key.
    pub(super) fn read(node: &Node) -> Result<Self, Problem> {
        // The version comes first: with another one, other keys may well be known.
        match node.get("version") {
            Some(version) => {
                Version::deserialize(version)
                    .map_err(|problem| Problem::new(KeyPath::of("version"), problem.text))?;
            }
            None if matches!(node, Node::Map(_)) => {
                return Err(Problem::missing(KeyPath::of("version"), "`version: 1`"));
            }
            None => {}
        }
        if *node == Node::Null {
            return Err(Problem::new(
                KeyPath::default(),
                "expected a mapping with `version`, `suite` and `attempt`, found an empty file",
            ));
        }
        Ok(Self {
            file: File::deserialize(node)?,
            sandbox: node.get("sandbox").map(Sandbox::read).transpose()?,
        })
    }
}

/// `runs`.
pub(super) type Runs = Whole<1, MOST_RUNS>;
/// A number of attempts at once.
pub(super) type AtOnce = Whole<1, 100_000>;
/// `confirm`.
pub(super) type Confirm = Whole<0, 100>;

/// `concurrency`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Concurrency {
    Auto(Auto),
    Fixed(AtOnce),
}

by_shape! {
    Concurrency, Concurrency::EXPECTED,
    text Auto(Auto),
    number Fixed(AtOnce),
}

impl FromText for Concurrency {
    const EXPECTED: &'static str = "`auto` or a whole number from 1 to 100000";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        Auto::from_text(text)
            .map(Self::Auto)
            .or_else(|_| AtOnce::from_text(text).map(Self::Fixed))
            .map_err(|_| Refusal::Unlike)
    }
}

/// The word `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Auto;

impl FromText for Auto {
    const EXPECTED: &'static str = Concurrency::EXPECTED;

    fn from_text(text: &str) -> Result<Self, Refusal> {
        if text == "auto" {
            Ok(Self)
        } else {
            Err(Refusal::Unlike)
        }
    }
}

super::value::in_file!(Auto, { "type": "string", "const": "auto" });

/// `policy`.
#[derive(Clone, Copy, Debug)]
pub(super) enum PolicyKeys {
    Word(PolicyWord),
    Mean(Mean),
}

by_shape! {
    PolicyKeys, PolicyWord::EXPECTED,
    text Word(PolicyWord),
    map Mean(Mean),
}

impl From<PolicyKeys> for Policy {
    fn from(keys: PolicyKeys) -> Self {
        match keys {
            PolicyKeys::Word(word) => word.0,
            PolicyKeys::Mean(mean) => Self::Mean {
                threshold: mean.mean.0,
                complete: mean.complete.unwrap_or(false),
            },
        }
    }
}

/// A policy that is one word.
#[derive(Clone, Copy, Debug)]
pub(super) struct PolicyWord(Policy);

impl FromText for PolicyWord {
    const EXPECTED: &'static str = "`any`, `all`, `majority` or a mapping such as `{ mean: 0.5 }`";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        match text {
            "any" => Ok(Self(Policy::Any)),
            "all" => Ok(Self(Policy::All)),
            "majority" => Ok(Self(Policy::Majority)),
            _ => Err(Refusal::Unlike),
        }
    }
}

super::value::in_file!(PolicyWord, { "type": "string", "enum": ["any", "all", "majority"] });

/// A pair passes when the mean score of its attempts reaches a threshold.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `mean`")]
pub(super) struct Mean {
    /// The threshold.
    pub(super) mean: Ratio,
    /// Whether a pair that lacks any of its results is an error. Default: `false`.
    pub(super) complete: Option<bool>,
}

/// Tries for infrastructure failures.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(super) struct Retry {
    /// The most tries of one attempt, each in a fresh sandbox. Default: 3.
    pub(super) tries: Option<Whole<1, 100>>,
    /// The most retries of the run, as a share of its planned attempts; 10 are always allowed. Default: `20%`.
    pub(super) budget: Option<Percent>,
}

/// How many attempts of pairs with a label run at once.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `label` and `concurrency`")]
pub(super) struct Limit {
    /// The label, as `NAME=VALUE`.
    pub(super) label: LabelText,
    /// How many at once.
    pub(super) concurrency: AtOnce,
}

/// Caps on what a run may use.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a mapping")]
pub(super) struct Budget {
    /// Minutes of all sandboxes together.
    pub(super) sandbox_minutes: Option<Amount>,
    /// USD, of what results report or `price.models` makes of their tokens, and of sandboxes by `price`.
    pub(super) cost: Option<Amount>,
    /// Whether a run goes on whose use cannot be known. Default: `false`.
    pub(super) allow_unknown: Option<bool>,
}

/// Gates for the pairs with a label.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a mapping with `label` and `fail-on`"
)]
pub(super) struct LabelGate {
    /// The label, as `NAME=VALUE`.
    pub(super) label: LabelText,
    /// Findings among its pairs that fail the run.
    pub(super) fail_on: OneOrList<GateText>,
}

/// How sure a comparison has to be.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(super) struct Compare {
    /// Below it a difference is called significant. Default: 0.05.
    pub(super) alpha: Option<Confidence>,
    /// The drop that a comparison must be able to see. Default: `10pp`.
    pub(super) margin: Option<Points>,
}

/// Pairs that are known to go both ways.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `experiment` or `eval`")]
pub(super) struct Flaky {
    /// A glob on the experiment.
    pub(super) experiment: Option<IdGlob>,
    /// A glob on the eval.
    pub(super) eval: Option<IdGlob>,
    /// The last day on which they count as flaky.
    pub(super) until: Option<Day>,
    /// Why.
    pub(super) why: Option<Text>,
}

/// What reports show.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a mapping")]
pub(super) struct Report {
    /// A label for the breakdown; experiments always have one.
    pub(super) group_by: Option<LabelName>,
    /// When the action keeps a comment on the pull request. Default: `always`.
    pub(super) comment: Option<Comment>,
}

/// When there is a comment.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Comment {
    /// For every run.
    Always,
    /// When a verdict changed.
    Changes,
    /// When a gate failed.
    Failures,
    /// For none.
    Never,
}

/// Prices in USD.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a mapping")]
pub(super) struct Price {
    /// Of a vCPU for an hour, in sandboxes of the kind `vercel`. It counts as long as a sandbox is held, whether it
    /// computes or waits, so a price of active CPU gives an upper bound. Sandboxes of other kinds are not counted, nor
    /// are these without this key and the next.
    pub(super) vcpu_hour: Option<Amount>,
    /// Of a GB of memory for an hour, likewise; a sandbox has 2 GB for each vCPU.
    pub(super) gb_hour: Option<Amount>,
    /// Of models, by the name that a pair's label `model` has.
    pub(super) models: Option<BTreeMap<String, ModelPrice>>,
}

/// What a model costs.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `input` and `output`")]
pub(super) struct ModelPrice {
    /// USD for a million tokens that it reads.
    pub(super) input: Amount,
    /// USD for a million tokens that it writes.
    pub(super) output: Amount,
}
