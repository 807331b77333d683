//! What can be written and is understood, but whose machinery does not exist yet: one plain answer, before anything runs.

use crate::config::error::{ConfigError, Origin};
use crate::config::file::File;
use crate::config::file::attempt::ResultFormat;
use crate::config::problem::KeyPath;
use crate::config::settings::{self, Given, Setting};

/// What was asked for.
pub(super) struct Asked<'a> {
    pub(super) file: &'a File,
    pub(super) origin: Origin<'a>,
    pub(super) given: &'a Given,
}

/// Refuses the first thing that is not built in yet.
pub(super) fn refuse(asked: &Asked<'_>) -> Result<(), ConfigError> {
    let Asked {
        file, origin, given, ..
    } = asked;
    let key = |dotted: &str, value: Option<&str>| Err(origin.not_built_in(&KeyPath::of(dotted), value));

    for setting in [&settings::SNAPSHOT_ID, &settings::REVISION] {
        refuse_given(given, setting)?;
    }
    if let Some(format) = file.attempt.format
        && let Some(name) = format_to_come(format)
    {
        return key("attempt.format", Some(name));
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

fn refuse_given(given: &Given, setting: &Setting) -> Result<(), ConfigError> {
    given
        .find(setting)
        .map_or(Ok(()), |found| Err(found.not_built_in()))
}
