//! The settings that can be given outside the file, by flag, action input or environment variable, and which of them
//! wins. Reads no environment itself.

use std::collections::BTreeMap;

use super::error::{ConfigError, Place};
use super::problem::quoted;
use super::value::{FromText, Truth, read};

/// A setting that has more than one way in. The highest level that gives it wins; below all of them is its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The command-line flag.
    pub flag: Option<&'static str>,
    /// The input of the action.
    pub input: Option<&'static str>,
    /// The environment variable.
    pub variable: Option<&'static str>,
    /// The key in `evalwave.yml`.
    pub key: Option<&'static str>,
}

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident: $flag:expr, $input:expr, $variable:expr, $key:expr;)+) => {
        $(
            $(#[$doc])*
            pub const $name: Setting = Setting { flag: $flag, input: $input, variable: $variable, key: $key };
        )+

        /// Every setting that can be given outside the file. `action.yml` and the README are held to this table.
        pub const SETTINGS: &[Setting] = &[$($name),+];
    };
}

settings! {
    /// Attempts of each pair.
    RUNS: Some("--runs"), Some("runs"), Some("EVAL_RUNS"), Some("runs");
    /// When attempts start.
    STRATEGY: Some("--strategy"), Some("strategy"), None, Some("strategy");
    /// Whether all attempts run at once: true is strategy `parallel` in one wave, false is `sequential`.
    PARALLEL_ATTEMPTS: Some("--parallel-attempts"), Some("parallel-attempts"), Some("EVAL_PARALLEL_ATTEMPTS"), None;
    /// How many at once.
    CONCURRENCY: Some("--concurrency"), Some("concurrency"), Some("EVAL_CONCURRENCY"), Some("concurrency");
    /// A hard cap on it.
    MAX_CONCURRENCY: None, Some("max-concurrency"), None, Some("max-concurrency");
    /// The agent's time: a duration by flag and key, whole seconds by input and variable.
    TIMEOUT: Some("--timeout"), Some("timeout-sec"), Some("EVAL_TIMEOUT_SEC"), Some("attempt.timeout");
    /// The kind of sandbox.
    SANDBOX: Some("--sandbox"), Some("sandbox"), None, Some("sandbox.kind");
    /// The snapshot that sandboxes start from.
    SNAPSHOT_ID: None, Some("snapshot-id"), Some("EVAL_SNAPSHOT_ID"), Some("sandbox.snapshot-id");
    /// The commit that is measured.
    REVISION: None, Some("revision"), Some("EVAL_REVISION"), None;
    /// A file of pairs, or `-`.
    PAIRS: Some("--pairs"), Some("pairs"), None, Some("suite.pairs");
    /// Pairs as JSON text.
    PAIRS_JSON: Some("--pairs-json"), None, Some("EVAL_PAIRS"), None;
    /// What the run is compared with; several are separated by line breaks.
    BASELINE: Some("--baseline"), Some("baseline"), None, Some("baseline");
    /// Earlier results by flag, how many of them by key.
    HISTORY: Some("--history"), None, None, Some("history");
    /// Fresh attempts of each flipped pair.
    CONFIRM: Some("--confirm"), Some("confirm"), None, Some("confirm");
    /// Findings that fail the run; several are separated by commas or line breaks.
    FAIL_ON: Some("--fail-on"), Some("fail-on"), None, Some("fail-on");
    /// How attempts decide a pair.
    POLICY: Some("--policy"), None, None, Some("policy");
    /// A label for the breakdown.
    GROUP_BY: Some("--group-by"), None, None, Some("report.group-by");
    /// When the action keeps a comment on the pull request.
    COMMENT: None, Some("comment"), None, Some("report.comment");
    // Those below are no part of the configuration: see [`Given::text`].
    /// The run directory.
    OUTPUT_DIR: Some("--output-dir"), Some("output-dir"), None, None;
    /// The configuration file.
    CONFIG: Some("--config"), Some("config"), None, None;
    /// Only pairs whose files changed: since a commit by flag, since the event's base with a true input.
    CHANGED: Some("--changed-since"), Some("changed-only"), None, None;
    /// One of several parts of the suite.
    SHARD: Some("--shard"), Some("shard"), None, None;
    /// What the action does.
    COMMAND: None, Some("command"), None, None;
    /// The name of the artifact that the run is kept as.
    ARTIFACT: None, Some("artifact"), None, None;
    /// For how many days it is kept.
    RETENTION_DAYS: None, Some("retention-days"), None, None;
    /// The pull request of an approved run.
    PULL_REQUEST: None, Some("pull-request"), None, None;
    /// The commit that was approved.
    HEAD_SHA: None, Some("head-sha"), None, None;
    /// What GitHub is asked with.
    GITHUB_TOKEN: None, Some("github-token"), None, None;
    /// A binary that is there already.
    BINARY_PATH: None, Some("binary-path"), None, None;
    /// The release that is installed.
    VERSION: None, Some("version"), None, None;
    /// Where releases are downloaded from.
    DOWNLOAD_BASE_URL: None, Some("download-base-url"), None, None;
    /// Whether the binary is built by cargo rather than downloaded.
    BUILD_FROM_SOURCE: None, Some("build-from-source"), None, None;
    /// Whether code of another repository may run beside this repository's secrets.
    ACCEPT_UNTRUSTED: None, Some("i-accept-that-this-runs-untrusted-code"), None, None;
}

/// The environment variable in which `action.yml` hands an input over: the steps of a composite action have no
/// `INPUT_` variables of their own.
pub fn input_variable(input: &str) -> String {
    format!("EVALWAVE_INPUT_{}", input.to_ascii_uppercase().replace('-', "_"))
}

/// The inputs that an environment hands over, by name.
pub fn inputs(environment: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let names = SETTINGS.iter().filter_map(|setting| setting.input);
    let values =
        names.filter_map(|name| Some((name.to_owned(), environment.get(&input_variable(name))?.clone())));
    values.collect()
}

/// A way to give a setting outside the file, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// An environment variable.
    Variable,
    /// An input of the action.
    Input,
    /// A command-line flag.
    Flag,
}

impl Level {
    pub(super) const HIGHEST_FIRST: [Self; 3] = [Self::Flag, Self::Input, Self::Variable];
}

/// What was given outside the file. White space around a value is dropped, and an empty one was not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given(BTreeMap<Level, BTreeMap<String, Vec<String>>>);

impl Given {
    /// Sorts values by where they come from. Names that are no setting's are ignored: the whole environment will do.
    ///
    /// A flag is named as it is typed (`--runs`); one that was given several times stands there several times. Paths
    /// are taken as they are: a caller that wants them relative to the working directory joins them before.
    pub fn new(
        flags: impl IntoIterator<Item = (String, String)>,
        inputs: impl IntoIterator<Item = (String, String)>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let mut given = Self::default();
        for (name, value) in flags {
            given.add(Level::Flag, name, &value);
        }
        for (name, value) in inputs {
            given.add(Level::Input, name, &value);
        }
        for (name, value) in environment {
            given.add(Level::Variable, name, &value);
        }
        given
    }

    fn add(&mut self, level: Level, name: String, value: &str) {
        let value = value.trim();
        if !value.is_empty() {
            let names = self.0.entry(level).or_default();
            names.entry(name).or_default().push(value.to_owned());
        }
    }

    /// The text of a setting that is one text, from the highest level that gives it.
    ///
    /// # Errors
    /// A flag that was given several times.
    pub fn text(&self, setting: &Setting) -> Result<Option<&str>, ConfigError> {
        self.find(setting).map(|found| found.one()).transpose()
    }

    /// Whether a setting that is true or false is true; without a value it is false.
    ///
    /// # Errors
    /// A text that is neither.
    pub fn truth(&self, setting: &Setting) -> Result<bool, ConfigError> {
        let found = self.find(setting).map(Found::read::<Truth>).transpose()?;
        Ok(found.is_some_and(|Truth(truth)| truth))
    }

    /// The values from the highest level that gives a setting.
    pub(super) fn find(&self, setting: &Setting) -> Option<Found<'_>> {
        Level::HIGHEST_FIRST
            .into_iter()
            .find_map(|level| self.at(level, setting))
    }

    /// The values that one level gives.
    pub(super) fn at(&self, level: Level, setting: &Setting) -> Option<Found<'_>> {
        let name = match level {
            Level::Flag => setting.flag,
            Level::Input => setting.input,
            Level::Variable => setting.variable,
        }?;
        let values = self.0.get(&level)?.get(name)?;
        Some(Found { level, name, values })
    }
}

/// A setting's values at one level; there is at least one, and none is empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'a> {
    pub(super) level: Level,
    pub(super) name: &'static str,
    values: &'a [String],
}

impl<'a> Found<'a> {
    /// The one value.
    pub(super) fn one(self) -> Result<&'a str, ConfigError> {
        match self.values {
            [value] => Ok(value),
            values => Err(self.wrong(&format!("expected one value, found {}", values.len()))),
        }
    }

    /// The one value, read.
    pub(super) fn read<T: FromText>(self) -> Result<T, ConfigError> {
        read(self.one()?).map_err(|text| self.wrong(&text))
    }

    /// Every value, taken apart at separators, read; none may stand there twice.
    pub(super) fn list<T: FromText + PartialEq>(self, separators: &[char]) -> Result<Vec<T>, ConfigError> {
        let mut list = Vec::new();
        for word in self.values.iter().flat_map(|value| value.split(separators)) {
            let word = word.trim();
            if word.is_empty() {
                continue;
            }
            let value = read(word).map_err(|text| self.wrong(&text))?;
            if list.contains(&value) {
                return Err(self.wrong(&format!("{} is given twice", quoted(word))));
            }
            list.push(value);
        }
        if list.is_empty() {
            return Err(self.wrong(&format!("expected {}, found only separators", T::EXPECTED)));
        }
        Ok(list)
    }

    /// What is wrong with it.
    pub(super) fn wrong(self, text: &str) -> ConfigError {
        let (text, help) = match text.split_once('\n') {
            Some((text, help)) => (text, Some(help.to_owned())),
            None => (text, None),
        };
        ConfigError::Wrong {
            place: Place::Given {
                level: self.level,
                name: self.name,
            },
            text: text.to_owned(),
            help,
        }
    }
}

/// As the user gave it: `--strategy adaptive`, `EVAL_RUNS=2`.
impl std::fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = self.values.join(" ");
        let value = quoted(&value);
        let value = value.trim_matches('`');
        match self.level {
            Level::Flag => write!(f, "`{} {value}`", self.name),
            Level::Input => write!(f, "input `{}: {value}`", self.name),
            Level::Variable => write!(f, "`{}={value}`", self.name),
        }
    }
}
