//! How one attempt is made, settled.

use std::collections::BTreeMap;
use std::time::Duration;

use super::template::{CommandTemplate, Template};
use crate::model::Produces;

/// `attempt`.
#[derive(Clone, Debug)]
pub struct AttemptConfig {
    /// What a sandbox receives.
    pub upload: UploadConfig,
    /// Once in each cold sandbox; gets no secrets.
    pub setup: Option<CommandTemplate>,
    /// In every sandbox before its first attempt; gets the secrets.
    pub boot: Option<CommandTemplate>,
    /// The attempt itself.
    pub command: CommandTemplate,
    /// Whether a command is an attempt or a whole pair.
    pub produces: Produces,
    /// Where the command leaves its result, relative to the workspace; `None` only for `exit-code`.
    pub result: Option<Template>,
    /// How the result is read.
    pub format: Format,
    /// `format: exit-code`: the codes that pass and fail.
    pub exit: ExitConfig,
    /// What turns a failed attempt into an errored one.
    pub infra: InfraConfig,
    /// What is brought back besides the result.
    pub keep: Option<KeepConfig>,
    /// How a pair's results are published in the run directory.
    pub publish: PublishConfig,
    /// The agent's time.
    pub timeout: Duration,
    /// Added around it; then the attempt is killed.
    pub grace: Duration,
    /// Limits of the other phases.
    pub phases: PhaseLimits,
    /// Variables for setup, boot and command.
    pub env: BTreeMap<String, Template>,
    /// Variables taken as they are from evalwave's own environment.
    pub env_from: Vec<String>,
    /// Secrets for boot and command, from evalwave's own environment.
    pub secrets: Vec<SecretConfig>,
}

/// `attempt.upload`.
#[derive(Clone, Debug)]
pub struct UploadConfig {
    /// Tracked files and untracked ones that git does not ignore; else every file.
    pub git: bool,
    /// Globs of ignored files to add.
    pub include: Vec<String>,
    /// Globs of files to leave out.
    pub exclude: Vec<String>,
}

/// `attempt.format`.
#[derive(Clone, Debug, PartialEq)]
pub enum Format {
    /// Told by the result's content.
    Auto,
    /// supabase/evals' result document.
    Evals,
    /// The command's exit code.
    ExitCode,
    /// JUnit XML.
    Junit,
    /// A run's `result.json` of @vercel/agent-eval.
    AgentEval,
    /// A log of inspect_ai, as JSON or as an archive of JSON.
    Inspect,
    /// A trial's `result.json` of harbor.
    Harbor,
    /// promptfoo's JSON output.
    Promptfoo,
    /// JSON Lines, a row an attempt.
    Jsonl(Grade),
    /// Any JSON.
    Json(Grade),
}

/// `attempt.json`: where a document of any JSON has its grade. At least one of the pointers is there.
#[derive(Clone, Debug, PartialEq)]
pub struct Grade {
    /// JSON pointer to true or false, which decides where it is there.
    pub passed: Option<String>,
    /// JSON pointer to a number.
    pub score: Option<String>,
    /// The least score that passes.
    pub threshold: f64,
}

impl Grade {
    /// Where a row of JSON Lines has its grade, unless it is said to be elsewhere.
    pub fn of_rows() -> Self {
        Self {
            passed: Some("/passed".to_owned()),
            score: Some("/score".to_owned()),
            threshold: 1.0,
        }
    }
}

/// `attempt.exit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitConfig {
    /// Codes that pass.
    pub pass: Vec<i32>,
    /// Codes that fail.
    pub fail: Vec<i32>,
}

/// `attempt.infra`.
#[derive(Clone, Debug, Default)]
pub struct InfraConfig {
    /// Exit codes of a broken infrastructure.
    pub exit: Vec<i32>,
    /// Patterns on the result's error field, case-insensitive.
    pub error: Vec<regex::Regex>,
}

/// `attempt.keep`.
#[derive(Clone, Debug)]
pub struct KeepConfig {
    /// A file or directory, relative to the workspace.
    pub path: Template,
    /// Globs of paths to leave out, relative to the workspace.
    pub exclude: Vec<String>,
    /// Most bytes to bring back.
    pub max_size: u64,
}

/// `attempt.publish`.
#[derive(Clone, Debug)]
pub struct PublishConfig {
    /// Which attempts.
    pub what: PublishWhat,
    /// The result's path below `raw-results-…`.
    pub file: Template,
}

/// `attempt.publish.what`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishWhat {
    /// The one that stands for the pair.
    Representative,
    /// Every one that gave a result.
    All,
}

/// `attempt.phases`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseLimits {
    /// Getting an empty sandbox and bringing the workspace in.
    pub provision: Duration,
    /// `setup`, and `boot`.
    pub setup: Duration,
    /// Bringing the result out.
    pub collect: Duration,
}

/// One of `attempt.secrets`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretConfig {
    /// The variable's name.
    pub name: String,
    /// Whether the run goes on without it.
    pub optional: bool,
}
