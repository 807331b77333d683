//! A plan as `evalwave plan` shows it: what it will do, and what it cannot know.

use serde::Serialize;

use super::waves;
use crate::config::{BaselineConfig, Config};
use crate::model::{
    Forecast, Labels, OnPass, PlannedBudget, PlannedLimit, Produces, RunPlan, Selection, Strategy,
};

/// What `plan --format json` prints. Times are in seconds; `null` is unknown.
#[derive(Clone, Debug, Serialize)]
pub struct PlanDocument<'a> {
    /// `evalwave.plan/1`.
    pub schema: &'static str,
    /// The suite's name.
    pub suite: &'a str,
    /// How much of the suite this is.
    pub selection: Selection,
    /// When attempts start.
    pub strategy: Strategy,
    /// What a decided pair does with its others.
    pub on_pass: OnPass,
    /// How attempts decide a pair.
    pub policy: String,
    /// Attempts of each pair.
    pub runs: u32,
    /// Whether a command is an attempt or a whole pair.
    pub produces: Produces,
    /// Pairs x runs: the most that can be needed.
    pub attempts: usize,
    /// The base revision runs beside this one: as many attempts again.
    pub measures_baseline: bool,
    /// Fresh attempts of each pair that flips.
    pub confirm: u32,
    /// The most attempts of all: of the base revision too where it is measured, and fresh ones of every pair.
    pub most_attempts: usize,
    /// The sandbox kind's name.
    pub sandbox: &'a str,
    /// How many attempts (sequential: pairs) run at once.
    pub concurrency: usize,
    /// Why not more.
    pub concurrency_reason: &'a str,
    /// Whether something cut it below what was asked for.
    pub concurrency_bounded: bool,
    /// How often `concurrency` goes into all there is, rounded up.
    pub waves: usize,
    /// The agent's time in one attempt.
    pub timeout_seconds: f64,
    /// What is added to it before the attempt is killed.
    pub grace_seconds: f64,
    /// The longest attempt's predicted time, known only where every pair's is.
    pub longest_attempt_seconds: Option<f64>,
    /// How long the run is expected to take.
    pub wall_seconds: Option<f64>,
    /// What the run, and each strategy at a few concurrencies, is expected to take and cost.
    pub forecast: Option<&'a Forecast>,
    /// How many attempts with a label run at once.
    pub limits: &'a [PlannedLimit],
    /// What the run may use.
    pub budget: PlannedBudget,
    /// What decides the results, as a fingerprint.
    pub config_hash: &'a str,
    /// The selected pairs, in plan order.
    pub pairs: Vec<PlannedPairDocument<'a>>,
}

/// A pair of a [`PlanDocument`].
#[derive(Clone, Debug, Serialize)]
pub struct PlannedPairDocument<'a> {
    /// The agent set-up under test.
    pub experiment: &'a str,
    /// The task.
    pub eval: &'a str,
    /// What it is marked with.
    pub labels: &'a Labels,
    /// Its attempts.
    pub runs: u32,
    /// How long one attempt's command is expected to take.
    pub predicted_seconds: Option<f64>,
}

/// The document of `plan`, with the time limits of the configuration that it was built from.
pub fn document<'a>(plan: &'a RunPlan, config: &Config) -> PlanDocument<'a> {
    let predictions: Option<Vec<f64>> = plan.pairs.iter().map(|pair| pair.predicted_seconds).collect();
    let measures_baseline = matches!(config.baseline, BaselineConfig::Measure(_));
    let arms = if measures_baseline { 2 } else { 1 };
    // Against nothing, nothing flips.
    let confirm = match config.baseline {
        BaselineConfig::None => 0,
        _ => config.confirm,
    };
    PlanDocument {
        schema: "evalwave.plan/1",
        suite: &plan.suite,
        selection: plan.selection,
        strategy: plan.strategy,
        on_pass: plan.on_pass,
        policy: plan.policy.to_string(),
        runs: plan.runs,
        produces: plan.produces,
        attempts: plan.attempts(),
        measures_baseline,
        confirm,
        most_attempts: arms * (plan.attempts() + plan.pairs.len() * confirm as usize),
        sandbox: &plan.sandbox,
        concurrency: plan.concurrency.value,
        concurrency_reason: &plan.concurrency.reason,
        concurrency_bounded: plan.concurrency.bounded,
        waves: waves(plan),
        timeout_seconds: config.attempt.timeout.as_secs_f64(),
        grace_seconds: config.attempt.grace.as_secs_f64(),
        longest_attempt_seconds: predictions.and_then(|all| all.into_iter().reduce(f64::max)),
        wall_seconds: plan
            .forecast
            .as_ref()
            .map(|forecast| forecast.run.wall_seconds.likely),
        forecast: plan.forecast.as_ref(),
        limits: &plan.limits,
        budget: plan.budget,
        config_hash: &plan.config_hash,
        pairs: plan
            .pairs
            .iter()
            .map(|pair| PlannedPairDocument {
                experiment: pair.id.experiment.as_str(),
                eval: pair.id.eval.as_str(),
                labels: &pair.labels,
                runs: plan.runs,
                predicted_seconds: pair.predicted_seconds,
            })
            .collect(),
    }
}
