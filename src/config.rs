//! What the user asked for: text, flags, inputs and environment in, one checked [`Config`] out. Reads nothing itself.

pub mod template;

use std::collections::BTreeMap;
use std::time::Duration;

use camino::Utf8PathBuf;

use crate::model::{Gate, OnPass, OnTimeout, Policy, Produces, Strategy};
use template::{CommandTemplate, Template};

/// Everything that a run needs to know, settled: no key is missing and none contradicts another.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which pairs there are.
    pub suite: SuiteConfig,
    /// How one attempt is made.
    pub attempt: AttemptConfig,
    /// Attempts of each pair, at least 1.
    pub runs: u32,
    /// When attempts start.
    pub strategy: Strategy,
    /// How many at once, before any cap.
    pub concurrency: WantedConcurrency,
    /// A hard cap on whatever `concurrency` comes to.
    pub max_concurrency: Option<usize>,
    /// How attempts decide a pair.
    pub policy: Policy,
    /// What a decided pair does with its others.
    pub on_pass: OnPass,
    /// What a timed out attempt counts as.
    pub on_timeout: OnTimeout,
    /// Tries for infrastructure failures.
    pub retry: RetryConfig,
    /// Where attempts run.
    pub sandbox: SandboxConfig,
    /// What the run is compared with.
    pub baseline: BaselineConfig,
    /// Findings that fail the run; empty after `never` alone.
    pub fail_on: Vec<Gate>,
    /// How sure a comparison has to be.
    pub compare: CompareConfig,
    /// What reports show.
    pub report: ReportConfig,
}

impl Config {
    /// Every placeholder with the path of the key that uses it.
    pub fn placeholders(&self) -> Vec<(&'static str, &str)> {
        let command: &[template::Template] = match &self.attempt.command {
            CommandTemplate::Shell(template) => std::slice::from_ref(template),
            CommandTemplate::Argv(templates) => templates,
        };
        let command = command
            .iter()
            .flat_map(Template::placeholders)
            .map(|name| ("attempt.command", name));
        let result = self.attempt.result.iter().flat_map(Template::placeholders);
        command
            .chain(result.map(|name| ("attempt.result", name)))
            .collect()
    }
}

/// `suite`.
#[derive(Clone, Debug)]
pub struct SuiteConfig {
    /// Keys artifact and comment.
    pub name: String,
    /// Where pairs come from.
    pub source: SuiteSource,
    /// Pairs to keep; empty keeps all.
    pub include: Vec<PairFilter>,
    /// Pairs to drop.
    pub exclude: Vec<PairFilter>,
    /// Which files a pair depends on.
    pub changed: ChangedConfig,
}

/// Where pairs come from. Paths are relative to the configuration's root.
#[derive(Clone, Debug)]
pub enum SuiteSource {
    /// A JSON or YAML file of pairs.
    File(Utf8PathBuf),
    /// Standard input holds JSON or YAML pairs.
    Stdin,
    /// JSON text from a flag or variable, with the name of where it came from.
    Json {
        /// `--pairs-json` or `EVAL_PAIRS`.
        origin: String,
        /// The text itself.
        text: String,
    },
    /// Pairs written in the configuration: each a map of strings or lists of strings.
    Inline(Vec<BTreeMap<String, OneOrMany>>),
    /// A command that prints JSON pairs, run in the configuration's root.
    Command(CommandLine),
    /// Every experiment with every eval.
    Discover {
        /// Where evals come from.
        evals: Discovery,
        /// Where experiments come from; `None` is the one experiment `default`.
        experiments: Option<Discovery>,
    },
}

/// A value that may be written as one string or a list of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneOrMany(pub Vec<String>);

/// Where ids come from.
#[derive(Clone, Debug)]
pub enum Discovery {
    /// They are listed.
    List(Vec<ListedId>),
    /// They are files.
    Glob {
        /// Which files, relative to the configuration's root.
        glob: String,
        /// Which part of a file's path is the id.
        id: IdPart,
    },
}

/// A listed id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedId {
    /// The id.
    pub id: String,
    /// Its labels.
    pub labels: BTreeMap<String, OneOrMany>,
}

/// Which part of a file's path is the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdPart {
    /// The name of the directory that holds the file.
    Dir,
    /// The file's name without its extension.
    Stem,
}

/// Selects pairs: every part that is given has to match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairFilter {
    /// A glob on the experiment.
    pub experiment: Option<String>,
    /// A glob on the eval.
    pub eval: Option<String>,
    /// Globs on label values, by label name.
    pub labels: BTreeMap<String, String>,
}

/// `suite.changed`.
#[derive(Clone, Debug, Default)]
pub struct ChangedConfig {
    /// Globs of an eval's files, with `{eval}`.
    pub evals: Vec<Template>,
    /// Globs of an experiment's files, with `{experiment}`.
    pub experiments: Vec<Template>,
    /// Globs of files whose change selects everything.
    pub all: Vec<String>,
}

/// A command as the user wrote it, without placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandLine {
    /// Text for `sh -c`.
    Shell(String),
    /// A program and its arguments; never empty.
    Argv(Vec<String>),
}

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Told by the result's content.
    Auto,
    /// supabase/evals' result document.
    Evals,
    /// The command's exit code.
    ExitCode,
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

/// `concurrency`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedConcurrency {
    /// One wave: pairs x runs, sequential: pairs.
    Auto,
    /// At least 1.
    Fixed(usize),
}

/// `retry`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryConfig {
    /// Most tries of one attempt, at least 1.
    pub tries: u32,
    /// Most retries of the run, as a share of its planned attempts; 10 are always allowed.
    pub budget: f64,
}

/// `sandbox`.
#[derive(Clone, Debug)]
pub enum SandboxConfig {
    /// On this machine.
    Local(LocalConfig),
}

impl SandboxConfig {
    /// The kind's name.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Local(_) => "local",
        }
    }
}

/// `sandbox` of kind `local`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalConfig {
    /// How the workspace comes into being.
    pub workspace: WorkspaceMode,
    /// Paths that are symlinked into a copied workspace rather than copied.
    pub link: Vec<Utf8PathBuf>,
    /// Whose HOME an attempt has.
    pub home: HomeMode,
    /// Whether the kernel confines an attempt where it can.
    pub landlock: LandlockMode,
    /// Whether an attempt may open network connections.
    pub network: NetworkMode,
    /// Memory reckoned for an attempt, in bytes, at least 1.
    pub memory_per_attempt: u64,
}

/// `sandbox.workspace`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkspaceMode {
    /// A copy for each sandbox.
    Copy,
    /// An overlay mount over one copy.
    Overlay,
    /// A git worktree.
    Worktree,
    /// The source itself: the suite promises not to clash.
    Shared,
}

/// `sandbox.home`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomeMode {
    /// An empty one of its own.
    Private,
    /// The user's.
    Inherit,
}

/// `sandbox.landlock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LandlockMode {
    /// Where the kernel offers it.
    Auto,
    /// Never.
    Off,
}

/// `sandbox.network` of kind `local`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkMode {
    /// As evalwave itself.
    Inherit,
    /// None, where the kernel can refuse it.
    None,
}

/// `baseline`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BaselineConfig {
    /// Nothing said, or `auto`: the base branch's newest result, which only the action can find.
    Auto,
    /// Nothing to compare with.
    None,
    /// These sources, read as one.
    Sources(Vec<String>),
}

/// `compare`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompareConfig {
    /// 0 to 1, ends excluded.
    pub alpha: f64,
    /// The drop that a comparison must be able to see, as a fraction.
    pub margin: f64,
}

impl Default for CompareConfig {
    fn default() -> Self {
        Self {
            alpha: 0.05,
            margin: 0.10,
        }
    }
}

/// `report`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportConfig {
    /// A label for the breakdown; experiments always have one.
    pub group_by: Option<String>,
}
