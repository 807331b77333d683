//! Anchors of YAML whose name is used again: the parser takes an alias of it for the value of some later anchor.

use std::collections::BTreeMap;

use serde::de::{Deserialize as _, IgnoredAny};

/// Most places that are looked at closely; no file comes near this.
const MOST: usize = 32;

/// An anchor that has the name of an earlier one, in a text with an alias of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the anchor `&{name}` is there twice, and which of them `*{name}` is cannot be told\ngive each anchor a name of its own"
)]
pub(crate) struct ReusedAnchor {
    name: String,
    /// Where the second one is, in bytes.
    pub(crate) at: usize,
}

/// Finds one in a text that can be read as YAML.
pub(crate) fn reused_anchor(text: &str) -> Option<ReusedAnchor> {
    let mut places: BTreeMap<&str, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
    for (at, mark) in text.match_indices(['&', '*']) {
        let rest = &text[at + 1..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
        let name = &rest[..end.unwrap_or(rest.len())];
        if !name.is_empty() {
            let (anchors, aliases) = places.entry(name).or_default();
            if mark == "&" { anchors } else { aliases }.push(at);
        }
    }
    let mut left = MOST;
    // Without its name neither can be read, whereas in a text or a comment it is a character like any other.
    let mut is_meant = |at: usize, name: &str| {
        left = left.saturating_sub(1);
        let nameless = [&text[..=at], &text[at + 1 + name.len()..]].concat();
        left > 0 && !is_readable(&nameless)
    };
    let reused = places
        .into_iter()
        .filter(|(_, (anchors, aliases))| anchors.len() > 1 && !aliases.is_empty());
    for (name, (anchors, aliases)) in reused {
        if aliases.into_iter().any(|at| is_meant(at, name))
            && let Some(at) = anchors.into_iter().filter(|at| is_meant(*at, name)).nth(1)
        {
            let name = name.to_owned();
            return Some(ReusedAnchor { name, at });
        }
    }
    None
}

fn is_readable(text: &str) -> bool {
    serde_yaml::Deserializer::from_str(text).all(|document| IgnoredAny::deserialize(document).is_ok())
}
