//! Pairs as every experiment with every eval, each of them listed or found as files.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};

use super::path::utf8;
use super::walk::{Kind, Walk, depth, fixed_start};
use super::{CatalogError, front_matter, label};
use crate::config::{Discovery, IdPart, ListedId, OneOrMany};
use crate::glob::path_glob;
use crate::model::layout::OUTPUT_ROOT;
use crate::model::{EvalId, ExperimentId, InvalidId, Labels, Pair, PairId};

/// The one experiment of a suite that names none.
const ONLY_EXPERIMENT: &str = "default";
/// Directories that a wildcard does not go into: they hold copies of what lies elsewhere.
const PASSED_OVER: [&str; 3] = [".git", "node_modules", OUTPUT_ROOT];

/// Every experiment with every eval, labels of both joined.
pub(super) fn pairs(
    root: &Utf8Path,
    evals: &Discovery,
    experiments: Option<&Discovery>,
) -> Result<Vec<Pair>, CatalogError> {
    let evals = ids::<EvalId>(root, "suite.evals", evals)?;
    let experiments = match experiments {
        Some(experiments) => ids::<ExperimentId>(root, "suite.experiments", experiments)?,
        None => {
            let only = ListedId {
                id: ONLY_EXPERIMENT.to_owned(),
                labels: BTreeMap::new(),
            };
            listed("suite.experiments", &[only])?
        }
    };
    let mut pairs = Vec::with_capacity(experiments.len() * evals.len());
    for (experiment, experiment_labels) in &experiments {
        for (eval, eval_labels) in &evals {
            let mut labels = eval_labels.clone();
            label::merge(&mut labels, experiment_labels);
            let id = PairId {
                experiment: experiment.clone(),
                eval: eval.clone(),
            };
            pairs.push(Pair { id, labels });
        }
    }
    Ok(pairs)
}

/// An id with its labels.
type Labelled<I> = (I, Labels);

fn ids<I: for<'a> TryFrom<&'a str, Error = InvalidId>>(
    root: &Utf8Path,
    key: &'static str,
    from: &Discovery,
) -> Result<Vec<Labelled<I>>, CatalogError> {
    match from {
        Discovery::List(ids) => listed(key, ids),
        Discovery::Glob { glob, id } => found(root, key, glob, *id),
    }
}

/// Listed ids, in their order.
fn listed<I: for<'a> TryFrom<&'a str, Error = InvalidId>>(
    key: &'static str,
    ids: &[ListedId],
) -> Result<Vec<Labelled<I>>, CatalogError> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut labelled = Vec::with_capacity(ids.len());
    for (index, ListedId { id, labels: given }) in ids.iter().enumerate() {
        let entry = index + 1;
        if let Some(first) = seen.insert(id, entry) {
            return Err(CatalogError::SameId {
                key,
                id: id.clone(),
                first: format!("entry {first}"),
                second: format!("entry {entry}"),
            });
        }
        let mut labels = Labels::default();
        for (name, OneOrMany(values)) in given {
            label::add(&mut labels, name, values.iter().map(String::as_str)).map_err(|source| {
                CatalogError::Label {
                    key,
                    from: format!("entry {entry} (`{id}`)"),
                    source,
                }
            })?;
        }
        let id = I::try_from(id).map_err(|source| CatalogError::Id {
            key,
            from: format!("entry {entry}"),
            source,
        })?;
        labelled.push((id, labels));
    }
    Ok(labelled)
}

/// Ids of files, in the order of ids.
fn found<I: for<'a> TryFrom<&'a str, Error = InvalidId>>(
    root: &Utf8Path,
    key: &'static str,
    glob: &str,
    part: IdPart,
) -> Result<Vec<Labelled<I>>, CatalogError> {
    let mut by_id: BTreeMap<String, Utf8PathBuf> = BTreeMap::new();
    for file in files(root, key, glob)? {
        let id = match part {
            IdPart::Dir => file.parent().and_then(Utf8Path::file_name),
            IdPart::Stem => file.file_stem(),
        };
        let id = id.ok_or_else(|| CatalogError::NoDirectory {
            key,
            file: file.clone(),
        })?;
        if let Some(first) = by_id.get(id) {
            return Err(CatalogError::SameId {
                key,
                id: id.to_owned(),
                first: format!("`{first}`"),
                second: format!("`{file}`"),
            });
        }
        by_id.insert(id.to_owned(), file);
    }
    let labelled = by_id.into_iter().map(|(id, file)| {
        let id = I::try_from(&id).map_err(|source| CatalogError::Id {
            key,
            from: format!("the name of `{file}`"),
            source,
        })?;
        Ok((id, front_matter::labels(root, &file)?))
    });
    labelled.collect()
}

/// The files that the glob matches, in the order of paths.
fn files(root: &Utf8Path, key: &'static str, text: &str) -> Result<Vec<Utf8PathBuf>, CatalogError> {
    let glob = path_glob(text).map_err(|source| CatalogError::Glob { key, source })?;
    let pattern = glob.glob();
    let matcher = glob.compile_matcher();
    let walk = Walk {
        root,
        follow: true,
        deepest: depth(pattern),
        enter: &|directory| {
            let name = directory.file_name().and_then(|name| name.to_str());
            !name.is_some_and(|name| PASSED_OVER.contains(&name))
        },
    };
    let mut files = Vec::new();
    let mut directories = false;
    walk.visit(&fixed_start(pattern), &mut |path, kind| {
        if matcher.is_match(&path) {
            match kind {
                Kind::Directory => directories = true,
                Kind::File | Kind::Link => files.push(utf8(path)?),
            }
        }
        Ok(())
    })?;
    if files.is_empty() && directories {
        return Err(CatalogError::OnlyDirectories {
            key,
            glob: text.trim_end_matches('/').to_owned(),
        });
    }
    files.sort();
    Ok(files)
}
