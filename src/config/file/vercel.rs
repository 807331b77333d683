//! What the keys for sandboxes of Vercel may and must say: what the service would refuse, or nobody would notice.

use serde_json::Value;

use super::sandbox::{NetworkPolicy, Vercel, VercelSource};
use crate::config::VercelConfig;
use crate::config::problem::{KeyPath, Problem, Segment, not_among, quoted};

/// Policies with a name.
const POLICIES: [&str; 2] = ["allow-all", "deny-all"];

/// The first key that cannot be as it is.
pub(super) fn check(vercel: &Vercel) -> Result<(), Problem> {
    let wrong = |key: &str, text: String| Err(Problem::new(KeyPath::of(key), text));
    if let Some(vcpus) = &vercel.vcpus
        && vcpus.0 > 1
        && vcpus.0 % 2 == 1
    {
        return wrong(
            "vcpus",
            format!("expected 1 or an even number, found {}", vcpus.0),
        );
    }
    if let Some(timeout) = &vercel.timeout
        && timeout.0 > VercelConfig::LONGEST
    {
        let found = timeout.0.as_secs();
        return wrong("timeout", format!("expected at most 24 h, found {found} s"));
    }
    if vercel.submodules == Some(true) && matches!(vercel.source, Some(VercelSource::Upload)) {
        return wrong(
            "submodules",
            "it means something for `source: repository` alone, found `upload`\nleave it out, or change that"
                .to_owned(),
        );
    }
    let below = |problem: Problem| problem.below(Segment::Key("network-policy".to_owned()));
    match &vercel.network_policy {
        None => Ok(()),
        Some(NetworkPolicy::Name(name)) if POLICIES.contains(&name.0.as_str()) => Ok(()),
        Some(NetworkPolicy::Name(name)) => wrong("network-policy", not_among(&name.0, &POLICIES)),
        Some(NetworkPolicy::Rules(rules)) => rules
            .iter()
            .try_for_each(|(key, rule)| {
                placeholders(&rule.0).map_err(|problem| problem.below(Segment::Key(key.clone())))
            })
            .map_err(below),
    }
}

/// Every `${` in a text begins a placeholder.
fn placeholders(rule: &Value) -> Result<(), Problem> {
    match rule {
        Value::String(text) => {
            let mut rest = text.as_str();
            while let Some((_, after)) = rest.split_once("${") {
                let name = after.split_once('}').filter(|(name, _)| is_variable(name));
                let Some((_, after)) = name else {
                    let found = quoted(&format!("${{{after}"));
                    return Err(Problem::new(
                        KeyPath::default(),
                        format!("expected `${{NAME}}` with the name of a variable, found {found}"),
                    ));
                };
                rest = after;
            }
            Ok(())
        }
        Value::Array(items) => items.iter().enumerate().try_for_each(|(at, item)| {
            placeholders(item).map_err(|problem| problem.below(Segment::Index(at)))
        }),
        Value::Object(entries) => entries.iter().try_for_each(|(key, item)| {
            placeholders(item).map_err(|problem| problem.below(Segment::Key(key.clone())))
        }),
        _ => Ok(()),
    }
}

fn is_variable(name: &str) -> bool {
    !name.starts_with(|char: char| char.is_ascii_digit())
        && !name.is_empty()
        && name
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || char == '_')
}
