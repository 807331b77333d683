//! What may be a label. Names are told apart in flags and placeholders, values are shown on one line.

use super::EntryProblem;
use crate::config::template::BUILT_IN_PLACEHOLDERS;
use crate::model::Labels;

/// Adds one label, all white space around its values dropped and empty ones left out.
pub(super) fn add<'a>(
    labels: &mut Labels,
    name: &str,
    values: impl IntoIterator<Item = &'a str>,
) -> Result<(), EntryProblem> {
    if BUILT_IN_PLACEHOLDERS.contains(&name) {
        return Err(EntryProblem::Reserved(name.to_owned()));
    }
    if !is_name(name) {
        return Err(EntryProblem::LabelName(name.to_owned()));
    }
    for value in values {
        let value = value.trim();
        if value.contains(char::is_control) {
            return Err(EntryProblem::LabelValue(name.to_owned()));
        }
        if !value.is_empty() {
            labels.add(name, value);
        }
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let unusable = |character: char| character.is_control() || "=,{}".contains(character);
    !name.is_empty() && name.trim() == name && !name.contains(unusable)
}

/// Adds every label of `more`; where both have one, its values are joined.
pub(super) fn merge(labels: &mut Labels, more: &Labels) {
    for (name, values) in &more.0 {
        for value in values {
            labels.add(name, value);
        }
    }
}
