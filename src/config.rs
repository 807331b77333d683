//! What the user asked for: text, flags, inputs and environment in, one checked [`Config`] out. Reads nothing itself.

mod anchors;
mod attempt;
mod check;
mod error;
mod file;
mod hash;
mod node;
mod problem;
mod resolve;
mod sandbox;
pub mod settings;
mod suite;
pub mod template;
mod value;
mod yaml;

use std::collections::BTreeMap;

use crate::model::{Gate, OnPass, OnTimeout, Policy, Strategy};
pub(crate) use anchors::reused_anchor;
pub use attempt::{
    AttemptConfig, ExitConfig, Format, Grade, InfraConfig, KeepConfig, PhaseLimits, PublishConfig,
    PublishWhat, SecretConfig, UploadConfig,
};
use error::Origin;
pub use error::{ConfigError, Place};
use file::{File, Parsed};
pub use sandbox::{
    CommandConfig, DockerConfig, DockerImage, DockerMount, HomeMode, LandlockMode, LocalConfig, NetworkMode,
    SandboxConfig, VercelBase, VercelConfig, VercelFiles, VercelLimits, VercelPolicy, WorkspaceMode,
};
use settings::Given;
pub use suite::{
    ChangedConfig, Discovery, IdPart, ListedId, OneOrMany, PairFilter, SuiteConfig, SuiteSource,
};
pub use yaml::Position;

/// A configuration file, as it was read.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// What messages call it: its path, as the user would type it.
    pub name: &'a str,
    /// What is in it.
    pub bytes: &'a [u8],
}

/// Settles everything that a run needs. Flag wins over action input, that over environment variable, that over the
/// file, and that over the default.
///
/// # Errors
/// What is wrong in the file or in what was given outside it, first what is written wrongly, then what contradicts
/// itself; or that there is no file, which `attempt.command` has to come from.
pub fn load(file: Option<&Source<'_>>, given: &Given) -> Result<Config, ConfigError> {
    let (parsed, origin) = parse(file.ok_or(ConfigError::NoFile)?)?;
    resolve::run(parsed, origin, given, true)
}

/// Settles the same for what needs no pairs: where nothing says which there are, there are none.
///
/// # Errors
/// Like [`load`].
pub fn load_without_pairs(file: &Source<'_>, given: &Given) -> Result<Config, ConfigError> {
    let (parsed, origin) = parse(file)?;
    resolve::run(parsed, origin, given, false)
}

/// Settles what a comparison of results that exist already needs; it can do without a file.
///
/// # Errors
/// Like [`load`], but for a missing file.
pub fn load_comparison(file: Option<&Source<'_>>, given: &Given) -> Result<ComparisonConfig, ConfigError> {
    let parsed = file.map(parse).transpose()?;
    resolve::comparison(parsed.as_ref(), given)
}

/// The JSON Schema of `evalwave.yml`.
///
/// It accepts whatever [`load`] accepts in a file. What keys say together, and a few rules of single values such as
/// reserved names, only [`load`] knows.
pub fn schema() -> serde_json::Value {
    schemars::generate::SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<File>()
        .to_value()
}

/// Whether a text can be a suite's name.
pub fn is_suite_name(text: &str) -> bool {
    value::read::<value::SuiteName>(text).is_ok()
}

fn parse<'a>(source: &Source<'a>) -> Result<(Parsed, Origin<'a>), ConfigError> {
    let origin = Origin::of(source)?;
    let node = yaml::parse(origin.text).map_err(|unreadable| origin.unreadable(&unreadable))?;
    let parsed = Parsed::read(&node).map_err(|problem| origin.error(problem))?;
    check::check(&parsed.file).map_err(|problem| origin.error(problem))?;
    Ok((parsed, origin))
}

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
    /// How many attempts of pairs with a label run at once.
    pub limits: Vec<LimitConfig>,
    /// What the run may use.
    pub budget: BudgetConfig,
    /// What things cost.
    pub price: PriceConfig,
    /// Where attempts run.
    pub sandbox: SandboxConfig,
    /// What the run is compared with.
    pub baseline: BaselineConfig,
    /// Earlier results, which the flaky pairs are known from.
    pub history: HistoryConfig,
    /// Fresh attempts of each flipped pair after the run; 0 is none.
    pub confirm: u32,
    /// Findings that fail the run; never empty: [`Gate::Never`] alone says that none does.
    pub fail_on: Vec<Gate>,
    /// Gates for the pairs with a label.
    pub gates: Vec<LabelGates>,
    /// Pairs that are known to go both ways, and do not gate.
    pub flaky: Vec<FlakyConfig>,
    /// How sure a comparison has to be.
    pub compare: CompareConfig,
    /// What reports show.
    pub report: ReportConfig,
}

impl Config {
    /// SHA-256, hexadecimal, of what decides the results: commands, environment (no secret's value), formats, runs,
    /// policy, timeout. How and where attempts run is no part of it.
    pub fn hash(&self) -> String {
        hash::hash(self)
    }

    /// Every placeholder of a template, with the key that it stands in. Names other than
    /// [`template::BUILT_IN_PLACEHOLDERS`] are labels, which can be checked once pairs are known.
    pub fn placeholders(&self) -> Vec<(&'static str, &str)> {
        let attempt = &self.attempt;
        let commands = [
            ("attempt.setup", attempt.setup.as_ref()),
            ("attempt.boot", attempt.boot.as_ref()),
            ("attempt.command", Some(&attempt.command)),
        ];
        let paths = [
            ("attempt.result", attempt.result.as_ref()),
            ("attempt.keep.path", attempt.keep.as_ref().map(|keep| &keep.path)),
            ("attempt.publish.as", Some(&attempt.publish.file)),
        ];
        let values = attempt.env.values().map(|value| ("attempt.env", Some(value)));
        let mut placeholders = Vec::new();
        for (key, command) in commands {
            placeholders.extend(
                command
                    .into_iter()
                    .flat_map(|command| command.placeholders())
                    .map(|name| (key, name)),
            );
        }
        for (key, template) in paths.into_iter().chain(values) {
            placeholders.extend(
                template
                    .into_iter()
                    .flat_map(|template| template.placeholders())
                    .map(|name| (key, name)),
            );
        }
        placeholders
    }
}

/// What a comparison of results that exist already needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonConfig {
    /// What is compared with.
    pub baseline: BaselineConfig,
    /// How attempts decide a pair; `None` leaves it to what the results say of themselves.
    pub policy: Option<Policy>,
    /// Earlier results, which the flaky pairs are known from.
    pub history: HistoryConfig,
    /// Findings that fail the command; `never` stands alone.
    pub fail_on: Vec<Gate>,
    /// Gates for the pairs with a label.
    pub gates: Vec<LabelGates>,
    /// Pairs that are known to go both ways, and do not gate.
    pub flaky: Vec<FlakyConfig>,
    /// How sure the comparison has to be.
    pub compare: CompareConfig,
    /// What reports show.
    pub report: ReportConfig,
}

/// A command as the user wrote it, without placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandLine {
    /// Text for `sh -c`.
    Shell(String),
    /// A program and its arguments; never empty.
    Argv(Vec<String>),
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

/// An entry of `limits`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitConfig {
    /// The label's name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// At least 1.
    pub concurrency: usize,
}

/// `budget`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BudgetConfig {
    /// Minutes of all sandboxes together.
    pub sandbox_minutes: Option<f64>,
    /// USD.
    pub cost: Option<f64>,
    /// Whether a run goes on whose use cannot be known.
    pub allow_unknown: bool,
}

/// `price`, in USD.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriceConfig {
    /// Of a sandbox for a second; 0 where it is not hired, or nothing says what it costs.
    pub sandbox_second: f64,
    /// Of models, by the name that a pair's label `model` has.
    pub models: BTreeMap<String, ModelPrice>,
}

/// An entry of `price.models`, in USD.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelPrice {
    /// For a million tokens that it reads.
    pub input: f64,
    /// For a million tokens that it writes.
    pub output: f64,
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
    /// The base revision is run beside this one: this commit, branch or tag; `None` is where HEAD and the remote's
    /// default branch part.
    Measure(Option<String>),
}

/// `history`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryConfig {
    /// How many earlier baseline runs the action reads.
    pub runs: u32,
    /// Earlier results that were named on the command line, each a run.
    pub sources: Vec<String>,
}

/// One of `gates`.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelGates {
    /// The label's name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Findings among the pairs with it that fail the run; never empty.
    pub fail_on: Vec<Gate>,
}

/// One of `flaky`: the pairs that both globs match, one of which there is at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlakyConfig {
    /// A glob on the experiment.
    pub experiment: Option<String>,
    /// A glob on the eval.
    pub eval: Option<String>,
    /// The last day on which they count as flaky; `None` is for good.
    pub until: Option<jiff::civil::Date>,
    /// Why, in the user's words.
    pub why: Option<String>,
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
    /// When the action keeps a comment on the pull request.
    pub comment: CommentMode,
}

/// `report.comment`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommentMode {
    /// For every run, from its start.
    #[default]
    Always,
    /// When a verdict changed.
    Changes,
    /// When a gate failed, or some pair has no result.
    Failures,
    /// For none.
    Never,
}

#[cfg(test)]
mod tests;
