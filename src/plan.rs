//! The suite's pairs and what was asked for in, a run plan out: selection, shards, concurrency, waves. Runs nothing.

mod budget;
mod concurrency;
mod document;
mod experience;
mod forecast;
mod hindsight;
mod hint;
mod labels;
mod price;
mod scheduled;
mod select;

use crate::config::template::{CommandError, UnknownPlaceholder};
use crate::config::{BaselineConfig, BudgetConfig, Config};
use crate::glob::InvalidGlob;
use crate::model::{Pair, PlannedLimit, PlannedPair, RunPlan, SelectionKind, Strategy};

pub use budget::{amount, left, used};
pub use concurrency::{sandboxes, waves};
pub use document::{PlanDocument, PlannedPairDocument, document};
pub use experience::Experience;
use forecast::Choice;
pub use hindsight::hindsight;
pub use price::cost_of;
pub use scheduled::spec;
use select::Selected;
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
    /// What earlier runs say.
    pub experience: &'a Experience,
    /// Whether every shard of this plan has the very same experience: it comes from a commit.
    pub is_pinned: bool,
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
    /// A limit or gate holds for no pair of the suite, which the configuration names itself.
    #[error("cannot use the label `{wanted}` (`{key}`): the suite has no pair with it{hint}")]
    UnknownLabel {
        /// The key that names it.
        key: &'static str,
        /// The label.
        wanted: String,
        /// A second line with what there is instead.
        hint: String,
    },
    /// More is expected to be used than may be.
    #[error(
        "cannot keep to the budget of {cap} (`{key}`): about {expected} are expected ({range})\nnothing was run; select fewer pairs, take another strategy, or raise the budget"
    )]
    OverBudget {
        /// The key's path.
        key: &'static str,
        /// What may be used.
        cap: String,
        /// What is likely to be used.
        expected: String,
        /// What nine runs in ten stay within.
        range: String,
    },
    /// Nothing tells how much will be used.
    #[error(
        "cannot tell whether the budget of {cap} (`{key}`) will do: no earlier run tells what this one will use\nname a `baseline` that does, or set `budget.allow-unknown: true`: the budget still stops the run"
    )]
    UnknownUse {
        /// The key's path.
        key: &'static str,
        /// What may be used.
        cap: String,
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
    /// A value that no quotes keep as it is where a command has it.
    #[error("cannot use `{key}` for the pair `{pair}`")]
    Unquotable {
        /// The key's path.
        key: &'static str,
        /// The first such pair.
        pair: String,
        /// Where the value would stand.
        #[source]
        source: CommandError,
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
/// has no single label for, a limit or gates for a label that no pair of the suite has, more than the
/// budget.
pub fn build(request: &Request<'_>) -> Result<RunPlan, PlanError> {
    let Request {
        config,
        pairs,
        select,
        capacity,
        experience,
        is_pinned,
    } = request;
    // Every shard has to come to the same parts, which durations that may differ from job to job would not give.
    let durations = is_pinned.then_some(*experience);
    let Selected {
        pairs: selected,
        selection,
        shard: part,
    } = select::select(config, pairs, select, durations)?;
    labels::check(config, &selected)?;
    for gate in &config.gates {
        check_label("gates", &gate.name, &gate.value, config, pairs)?;
    }
    let shard = select.shard.filter(|_| selection.kind == SelectionKind::Shard);
    let settle = |strategy| concurrency::settle(config, strategy, selected.len(), capacity.as_ref(), shard);
    // No attempt takes longer than it may, whatever an earlier one took.
    let longest = (config.attempt.timeout + config.attempt.grace).as_secs_f64();
    let planned = |pair: &&Pair| PlannedPair {
        id: pair.id.clone(),
        labels: pair.labels.clone(),
        predicted_seconds: experience.seconds(&pair.id).map(|seconds| seconds.min(longest)),
    };
    let mut plan = RunPlan {
        suite: config.suite.name.clone(),
        concurrency: settle(config.strategy),
        pairs: selected.iter().map(planned).collect(),
        runs: config.runs,
        strategy: config.strategy,
        on_pass: config.on_pass,
        policy: config.policy,
        produces: config.attempt.produces,
        limits: limits(config, pairs, shard)?,
        budget: budget::share(&config.budget, shard),
        overhead_seconds: experience.overhead(),
        forecast: None,
        selection,
        shard: part.map(|(shard, whole)| shard.planned(whole.iter().map(planned).collect())),
        sandbox: config.sandbox.kind().to_owned(),
        config_hash: config.hash(),
    };
    let choices = [Strategy::Sequential, Strategy::Parallel, Strategy::Adaptive].map(|strategy| {
        let planned = settle(strategy).value;
        let all = concurrency::total(strategy, plan.produces, plan.pairs.len(), plan.runs);
        Choice::new(strategy, planned, all)
    });
    plan.forecast = forecast::forecast(&plan, experience, &choices, longest, &config.price);
    let arms = match config.baseline {
        BaselineConfig::Measure(_) => 2,
        _ => 1,
    };
    let allow_unknown = config.budget.allow_unknown;
    match &plan.shard {
        // A part may well need more than its share of what is enough for the whole.
        Some(part) if !plan.pairs.is_empty() && config.budget != BudgetConfig::default() => {
            let mut whole = RunPlan {
                pairs: part.whole.clone(),
                budget: budget::share(&config.budget, None),
                limits: limits(config, pairs, None)?,
                ..plan.clone()
            };
            whole.concurrency.value = plan.concurrency.value.saturating_mul(part.count);
            whole.forecast = forecast::forecast(&whole, experience, &[], longest, &config.price);
            budget::check(&whole, arms, allow_unknown)?;
        }
        _ => budget::check(&plan, arms, allow_unknown)?,
    }
    Ok(plan)
}

/// The limits per label.
fn limits(config: &Config, pairs: &[Pair], shard: Option<Shard>) -> Result<Vec<PlannedLimit>, PlanError> {
    let limits = config.limits.iter().map(|limit| {
        let planned = PlannedLimit {
            name: limit.name.clone(),
            value: limit.value.clone(),
            concurrency: shard.map_or(limit.concurrency, |shard| shard.share(limit.concurrency)),
        };
        check_label("limits", &limit.name, &limit.value, config, pairs).map(|()| planned)
    });
    limits.collect()
}

/// A label that the suite does not have is a slip of the pen, and what is said of it would hold for nothing. Pairs that
/// are given may well be those that do not have it.
fn check_label(
    key: &'static str,
    name: &str,
    value: &str,
    config: &Config,
    pairs: &[Pair],
) -> Result<(), PlanError> {
    let is_there = pairs.iter().any(|pair| pair.labels.has(name, value));
    if config.suite.is_given || pairs.is_empty() || is_there {
        return Ok(());
    }
    let labels = pairs.iter().flat_map(|pair| &pair.labels.0);
    let known: Vec<String> = labels
        .flat_map(|(name, values)| values.iter().map(move |value| format!("{name}={value}")))
        .collect();
    let wanted = format!("{name}={value}");
    let hint = hint::nearest(&wanted, known.iter().map(String::as_str));
    Err(PlanError::UnknownLabel { key, wanted, hint })
}

#[cfg(test)]
mod tests;
