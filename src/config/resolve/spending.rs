//! `limits`, `budget` and `price`, settled.

use crate::config::file::shape::List;
use crate::config::file::{Budget, Limit, Price};
use crate::config::{BudgetConfig, LimitConfig, ModelPrice, PriceConfig, SandboxConfig};

/// Memory of a hired sandbox for each of its vCPUs, in GB.
const GB_PER_VCPU: f64 = 2.0;

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

pub(super) fn price(written: Option<Price>, sandbox: &SandboxConfig) -> PriceConfig {
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
    let [vcpu, gb] = [price.vcpu_hour, price.gb_hour].map(|price| price.map_or(0.0, |price| price.0));
    PriceConfig {
        sandbox_second: match sandbox {
            SandboxConfig::Vercel(vercel) => f64::from(vercel.vcpus) * (vcpu + GB_PER_VCPU * gb) / 3600.0,
            _ => 0.0,
        },
        models: models.collect(),
    }
}
