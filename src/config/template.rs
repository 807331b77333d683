//! Text with placeholders: `{experiment}`, `{eval}`, `{attempt}`, `{runs}`, `{timeout_sec}`, `{<label>}`.

use super::CommandLine;

/// Text with placeholders, taken apart. `{{` is a brace, `}}` too, and `${…}` is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Placeholder(String),
}

/// A command with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandTemplate {
    /// Text for `sh -c`; values are inserted shell-quoted.
    Shell(Template),
    /// A program and its arguments; values are inserted as they are.
    Argv(Vec<Template>),
}

/// The values of placeholders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values(pub std::collections::BTreeMap<String, String>);

/// A placeholder that has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown placeholder `{{{0}}}`")]
pub struct UnknownPlaceholder(pub String);
