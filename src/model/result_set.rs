//! Results that exist already, from any source, in the one form that is compared.

use jiff::Timestamp;

use super::attempt::{CancelReason, Outcome};
use super::id::{Labels, PairId};
use super::plan::{Selection, SelectionKind};
use super::policy::Policy;
use super::reading::Usage;
use super::summary::{PairSummary, Summary, Verdict};

/// One attempt of a pair, as far as a comparison needs it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// From 1.
    pub index: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// It was stopped because its pair was decided.
    pub stopped_early: bool,
    /// How long its command took, in seconds, where known.
    pub command_seconds: Option<f64>,
    /// How long its fresh sandbox was held besides, in seconds, where known.
    pub overhead_seconds: Option<f64>,
    /// 0 to 1, where the format has scores.
    pub score: Option<f64>,
    /// What it used, where known.
    pub usage: Option<Usage>,
}

/// One pair of a result set.
#[derive(Clone, Debug, PartialEq)]
pub struct PairResult {
    /// Which pair.
    pub id: PairId,
    /// What it is marked with.
    pub labels: Labels,
    /// What was decided.
    pub verdict: Verdict,
    /// No lost attempt could have changed the verdict.
    pub firm: bool,
    /// Its attempts in order, where they are known one by one.
    pub samples: Option<Vec<Sample>>,
    /// How many attempts gave a result, where at least that is known.
    pub graded: Option<u32>,
}

/// A set of results with what is known of the run that made it.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultSet {
    /// Where it came from, as the user named it.
    pub source: String,
    /// How attempts decided a pair, where known.
    pub policy: Option<Policy>,
    /// Attempts of each pair, where known.
    pub runs: Option<u32>,
    /// Commit that was measured, where known.
    pub commit: Option<String>,
    /// Branch or tag, where known.
    pub reference: Option<String>,
    /// When the run started, where known.
    pub started_at: Option<Timestamp>,
    /// How long the run took, in seconds, where known.
    pub wall_seconds: Option<f64>,
    /// A page about the run.
    pub run_url: Option<String>,
    /// How much of the suite it covers, where known.
    pub selection: Option<Selection>,
    /// The run is known to have been stopped before its plan was done, or to lack a part of it.
    pub is_cut_short: bool,
    /// Its samples tell errors and time-outs from failures.
    pub tells_errors: bool,
    /// Its pairs; each id once.
    pub pairs: Vec<PairResult>,
}

impl ResultSet {
    /// A set of which nothing but its pairs is known.
    pub fn of_pairs(source: &str, pairs: Vec<PairResult>) -> Self {
        Self {
            source: source.to_owned(),
            policy: None,
            runs: None,
            commit: None,
            reference: None,
            started_at: None,
            wall_seconds: None,
            run_url: None,
            selection: None,
            is_cut_short: false,
            tells_errors: false,
            pairs,
        }
    }

    /// The results of a run of ours.
    pub fn of_summary(source: &str, summary: &Summary) -> Self {
        let run = &summary.run;
        Self {
            source: source.to_owned(),
            policy: Some(run.policy),
            runs: Some(run.runs),
            commit: run.commit.clone(),
            reference: None,
            started_at: Some(run.started_at),
            wall_seconds: Some(run.wall_seconds),
            run_url: run.url.clone(),
            selection: Some(run.selection),
            is_cut_short: run.reason == Some(CancelReason::Budget),
            tells_errors: true,
            pairs: summary.pairs.iter().map(PairResult::of_summary).collect(),
        }
    }

    /// Whether the set is a part of its suite only.
    pub fn is_partial_selection(&self) -> bool {
        self.selection
            .is_some_and(|selection| selection.kind != SelectionKind::All)
    }
}

impl PairResult {
    fn of_summary(pair: &PairSummary) -> Self {
        let samples = pair
            .attempts
            .iter()
            .map(|attempt| Sample {
                index: attempt.index,
                outcome: attempt.outcome,
                stopped_early: attempt.reason == Some(CancelReason::Decided),
                command_seconds: attempt.phases.command,
                overhead_seconds: attempt.overhead_seconds(),
                score: attempt.score,
                usage: attempt.usage,
            })
            .collect();
        Self {
            id: pair.id(),
            labels: pair.labels.clone(),
            verdict: pair.verdict,
            firm: pair.firm,
            samples: Some(samples),
            graded: Some(pair.graded_attempts),
        }
    }
}
