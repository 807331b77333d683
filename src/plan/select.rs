//! Which pairs of the suite are wanted: by name, by label, by changed files, by shard.

use std::collections::{BTreeMap, HashSet};
use std::str::FromStr;

use camino::Utf8PathBuf;

use super::experience::Experience;
use super::{PlanError, hint};
use crate::config::Config;
use crate::glob::{IdGlob, id_glob};
use crate::model::{Labels, Pair, PlannedPair, PlannedShard, Selection, SelectionKind};

mod changed;

/// What the selection flags say. Every part that is given has to hold; an empty one holds for every pair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Select {
    /// Globs on experiments, any of which is enough.
    pub experiments: Vec<String>,
    /// Globs on evals, any of which is enough.
    pub evals: Vec<String>,
    /// Label names with globs on their values. Of one name any is enough; every name has to hold.
    pub labels: Vec<(String, String)>,
    /// The files that changed, relative to the configuration's root: only pairs that depend on one are kept.
    pub changed: Option<Vec<Utf8PathBuf>>,
    /// Which part of what is selected.
    pub shard: Option<Shard>,
}

/// Comma-separated globs, as one flag or variable holds them. A comma in braces or brackets belongs to its glob,
/// and empty parts are not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Globs(pub Vec<String>);

impl FromStr for Globs {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(split(text).map(str::to_owned).collect()))
    }
}

/// Comma-separated `NAME=VALUE`, each VALUE a glob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelGlobs(pub Vec<(String, String)>);

/// Text that is not `NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a label: expected NAME=VALUE, for instance `provider=anthropic`")]
pub struct InvalidLabelGlobs(String);

impl FromStr for LabelGlobs {
    type Err = InvalidLabelGlobs;

    fn from_str(text: &str) -> Result<Self, InvalidLabelGlobs> {
        let label = |part: &str| {
            part.split_once('=')
                .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
                .filter(|(name, value)| !name.is_empty() && !value.is_empty())
                .ok_or_else(|| InvalidLabelGlobs(part.to_owned()))
        };
        split(text).map(label).collect::<Result<_, _>>().map(Self)
    }
}

fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let mut escaped = false;
    text.split(move |character: char| {
        if std::mem::take(&mut escaped) {
            return false;
        }
        match character {
            '\\' => escaped = true,
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
}

/// The `index`-th of `count` parts that together are the whole selection and share no pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    count: usize,
}

/// Text that is no shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a shard: expected K/N with K from 1 to N, for instance `2/3`")]
pub struct InvalidShard(String);

impl FromStr for Shard {
    type Err = InvalidShard;

    fn from_str(text: &str) -> Result<Self, InvalidShard> {
        // A sign is a number to `parse`, and no part of a shard.
        let number = |digits: &str| {
            let digits = digits.trim();
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse::<usize>().ok().filter(|_| plain)
        };
        text.split_once('/')
            .and_then(|(index, count)| Some((number(index)?, number(count)?)))
            .filter(|(index, count)| (1..=*count).contains(index))
            .map(|(index, count)| Self { index, count })
            .ok_or_else(|| InvalidShard(text.to_owned()))
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl Shard {
    /// As a plan has it, beside the pairs that all parts have together.
    pub(super) fn planned(self, whole: Vec<PlannedPair>) -> PlannedShard {
        PlannedShard {
            index: self.index,
            count: self.count,
            whole,
        }
    }

    /// Its share of a number that all parts have together, at least 1.
    pub(super) fn share(self, whole: usize) -> usize {
        let more = usize::from(self.index <= whole % self.count);
        (whole / self.count + more).max(1)
    }

    /// How much of an amount that all parts have together is its own.
    pub(super) fn part(self) -> f64 {
        1.0 / self.count as f64
    }

    /// Which of so many pairs are in it. Parts take turns, so that neighbours, which are often alike in time, are
    /// spread; with durations each pair, the longest first, goes to the part that has least to do so far.
    fn holds(self, durations: Option<&[f64]>, pairs: usize) -> Vec<bool> {
        let Some(durations) = durations else {
            return (0..pairs)
                .map(|position| position % self.count == self.index - 1)
                .collect();
        };
        let mut longest_first: Vec<usize> = (0..pairs).collect();
        longest_first.sort_by(|one, other| durations[*other].total_cmp(&durations[*one]));
        // Of more parts than there are pairs, those beyond have none.
        let count = self.count.min(pairs);
        let mut parts = vec![(0.0, 0_usize); count];
        let mut holds = vec![false; pairs];
        for pair in longest_first {
            let least = (0..count).min_by(|one, other| {
                let ((time, number), (other_time, other_number)) = (parts[*one], parts[*other]);
                f64::total_cmp(&time, &other_time).then(number.cmp(&other_number))
            });
            let part = least.unwrap_or_default();
            parts[part].0 += durations[pair];
            parts[part].1 += 1;
            holds[pair] = part == self.index - 1;
        }
        holds
    }
}

/// What is wanted of a suite.
pub(super) struct Selected<'a> {
    /// The pairs, in their order.
    pub(super) pairs: Vec<&'a Pair>,
    /// How many that is of how many.
    pub(super) selection: Selection,
    /// What they are a part of, where they are.
    pub(super) shard: Option<(Shard, Vec<&'a Pair>)>,
}

/// The pairs that are wanted, in their order, and how many that is of how many.
pub(super) fn select<'a>(
    config: &Config,
    pairs: &'a [Pair],
    select: &Select,
    durations: Option<&Experience>,
) -> Result<Selected<'a>, PlanError> {
    let experiments = id_globs(&select.experiments)?;
    let evals = id_globs(&select.evals)?;
    let labels = label_globs(&select.labels)?;
    if !pairs.is_empty() {
        each_matches("experiment", &experiments, || {
            pairs.iter().map(|pair| pair.id.experiment.as_str())
        })?;
        each_matches("eval", &evals, || pairs.iter().map(|pair| pair.id.eval.as_str()))?;
        labels_match(&labels, pairs)?;
    }
    let changed = match &select.changed {
        Some(files) => Some(changed::changed(config, pairs, files)?),
        None => None,
    };

    let mut selected: Vec<&Pair> = pairs
        .iter()
        .filter(|pair| any(&experiments, pair.id.experiment.as_str()))
        .filter(|pair| any(&evals, pair.id.eval.as_str()))
        .filter(|pair| labels.iter().all(|(name, globs)| has(&pair.labels, name, globs)))
        .filter(|pair| changed.as_ref().is_none_or(|changed| changed.holds(pair)))
        .collect();
    let mut kind = if selected.len() == pairs.len() {
        SelectionKind::All
    } else {
        SelectionKind::Subset
    };
    let mut part = None;
    if let Some(shard) = select.shard.filter(|shard| shard.count > 1) {
        part = Some((shard, selected.clone()));
        let durations = durations.and_then(|experience| predicted(&selected, experience));
        let mut held = shard.holds(durations.as_deref(), selected.len()).into_iter();
        selected.retain(|_| held.next().unwrap_or(false));
        kind = SelectionKind::Shard;
    }
    let selection = Selection {
        kind,
        selected: selected.len(),
        of: pairs.len(),
    };
    Ok(Selected {
        pairs: selected,
        selection,
        shard: part,
    })
}

/// Seconds of each pair, the longest known where its own are not; `None` where none are.
fn predicted(pairs: &[&Pair], experience: &Experience) -> Option<Vec<f64>> {
    let known: Vec<Option<f64>> = pairs.iter().map(|pair| experience.seconds(&pair.id)).collect();
    let longest = known.iter().copied().flatten().reduce(f64::max)?;
    Some(
        known
            .into_iter()
            .map(|seconds| seconds.unwrap_or(longest))
            .collect(),
    )
}

fn id_globs(globs: &[String]) -> Result<Vec<IdGlob>, PlanError> {
    globs.iter().map(|glob| Ok(id_glob(glob)?)).collect()
}

fn label_globs(labels: &[(String, String)]) -> Result<BTreeMap<&str, Vec<IdGlob>>, PlanError> {
    let mut by_name: BTreeMap<&str, Vec<IdGlob>> = BTreeMap::new();
    for (name, glob) in labels {
        by_name.entry(name).or_default().push(id_glob(glob)?);
    }
    Ok(by_name)
}

fn any(globs: &[IdGlob], name: &str) -> bool {
    globs.is_empty() || globs.iter().any(|glob| glob.matches(name))
}

fn has(labels: &Labels, name: &str, globs: &[IdGlob]) -> bool {
    labels.values(name).iter().any(|value| any(globs, value))
}

/// A glob that names nothing is a slip of the pen, and would quietly measure less than was asked for.
fn each_matches<'a, N: Iterator<Item = &'a str>>(
    what: &str,
    globs: &[IdGlob],
    names: impl Fn() -> N,
) -> Result<(), PlanError> {
    for glob in globs {
        if !names().any(|name| glob.matches(name)) {
            return Err(PlanError::NothingMatches {
                what: what.to_owned(),
                wanted: glob.as_str().to_owned(),
                hint: hint::nearest(glob.as_str(), names()),
            });
        }
    }
    Ok(())
}

fn labels_match(labels: &BTreeMap<&str, Vec<IdGlob>>, pairs: &[Pair]) -> Result<(), PlanError> {
    for (name, globs) in labels {
        let values: HashSet<&str> = pairs
            .iter()
            .flat_map(|pair| pair.labels.values(name))
            .map(String::as_str)
            .collect();
        if values.is_empty() {
            let known = pairs
                .iter()
                .flat_map(|pair| pair.labels.0.keys())
                .map(String::as_str);
            return Err(PlanError::NothingMatches {
                what: "label".to_owned(),
                wanted: (*name).to_owned(),
                hint: hint::nearest(name, known),
            });
        }
        for glob in globs {
            if !values.iter().any(|value| glob.matches(value)) {
                return Err(PlanError::NothingMatches {
                    what: "label".to_owned(),
                    wanted: format!("{name}={}", glob.as_str()),
                    hint: hint::nearest(glob.as_str(), values.iter().copied()),
                });
            }
        }
    }
    Ok(())
}
