//! What attempts cost. Knows no run.

use crate::config::PriceConfig;
use crate::model::{Labels, Usage};

/// The label that names a pair's model.
const MODEL: &str = "model";
/// Tokens that a price is for.
const TOKENS: f64 = 1e6;

/// USD of what an attempt used: what its harness reports, where that is an amount, else its tokens by the price of its
/// pair's model. `None` where neither is known.
pub fn cost_of(usage: Usage, labels: &Labels, price: &PriceConfig) -> Option<f64> {
    if let Some(cost) = usage.cost_usd.filter(|cost| cost.is_finite() && *cost >= 0.0) {
        return Some(cost);
    }
    let [model] = labels.values(MODEL) else {
        return None;
    };
    let price = price.models.get(model)?;
    let input = usage.input_tokens? as f64 * price.input;
    let output = usage.output_tokens? as f64 * price.output;
    Some((input + output) / TOKENS)
}

#[cfg(test)]
mod tests {
    use super::cost_of;
    use crate::config::{ModelPrice, PriceConfig};
    use crate::model::{Labels, Usage};

    #[test]
    fn what_a_harness_reports_counts_before_a_price_and_what_is_unknown_is_not_free() {
        let price = ModelPrice {
            input: 3.0,
            output: 15.0,
        };
        let price = PriceConfig {
            models: [("small".to_owned(), price)].into(),
            ..PriceConfig::default()
        };
        let mut labels = Labels::default();
        labels.add("model", "small");
        let used = Usage {
            input_tokens: Some(2_000_000),
            output_tokens: Some(1_000_000),
            cost_usd: None,
        };
        assert_eq!(cost_of(used, &labels, &price), Some(21.0));
        let reported = Usage {
            cost_usd: Some(1.0),
            ..used
        };
        assert_eq!(cost_of(reported, &labels, &price), Some(1.0));
        let half = Usage {
            output_tokens: None,
            ..used
        };
        assert_eq!(cost_of(half, &labels, &price), None);
        assert_eq!(cost_of(used, &Labels::default(), &price), None);
    }
}
