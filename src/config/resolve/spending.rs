//! `limits`, `budget` and `price`, settled.

use crate::config::file::shape::List;
use crate::config::file::{Budget, Limit, Price};
use crate::config::{BudgetConfig, LimitConfig, ModelPrice, PriceConfig};

pub(super) fn limits(written: List<Limit>) -> Vec<LimitConfig> {
    let limits = written.0.into_iter().map(|limit| LimitConfig {
        name: limit.label.name().to_owned(),
        value: limit.label.value().to_owned(),
        concurrency: limit.concurrency.0 as usize,
    });
    limits.collect()
}

pub(super) fn budget(written: Option<&Budget>) -> BudgetConfig {
    written.map_or_else(BudgetConfig::default, |budget| BudgetConfig {
        sandbox_minutes: budget.sandbox_minutes.map(|minutes| minutes.0),
        cost: budget.cost.map(|cost| cost.0),
        allow_unknown: budget.allow_unknown.unwrap_or(false),
    })
}

pub(super) fn price(written: Option<Price>) -> PriceConfig {
    let Some(price) = written else {
        return PriceConfig::default();
    };
    let models = price.models.into_iter().flatten().map(|(name, price)| {
        let price = ModelPrice {
            input: price.input.0,
            output: price.output.0,
        };
        (name, price)
    });
    PriceConfig {
        vcpu_hour: price.vcpu_hour.map(|price| price.0),
        gb_hour: price.gb_hour.map(|price| price.0),
        models: models.collect(),
    }
}
