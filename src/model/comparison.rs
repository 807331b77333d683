//! Two sets of results, compared. Rates and p-values are rounded when a comparison is made, so that every
//! reader of the document sees the same numbers.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::{EvalId, ExperimentId};

/// The value of `schema` in a comparison that this version writes.
pub const COMPARISON_SCHEMA: &str = "evalwave.comparison/1";

/// One side of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// Where the results come from, as the user named it.
    pub source: String,
    /// Branch or tag, where known.
    #[serde(default, rename = "ref")]
    pub reference: Option<String>,
    /// Commit, where known.
    #[serde(default)]
    pub commit: Option<String>,
    /// How old it was when compared.
    #[serde(default)]
    pub age_seconds: Option<f64>,
    /// A page about the run.
    #[serde(default)]
    pub run_url: Option<String>,
    /// How long the run took.
    #[serde(default)]
    pub wall_seconds: Option<f64>,
    /// Attempts that gave a result, where known.
    #[serde(default)]
    pub attempts: Option<usize>,
    /// Those of them that passed, where that is known and no pair stopped at what decided it: the others would be too few.
    #[serde(default)]
    pub attempts_passed: Option<usize>,
    /// Attempts that gave no result for reasons that are not the agent's, where known.
    #[serde(default)]
    pub attempts_errored: Option<usize>,
    /// Attempts that were killed at their time limit, where they are told from others that failed.
    #[serde(default)]
    pub attempts_timed_out: Option<usize>,
    /// What its attempts cost, where any says so.
    #[serde(default)]
    pub cost_usd: Option<Spent<f64>>,
    /// Tokens that its attempts used, where any says so.
    #[serde(default)]
    pub tokens: Option<Spent<u64>>,
    /// When the run started, where known.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub started_at: Option<Timestamp>,
    /// Pairs with a verdict (pass or fail).
    pub pairs: usize,
    /// Pairs that passed.
    pub passed: usize,
}

/// What attempts used together. The others are unknown, not free.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spent<T> {
    /// All of it.
    pub total: T,
    /// How many attempts say so.
    pub attempts: usize,
}

/// Pass rates over the compared pairs; `None` where nothing was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PassRates {
    /// Of the baseline.
    pub baseline: Option<f64>,
    /// Of this run.
    pub current: Option<f64>,
    /// Current less baseline.
    pub delta: Option<f64>,
}

/// A pair whose verdict differs from the baseline's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flip {
    /// The agent set-up.
    pub experiment: ExperimentId,
    /// The task.
    pub eval: EvalId,
    /// Known to go both ways without a change.
    pub flaky: bool,
    /// Listed under `flaky` in the configuration, so that it does not gate.
    #[serde(default)]
    pub quarantined: bool,
    /// Whether fresh attempts agreed; `None` where none were made.
    #[serde(default)]
    pub confirmed: Option<bool>,
    /// Passed of graded attempts in the baseline, as `k/n`; the verdict where attempts are not known.
    pub before: String,
    /// The same of this run.
    pub now: String,
}

/// Flips each way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flips {
    /// Passed before, failed now; those not known to be flaky first.
    pub pass_to_fail: Vec<Flip>,
    /// Failed before, passed now.
    pub fail_to_pass: Vec<Flip>,
}

/// A pair that passed fewer of its attempts than before, without a flip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FewerPasses {
    /// The agent set-up.
    pub experiment: ExperimentId,
    /// The task.
    pub eval: EvalId,
    /// Passed of graded attempts in the baseline, as `k/n`.
    pub before: String,
    /// The same of this run.
    pub now: String,
}

/// What earlier runs say of the compared pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// Earlier runs, the baseline not among them.
    pub runs: usize,
    /// Compared pairs with a firm verdict in at least one of them.
    pub pairs: usize,
    /// Compared pairs that passed in some earlier run, the baseline included, and failed in another.
    pub flaky: usize,
    /// PASS→FAIL that noise alone predicts; `None` where no compared pair has an earlier verdict.
    pub expected_pass_to_fail: Option<f64>,
    /// The same of FAIL→PASS.
    pub expected_fail_to_pass: Option<f64>,
    /// The earlier runs one by one, as they were given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<EarlierRun>,
}

/// An earlier run beside the baseline, over the compared pairs of which it has a firm verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EarlierRun {
    /// Where its results come from, as the user named it.
    pub source: String,
    /// Commit, where known.
    pub commit: Option<String>,
    /// When it started, where known.
    #[schemars(with = "Option<String>")]
    pub started_at: Option<Timestamp>,
    /// Pairs that are compared here, with a firm verdict there.
    pub pairs: usize,
    /// Those of them that passed there.
    pub passed: usize,
    /// Passed in the baseline, failed there.
    pub pass_to_fail: usize,
    /// Failed in the baseline, passed there.
    pub fail_to_pass: usize,
}

/// A pair, by its names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PairRef {
    /// The agent set-up.
    pub experiment: ExperimentId,
    /// The task.
    pub eval: EvalId,
}

/// A pair that both sides have and that cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotComparable {
    /// The agent set-up.
    pub experiment: ExperimentId,
    /// The task.
    pub eval: EvalId,
    /// Why.
    pub reason: String,
}

/// What one sample of a pair is, for the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Every attempt of both sides.
    Attempts,
    /// The first attempt.
    FirstAttempts,
    /// The verdict.
    Verdicts,
}

/// The test of the whole comparison.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Test {
    /// What a sample is.
    pub level: Level,
    /// Two-sided, exact; `None` where nothing was compared.
    pub p_value: Option<f64>,
    /// Below it a difference is called significant.
    pub alpha: f64,
    /// The drop that would have been seen with 80 % power; `None` where none would.
    pub detectable: Option<f64>,
    /// One-sided 95 % lower bound of the change of the pass rate; `None` where nothing was compared.
    #[serde(default)]
    pub lower_bound: Option<f64>,
}

/// One group of a grouping.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// `experiment`, or a label's name.
    pub by: String,
    /// Its value.
    pub value: String,
    /// Pairs compared.
    pub compared: usize,
    /// Pairs that passed in the baseline.
    #[serde(default)]
    pub passed_baseline: usize,
    /// Pairs that passed in this run.
    #[serde(default)]
    pub passed_current: usize,
    /// Flips down.
    pub pass_to_fail: usize,
    /// Flips up.
    pub fail_to_pass: usize,
    /// Current less baseline pass rate.
    pub delta: Option<f64>,
    /// Holm-adjusted within the grouping.
    pub p_adjusted: Option<f64>,
}

/// Whether the flips down sit in one group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Concentration {
    /// The grouping.
    pub by: String,
    /// Exact or Monte Carlo; `None` where the question has no answer.
    pub p_value: Option<f64>,
    /// The group that stands out, if one does.
    pub named: Option<String>,
    /// One phrase.
    pub reading: String,
}

/// What the comparison says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonVerdict {
    /// Significantly worse.
    Regressed,
    /// Significantly better.
    Improved,
    /// Significantly worse here, better there.
    Mixed,
    /// Differences no larger than chance, in a comparison that would have seen a larger one.
    WithinNoise,
    /// No difference at all.
    Unchanged,
    /// Too little to tell.
    Inconclusive,
}

/// The whole document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// [`COMPARISON_SCHEMA`].
    pub schema: String,
    /// What is compared with.
    pub baseline: Side,
    /// What is compared.
    pub current: Side,
    /// Pairs with a firm verdict on both sides: every rate is over these.
    pub compared: usize,
    /// Pass rates over them.
    pub pass_rate: PassRates,
    /// Verdicts that changed.
    pub flips: Flips,
    /// With the policy `mean`: pairs that passed fewer of their attempts, without a flip.
    #[serde(default)]
    pub fewer_passes: Vec<FewerPasses>,
    /// What earlier runs say; `None` where none was given.
    #[serde(default)]
    pub history: Option<History>,
    /// Pairs that only this run has.
    pub added: Vec<PairRef>,
    /// Pairs that only the baseline has, and that were in this run's selection.
    pub removed: Vec<PairRef>,
    /// Pairs of the baseline outside this run's selection.
    pub not_selected: usize,
    /// Pairs of both sides that cannot be compared.
    pub not_comparable: Vec<NotComparable>,
    /// The test.
    pub test: Test,
    /// Breakdown by experiment and by label.
    pub groups: Vec<Group>,
    /// Whether the flips down sit in one group; `None` without a grouping.
    #[serde(default)]
    pub concentration: Option<Concentration>,
    /// What it all says.
    pub verdict: ComparisonVerdict,
    /// What a reader should know before trusting it.
    #[serde(default)]
    pub warnings: Vec<String>,
}
