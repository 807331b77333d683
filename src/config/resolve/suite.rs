//! `suite`, settled.

use std::collections::BTreeMap;

use crate::config::check::id_from;
use crate::config::error::{ConfigError, Origin};
use crate::config::file::File;
use crate::config::file::shape::{List, OneOrList};
use crate::config::file::suite::{Changed, Filter, IdFrom, Listed, Pairs, Source, Suite};
use crate::config::problem::{KeyPath, Problem};
use crate::config::settings::{self, Found, Given, Level};
use crate::config::template::CommandTemplate;
use crate::config::value::{FromText, LabelName, SourcePath, Text};
use crate::config::{
    ChangedConfig, CommandLine, Discovery, IdPart, ListedId, OneOrMany, PairFilter, SuiteConfig, SuiteSource,
};

/// Settles where pairs come from and which of them stay. Where no pairs are needed, nothing has to say which there are.
pub(super) fn settle(
    file: &File,
    origin: Origin<'_>,
    given: &Given,
    needs_pairs: bool,
) -> Result<SuiteConfig, ConfigError> {
    let written = file.suite.clone().unwrap_or_default();
    let given = given_source(given)?;
    let is_given = given.is_some();
    let source = match given {
        Some(source) => source,
        None => match written_source(&written).map_err(|problem| origin.error(problem))? {
            Some(source) => source,
            None if needs_pairs => return Err(origin.error(no_source())),
            None => SuiteSource::Inline(Vec::new()),
        },
    };
    Ok(SuiteConfig {
        name: written.name.map_or_else(|| "evals".to_owned(), |name| name.0),
        source,
        is_given,
        include: filters(written.include),
        exclude: filters(written.exclude),
        changed: written.changed.map(changed).unwrap_or_default(),
    })
}

/// Pairs from outside the file, from the highest level that gives any.
fn given_source(given: &Given) -> Result<Option<SuiteSource>, ConfigError> {
    for level in Level::HIGHEST_FIRST {
        let path = given.at(level, &settings::PAIRS);
        let json = given.at(level, &settings::PAIRS_JSON);
        match (path, json) {
            (Some(path), Some(json)) => {
                let text = format!(
                    "expected one source of pairs, found `{}` too\ngive one of them",
                    path.name
                );
                return Err(json.wrong(&text));
            }
            (Some(path), None) => return given_path(path).map(Some),
            (None, Some(json)) => {
                return Ok(Some(SuiteSource::Json {
                    origin: json.name.to_owned(),
                    text: json.one()?.to_owned(),
                }));
            }
            (None, None) => {}
        }
    }
    Ok(None)
}

fn given_path(path: Found<'_>) -> Result<SuiteSource, ConfigError> {
    Ok(match path.read::<SourcePath>()?.0.as_str() {
        "-" => SuiteSource::Stdin,
        path => SuiteSource::File(path.into()),
    })
}

fn no_source() -> Problem {
    Problem::missing(
        KeyPath::of("suite.pairs"),
        "explicit pairs here, `suite.evals` to find them, or pairs by `--pairs`, `--pairs-json` or `EVAL_PAIRS`",
    )
}

fn written_source(suite: &Suite) -> Result<Option<SuiteSource>, Problem> {
    Ok(Some(match (&suite.pairs, &suite.evals) {
        (Some(Pairs::File(path)), _) => SuiteSource::File(path.0.as_str().into()),
        (Some(Pairs::Inline(pairs)), _) => {
            SuiteSource::Inline(pairs.iter().map(|pair| labels(&pair.0)).collect())
        }
        (Some(Pairs::Command(command)), _) => SuiteSource::Command(plain(command.command.clone().into())?),
        (None, Some(evals)) => SuiteSource::Discover {
            evals: discovery(evals),
            experiments: suite.experiments.as_ref().map(discovery),
        },
        (None, None) => return Ok(None),
    }))
}

/// A command that runs before there are pairs, so that no placeholder has a value.
fn plain(command: CommandTemplate) -> Result<CommandLine, Problem> {
    command.render(&Default::default()).map_err(|_| {
        let first = command.placeholders().next().unwrap_or_default();
        Problem::new(
            KeyPath::of("suite.pairs.command"),
            format!("expected no placeholder, found `{{{first}}}`: it runs before there are pairs"),
        )
    })
}

fn discovery(source: &Source) -> Discovery {
    match source {
        Source::List(ids) => Discovery::List(ids.iter().map(listed).collect()),
        Source::Files(files) => Discovery::Glob {
            glob: files.glob.0.clone(),
            id: match id_from(files) {
                IdFrom::Dir => IdPart::Dir,
                IdFrom::Stem => IdPart::Stem,
            },
        },
    }
}

fn listed(listed: &Listed) -> ListedId {
    let labels = match listed {
        Listed::Id(_) => None,
        Listed::Labelled(labelled) => labelled.labels.as_ref(),
    };
    ListedId {
        id: listed.id().to_owned(),
        labels: labels.map(self::labels).unwrap_or_default(),
    }
}

fn labels(written: &BTreeMap<LabelName, OneOrList<Text>>) -> BTreeMap<String, OneOrMany> {
    written
        .iter()
        .map(|(name, values)| {
            let values = values.0.iter().map(|value| value.0.clone());
            (name.0.clone(), OneOrMany(values.collect()))
        })
        .collect()
}

fn filters(written: Option<List<Filter>>) -> Vec<PairFilter> {
    written
        .unwrap_or_default()
        .0
        .into_iter()
        .map(|filter| PairFilter {
            experiment: filter.experiment.map(|glob| glob.0),
            eval: filter.eval.map(|glob| glob.0),
            labels: filter
                .label
                .into_iter()
                .flatten()
                .map(|(name, glob)| (name.0, glob.0))
                .collect(),
        })
        .collect()
}

fn changed(written: Changed) -> ChangedConfig {
    ChangedConfig {
        evals: values(written.evals, |glob| glob.0),
        experiments: values(written.experiments, |glob| glob.0),
        all: written
            .all
            .unwrap_or_default()
            .0
            .into_iter()
            .map(|glob| glob.0)
            .collect(),
    }
}

fn values<T: FromText, U>(written: Option<OneOrList<T>>, value: impl Fn(T) -> U) -> Vec<U> {
    written.into_iter().flat_map(|list| list.0).map(value).collect()
}
