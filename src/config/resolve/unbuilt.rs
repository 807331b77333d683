//! What can be written and is understood, but whose machinery does not exist yet: one plain answer, before anything runs.

use crate::config::BaselineConfig;
use crate::config::error::{ConfigError, Origin};
use crate::config::file::attempt::ResultFormat;
use crate::config::file::sandbox::{Kind, Sandbox};
use crate::config::file::{Confirm, File, Parsed};
use crate::config::problem::KeyPath;
use crate::config::settings::{self, Given, Setting};

/// What was asked for.
pub(super) struct Asked<'a> {
    pub(super) file: &'a File,
    pub(super) sandbox: Option<&'a Sandbox>,
    /// The kind that was given outside the file.
    pub(super) kind: Option<Kind>,
    /// `confirm`, given outside the file.
    pub(super) confirm: Option<Confirm>,
    pub(super) baseline: &'a BaselineConfig,
    pub(super) origin: Origin<'a>,
    pub(super) given: &'a Given,
}

/// Refuses the first thing that is not built in yet.
pub(super) fn refuse(asked: &Asked<'_>) -> Result<(), ConfigError> {
    let Asked {
        file, origin, given, ..
    } = asked;
    let key = |dotted: &str, value: Option<&str>| Err(origin.not_built_in(&KeyPath::of(dotted), value));

    match (asked.kind, asked.sandbox) {
        (Some(kind), _) if kind != Kind::Local => refuse_given(given, &settings::SANDBOX)?,
        (None, Some(Sandbox::Other(kind))) => return key("sandbox.kind", Some(kind.name())),
        _ => {}
    }
    for setting in [&settings::SNAPSHOT_ID, &settings::REVISION, &settings::HISTORY] {
        refuse_given(given, setting)?;
    }
    if let Some(format) = file.attempt.format
        && let Some(name) = format_to_come(format)
    {
        return key("attempt.format", Some(name));
    }
    match (asked.confirm, file.confirm) {
        (Some(confirm), _) if confirm.0 > 0 => refuse_given(given, &settings::CONFIRM)?,
        (None, Some(confirm)) if confirm.0 > 0 => return key("confirm", Some(&confirm.0.to_string())),
        _ => {}
    }
    refuse_in_file(file, *origin)?;
    refuse_baseline(asked.baseline, Some((file, *origin)), given)
}

/// The same for a comparison of results that exist already.
pub(super) fn refuse_in_comparison(
    parsed: Option<&(Parsed, Origin<'_>)>,
    baseline: &BaselineConfig,
    given: &Given,
) -> Result<(), ConfigError> {
    refuse_given(given, &settings::HISTORY)?;
    if let Some((parsed, origin)) = parsed {
        refuse_in_file(&parsed.file, *origin)?;
    }
    refuse_baseline(
        baseline,
        parsed.map(|(parsed, origin)| (&parsed.file, *origin)),
        given,
    )
}

/// What a comparison would heed, in the file.
fn refuse_in_file(file: &File, origin: Origin<'_>) -> Result<(), ConfigError> {
    let key = |dotted: &str, value: Option<&str>| Err(origin.not_built_in(&KeyPath::of(dotted), value));
    if let Some(history) = file.history
        && history.0 > 0
    {
        return key("history", Some(&history.0.to_string()));
    }
    if file.gates.as_ref().is_some_and(|gates| !gates.0.is_empty()) {
        return key("gates", None);
    }
    if file.flaky.as_ref().is_some_and(|flaky| !flaky.0.is_empty()) {
        return key("flaky", None);
    }
    Ok(())
}

fn refuse_baseline(
    baseline: &BaselineConfig,
    file: Option<(&File, Origin<'_>)>,
    given: &Given,
) -> Result<(), ConfigError> {
    let BaselineConfig::Sources(sources) = baseline else {
        return Ok(());
    };
    let Some(at) = sources.iter().position(|source| to_come(source)) else {
        return Ok(());
    };
    refuse_given(given, &settings::BASELINE)?;
    match file {
        Some((file, origin)) => {
            let listed = file.baseline.as_ref().is_some_and(|sources| sources.0.len() > 1);
            let path = KeyPath::of("baseline");
            let path = if listed { path.index(at) } else { path };
            Err(origin.not_built_in(&path, Some(&sources[at])))
        }
        None => Ok(()),
    }
}

/// Sources that only GitHub, or a second arm of the run, could give.
fn to_come(source: &str) -> bool {
    matches!(source, "measure" | "latest-release")
        || ["artifact:", "run:", "ref:"]
            .iter()
            .any(|kind| source.starts_with(kind))
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
