//! `attempt` as it is written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};

use super::shape::{List, by_shape};
use crate::config::template::{CommandTemplate, Template};
use crate::config::value::{
    Amount, ArgumentText, EnvName, ExitStatus, FileGlob, FromText as _, PathTemplate, Pattern, Pointer,
    ResultPath, ShellText, Size, Span, ValueText,
};
use crate::model::Produces;

/// How one attempt is made. Placeholders in commands, paths and values: `{experiment}`, `{eval}`, `{attempt}`, `{runs}`,
/// `{timeout_sec}` and `{<label>}`; `{{` is a brace and `${…}` is left alone.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a mapping")]
pub(in crate::config) struct Attempt {
    /// What a sandbox receives. Default: tracked files, and untracked ones that git does not ignore.
    pub(in crate::config) upload: Option<Upload>,
    /// Run once in each cold sandbox; what a warm one already holds. Gets no secrets.
    pub(in crate::config) setup: Option<Command>,
    /// Run in every sandbox before its first attempt. Gets the secrets.
    pub(in crate::config) boot: Option<Command>,
    /// The attempt: text for `sh`, in which placeholders are shell-quoted, or a list of a program and its arguments.
    pub(in crate::config) command: Command,
    /// Whether one command is one attempt, or runs all attempts of its pair itself: then `result` is a glob and each
    /// file an attempt. Default: `attempt`.
    pub(in crate::config) produces: Option<Produces>,
    /// Where the command leaves its result, relative to the workspace. Without it the exit code is the result.
    pub(in crate::config) result: Option<ResultPath>,
    /// How the result is read. Default: `auto` with `result`, `exit-code` without.
    pub(in crate::config) format: Option<ResultFormat>,
    /// What an exit code means with `format: exit-code`; any other code is errored.
    pub(in crate::config) exit: Option<Exit>,
    /// Where the grade stands, with `format: json` or `jsonl`.
    pub(in crate::config) json: Option<Json>,
    /// What turns a failed attempt into an errored one; it never touches a pass.
    pub(in crate::config) infra: Option<Infra>,
    /// What is brought back besides the result.
    pub(in crate::config) keep: Option<Keep>,
    /// How a pair's results are published in the run directory.
    pub(in crate::config) publish: Option<Publish>,
    /// The agent's time; `{timeout_sec}` in the command. Default: `12m`.
    pub(in crate::config) timeout: Option<Span>,
    /// Added around `timeout`; then the attempt is killed. Default: `5m`.
    pub(in crate::config) grace: Option<Span>,
    /// Time limits of what comes before and after the command.
    pub(in crate::config) phases: Option<Phases>,
    /// Variables for setup, boot and command, with placeholders.
    pub(in crate::config) env: Option<BTreeMap<EnvName, ValueText>>,
    /// Variables taken as they are from evalwave's own environment.
    pub(in crate::config) env_from: Option<List<EnvName>>,
    /// Secrets for boot and command, from evalwave's own environment. A missing one ends the run before it begins.
    pub(in crate::config) secrets: Option<List<Secret>>,
}

/// A command: text for `sh`, or a program and its arguments.
#[derive(Clone, Debug)]
pub(in crate::config) enum Command {
    Shell(ShellText),
    Argv(Arguments),
}

by_shape! {
    Command, ShellText::EXPECTED,
    text Shell(ShellText),
    list Argv(Arguments),
}

impl From<Command> for CommandTemplate {
    fn from(command: Command) -> Self {
        match command {
            Command::Shell(text) => Self::Shell(text.0),
            Command::Argv(arguments) => Self::Argv(arguments.0),
        }
    }
}

/// A program and its arguments: the first is not empty.
#[derive(Clone, Debug)]
pub(in crate::config) struct Arguments(pub(in crate::config) Vec<Template>);

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let arguments = Vec::<ArgumentText>::deserialize(from)?;
        match arguments.first() {
            Some(program) if !program.0.source().trim().is_empty() => {
                Ok(Self(arguments.into_iter().map(|argument| argument.0).collect()))
            }
            Some(_) => Err(de::Error::custom(
                "expected a program as the first of the list, found an empty text",
            )),
            None => Err(de::Error::custom(
                "expected a program and its arguments, found an empty list",
            )),
        }
    }
}

impl JsonSchema for Arguments {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Arguments".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "array",
            "minItems": 1,
            "prefixItems": [{ "type": "string", "minLength": 1 }],
            "items": { "type": "string" },
        })
    }
}

/// What a sandbox receives.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(in crate::config) struct Upload {
    /// Tracked files, and untracked ones that git does not ignore; `false` is every file. Default: `true`.
    pub(in crate::config) git: Option<bool>,
    /// Globs of ignored files to add.
    pub(in crate::config) include: Option<List<FileGlob>>,
    /// Globs of files to leave out.
    pub(in crate::config) exclude: Option<List<FileGlob>>,
}

/// How a result is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::config) enum ResultFormat {
    /// Told by the result's content; two candidates or none is an error.
    Auto,
    /// supabase/evals' result document.
    Evals,
    /// The command's own exit code.
    ExitCode,
    /// JUnit XML.
    Junit,
    /// A per-run `result.json` of @vercel/agent-eval.
    AgentEval,
    /// A log of inspect_ai, `.json` or `.eval`.
    Inspect,
    /// A trial's `result.json` of harbor.
    Harbor,
    /// promptfoo's JSON output.
    Promptfoo,
    /// JSON Lines, one row an attempt, its grade where `json` says.
    Jsonl,
    /// Any JSON, its grade where `json` says.
    Json,
}

/// Where a document of any JSON has its grade.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(in crate::config) struct Json {
    /// JSON pointer to true or false. Default for `jsonl`: `/passed`.
    pub(in crate::config) passed: Option<Pointer>,
    /// JSON pointer to a number, which decides where there is no `passed`. Default for `jsonl`: `/score`.
    pub(in crate::config) score: Option<Pointer>,
    /// The least score that passes. Default: `1`.
    pub(in crate::config) threshold: Option<Amount>,
}

/// What an exit code means.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(in crate::config) struct Exit {
    /// Codes that pass. Default: `[0]`.
    pub(in crate::config) pass: Option<List<ExitStatus>>,
    /// Codes that fail. Default: `[1]`.
    pub(in crate::config) fail: Option<List<ExitStatus>>,
}

/// What turns a failed attempt into an errored one.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(in crate::config) struct Infra {
    /// Exit codes of a broken infrastructure.
    pub(in crate::config) exit: Option<List<ExitStatus>>,
    /// Regular expressions on the result's error field, in any case of letters.
    pub(in crate::config) error: Option<List<Pattern>>,
}

/// What is brought back besides the result.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a mapping")]
pub(in crate::config) struct Keep {
    /// A file or directory, relative to the workspace.
    pub(in crate::config) path: PathTemplate,
    /// Globs of paths to leave out, relative to the workspace.
    pub(in crate::config) exclude: Option<List<FileGlob>>,
    /// The most to bring back. Default: `200MB`.
    pub(in crate::config) max_size: Option<Size>,
}

/// How a pair's results are published in the run directory.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(in crate::config) struct Publish {
    /// Which attempts: the one that stands for the pair, or every one that gave a result. Default: `representative`.
    pub(in crate::config) what: Option<Published>,
    /// The result's path in the pair's directory. Default: `{eval}.json`, with `what: all`
    /// `{eval}/run-{attempt}/result.json`.
    #[serde(rename = "as")]
    pub(in crate::config) file: Option<PathTemplate>,
}

/// Which attempts are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::config) enum Published {
    /// The one that stands for the pair.
    Representative,
    /// Every one that gave a result.
    All,
}

/// Time limits of what comes before and after the command.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(in crate::config) struct Phases {
    /// Getting a sandbox and bringing the workspace in. Default: `10m`.
    pub(in crate::config) provision: Option<Span>,
    /// `setup`, and `boot`. Default: `15m`.
    pub(in crate::config) setup: Option<Span>,
    /// Bringing the result out. Default: `5m`.
    pub(in crate::config) collect: Option<Span>,
}

/// A secret: a variable's name, or a mapping with `name` and `optional`.
#[derive(Clone, Debug)]
pub(in crate::config) enum Secret {
    Name(EnvName),
    Described(SecretKeys),
}

by_shape! {
    Secret, "a variable's name, or a mapping with `name` and `optional`",
    text Name(EnvName),
    map Described(SecretKeys),
}

impl Secret {
    pub(in crate::config) fn name(&self) -> &str {
        match self {
            Self::Name(name) => &name.0,
            Self::Described(secret) => &secret.name.0,
        }
    }

    pub(in crate::config) fn is_optional(&self) -> bool {
        match self {
            Self::Name(_) => false,
            Self::Described(secret) => secret.optional.unwrap_or(false),
        }
    }
}

/// Two mentions of one secret are one too many, whatever else they say.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

/// A secret and whether the run goes on without it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `name` and `optional`")]
pub(in crate::config) struct SecretKeys {
    /// The variable's name.
    pub(in crate::config) name: EnvName,
    /// Whether the run goes on without it. Default: `false`.
    pub(in crate::config) optional: Option<bool>,
}
