//! Whether a plan keeps to its budget, before anything is spent. Stops no run.

use super::{PlanError, Shard};
use crate::config::BudgetConfig;
use crate::model::{PlannedBudget, Range, RunPlan};

/// What the run, or its shard, may use.
pub(super) fn share(budget: &BudgetConfig, shard: Option<Shard>) -> PlannedBudget {
    let part = |whole: f64| shard.map_or(whole, |shard| shard.part(whole));
    PlannedBudget {
        sandbox_seconds: budget.sandbox_minutes.map(|minutes| part(minutes * 60.0)),
        cost_usd: budget.cost.map(part),
    }
}

/// Refuses a plan that is expected to use more than it may, or of which nobody knows what it will use.
pub(super) fn check(plan: &RunPlan, allow_unknown: bool) -> Result<(), PlanError> {
    if plan.pairs.is_empty() {
        return Ok(());
    }
    let PlannedBudget {
        sandbox_seconds,
        cost_usd,
    } = plan.budget;
    let run = plan.forecast.as_ref().map(|forecast| forecast.run);
    let caps = [
        Cap {
            key: "budget.sandbox-minutes",
            cap: sandbox_seconds.map(|seconds| seconds / 60.0),
            expected: run.map(|run| run.sandbox_seconds.map(|seconds| seconds / 60.0)),
            shown: |minutes| format!("{} sandbox-minutes", shown(minutes)),
        },
        Cap {
            key: "budget.cost",
            cap: cost_usd,
            expected: run.and_then(|run| run.cost_usd),
            shown: |cost| format!("${}", shown(cost)),
        },
    ];
    caps.iter().try_for_each(|cap| cap.check(allow_unknown))
}

struct Cap {
    key: &'static str,
    cap: Option<f64>,
    expected: Option<Range>,
    shown: fn(f64) -> String,
}

impl Cap {
    fn check(&self, allow_unknown: bool) -> Result<(), PlanError> {
        let key = self.key;
        let Some(cap) = self.cap else {
            return Ok(());
        };
        match self.expected {
            None if allow_unknown => Ok(()),
            None => Err(PlanError::UnknownUse {
                key,
                cap: (self.shown)(cap),
            }),
            Some(expected) if expected.likely > cap => Err(PlanError::OverBudget {
                key,
                cap: (self.shown)(cap),
                expected: (self.shown)(expected.likely),
                range: format!("{} to {}", shown(expected.low), shown(expected.high)),
            }),
            Some(_) => Ok(()),
        }
    }
}

/// At most two decimals.
fn shown(number: f64) -> String {
    ((number * 100.0).round() / 100.0).to_string()
}
