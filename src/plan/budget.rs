//! Whether a plan keeps to its budget, before anything is spent, and what runs have left of one. Stops no run.

use super::{PlanError, Shard, cost_of};
use crate::config::{BudgetConfig, PriceConfig};
use crate::model::{CancelReason, PlannedBudget, Range, Run, RunPlan};

/// What the run, or its shard, may use.
pub(super) fn share(budget: &BudgetConfig, shard: Option<Shard>) -> PlannedBudget {
    let whole = PlannedBudget {
        sandbox_seconds: budget.sandbox_minutes.map(|minutes| minutes * 60.0),
        cost_usd: budget.cost,
    };
    shard.map_or(whole, |shard| whole.part(shard.part()))
}

/// Seconds of all sandboxes of a run together, and what its results say that they cost besides these, in USD.
pub fn used(run: &Run, price: &PriceConfig) -> (f64, f64) {
    let (mut seconds, mut usd) = (0.0, 0.0);
    for (planned, pair) in run.plan.pairs.iter().zip(&run.pairs) {
        let costs = pair
            .usages()
            .filter_map(|usage| cost_of(usage, &planned.labels, price));
        usd += costs.sum::<f64>();
        seconds += pair.held_seconds;
    }
    (seconds, usd)
}

/// What runs have left of a budget; `None` where something of it is used up.
pub fn left<'a>(
    budget: PlannedBudget,
    runs: impl IntoIterator<Item = &'a Run>,
    price: &PriceConfig,
) -> Option<PlannedBudget> {
    let (mut seconds, mut usd) = (0.0, 0.0);
    for run in runs {
        // What was measured of a run that it stopped may be a little less than it.
        let mut records = run.pairs.iter().flat_map(|pair| &pair.records);
        if records.any(|record| record.reason == Some(CancelReason::Budget)) {
            return None;
        }
        let (more, cost) = used(run, price);
        seconds += more;
        usd += cost + more * price.sandbox_second;
    }
    let left = |cap: Option<f64>, used: f64| match cap {
        None => Some(None),
        Some(cap) => (cap > used).then_some(Some(cap - used)),
    };
    Some(PlannedBudget {
        sandbox_seconds: left(budget.sandbox_seconds, seconds)?,
        cost_usd: left(budget.cost_usd, usd)?,
    })
}

/// Refuses a plan that is expected to use more than it may, or of which nobody knows what it will use. `arms` is how often
/// it runs: on the base revision too, where that is measured.
pub(super) fn check(plan: &RunPlan, arms: u32, allow_unknown: bool) -> Result<(), PlanError> {
    if plan.pairs.is_empty() {
        return Ok(());
    }
    let PlannedBudget {
        sandbox_seconds,
        cost_usd,
    } = plan.budget;
    let run = plan.forecast.as_ref().map(|forecast| forecast.run);
    let arms = f64::from(arms);
    let caps = [
        Cap {
            key: "budget.sandbox-minutes",
            cap: sandbox_seconds.map(|seconds| seconds / 60.0),
            expected: run.map(|run| run.sandbox_seconds.map(|seconds| arms * seconds / 60.0)),
            shown: |minutes| format!("{} sandbox-minutes", amount(minutes)),
        },
        Cap {
            key: "budget.cost",
            cap: cost_usd,
            expected: run
                .and_then(|run| run.cost_usd)
                .map(|cost| cost.map(|usd| arms * usd)),
            shown: |cost| format!("${}", amount(cost)),
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
                range: format!("{} to {}", amount(expected.low), amount(expected.high)),
            }),
            Some(_) => Ok(()),
        }
    }
}

/// At most two decimals, and of what is too small for them all that matter, so that it is not taken for nothing.
pub fn amount(number: f64) -> String {
    let rounded = (number * 100.0).round() / 100.0;
    if rounded == 0.0 && number > 0.0 {
        format!("{number:.1e}").parse().unwrap_or(number).to_string()
    } else {
        rounded.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::amount;

    #[test]
    fn a_small_amount_is_not_shown_as_nothing() {
        let shown = [0.0, 0.0034, 0.01, 2.5, 60.0, 7.999].map(amount);
        assert_eq!(shown, ["0", "0.0034", "0.01", "2.5", "60", "8"]);
    }
}
