//! Which pairs there are, settled.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;

use super::CommandLine;
use super::template::Template;

/// `suite`.
#[derive(Clone, Debug)]
pub struct SuiteConfig {
    /// Keys artifact and comment.
    pub name: String,
    /// Where pairs come from.
    pub source: SuiteSource,
    /// They are given from outside the file, in the place of its own and often as a part of them.
    pub is_given: bool,
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
