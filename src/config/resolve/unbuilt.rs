//! What can be written and is understood, but whose machinery does not exist yet: one plain answer, before anything runs.

use super::Mode;
use crate::config::error::{ConfigError, Origin};
use crate::config::file::File;
use crate::config::file::attempt::ResultFormat;
use crate::config::problem::KeyPath;
use crate::model::Strategy;

/// What was asked for.
pub(super) struct Asked<'a> {
    pub(super) file: &'a File,
    pub(super) mode: &'a Mode<'a>,
    pub(super) origin: Origin<'a>,
}

/// Refuses the first thing that is not built in yet.
pub(super) fn refuse(asked: &Asked<'_>) -> Result<(), ConfigError> {
    let Asked { file, origin, .. } = asked;
    let key = |dotted: &str, value: Option<&str>| Err(origin.not_built_in(&KeyPath::of(dotted), value));

    if asked.mode.strategy == Strategy::Adaptive {
        return match asked.mode.from {
            Some(found) => Err(found.not_built_in()),
            None => key("strategy", Some("adaptive")),
        };
    }
    if let Some(format) = file.attempt.format
        && let Some(name) = format_to_come(format)
    {
        return key("attempt.format", Some(name));
    }
    if file.limits.as_ref().is_some_and(|limits| !limits.0.is_empty()) {
        return key("limits", None);
    }
    if let Some(budget) = &file.budget {
        if budget.sandbox_minutes.is_some() {
            return key("budget.sandbox-minutes", None);
        }
        if budget.cost.is_some() {
            return key("budget.cost", None);
        }
    }
    Ok(())
}

fn format_to_come(format: ResultFormat) -> Option<&'static str> {
    match format {
        ResultFormat::Auto | ResultFormat::Evals | ResultFormat::ExitCode => None,
        ResultFormat::Junit => Some("junit"),
        ResultFormat::AgentEval => Some("agent-eval"),
        ResultFormat::Inspect => Some("inspect"),
        ResultFormat::Harbor => Some("harbor"),
        ResultFormat::Promptfoo => Some("promptfoo"),
        ResultFormat::Jsonl => Some("jsonl"),
        ResultFormat::Json => Some("json"),
    }
}
