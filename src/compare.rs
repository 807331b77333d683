//! Two sets of results in, one comparison out. Does not know where either came from.

mod assess;
pub mod calibrate;
mod evidence;
mod flips;
pub mod gates;
mod groups;
mod history;
mod merge;
mod quarantine;
pub mod stats;
mod verdict;

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::model::comparison::{COMPARISON_SCHEMA, Comparison, Level, PairRef, PassRates, Side, Spent, Test};
use crate::model::{Outcome, PairId, PairResult, Policy, ResultSet, Sample, Usage, Verdict};
pub use assess::{Assessment, Criteria, assess};
use evidence::{Compared, Evidence};
pub use flips::before;
pub use history::{Ledger, Record};
pub use merge::{MergeError, merge};
pub use quarantine::Quarantine;
use stats::Stratum;
pub use verdict::{Part, sentence, sentence_parts};

/// How a comparison is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// A p-value below it is significant.
    pub alpha: f64,
    /// The drop, 0 to 1, that a comparison without a finding must be able to see.
    pub margin: f64,
    /// A label to break the results down by, besides the experiment.
    pub group_by: Option<String>,
    /// The time of the comparison, which the sides' ages are told from.
    pub now: Option<Timestamp>,
}

/// What is known of pairs besides the two runs that are compared.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Earlier runs.
    pub history: Vec<ResultSet>,
    /// Pairs that are listed as flaky.
    pub quarantine: Quarantine,
    /// The flipped pairs that have a fresh verdict, and whether it agrees; `None` where fresh attempts were not asked for.
    pub confirmed: Option<BTreeMap<PairId, bool>>,
}

/// Compares a run with its baseline, knowing nothing else: [`compare_knowing`].
pub fn compare(baseline: &ResultSet, current: &ResultSet, options: &Options) -> Comparison {
    compare_knowing(baseline, current, options, &Known::default())
}

/// Compares a run with its baseline.
///
/// Compared are the pairs that have a firm verdict, and evidence of the same kind, on both sides; rates, test and
/// groups are over these. Swapping the sides swaps falls and rises and leaves the p-values alone. What else is known
/// marks flips; it never enters a rate, a test or the verdict.
pub fn compare_knowing(
    baseline: &ResultSet,
    current: &ResultSet,
    options: &Options,
    known: &Known,
) -> Comparison {
    let ledger = Ledger::new(&known.history, baseline, current);
    let evidence = evidence::gather(baseline, current);
    let compared = &evidence.compared;
    let strata: Vec<Stratum> = compared.iter().map(|pair| pair.stratum).collect();
    let overall = stats::stratified_exact(&strata);
    let pass_rate = pass_rates(compared);
    let test = Test {
        level: evidence.level,
        p_value: overall.map(|test| significant_digits(test.p_value)),
        alpha: options.alpha,
        detectable: stats::detectable(&strata).map(four_decimals),
        lower_bound: exact_delta(compared)
            .and_then(|delta| stats::lower_bound(delta, &strata))
            .map(four_decimals),
    };

    let groupings = groups::groupings(compared, options.group_by.as_deref());
    let mut warnings = warnings(baseline, current, &evidence);
    warnings.extend(groups::warnings(&groupings));
    warnings.extend(ledger.warnings().iter().cloned());
    let verdict = verdict::decide(compared, overall.as_ref(), &groupings, &test, options.margin);
    Comparison {
        schema: COMPARISON_SCHEMA.to_owned(),
        baseline: side(baseline, options.now),
        current: side(current, options.now),
        compared: compared.len(),
        pass_rate,
        flips: flips::flips(compared, known, &ledger),
        fewer_passes: match current.policy {
            Some(Policy::Mean { .. }) => flips::fewer_passes(compared),
            _ => Vec::new(),
        },
        history: ledger.summary(compared),
        added: evidence.added.into_iter().map(pair_ref).collect(),
        removed: evidence.removed.into_iter().map(pair_ref).collect(),
        not_selected: evidence.not_selected,
        not_comparable: evidence.not_comparable,
        test,
        concentration: groups::concentration(&groupings, current, options.alpha),
        groups: groups::table(&groupings),
        verdict,
        warnings,
    }
}

fn side(set: &ResultSet, now: Option<Timestamp>) -> Side {
    let decided = |verdict| set.pairs.iter().filter(|pair| pair.verdict == verdict).count();
    let graded: Option<Vec<usize>> = set.pairs.iter().map(graded_attempts).collect();
    let age = now
        .zip(set.started_at)
        .map(|(now, then)| now.duration_since(then).as_secs_f64());
    let errors = |wanted| {
        let pairs = attempts(set).filter(|_| set.tells_errors)?;
        Some(count(&pairs, wanted))
    };
    Side {
        source: set.source.clone(),
        reference: set.reference.clone(),
        commit: set.commit.clone(),
        // A clock that is behind gives an age below 0, which says nothing.
        age_seconds: age.filter(|seconds| *seconds >= 0.0),
        run_url: set.run_url.clone(),
        wall_seconds: set.wall_seconds,
        attempts: graded.map(|each| each.iter().sum()),
        attempts_passed: attempts_passed(set),
        attempts_errored: errors(Outcome::Errored),
        attempts_timed_out: errors(Outcome::TimedOut),
        cost_usd: spent(set, |usage| usage.cost_usd, |one, other| one + other)
            .filter(|cost| cost.total.is_finite()),
        tokens: spent(set, tokens, u64::saturating_add),
        started_at: set.started_at,
        pairs: decided(Verdict::Pass) + decided(Verdict::Fail),
        passed: decided(Verdict::Pass),
    }
}

fn tokens(usage: &Usage) -> Option<u64> {
    let each = usage.input_tokens.into_iter().chain(usage.output_tokens);
    each.reduce(u64::saturating_add)
}

/// What the attempts of a set used together, of those that say so; `None` where none does.
fn spent<T>(set: &ResultSet, of: impl Fn(&Usage) -> Option<T>, add: impl Fn(T, T) -> T) -> Option<Spent<T>> {
    let samples = set.pairs.iter().flat_map(|pair| pair.samples.iter().flatten());
    let used: Vec<T> = samples.filter_map(|sample| of(sample.usage.as_ref()?)).collect();
    let attempts = used.len();
    let total = used.into_iter().reduce(add)?;
    Some(Spent { total, attempts })
}

/// The attempts of every pair, where they are known one by one.
fn attempts(set: &ResultSet) -> Option<Vec<&[Sample]>> {
    set.pairs.iter().map(|pair| pair.samples.as_deref()).collect()
}

/// How many attempts passed, where every pair has all of its attempts.
fn attempts_passed(set: &ResultSet) -> Option<usize> {
    let pairs = attempts(set)?;
    // Where a stop leaves no mark, it leaves pairs with fewer attempts than others.
    let planned = set.runs.map_or(pairs.first()?.len(), |runs| runs as usize);
    let is_whole =
        |pair: &&[Sample]| pair.len() == planned && !pair.iter().any(|sample| sample.stopped_early);
    pairs.iter().all(is_whole).then(|| count(&pairs, Outcome::Passed))
}

fn count(pairs: &[&[Sample]], wanted: Outcome) -> usize {
    let samples = pairs.iter().copied().flatten();
    samples.filter(|sample| sample.outcome == wanted).count()
}

fn graded_attempts(pair: &PairResult) -> Option<usize> {
    match &pair.samples {
        Some(samples) => Some(samples.iter().filter(|sample| sample.outcome.is_graded()).count()),
        None => pair.graded.map(|graded| graded as usize),
    }
}

fn pass_rates(compared: &[Compared<'_>]) -> PassRates {
    let before = compared.iter().filter(|pair| pair.passed_before()).count();
    let now = compared.iter().filter(|pair| pair.passed_now()).count();
    let rate =
        |passed: usize| (!compared.is_empty()).then(|| four_decimals(passed as f64 / compared.len() as f64));
    PassRates {
        baseline: rate(before),
        current: rate(now),
        delta: exact_delta(compared).map(four_decimals),
    }
}

/// Current less baseline pass rate; `None` where nothing was compared.
fn exact_delta(compared: &[Compared<'_>]) -> Option<f64> {
    let change = |pair: &Compared<'_>| {
        f64::from(u8::from(pair.passed_now())) - f64::from(u8::from(pair.passed_before()))
    };
    (!compared.is_empty()).then(|| compared.iter().map(change).sum::<f64>() / compared.len() as f64)
}

fn pair_ref(id: &PairId) -> PairRef {
    PairRef {
        experiment: id.experiment.clone(),
        eval: id.eval.clone(),
    }
}

fn warnings(baseline: &ResultSet, current: &ResultSet, evidence: &Evidence<'_>) -> Vec<String> {
    // Where these differ, verdicts are never the level.
    let tested = if evidence.level == Level::Attempts {
        "all attempts"
    } else {
        "first attempts"
    };
    let consequence = format!(
        "verdicts, rates and flips do not mean the same on both sides, and the test is over {tested} instead"
    );
    let mut warnings = Vec::new();
    if let Some((before, now)) = evidence::differing(baseline.policy, current.policy) {
        warnings.push(format!(
            "the baseline decided its pairs by the policy `{before}`, this run by `{now}`: {consequence}"
        ));
    }
    if let Some((before, now)) = evidence::differing(baseline.runs, current.runs) {
        warnings.push(format!(
            "the baseline made up to {before} attempts of each pair, this run {now}: {consequence}"
        ));
    }
    // A base revision that is measured beside the run is the same part, and lacks nothing for that.
    let is_same_part =
        baseline.selection == current.selection && evidence.removed.is_empty() && evidence.not_selected == 0;
    if let Some(selection) = baseline
        .selection
        .filter(|_| baseline.is_partial_selection() && !is_same_part)
    {
        warnings.push(format!(
            "the baseline is a part of its suite ({} of {} pairs): pairs that it lacks are listed as added",
            selection.selected, selection.of
        ));
    }
    warnings
}

/// Rates, deltas and drops as a reader sees them: to a hundredth of a percentage point.
fn four_decimals(share: f64) -> f64 {
    // Adding 0 turns -0 into 0.
    (share * 10_000.0).round() / 10_000.0 + 0.0
}

/// P-values as a reader sees them: to four significant digits.
fn significant_digits(p_value: f64) -> f64 {
    format!("{p_value:.3e}").parse().unwrap_or(p_value)
}

#[cfg(test)]
mod tests;
