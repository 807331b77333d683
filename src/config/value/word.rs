//! Names, ids, patterns, and text with placeholders.

use super::{FromText, Refusal, in_file};
use crate::config::template::Template;
use crate::model::EvalId;

/// A place in a JSON document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct Pointer(pub(in crate::config) String);

/// Text that is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct Text(pub(in crate::config) String);

/// The suite's name: part of an artifact's name and of a hidden mark in a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct SuiteName(pub(in crate::config) String);

/// The id of an experiment or an eval.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::config) struct Id(pub(in crate::config) String);

impl std::borrow::Borrow<str> for LabelName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A label's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::config) struct LabelName(pub(in crate::config) String);

/// A label as `NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct LabelText(pub(in crate::config) String, pub(in crate::config) String);

/// The name of a variable that an attempt may be given.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::config) struct EnvName(pub(in crate::config) String);

/// The value of a variable, with placeholders; it may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct ValueText(pub(in crate::config) Template);

/// One argument of a command, with placeholders; it may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct ArgumentText(pub(in crate::config) Template);

/// A command for `sh -c`, with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct ShellText(pub(in crate::config) Template);

/// A pattern, case-insensitive.
#[derive(Clone, Debug)]
pub(in crate::config) struct Pattern(pub(in crate::config) regex::Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

/// Where results come from: a SRC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct SourceText(pub(in crate::config) String);

impl LabelText {
    pub(in crate::config) fn name(&self) -> &str {
        &self.0
    }

    pub(in crate::config) fn value(&self) -> &str {
        &self.1
    }
}

impl FromText for Pointer {
    const EXPECTED: &'static str = "a JSON pointer, such as `/summary/passed`";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        // `~` escapes itself as `~0` and `/` as `~1`, and stands for nothing else.
        let escapes = text.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
        let is_pointer = text.starts_with('/') && escapes && !text.contains(char::is_control);
        is_pointer.then(|| Self(text.to_owned())).ok_or(Refusal::Unlike)
    }
}

impl FromText for Text {
    const EXPECTED: &'static str = "text that is not empty";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        if text.trim().is_empty() {
            Err(Refusal::Unlike)
        } else {
            Ok(Self(text.to_owned()))
        }
    }
}

impl FromText for SuiteName {
    const EXPECTED: &'static str = "a name of at most 64 letters, digits, `.`, `_` and `-`";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if (1..=64).contains(&text.len()) && text.chars().all(plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Refusal::Unlike)
        }
    }
}

impl FromText for Id {
    const EXPECTED: &'static str = "an id";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        EvalId::try_from(text)
            .map(|id| Self(id.into()))
            .map_err(Refusal::because)
    }
}

impl FromText for LabelName {
    const EXPECTED: &'static str = "a label's name";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        if text.trim() == text
            && !text.is_empty()
            && !text.contains(['=', ','])
            && !text.contains(char::is_control)
        {
            Ok(Self(text.to_owned()))
        } else {
            Err(Refusal::Unlike)
        }
    }
}

impl FromText for LabelText {
    const EXPECTED: &'static str = "a label as `NAME=VALUE`";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
                Ok(Self(name.trim().to_owned(), value.trim().to_owned()))
            }
            _ => Err(Refusal::Unlike),
        }
    }
}

impl FromText for EnvName {
    const EXPECTED: &'static str = "a variable's name: letters, digits and `_`, no digit first";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if text.is_empty() || !text.chars().all(plain) || text.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(Refusal::Unlike);
        }
        let upper = text.to_ascii_uppercase();
        if upper.starts_with("EVALWAVE_") {
            return Err(Refusal::because(
                "names that begin with `EVALWAVE_` are set by evalwave itself",
            ));
        }
        if upper == "GITHUB_TOKEN" || upper.starts_with("ACTIONS_") {
            return Err(Refusal::because(
                "the workflow's own credentials are never given to an attempt\npass a token of its own under another name",
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl FromText for ValueText {
    const EXPECTED: &'static str = "text";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        template(text).map(Self)
    }
}

impl FromText for ArgumentText {
    const EXPECTED: &'static str = "text";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        template(text).map(Self)
    }
}

impl FromText for ShellText {
    const EXPECTED: &'static str = "a command, as text for `sh` or as a list of a program and its arguments";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        if text.trim().is_empty() {
            return Err(Refusal::Unlike);
        }
        template(text).map(Self)
    }
}

fn template(text: &str) -> Result<Template, Refusal> {
    if text.contains('\0') {
        return Err(Refusal::because("a NUL cannot be given to a process"));
    }
    Template::parse(text).map_err(Refusal::because)
}

impl FromText for Pattern {
    const EXPECTED: &'static str = "a regular expression";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        if text.is_empty() {
            return Err(Refusal::Unlike);
        }
        regex::RegexBuilder::new(text)
            .case_insensitive(true)
            .build()
            .map(Self)
            .map_err(|error| {
                let error = error.to_string();
                let reason = error.lines().last().unwrap_or_default();
                Refusal::expected(format_args!(
                    "a regular expression ({})",
                    reason.trim_start_matches("error: ")
                ))
            })
    }
}

impl FromText for SourceText {
    const EXPECTED: &'static str = "a source of results: a path, `git:REF:PATH`, `auto` or `none`";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        let text = text.trim();
        let whole = match text.split_once(':') {
            Some(("git", rest)) => rest
                .split_once(':')
                .is_some_and(|(reference, path)| !reference.is_empty() && !path.is_empty()),
            Some(("artifact" | "ref" | "measure", name)) => !name.is_empty(),
            Some(("run", id)) => !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()),
            _ => !text.is_empty(),
        };
        if whole {
            Ok(Self(text.to_owned()))
        } else {
            Err(Refusal::Unlike)
        }
    }
}

in_file!(Pointer, { "type": "string", "format": "json-pointer", "pattern": "^/" });
in_file!(Text, { "type": "string", "minLength": 1 });
in_file!(SuiteName, { "type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$" });
in_file!(Id, { "type": "string", "minLength": 1 });
in_file!(LabelName, { "type": "string", "minLength": 1 });
in_file!(LabelText, { "type": "string", "pattern": "^[^=]+=.+$" });
in_file!(EnvName, { "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" });
in_file!(ValueText, { "type": "string" });
in_file!(ArgumentText, { "type": "string" });
in_file!(ShellText, { "type": "string", "minLength": 1 });
in_file!(Pattern, { "type": "string", "format": "regex", "minLength": 1 });
in_file!(SourceText, { "type": "string", "minLength": 1 });
