//! What each gate of `fail-on` finds in a run and its comparison. Does not know exit codes.

use crate::model::comparison::{ComparisonVerdict, Flip};
use crate::model::summary::GateResult;
use crate::model::{Comparison, Gate, Outcome, PairId, ResultSet, Verdict};

use super::verdict::sentence;

/// Most pairs that a sentence names.
const MOST_NAMED: usize = 3;

/// A share that misses a limit by less than this is at the limit: shares are rounded, and decimals are not binary.
const AT_THE_LIMIT: f64 = 1e-9;

/// What gates ask of a run, whether it is one of ours or only its results are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateFacts {
    /// Pairs of the run.
    pub pairs: usize,
    /// Pairs that passed.
    pub passed: usize,
    /// Pairs that failed.
    pub failed: usize,
    /// Pairs without a verdict, in their order.
    pub without_verdict: Vec<PairId>,
    /// The run was stopped by its budget before its plan was done.
    pub is_cut_short: bool,
    /// Every flip was to be tried again before it counts.
    pub confirms: bool,
    /// Attempts that errored for good; `None` where attempts are not known one by one.
    pub errored_attempts: Option<usize>,
}

impl GateFacts {
    /// The facts of a run's results. Errored attempts are known once one is seen, or every attempt is.
    pub fn of_results(results: &ResultSet) -> Self {
        let samples = results
            .pairs
            .iter()
            .flat_map(|pair| pair.samples.iter().flatten());
        let errored = samples
            .filter(|sample| sample.outcome == Outcome::Errored)
            .count();
        let all_known = results.pairs.iter().all(|pair| pair.samples.is_some());
        let pairs = results.pairs.iter().map(|pair| (pair.id.clone(), pair.verdict));
        Self {
            is_cut_short: results.is_cut_short,
            ..Self::new(pairs, (errored > 0 || all_known).then_some(errored))
        }
    }

    /// Passed over passed + failed; `None` where no pair has a verdict.
    pub fn pass_rate(&self) -> Option<f64> {
        let decided = self.passed + self.failed;
        (decided > 0).then(|| self.passed as f64 / decided as f64)
    }

    fn new(pairs: impl Iterator<Item = (PairId, Verdict)>, errored_attempts: Option<usize>) -> Self {
        let mut facts = Self {
            pairs: 0,
            passed: 0,
            failed: 0,
            without_verdict: Vec::new(),
            is_cut_short: false,
            confirms: false,
            errored_attempts,
        };
        for (id, verdict) in pairs {
            facts.pairs += 1;
            match verdict {
                Verdict::Pass => facts.passed += 1,
                Verdict::Fail => facts.failed += 1,
                Verdict::Error | Verdict::NotRun => facts.without_verdict.push(id),
            }
        }
        facts
    }
}

/// What each gate finds, in the order given, with one sentence why: lower-case, without a full stop.
///
/// Without a comparison, gates that need one do not fail, but `no-baseline` does. Once `never` is among the gates, none
/// fails.
pub fn evaluate(gates: &[Gate], facts: &GateFacts, comparison: Option<&Comparison>) -> Vec<GateResult> {
    let never = gates.contains(&Gate::Never);
    gates
        .iter()
        .map(|gate| {
            let (found, why) = finding(*gate, facts, comparison);
            let why = if found && never {
                format!("{why}, which `never` lets pass")
            } else {
                why
            };
            GateResult {
                gate: gate.to_string(),
                failed: found && !never,
                why,
            }
        })
        .collect()
}

/// Whether the gate would fail, and why.
fn finding(gate: Gate, facts: &GateFacts, comparison: Option<&Comparison>) -> (bool, String) {
    match (gate, comparison) {
        (Gate::Never, _) => (false, "nothing fails the run".to_owned()),
        (Gate::Incomplete, _) => incomplete(facts),
        (Gate::Error, _) => error(facts),
        (Gate::Below(limit), _) => below(limit, facts),
        (_, None) => (gate == Gate::NoBaseline, "no baseline to compare with".to_owned()),
        (Gate::NoBaseline, Some(comparison)) => {
            (false, format!("compared with {}", comparison.baseline.source))
        }
        (Gate::Regression, Some(comparison)) => regression(comparison, facts.confirms),
        (Gate::Significant, Some(comparison)) => (
            matches!(
                comparison.verdict,
                ComparisonVerdict::Regressed | ComparisonVerdict::Mixed
            ),
            sentence(comparison),
        ),
        (Gate::Inconclusive, Some(comparison)) => (
            comparison.verdict == ComparisonVerdict::Inconclusive,
            sentence(comparison),
        ),
        (Gate::Drop(limit), Some(comparison)) => drop_of_rate(limit, comparison),
        (Gate::NotProven(limit), Some(comparison)) => not_proven(limit, comparison),
    }
}

fn incomplete(facts: &GateFacts) -> (bool, String) {
    let missing = &facts.without_verdict;
    let why = match missing.len() {
        0 if facts.is_cut_short => format!(
            "{} a verdict, but the run was stopped before every attempt was made",
            have(facts.pairs, "pair")
        ),
        0 => format!("{} a verdict", have(facts.pairs, "pair")),
        1 => format!("1 of {} pairs has no verdict: {}", facts.pairs, names(missing)),
        many => format!(
            "{many} of {} pairs have no verdict: {}",
            facts.pairs,
            names(missing)
        ),
    };
    (facts.is_cut_short || !missing.is_empty(), why)
}

fn error(facts: &GateFacts) -> (bool, String) {
    match facts.errored_attempts {
        None => (false, "the attempts are not known one by one".to_owned()),
        Some(0) => (false, "no attempt errored for good".to_owned()),
        Some(1) => (true, "1 attempt errored for good".to_owned()),
        Some(many) => (true, format!("{many} attempts errored for good")),
    }
}

fn below(limit: f64, facts: &GateFacts) -> (bool, String) {
    let Some(rate) = facts.pass_rate() else {
        // A limit that nothing was measured against was not kept, unless there was nothing to measure.
        return (
            facts.pairs > 0,
            "no pair has a verdict, so there is no pass rate".to_owned(),
        );
    };
    let decided = facts.passed + facts.failed;
    let why = format!(
        "{} of {decided} pairs passed, {} %, and the limit is {} %",
        facts.passed,
        hundredths(rate),
        hundredths(limit)
    );
    (rate < limit - AT_THE_LIMIT, why)
}

/// A flip that was to be tried again and has no fresh verdict counts: it is not known to be chance.
fn regression(comparison: &Comparison, confirms: bool) -> (bool, String) {
    let flips = &comparison.flips.pass_to_fail;
    let counts = |flip: &&Flip| !flip.flaky && flip.confirmed != Some(false);
    let counted: Vec<&Flip> = flips.iter().filter(counts).collect();
    let id = |flip: &&Flip| PairId {
        experiment: flip.experiment.clone(),
        eval: flip.eval.clone(),
    };
    let named = || names(&counted.iter().map(id).collect::<Vec<PairId>>());
    let unanswered = counted.iter().filter(|flip| flip.confirmed.is_none()).count();
    let unchecked = match unanswered {
        0 => String::new(),
        _ if !confirms => String::new(),
        1 if counted.len() == 1 => "; it could not be confirmed".to_owned(),
        some if some == counted.len() => "; none of them could be confirmed".to_owned(),
        some => format!("; {some} of them could not be confirmed"),
    };
    let others = flips.len() - counted.len();
    let of = comparison.compared;
    let why = match (counted.len(), others) {
        (0, 0) if of == 0 => "no pair has a firm verdict on both sides".to_owned(),
        (0, 0) => format!("no PASS→FAIL in the {of} pairs compared"),
        (0, others) => {
            format!("{others} PASS→FAIL in the {of} pairs compared, all of them flaky or not reproduced")
        }
        (many, 0) => format!(
            "{many} PASS→FAIL in the {of} pairs compared: {}{unchecked}",
            named()
        ),
        (many, others) => format!(
            "{many} PASS→FAIL in the {of} pairs compared, besides {others} flaky or not reproduced: {}{unchecked}",
            named()
        ),
    };
    (!counted.is_empty(), why)
}

fn drop_of_rate(limit: f64, comparison: &Comparison) -> (bool, String) {
    let Some(delta) = comparison.pass_rate.delta else {
        return (false, "no pair has a firm verdict on both sides".to_owned());
    };
    let limit_text = hundredths(limit);
    let why = if delta < 0.0 {
        format!(
            "the pass rate fell by {} pp, and the limit is {limit_text} pp",
            hundredths(-delta)
        )
    } else {
        format!("the pass rate did not fall, and the limit is {limit_text} pp")
    };
    (delta < -limit - AT_THE_LIMIT, why)
}

fn not_proven(limit: f64, comparison: &Comparison) -> (bool, String) {
    let limit_text = hundredths(limit);
    let Some(bound) = comparison.test.lower_bound else {
        return (
            true,
            format!(
                "no pair has a firm verdict on both sides, so a drop of {limit_text} pp is not ruled out"
            ),
        );
    };
    let proven = bound > -limit + AT_THE_LIMIT;
    let why = if bound >= 0.0 {
        "with 95 % confidence the pass rate did not fall".to_owned()
    } else {
        format!(
            "with 95 % confidence the pass rate fell by no more than {} pp, and the limit is {limit_text} pp",
            hundredths(-bound)
        )
    };
    (!proven, why)
}

/// `every pair has`, said of none, one or many.
fn have(number: usize, noun: &str) -> String {
    match number {
        0 => format!("there is no {noun} that lacks"),
        1 => format!("the one {noun} has"),
        many => format!("all {many} {noun}s have"),
    }
}

/// The first few, and how many more.
fn names(pairs: &[PairId]) -> String {
    let named: Vec<String> = pairs.iter().take(MOST_NAMED).map(PairId::to_string).collect();
    let more = pairs.len() - named.len();
    let named = named.join(", ");
    if more == 0 {
        named
    } else {
        format!("{named} and {more} more")
    }
}

/// A share in hundredths, with at most two decimals: `5`, `1.82`.
fn hundredths(share: f64) -> String {
    format!("{}", (share * 10_000.0).round() / 100.0)
}

#[cfg(test)]
mod tests;
