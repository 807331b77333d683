//! `summary.json`: the run, machine-readable and versioned.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::attempt::{AttemptRecord, CancelReason};
use super::comparison::Comparison;
use super::forecast::Scheduling;
use super::id::{EvalId, ExperimentId, Labels, PairId};
use super::plan::Selection;
use super::policy::{Policy, Strategy, policy_text};

/// The value of `schema` in a summary that this version writes.
pub const SUMMARY_SCHEMA: &str = "evalwave.summary/1";

/// What is decided of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It passed by the policy.
    Pass,
    /// It failed by the policy.
    Fail,
    /// No attempt gave a result, or too few did.
    Error,
    /// It was not run to an end: the run was cancelled first.
    NotRun,
}

/// How a whole run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Conclusion {
    /// Complete, and no gate failed.
    Success,
    /// A gate failed.
    Failure,
    /// Some pair has no verdict.
    Incomplete,
    /// Nothing was measured.
    Empty,
    /// It was cancelled.
    Cancelled,
    /// There was nothing to run, and that is fine.
    Skipped,
}

/// Who wrote the document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// `evalwave`.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Tool {
    /// This build.
    pub fn this() -> Self {
        Self {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// Facts about the run as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunFacts {
    /// Unique name of the run.
    pub id: String,
    /// When it started.
    #[schemars(with = "String")]
    pub started_at: Timestamp,
    /// From its start to its end.
    pub wall_seconds: f64,
    /// Every planned pair is pass or fail.
    pub complete: bool,
    /// How it ended.
    pub conclusion: Conclusion,
    /// Why it ended before its plan was done, where it did: it was cancelled, its first tries all died in the same way,
    /// its budget was used up.
    #[serde(default)]
    pub reason: Option<CancelReason>,
    /// When attempts started.
    pub strategy: Strategy,
    /// Attempts of each pair.
    pub runs: u32,
    /// How many at once.
    pub concurrency: usize,
    /// How attempts decide a pair, as text.
    #[serde(with = "policy_text")]
    #[schemars(with = "String")]
    pub policy: Policy,
    /// The sandbox kind.
    pub sandbox: String,
    /// The suite's name.
    pub suite: String,
    /// The commit that was measured, where it is known.
    #[serde(default)]
    pub commit: Option<String>,
    /// SHA-256 of what decides the results.
    pub config_hash: String,
    /// Where the concurrency came from, in words.
    pub concurrency_reason: String,
    /// How much of the suite was run.
    pub selection: Selection,
    /// The page of the workflow run that it was a part of.
    #[serde(default)]
    pub url: Option<String>,
}

/// Counts of attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptTotals {
    /// Pairs x runs.
    pub planned: usize,
    /// That gave a result.
    pub graded: usize,
    /// That passed.
    pub passed: usize,
    /// That failed, timed out ones apart.
    pub failed: usize,
    /// That ran past their limit without a result.
    pub timed_out: usize,
    /// That errored for good.
    pub errored: usize,
    /// That were stopped or never started.
    pub cancelled: usize,
    /// That needed more than one try.
    pub retried: usize,
}

/// Counts and rates of the whole run. A rate is `None` where there is nothing to take it over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Planned pairs.
    pub pairs: usize,
    /// Pairs with the verdict pass.
    pub passed: usize,
    /// Pairs with the verdict fail.
    pub failed: usize,
    /// Pairs with the verdict error.
    pub errored: usize,
    /// Pairs with the verdict `not_run`.
    pub not_run: usize,
    /// Passed over passed + failed.
    pub pass_rate: Option<f64>,
    /// Attempts.
    pub attempts: AttemptTotals,
    /// Share of pairs with at least one passing attempt, over pairs with a result.
    #[serde(default)]
    pub any_pass_rate: Option<f64>,
    /// Passed over graded attempts; `None` where the strategy stopped a pair early.
    pub attempt_pass_rate: Option<f64>,
    /// Share of pairs whose every attempt passed; `None` where the strategy stopped a pair early.
    pub all_pass_rate: Option<f64>,
    /// How many pairs passed k of n graded attempts, by `k/n`.
    pub distribution: BTreeMap<String, usize>,
    /// Seconds that sandboxes were held, all tries together.
    pub sandbox_seconds: f64,
    /// Sum over the attempts that report it; `None` where none does.
    pub cost_usd: Option<f64>,
    /// Input and output tokens of the attempts that report them; `None` where none does.
    pub tokens: Option<u64>,
}

/// The JSON Schema of the document.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Summary).to_value()
}

/// A pair, decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairSummary {
    /// The agent set-up.
    pub experiment: ExperimentId,
    /// The task.
    pub eval: EvalId,
    /// What it is marked with.
    #[serde(default)]
    pub labels: Labels,
    /// What is decided.
    pub verdict: Verdict,
    /// Attempts that passed.
    pub passed_attempts: u32,
    /// Attempts that gave a result.
    pub graded_attempts: u32,
    /// Attempts that were planned.
    pub planned_attempts: u32,
    /// Index of the attempt whose tree stands for the pair; `None` where none gave a result.
    pub representative: Option<u32>,
    /// Seconds that its sandboxes were held, all tries together.
    pub seconds: f64,
    /// No result of a lost attempt could have changed the verdict.
    pub firm: bool,
    /// What the baseline has of it; `None` where it has nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Before>,
    /// Its attempts, in order.
    pub attempts: Vec<AttemptRecord>,
}

/// A pair in the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Before {
    /// What was decided there.
    pub verdict: Verdict,
    /// Passed of graded attempts, as `k/n`; the verdict where attempts are not known.
    pub result: String,
    /// Seconds that its commands took on average, where known.
    pub seconds: Option<f64>,
}

impl PairSummary {
    /// Which pair.
    pub fn id(&self) -> PairId {
        PairId {
            experiment: self.experiment.clone(),
            eval: self.eval.clone(),
        }
    }
}

/// A pair that is known to go both ways: it runs and is shown, and does not gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quarantined {
    /// The agent set-up.
    pub experiment: ExperimentId,
    /// The task.
    pub eval: EvalId,
    /// The last day on which it does not gate; `None` is for good.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub until: Option<jiff::civil::Date>,
    /// Why, in the user's words.
    #[serde(default)]
    pub why: Option<String>,
}

/// What a gate found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateResult {
    /// The gate, as written in `fail-on`.
    pub gate: String,
    /// Whether it failed.
    pub failed: bool,
    /// One sentence.
    pub why: String,
}

impl GateResult {
    /// Whether it is the gate `incomplete`, over all pairs or over those with a label (`incomplete (tier=critical)`).
    pub fn is_incomplete(&self) -> bool {
        let name = self.gate.split_once(" (").map_or(&*self.gate, |(name, _)| name);
        name == "incomplete"
    }
}

/// What a summary says beyond the run's attempts: what was found when the run had ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each field is the summary's of the same name")]
pub struct Findings {
    pub conclusion: Conclusion,
    pub url: Option<String>,
    pub scheduling: Option<Scheduling>,
    pub comparison: Option<Comparison>,
    pub gates: Vec<GateResult>,
    pub quarantined: Vec<Quarantined>,
    pub notices: Vec<String>,
    /// What the baseline had of each pair, in plan order; empty without one.
    #[serde(default)]
    pub before: Vec<Option<Before>>,
}

impl Summary {
    /// What it says beyond the run's attempts.
    pub fn findings(&self) -> Findings {
        Findings {
            conclusion: self.run.conclusion,
            url: self.run.url.clone(),
            scheduling: self.scheduling.clone(),
            comparison: self.comparison.clone(),
            gates: self.gates.clone(),
            quarantined: self.quarantined.clone(),
            notices: self.notices.clone(),
            before: match self.comparison {
                Some(_) => self.pairs.iter().map(|pair| pair.before.clone()).collect(),
                None => Vec::new(),
            },
        }
    }

    /// The same with these findings in the place of its own.
    pub fn with_findings(mut self, findings: Findings) -> Self {
        let Findings {
            conclusion,
            url,
            scheduling,
            comparison,
            gates,
            quarantined,
            notices,
            before,
        } = findings;
        for (pair, before) in self.pairs.iter_mut().zip(before) {
            pair.before = before;
        }
        Self {
            run: RunFacts {
                conclusion,
                url,
                ..self.run
            },
            scheduling,
            comparison,
            gates,
            quarantined,
            notices,
            ..self
        }
    }
}

/// The whole document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// [`SUMMARY_SCHEMA`].
    pub schema: String,
    /// Who wrote it.
    pub tool: Tool,
    /// The run.
    pub run: RunFacts,
    /// Its counts.
    pub totals: Totals,
    /// Its pairs, in plan order.
    pub pairs: Vec<PairSummary>,
    /// How it was scheduled; `None` where nothing ran.
    #[serde(default)]
    pub scheduling: Option<Scheduling>,
    /// Against the baseline; `None` without one.
    #[serde(default)]
    pub comparison: Option<Comparison>,
    /// What each gate found.
    #[serde(default)]
    pub gates: Vec<GateResult>,
    /// Pairs in quarantine, in plan order.
    #[serde(default)]
    pub quarantined: Vec<Quarantined>,
    /// What a reader should know besides: why there is no baseline, why concurrency was cut.
    #[serde(default)]
    pub notices: Vec<String>,
}
