//! `suite` as it is written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::attempt::Command;
use super::shape::{List, OneOrList, by_shape};
use crate::config::value::{
    EvalGlob, ExperimentGlob, FileGlob, FromText, Id, IdGlob, LabelName, Refusal, SourcePath, SuiteName, Text,
};

/// Which pairs there are: explicit pairs, or every experiment with every eval.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a mapping")]
pub(in crate::config) struct Suite {
    /// Keys artifact and comment, so that several suites can live in one repository. Default: `evals`.
    pub(in crate::config) name: Option<SuiteName>,
    /// Explicit pairs: a JSON or YAML file, the pairs themselves, or a command that prints them as JSON.
    pub(in crate::config) pairs: Option<Pairs>,
    /// The evals: a list of ids, or files.
    pub(in crate::config) evals: Option<Source>,
    /// The experiments: a list of ids, or files. Without it there is one experiment, `default`.
    pub(in crate::config) experiments: Option<Source>,
    /// Keeps the pairs that one of these selects. Default: all.
    pub(in crate::config) include: Option<List<Filter>>,
    /// Drops the pairs that one of these selects.
    pub(in crate::config) exclude: Option<List<Filter>>,
    /// Which files a pair depends on, for selecting what a change touches.
    pub(in crate::config) changed: Option<Changed>,
}

/// `suite.pairs`.
#[derive(Clone, Debug)]
pub(in crate::config) enum Pairs {
    File(PairsPath),
    Inline(Vec<InlinePair>),
    Command(PairsCommand),
}

by_shape! {
    Pairs, "a path, a list of pairs, or a mapping with `command`",
    text File(PairsPath),
    list Inline(Vec<InlinePair>),
    map Command(PairsCommand),
}

/// The path of a file of pairs.
#[derive(Clone, Debug)]
pub(in crate::config) struct PairsPath(pub(in crate::config) String);

impl FromText for PairsPath {
    const EXPECTED: &'static str = "the path of a file of pairs";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        if text == "-" {
            return Err(Refusal::because(
                "expected the path of a file of pairs, found `-`\nuse `--pairs -` for pairs from standard input",
            ));
        }
        SourcePath::from_text(text).map(|path| Self(path.0))
    }
}

crate::config::value::in_file!(PairsPath, { "type": "string", "minLength": 1 });

/// A command that prints pairs as JSON.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `command`")]
pub(in crate::config) struct PairsCommand {
    /// Run in the configuration's root; it has no placeholders.
    pub(in crate::config) command: Command,
}

/// A pair: `experiment`, `eval`, and labels.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(in crate::config) struct InlinePair(pub(in crate::config) BTreeMap<LabelName, OneOrList<Text>>);

impl JsonSchema for InlinePair {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Pair".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "object",
            "description": "A pair: its experiment, its eval (`eval_id` is read as `eval`), and any other key as a label.",
            "properties": {
                "experiment": { "type": "string", "minLength": 1 },
                "eval": { "type": "string", "minLength": 1 },
                "eval_id": { "type": "string", "minLength": 1 },
            },
            "required": ["experiment"],
            "oneOf": [{ "required": ["eval"] }, { "required": ["eval_id"] }],
            "additionalProperties": {
                "anyOf": [
                    { "type": "string", "minLength": 1 },
                    { "type": "array", "items": { "type": "string", "minLength": 1 }, "minItems": 1, "uniqueItems": true },
                ],
            },
        })
    }
}

/// `suite.evals` and `suite.experiments`.
#[derive(Clone, Debug)]
pub(in crate::config) enum Source {
    List(Vec<Listed>),
    Files(Files),
}

by_shape! {
    Source, "a list of ids, or a mapping with `glob`",
    list List(Vec<Listed>),
    map Files(Files),
}

/// An id that is listed.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::config) enum Listed {
    Id(Id),
    Labelled(Labelled),
}

by_shape! {
    Listed, "an id, or a mapping with `id` and `labels`",
    quoted Id(Id),
    map Labelled(Labelled),
}

impl Listed {
    pub(in crate::config) fn id(&self) -> &str {
        match self {
            Self::Id(id) => &id.0,
            Self::Labelled(labelled) => &labelled.id.0,
        }
    }
}

/// An id with its labels.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `id` and `labels`")]
pub(in crate::config) struct Labelled {
    /// The id.
    pub(in crate::config) id: Id,
    /// Its labels: each a text or a list of texts.
    pub(in crate::config) labels: Option<BTreeMap<LabelName, OneOrList<Text>>>,
}

/// Files, each of which stands for an id. YAML front matter in one gives labels.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping with `glob`")]
pub(in crate::config) struct Files {
    /// Which files.
    pub(in crate::config) glob: FileGlob,
    /// What of a file's path is the id. Default: `dir` where the glob ends in a fixed name, else `stem`.
    pub(in crate::config) id: Option<IdFrom>,
}

/// What of a file's path is an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::config) enum IdFrom {
    /// The name of the file's directory.
    Dir,
    /// The file's name without its extension.
    Stem,
}

/// Selects pairs; whatever is given has to match.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a mapping with `experiment`, `eval` or `label`"
)]
#[schemars(extend("minProperties" = 1))]
pub(in crate::config) struct Filter {
    /// A glob on the experiment.
    pub(in crate::config) experiment: Option<IdGlob>,
    /// A glob on the eval.
    pub(in crate::config) eval: Option<IdGlob>,
    /// Globs on label values, by label.
    pub(in crate::config) label: Option<BTreeMap<LabelName, IdGlob>>,
}

/// Which files a pair depends on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
pub(in crate::config) struct Changed {
    /// Globs of an eval's files, with `{eval}`; `{{` and `}}` are the braces of a glob.
    pub(in crate::config) evals: Option<OneOrList<EvalGlob>>,
    /// Globs of an experiment's files, with `{experiment}`; `{{` and `}}` are the braces of a glob.
    pub(in crate::config) experiments: Option<OneOrList<ExperimentGlob>>,
    /// Globs of files whose change selects every pair.
    pub(in crate::config) all: Option<List<FileGlob>>,
}
