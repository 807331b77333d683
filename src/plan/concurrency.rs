//! How many attempts (or pairs) run at once, and why, in words.

use super::select::Shard;
use crate::config::{Config, WantedConcurrency};
use crate::model::{Concurrency, Produces, RunPlan, Strategy};

/// How many waves the plan takes, were all attempts equally long: what runs at once, into all there is, rounded up.
/// A wave of the sequential strategy is one of pairs.
pub fn waves(plan: &RunPlan) -> usize {
    sandboxes(plan).div_ceil(plan.concurrency.value.max(1))
}

/// How many sandboxes the plan takes where nothing is tried again: one a pair, or one an attempt.
pub fn sandboxes(plan: &RunPlan) -> usize {
    total(plan.strategy, plan.produces, plan.pairs.len(), plan.runs)
}

/// What there is to run at once: pairs, or pairs x runs.
pub(super) fn total(strategy: Strategy, produces: Produces, pairs: usize, runs: u32) -> usize {
    if counts_pairs(strategy, produces) {
        pairs
    } else {
        pairs.saturating_mul(runs as usize)
    }
}

/// What was wanted, cut to `max-concurrency`, to what the engine can take, and to what there is. A shard has its share
/// of what was asked for and of `max-concurrency`; what the engine can take is its own.
pub(super) fn settle(
    config: &Config,
    strategy: Strategy,
    pairs: usize,
    capacity: Option<&(usize, String)>,
    shard: Option<Shard>,
) -> Concurrency {
    let per_pair = counts_pairs(strategy, config.attempt.produces);
    let total = total(strategy, config.attempt.produces, pairs, config.runs);
    let share = |whole: usize| shard.map_or(whole, |shard| shard.share(whole));
    let of_shard = |whole: usize| match shard {
        Some(_) => format!(", this shard's share of {whole}"),
        None => String::new(),
    };
    let wish = |asked: usize| match shard {
        Some(_) => format!("this shard's {} of the {asked} asked for", share(asked)),
        None => format!("the {asked} asked for"),
    };
    if total == 0 {
        return Concurrency {
            value: 1,
            reason: "1: there is nothing to run".to_owned(),
            bounded: false,
            most: None,
        };
    }

    let all = if per_pair { "pairs" } else { "pairs x runs" };
    let (wanted, asked) = match config.concurrency {
        WantedConcurrency::Auto => (total, None),
        WantedConcurrency::Fixed(asked) => (share(asked).clamp(1, total), Some(asked)),
    };
    let mut value = wanted;
    let mut most = asked.map(|asked| share(asked).max(1));
    let mut by = None;
    let limits = [
        config.max_concurrency.map(|most| {
            let own = share(most);
            (own, format!("max-concurrency {own}{}", of_shard(most)))
        }),
        capacity.cloned(),
    ];
    for (limit, reason) in limits.into_iter().flatten() {
        let limit = limit.max(1);
        most = Some(most.map_or(limit, |most| most.min(limit)));
        if limit < value {
            value = limit;
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
        (Some(asked), None) if share(asked) > total => format!("{amount}, fewer than {}", wish(asked)),
        (Some(asked), None) if shard.is_some() => format!("{}, of {amount}", wish(asked)),
        (Some(_), None) => format!("as asked for, of {amount}"),
        (Some(asked), Some(by)) => format!("{}, of {amount}, bounded by {by}", wish(asked)),
    };
    let waves = match total.div_ceil(value) {
        1 => "one wave".to_owned(),
        waves => format!("{waves} waves"),
    };
    Concurrency {
        value,
        reason: format!("{value} = {why}: {waves}"),
        bounded: by.is_some(),
        most,
    }
}

/// Whether one sandbox runs a whole pair, so that concurrency counts pairs.
fn counts_pairs(strategy: Strategy, produces: Produces) -> bool {
    strategy == Strategy::Sequential || produces == Produces::Pair
}
