//! What a run is going to do, settled before anything starts.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::forecast::Forecast;
use super::id::{Labels, PairId};
use super::policy::{OnPass, Policy, Strategy, policy_text};

/// Whether one command is one attempt, or all attempts of its pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Produces {
    /// One command, one attempt.
    #[default]
    Attempt,
    /// One command runs all attempts of its pair; each result file is one.
    Pair,
}

/// How much of the suite a run covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SelectionKind {
    /// Every pair of the suite.
    All,
    /// Some pairs, by selection flags.
    Subset,
    /// One of several parts that together cover the selection.
    Shard,
}

/// How many pairs were selected, and of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Selection {
    /// What kind of selection it is.
    pub kind: SelectionKind,
    /// Pairs in this run.
    pub selected: usize,
    /// Pairs in the suite.
    pub of: usize,
}

/// How many attempts (sequential: pairs) run at once, and why not more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Concurrency {
    /// At least 1.
    pub value: usize,
    /// In words: `474 = pairs x runs (237 x 2): one wave`.
    pub reason: String,
    /// Whether something cut it below what was asked for, which is worth a notice.
    pub bounded: bool,
    /// Most that were allowed, whatever there is to run; `None` is no bound.
    #[serde(default)]
    pub most: Option<usize>,
}

/// Most attempts of each pair that any plan has.
pub const MOST_RUNS: u32 = 1000;

/// A selected pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedPair {
    /// Which pair.
    pub id: PairId,
    /// What it is marked with.
    pub labels: Labels,
    /// How long one attempt's command is expected to take, in seconds; `None` is unknown.
    pub predicted_seconds: Option<f64>,
}

/// How many attempts of pairs with a label run at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedLimit {
    /// The label's name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// At least 1.
    pub concurrency: usize,
}

impl PlannedLimit {
    /// Whether attempts of a pair with these labels count against it.
    pub fn holds(&self, labels: &Labels) -> bool {
        labels.values(&self.name).contains(&self.value)
    }
}

/// What a run may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedBudget {
    /// Seconds of all sandboxes together.
    pub sandbox_seconds: Option<f64>,
    /// USD.
    pub cost_usd: Option<f64>,
}

impl PlannedBudget {
    /// A share of it.
    pub fn part(self, share: f64) -> Self {
        Self {
            sandbox_seconds: self.sandbox_seconds.map(|seconds| seconds * share),
            cost_usd: self.cost_usd.map(|cost| cost * share),
        }
    }
}

/// The part of a selection that a plan is for, and the whole of which it is one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedShard {
    /// Which part, from 1.
    pub index: usize,
    /// Of how many.
    pub count: usize,
    /// Every pair of the selection, in plan order.
    pub whole: Vec<PlannedPair>,
}

/// Everything that a run is going to do. Each pair x attempt is in it once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// The suite's name.
    pub suite: String,
    /// The selected pairs, in plan order.
    pub pairs: Vec<PlannedPair>,
    /// Attempts of each pair.
    pub runs: u32,
    /// When attempts start.
    pub strategy: Strategy,
    /// What a decided pair does with its others.
    pub on_pass: OnPass,
    /// How attempts decide a pair.
    #[serde(with = "policy_text")]
    pub policy: Policy,
    /// Whether a command is an attempt or a whole pair.
    pub produces: Produces,
    /// How many at once.
    pub concurrency: Concurrency,
    /// How many at once of some of them.
    #[serde(default)]
    pub limits: Vec<PlannedLimit>,
    /// What it may use.
    #[serde(default)]
    pub budget: PlannedBudget,
    /// Seconds around a command in a fresh sandbox, where earlier runs tell.
    #[serde(default)]
    pub overhead_seconds: Option<f64>,
    /// What it is expected to take and cost; `None` is unknown.
    #[serde(default)]
    pub forecast: Option<Forecast>,
    /// How much of the suite this is.
    pub selection: Selection,
    /// Which part of it, where others run the other ones.
    #[serde(default)]
    pub shard: Option<PlannedShard>,
    /// The sandbox kind's name.
    pub sandbox: String,
    /// SHA-256, hexadecimal, of what decides the results: command, set-up, formats, runs, policy.
    pub config_hash: String,
}

impl RunPlan {
    /// What makes another plan something else to measure than this one, in words; `None` where their results belong
    /// together.
    pub fn difference(&self, other: &Self) -> Option<String> {
        self.difference_of_whole(other)
            .or_else(|| difference_of_pairs(&self.pairs, &other.pairs))
    }

    /// The pairs of the selection that this plan is for, or for a part of.
    pub fn whole(&self) -> &[PlannedPair] {
        self.shard.as_ref().map_or(&self.pairs, |shard| &shard.whole)
    }

    /// What makes another plan no part of the same whole, in words.
    pub fn difference_of_whole(&self, other: &Self) -> Option<String> {
        let facts = |plan: &Self| {
            [
                ("suite", plan.suite.clone()),
                ("runs", plan.runs.to_string()),
                ("policy", plan.policy.to_string()),
                ("sandbox", plan.sandbox.clone()),
            ]
        };
        for ((name, one), (_, another)) in facts(self).into_iter().zip(facts(other)) {
            if one != another {
                return Some(format!("its `{name}` is `{another}`, not `{one}`"));
            }
        }
        if self.config_hash != other.config_hash {
            return Some(
                "its command, its set-up or what its results mean is another one (`config_hash`)".to_owned(),
            );
        }
        difference_of_pairs(self.whole(), other.whole())
    }

    /// Pairs x runs.
    pub fn attempts(&self) -> usize {
        self.pairs.len() * self.runs as usize
    }
}

fn difference_of_pairs(pairs: &[PlannedPair], other: &[PlannedPair]) -> Option<String> {
    let ids =
        |pairs: &[PlannedPair]| -> BTreeSet<PairId> { pairs.iter().map(|pair| pair.id.clone()).collect() };
    let (ids, other) = (ids(pairs), ids(other));
    let lacking = ids.difference(&other).next();
    let besides = || {
        Some(format!(
            "it has the pair `{}` besides",
            other.difference(&ids).next()?
        ))
    };
    lacking
        .map(|id| format!("it lacks the pair `{id}`"))
        .or_else(besides)
}
