//! Which pairs depend on files that changed, by the globs of `suite.changed`. A file that no glob covers selects nothing.

use std::collections::{BTreeMap, HashSet};

use camino::Utf8PathBuf;
use globset::{Candidate, Glob, GlobSet, GlobSetBuilder};

use crate::config::Config;
use crate::config::template::{Template, Values};
use crate::glob::{InvalidGlob, path_glob};
use crate::model::Pair;
use crate::plan::PlanError;

/// Globs in one set. What is not a plain prefix becomes part of one automaton, and a large one is slow to build.
const SET: usize = 256;

/// What changed.
pub(super) struct Changed<'a> {
    everything: bool,
    evals: HashSet<&'a str>,
    experiments: HashSet<&'a str>,
}

impl Changed<'_> {
    /// Whether the pair depends on a file that changed.
    pub(super) fn holds(&self, pair: &Pair) -> bool {
        self.everything
            || self.evals.contains(pair.id.eval.as_str())
            || self.experiments.contains(pair.id.experiment.as_str())
    }
}

/// Finds the evals and experiments that `files` belong to.
pub(super) fn changed<'a>(
    config: &Config,
    pairs: &'a [Pair],
    files: &[Utf8PathBuf],
) -> Result<Changed<'a>, PlanError> {
    let globs = &config.suite.changed;
    if globs.evals.is_empty() {
        return Err(PlanError::ChangedUnset);
    }
    let all = globs.all.iter().map(|glob| Ok(("", path_glob(glob)?)));
    let all = all
        .collect::<Result<Vec<_>, _>>()
        .map_err(PlanError::ChangedGlob)?;
    let evals = rendered(
        &globs.evals,
        ("suite.changed.evals", "eval"),
        pairs.iter().map(|pair| pair.id.eval.as_str()),
    )?;
    let experiments = rendered(
        &globs.experiments,
        ("suite.changed.experiments", "experiment"),
        pairs.iter().map(|pair| pair.id.experiment.as_str()),
    )?;
    Ok(Changed {
        everything: !touched(&all, files)?.is_empty(),
        evals: touched(&evals, files)?,
        experiments: touched(&experiments, files)?,
    })
}

/// Every template with every name in it, the name taken as it is and not as a glob.
fn rendered<'a>(
    templates: &[Template],
    (key, placeholder): (&'static str, &'static str),
    names: impl Iterator<Item = &'a str>,
) -> Result<Vec<(&'a str, Glob)>, PlanError> {
    let names: HashSet<&str> = names.collect();
    let mut globs = Vec::with_capacity(names.len() * templates.len());
    for name in names {
        let values = BTreeMap::from([(placeholder.to_owned(), globset::escape(name))]);
        let values = Values(values);
        for template in templates {
            let text = template
                .render(&values)
                .map_err(|source| PlanError::ChangedPlaceholder {
                    key,
                    allowed: placeholder,
                    source,
                })?;
            globs.push((name, path_glob(&text).map_err(PlanError::ChangedGlob)?));
        }
    }
    Ok(globs)
}

/// The names whose globs match one of `files`.
fn touched<'a>(globs: &[(&'a str, Glob)], files: &[Utf8PathBuf]) -> Result<HashSet<&'a str>, PlanError> {
    let mut names = HashSet::new();
    for globs in globs.chunks(SET) {
        let set = set(globs).map_err(PlanError::ChangedGlob)?;
        for file in files {
            // A submodule is one path to git, and `dir/**` means it too.
            let directory = format!("{file}/");
            for path in [file.as_str(), &directory] {
                let matches = set.matches_candidate(&Candidate::new(path));
                names.extend(matches.into_iter().map(|index| globs[index].0));
            }
        }
    }
    Ok(names)
}

fn set(globs: &[(&str, Glob)]) -> Result<GlobSet, InvalidGlob> {
    let mut set = GlobSetBuilder::new();
    for (_, glob) in globs {
        set.add(glob.clone());
    }
    set.build().map_err(|source| InvalidGlob::Syntax {
        glob: source.glob().unwrap_or("suite.changed").to_owned(),
        source,
    })
}
