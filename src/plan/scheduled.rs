//! A plan as the scheduler is told of it. Decides nothing.

use std::time::Duration;

use crate::config::PriceConfig;
use crate::model::{Policy, Produces, RunPlan};
use crate::schedule::{Budget, Pace, PairSpec, Spec, Used};

/// What the scheduler needs to know of a plan, with the tries that its attempts may have and what sandboxes cost.
pub fn spec(plan: &RunPlan, tries: u32, retries: usize, price: &PriceConfig) -> Spec {
    Spec {
        pairs: pairs(plan),
        runs: starts_per_pair(plan),
        pace: Pace::new(plan.strategy, plan.on_pass),
        policy: scheduling_policy(plan),
        concurrency: plan.concurrency.value,
        tries,
        retries,
        overhead: plan.overhead_seconds.and_then(duration),
        limits: limits(plan),
        budget: Budget {
            sandbox_time: plan.budget.sandbox_seconds.and_then(duration),
            cost: plan.budget.cost_usd,
            cost_per_second: price.sandbox_second,
        },
        used: Used::default(),
    }
}

/// The pairs with their predictions, and the limits that they count against.
pub(super) fn pairs(plan: &RunPlan) -> Vec<PairSpec> {
    let pairs = plan.pairs.iter().map(|pair| {
        let held = plan.limits.iter().enumerate();
        let held = held.filter(|(_, limit)| limit.holds(&pair.labels));
        PairSpec {
            predicted: pair.predicted_seconds.and_then(duration),
            limits: held.map(|(position, _)| position).collect(),
            done: Vec::new(),
        }
    });
    pairs.collect()
}

pub(super) fn limits(plan: &RunPlan) -> Vec<usize> {
    plan.limits.iter().map(|limit| limit.concurrency).collect()
}

/// A command that runs its whole pair is started once.
pub(super) fn starts_per_pair(plan: &RunPlan) -> u32 {
    match plan.produces {
        Produces::Attempt => plan.runs,
        Produces::Pair => 1,
    }
}

/// With one start a pair, its one ending decides it, whatever the pair's policy is.
pub(super) fn scheduling_policy(plan: &RunPlan) -> Policy {
    match plan.produces {
        Produces::Attempt => plan.policy,
        Produces::Pair => Policy::Any,
    }
}

/// Seconds of a document; what is no duration is unknown.
pub(super) fn duration(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}
