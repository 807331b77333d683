//! Paths and globs, all of them relative to where they are used.

use camino::Utf8PathBuf;

use super::{FromText, Refusal, in_file};
use crate::config::template::{Template, Values, plain, stays_inside};
use crate::glob::{InvalidGlob, id_glob};

/// A path inside a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct RelativePath(pub(in crate::config) Utf8PathBuf);

/// A path inside a workspace, with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct PathTemplate(pub(in crate::config) Template);

/// A path inside a workspace, or a glob over its files, with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct ResultPath(pub(in crate::config) Template);

/// Any path of this machine, or `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct SourcePath(pub(in crate::config) String);

/// Selects files below a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct FileGlob(pub(in crate::config) String);

/// Selects ids or label values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct IdGlob(pub(in crate::config) String);

/// Selects an eval's files, by `{eval}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct EvalGlob(pub(in crate::config) Template);

/// Selects an experiment's files, by `{experiment}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct ExperimentGlob(pub(in crate::config) Template);

const RELATIVE_GLOB: &str = "a relative glob without `..`";

impl FromText for RelativePath {
    const EXPECTED: &'static str = "a relative path without `..`";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        stays_inside(text)
            .then(|| Self(plain(text).into()))
            .ok_or(Refusal::Unlike)
    }
}

impl FromText for PathTemplate {
    const EXPECTED: &'static str = "a relative path without `..`";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        let template = Template::parse(text).map_err(Refusal::because)?;
        stays_inside(text)
            .then_some(Self(template))
            .ok_or(Refusal::Unlike)
    }
}

impl FromText for ResultPath {
    const EXPECTED: &'static str = PathTemplate::EXPECTED;

    fn from_text(text: &str) -> Result<Self, Refusal> {
        let PathTemplate(template) = PathTemplate::from_text(text)?;
        check_glob(&template.render_with(|_| Some("x")).map_err(Refusal::because)?)?;
        Ok(Self(template))
    }
}

impl FromText for SourcePath {
    const EXPECTED: &'static str = "a path";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        if text.trim().is_empty() || text.contains('\0') {
            Err(Refusal::Unlike)
        } else {
            Ok(Self(text.to_owned()))
        }
    }
}

impl FromText for FileGlob {
    const EXPECTED: &'static str = RELATIVE_GLOB;

    fn from_text(text: &str) -> Result<Self, Refusal> {
        check_glob(text)?;
        stays_inside(text)
            .then(|| Self(text.to_owned()))
            .ok_or(Refusal::Unlike)
    }
}

impl FromText for IdGlob {
    const EXPECTED: &'static str = "a glob";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        if text.trim().is_empty() {
            return Err(Refusal::Unlike);
        }
        check_glob(text).map(|()| Self(text.to_owned()))
    }
}

impl FromText for EvalGlob {
    const EXPECTED: &'static str = RELATIVE_GLOB;

    fn from_text(text: &str) -> Result<Self, Refusal> {
        glob_template(text, "eval").map(Self)
    }
}

impl FromText for ExperimentGlob {
    const EXPECTED: &'static str = RELATIVE_GLOB;

    fn from_text(text: &str) -> Result<Self, Refusal> {
        glob_template(text, "experiment").map(Self)
    }
}

in_file!(RelativePath, { "type": "string", "minLength": 1 });
in_file!(PathTemplate, { "type": "string", "minLength": 1 });
in_file!(ResultPath, { "type": "string", "minLength": 1 });
in_file!(SourcePath, { "type": "string", "minLength": 1 });
in_file!(FileGlob, { "type": "string", "minLength": 1 });
in_file!(IdGlob, { "type": "string", "minLength": 1 });
in_file!(EvalGlob, { "type": "string", "minLength": 1 });
in_file!(ExperimentGlob, { "type": "string", "minLength": 1 });

fn check_glob(glob: &str) -> Result<(), Refusal> {
    match id_glob(glob) {
        Err(InvalidGlob::Syntax { source, .. }) => {
            Err(Refusal::expected(format_args!("a glob ({})", source.kind())))
        }
        Ok(_) | Err(InvalidGlob::Outside(_)) => Ok(()),
    }
}

fn glob_template(text: &str, only: &str) -> Result<Template, Refusal> {
    let template = Template::parse(text).map_err(Refusal::because)?;
    if let Some(other) = template.placeholders().find(|name| *name != only) {
        return Err(Refusal::because(format_args!(
            "expected no placeholder but `{{{only}}}`, found `{{{other}}}`\nwrite `{{{{` and `}}}}` for the braces of a glob"
        )));
    }
    let values = Values::from([(only, "x")]);
    let glob = template.render(&values).map_err(Refusal::because)?;
    check_glob(&glob)?;
    stays_inside(&glob).then_some(template).ok_or(Refusal::Unlike)
}
