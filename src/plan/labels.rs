//! Every placeholder that is a label has one value in every selected pair, so that no attempt fails for want of it.

use std::collections::BTreeMap;

use super::{PlanError, hint};
use crate::config::Config;
use crate::config::template::BUILT_IN_PLACEHOLDERS;
use crate::model::Pair;

/// Checks the placeholders of `config` against the labels of `pairs`.
pub(super) fn check(config: &Config, pairs: &[&Pair]) -> Result<(), PlanError> {
    let mut names: BTreeMap<&str, &'static str> = BTreeMap::new();
    for (key, name) in config.placeholders() {
        if !BUILT_IN_PLACEHOLDERS.contains(&name) {
            names.entry(name).or_insert(key);
        }
    }
    for pair in pairs {
        for (&name, &key) in &names {
            match pair.labels.values(name) {
                [_] => {}
                [] => {
                    let known = pair
                        .labels
                        .0
                        .keys()
                        .map(String::as_str)
                        .chain(BUILT_IN_PLACEHOLDERS);
                    return Err(PlanError::NoLabel {
                        key,
                        name: name.to_owned(),
                        pair: pair.id.to_string(),
                        hint: hint::nearest(name, known),
                    });
                }
                values => {
                    return Err(PlanError::ManyValues {
                        key,
                        name: name.to_owned(),
                        pair: pair.id.to_string(),
                        values: values.join(", "),
                    });
                }
            }
        }
    }
    Ok(())
}
