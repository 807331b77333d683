//! Which pairs the suite keeps, and whether they can lie beside each other on disk.

use std::collections::HashMap;

use super::CatalogError;
use crate::config::PairFilter;
use crate::glob::{IdGlob, InvalidGlob, id_glob};
use crate::model::Pair;

/// Longest name of a pair's directory, in bytes; file systems take 255, and `raw-results-` and `.json` come on top.
const LONGEST_NAME: usize = 200;

/// The pairs that some filter of `include` (or none is there) and no filter of `exclude` matches.
pub(super) fn keep(
    pairs: Vec<Pair>,
    include: &[PairFilter],
    exclude: &[PairFilter],
) -> Result<Vec<Pair>, CatalogError> {
    let include = compiled("suite.include", include)?;
    let exclude = compiled("suite.exclude", exclude)?;
    let matches = |filters: &[Filter<'_>], pair: &Pair| filters.iter().any(|filter| filter.matches(pair));
    Ok(pairs
        .into_iter()
        .filter(|pair| include.is_empty() || matches(&include, pair))
        .filter(|pair| !matches(&exclude, pair))
        .collect())
}

struct Filter<'a> {
    experiment: Option<IdGlob>,
    eval: Option<IdGlob>,
    labels: Vec<(&'a str, IdGlob)>,
}

impl Filter<'_> {
    fn matches(&self, pair: &Pair) -> bool {
        let id = |glob: &Option<IdGlob>, id: &str| glob.as_ref().is_none_or(|glob| glob.matches(id));
        id(&self.experiment, pair.id.experiment.as_str())
            && id(&self.eval, pair.id.eval.as_str())
            && self.labels.iter().all(|(name, glob)| {
                let mut values = pair.labels.values(name).iter();
                values.any(|value| glob.matches(value))
            })
    }
}

fn compiled<'a>(key: &'static str, filters: &'a [PairFilter]) -> Result<Vec<Filter<'a>>, CatalogError> {
    let one = |filter: &'a PairFilter| -> Result<Filter<'a>, InvalidGlob> {
        let labels = filter
            .labels
            .iter()
            .map(|(name, glob)| Ok((name.as_str(), id_glob(glob)?)));
        Ok(Filter {
            experiment: filter.experiment.as_deref().map(id_glob).transpose()?,
            eval: filter.eval.as_deref().map(id_glob).transpose()?,
            labels: labels.collect::<Result<_, InvalidGlob>>()?,
        })
    };
    filters
        .iter()
        .map(|filter| one(filter).map_err(|source| CatalogError::Glob { key, source }))
        .collect()
}

/// Every pair has a directory of its own, also where letter case does not count, under a name of usable length.
pub(super) fn check_directories(pairs: &[Pair]) -> Result<(), CatalogError> {
    let mut seen: HashMap<String, &Pair> = HashMap::with_capacity(pairs.len());
    for pair in pairs {
        let directory = pair.id.directory();
        if directory.len() > LONGEST_NAME {
            return Err(CatalogError::LongDirectory {
                pair: pair.id.to_string(),
                bytes: directory.len(),
            });
        }
        if let Some(first) = seen.insert(directory.to_ascii_lowercase(), pair) {
            return Err(CatalogError::SameDirectory {
                first: first.id.to_string(),
                second: pair.id.to_string(),
                directory: first.id.directory(),
                other: directory,
            });
        }
    }
    Ok(())
}
