//! The suite's pairs and what was asked for in, a run plan out: selection, shards, concurrency, waves. Runs nothing.

mod concurrency;
mod document;
mod hint;
mod labels;
mod select;

use crate::config::Config;
use crate::config::template::UnknownPlaceholder;
use crate::glob::InvalidGlob;
use crate::model::{Pair, PlannedPair, RunPlan};

pub use concurrency::waves;
pub use document::{PlanDocument, PlannedPairDocument, document};
pub use select::{Globs, InvalidLabelGlobs, InvalidShard, LabelGlobs, Select, Shard};

/// What a plan is made of.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// How attempts are made and decided.
    pub config: &'a Config,
    /// The whole suite, in plan order.
    pub pairs: &'a [Pair],
    /// Which of its pairs are wanted.
    pub select: &'a Select,
    /// Most sandboxes that the engine can run at once, and why, in words that follow "bounded by".
    pub capacity: Option<(usize, String)>,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A glob of the selection is none.
    #[error("cannot read the selection")]
    Glob(#[from] InvalidGlob),
    /// A glob of `suite.changed` is none.
    #[error("cannot use `suite.changed`")]
    ChangedGlob(#[source] InvalidGlob),
    /// A glob or label name of the selection names nothing that the suite has.
    #[error("cannot select the {what} `{wanted}`: the suite has none{hint}")]
    NothingMatches {
        /// `experiment`, `eval` or `label`.
        what: String,
        /// What was asked for.
        wanted: String,
        /// A second line with what there is instead.
        hint: String,
    },
    /// Changed files were given, and nothing says which files an eval has.
    #[error(
        "cannot tell which evals changed: `suite.changed.evals` is not set\nset it to the files of one eval, for instance `evals/{{eval}}/**`"
    )]
    ChangedUnset,
    /// A glob of `suite.changed` uses a placeholder that it cannot have.
    #[error("cannot use `{key}`: it may only hold the placeholder `{{{allowed}}}`")]
    ChangedPlaceholder {
        /// The key's path.
        key: &'static str,
        /// The one placeholder that has a value there.
        allowed: &'static str,
        /// The one that was used.
        #[source]
        source: UnknownPlaceholder,
    },
    /// A template uses a label that a pair does not have.
    #[error("cannot fill `{{{name}}}` in `{key}`: the pair `{pair}` has no such label{hint}")]
    NoLabel {
        /// The key's path.
        key: &'static str,
        /// The placeholder.
        name: String,
        /// The first such pair.
        pair: String,
        /// A second line with what there is instead.
        hint: String,
    },
    /// A path that an id or label leads out of the workspace.
    #[error(
        "cannot use `{path}` as `{key}` of the pair `{pair}`: it leads out of the workspace\nrename what leads there, or leave its placeholder out"
    )]
    LeavesWorkspace {
        /// The key's path.
        key: &'static str,
        /// The path with its values.
        path: String,
        /// The first such pair.
        pair: String,
    },
    /// A template uses a label that has several values.
    #[error(
        "cannot fill `{{{name}}}` in `{key}`: the pair `{pair}` has several values for it ({values})\na placeholder takes a label with one value"
    )]
    ManyValues {
        /// The key's path.
        key: &'static str,
        /// The placeholder.
        name: String,
        /// The first such pair.
        pair: String,
        /// Its values.
        values: String,
    },
}

/// Settles what a run is going to do. A selection that leaves nothing is a plan without pairs, no error.
///
/// # Errors
/// A selection that names nothing, changed files without `suite.changed.evals`, a placeholder that a selected pair
/// has no single label for.
pub fn build(request: &Request<'_>) -> Result<RunPlan, PlanError> {
    let Request {
        config,
        pairs,
        select,
        capacity,
    } = request;
    let (selected, selection) = select::select(config, pairs, select)?;
    labels::check(config, &selected)?;
    Ok(RunPlan {
        suite: config.suite.name.clone(),
        concurrency: concurrency::settle(config, selected.len(), capacity.as_ref()),
        pairs: selected
            .into_iter()
            .map(|pair| PlannedPair {
                id: pair.id.clone(),
                labels: pair.labels.clone(),
                predicted_seconds: None,
            })
            .collect(),
        runs: config.runs,
        strategy: config.strategy,
        on_pass: config.on_pass,
        policy: config.policy,
        produces: config.attempt.produces,
        selection,
        sandbox: config.sandbox.kind().to_owned(),
        config_hash: config.hash(),
    })
}

#[cfg(test)]
mod tests;
