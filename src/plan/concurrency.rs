//! How many attempts (or pairs) run at once, and why, in words.

use crate::config::{Config, WantedConcurrency};
use crate::model::{Concurrency, Produces, RunPlan, Strategy};

/// How many waves the plan takes, were all attempts equally long: what runs at once, into all there is, rounded up.
/// A wave of the sequential strategy is one of pairs.
pub fn waves(plan: &RunPlan) -> usize {
    let total = if counts_pairs(plan.strategy, plan.produces) {
        plan.pairs.len()
    } else {
        plan.attempts()
    };
    total.div_ceil(plan.concurrency.value.max(1))
}

/// What was wanted, cut to `max-concurrency`, to what the engine can take, and to what there is.
pub(super) fn settle(config: &Config, pairs: usize, capacity: Option<&(usize, String)>) -> Concurrency {
    let per_pair = counts_pairs(config.strategy, config.attempt.produces);
    let total = if per_pair {
        pairs
    } else {
        pairs.saturating_mul(config.runs as usize)
    };
    if total == 0 {
        return Concurrency {
            value: 1,
            reason: "1: there is nothing to run".to_owned(),
            bounded: false,
        };
    }

    let all = if per_pair { "pairs" } else { "pairs x runs" };
    let (wanted, asked) = match config.concurrency {
        WantedConcurrency::Auto => (total, None),
        WantedConcurrency::Fixed(asked) => (asked.clamp(1, total), Some(asked)),
    };
    let mut value = wanted;
    let mut by = None;
    let limits = [
        config
            .max_concurrency
            .map(|most| (most, format!("max-concurrency {most}"))),
        capacity.cloned(),
    ];
    for (most, reason) in limits.into_iter().flatten() {
        if most.max(1) < value {
            value = most.max(1);
            by = Some(reason);
        }
    }

    let product = format!("{pairs} x {}", config.runs);
    let amount = match (per_pair, value == total) {
        (true, true) => all.to_owned(),
        (true, false) => format!("{all} ({total})"),
        (false, true) => format!("{all} ({product})"),
        (false, false) => format!("{all} ({product} = {total})"),
    };
    let why = match (asked, &by) {
        (None, None) => amount,
        (None, Some(by)) => format!("{amount} bounded by {by}"),
        (Some(asked), None) if asked > total => format!("{amount}, fewer than the {asked} asked for"),
        (Some(_), None) => format!("as asked for, of {amount}"),
        (Some(asked), Some(by)) => format!("the {asked} asked for, of {amount}, bounded by {by}"),
    };
    let waves = match total.div_ceil(value) {
        1 => "one wave".to_owned(),
        waves => format!("{waves} waves"),
    };
    Concurrency {
        value,
        reason: format!("{value} = {why}: {waves}"),
        bounded: by.is_some(),
    }
}

/// Whether one sandbox runs a whole pair, so that concurrency counts pairs.
fn counts_pairs(strategy: Strategy, produces: Produces) -> bool {
    strategy == Strategy::Sequential || produces == Produces::Pair
}
