//! Runs of the same thing, each compared with each: how noisy a suite is, and what its gates would have done. Does not
//! know whether the runs really were of the same thing.

use std::collections::BTreeMap;

use serde::Serialize;

use super::assess::{Criteria, assess};
use super::evidence;
use super::stats::{self, Count};
use super::{Known, Options, four_decimals};
use crate::model::comparison::ComparisonVerdict;
use crate::model::{Gate, PairId, ResultSet, Verdict};

/// The value of `schema` in a calibration that this version writes.
const CALIBRATION_SCHEMA: &str = "evalwave.calibration/1";

/// Attempts of each pair that a calibration looks ahead to.
const MOST_RUNS: u32 = 8;

/// What `calibrate --format json` prints. `null` is unknown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// `evalwave.calibration/1`.
    pub schema: &'static str,
    /// The runs, in the order given.
    pub runs: Vec<CalibratedRun>,
    /// Each run with each later one.
    pub comparisons: Vec<Pairing>,
    /// Over all comparisons.
    pub flips: FlipRate,
    /// How often each gate would have failed on these identical runs.
    pub gates: Vec<GateRate>,
    /// Pairs that some run passed and another failed, the flakiest first.
    pub flaky: Vec<FlakyPair>,
    /// Pairs of the suite: those that any run has.
    pub pairs: usize,
    /// The mean of q(1−q) over the pairs, q being the probability that one attempt passes.
    pub noise: Option<f64>,
    /// What this suite could see with so many attempts of each pair.
    pub outlook: Vec<Outlook>,
    /// What a reader should know before trusting it.
    pub warnings: Vec<String>,
}

/// One of the runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CalibratedRun {
    /// Where it came from, as the user named it.
    pub source: String,
    /// Pairs with a verdict.
    pub pairs: usize,
    /// Pairs that passed.
    pub passed: usize,
    /// Passed over pairs, with Wilson's 95 % interval.
    pub pass_rate: Option<f64>,
    /// Its lower end.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
}

/// Two of the runs, compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pairing {
    /// The earlier in the order given.
    pub baseline: String,
    /// The later.
    pub current: String,
    /// Pairs compared.
    pub compared: usize,
    /// Flips down.
    pub pass_to_fail: usize,
    /// Flips up.
    pub fail_to_pass: usize,
    /// Of the exact test.
    pub p_value: Option<f64>,
    /// What the comparison says.
    pub verdict: ComparisonVerdict,
}

/// How often identical runs flip.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FlipRate {
    /// Flips of all comparisons, both ways.
    pub flips: usize,
    /// Compared pairs of all comparisons.
    pub compared: usize,
    /// Flips over compared.
    pub rate: Option<f64>,
}

/// How often a gate would have failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GateRate {
    /// As written in `fail-on`.
    pub gate: String,
    /// Comparisons in which it failed.
    pub failed: usize,
    /// The same with all other runs as history; `None` where there is no other run.
    pub failed_with_history: Option<usize>,
    /// Comparisons.
    pub of: usize,
}

/// A pair that went both ways.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlakyPair {
    /// The agent set-up.
    pub experiment: String,
    /// The task.
    pub eval: String,
    /// Runs in which it passed.
    pub passed: u32,
    /// Runs in which it has a firm verdict.
    pub of: u32,
    /// Passed of known attempts, as `k/n`.
    pub attempts: String,
}

/// What a suite could see with so many attempts of each pair.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outlook {
    /// Attempts of each pair.
    pub runs: u32,
    /// The drop of the share of passing attempts that two such runs would see with 80 % power.
    pub detectable: Option<f64>,
    /// Mean pass@k with k = `runs`; `None` where some pair has fewer attempts.
    pub any_passes: Option<f64>,
    /// Mean pass^k.
    pub all_pass: Option<f64>,
}

/// Compares every run with every later one, as if nothing had changed between them.
///
/// The outlook is [`stats::detectable_at`] of the pairs, each with all its attempts in all runs, and the means of
/// [`stats::pass_at_k`] and [`stats::pass_hat_k`]. A run that stopped pairs early adds their first attempts alone. One
/// whose attempts are not known one by one adds its verdicts, and only where no pair has two attempts without it:
/// verdicts of several attempts pass more or less often than attempts do.
pub fn calibrate(runs: &[ResultSet], gates: &[Gate], options: &Options) -> Calibration {
    let mut comparisons = Vec::new();
    let mut rates: Vec<GateRate> = gates.iter().map(|gate| rate(*gate, runs.len())).collect();
    for (at, baseline) in runs.iter().enumerate() {
        for (to, current) in runs.iter().enumerate().skip(at + 1) {
            let others = runs
                .iter()
                .enumerate()
                .filter(|(each, _)| ![at, to].contains(each));
            let others: Vec<ResultSet> = others.map(|(_, run)| run.clone()).collect();
            let criteria = |history: Vec<ResultSet>| Criteria {
                options: options.clone(),
                known: Known {
                    history,
                    ..Known::default()
                },
                fail_on: gates.to_vec(),
                gates: Vec::new(),
            };
            let alone = assess(Some(baseline), current, &criteria(Vec::new()));
            for (rate, found) in rates.iter_mut().zip(&alone.gates) {
                rate.of += 1;
                rate.failed += usize::from(found.failed);
            }
            if !others.is_empty() {
                let informed = assess(Some(baseline), current, &criteria(others));
                for (rate, found) in rates.iter_mut().zip(&informed.gates) {
                    *rate.failed_with_history.get_or_insert_default() += usize::from(found.failed);
                }
            }
            comparisons.extend(alone.comparison.map(|comparison| Pairing {
                baseline: baseline.source.clone(),
                current: current.source.clone(),
                compared: comparison.compared,
                pass_to_fail: comparison.flips.pass_to_fail.len(),
                fail_to_pass: comparison.flips.fail_to_pass.len(),
                p_value: comparison.test.p_value,
                verdict: comparison.verdict,
            }));
        }
    }
    let attempts = |standings: &BTreeMap<&PairId, Standing>| -> Vec<Count> {
        standings.values().map(|standing| standing.attempts).collect()
    };
    let mut verdicts = Verdicts::LeftOut;
    let mut standings = standings(runs, verdicts);
    if stats::noise(&attempts(&standings)).is_none() {
        verdicts = Verdicts::CountAsAttempts;
        standings = self::standings(runs, verdicts);
    }
    let samples = attempts(&standings);
    let noise = stats::noise(&samples);
    Calibration {
        schema: CALIBRATION_SCHEMA,
        runs: runs.iter().map(calibrated).collect(),
        flips: flip_rate(&comparisons),
        comparisons,
        gates: rates,
        flaky: flaky(&standings),
        pairs: standings.len(),
        noise: noise.map(four_decimals),
        outlook: (1..=MOST_RUNS).map(|runs| outlook(runs, &samples)).collect(),
        warnings: warnings(runs, verdicts),
    }
}

fn rate(gate: Gate, runs: usize) -> GateRate {
    GateRate {
        gate: gate.to_string(),
        failed: 0,
        failed_with_history: (runs > 2).then_some(0),
        of: 0,
    }
}

fn calibrated(run: &ResultSet) -> CalibratedRun {
    let decided = |verdict| run.pairs.iter().filter(|pair| pair.verdict == verdict).count();
    let (passed, failed) = (decided(Verdict::Pass), decided(Verdict::Fail));
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let interval = stats::wilson(Count {
        hits: count(passed),
        of: count(passed + failed),
    });
    CalibratedRun {
        source: run.source.clone(),
        pairs: passed + failed,
        passed,
        pass_rate: interval.map(|_| four_decimals(passed as f64 / (passed + failed) as f64)),
        low: interval.map(|(low, _)| four_decimals(low)),
        high: interval.map(|(_, high)| four_decimals(high)),
    }
}

fn flip_rate(comparisons: &[Pairing]) -> FlipRate {
    let flips = comparisons
        .iter()
        .map(|each| each.pass_to_fail + each.fail_to_pass)
        .sum();
    let compared = comparisons.iter().map(|each| each.compared).sum();
    FlipRate {
        flips,
        compared,
        rate: (compared > 0).then(|| four_decimals(flips as f64 / compared as f64)),
    }
}

/// What all runs together say of a pair.
#[derive(Clone, Copy, Debug)]
struct Standing {
    verdicts: Count,
    attempts: Count,
}

/// What runs add to the outlook whose attempts are not known one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdicts {
    LeftOut,
    CountAsAttempts,
}

fn standings(runs: &[ResultSet], verdicts: Verdicts) -> BTreeMap<&PairId, Standing> {
    let none = Count { hits: 0, of: 0 };
    let mut standings: BTreeMap<&PairId, Standing> = BTreeMap::new();
    for run in runs {
        let attempts = evidence::attempts(run);
        for (pair, attempts) in run.pairs.iter().zip(attempts) {
            let standing = standings.entry(&pair.id).or_insert(Standing {
                verdicts: none,
                attempts: none,
            });
            if pair.samples.is_some() || verdicts == Verdicts::CountAsAttempts {
                standing.attempts.hits += attempts.hits;
                standing.attempts.of += attempts.of;
            }
            if pair.firm && matches!(pair.verdict, Verdict::Pass | Verdict::Fail) {
                standing.verdicts.hits += u32::from(pair.verdict == Verdict::Pass);
                standing.verdicts.of += 1;
            }
        }
    }
    standings
}

/// The pairs that went both ways; first those that two runs disagree about most often.
fn flaky(standings: &BTreeMap<&PairId, Standing>) -> Vec<FlakyPair> {
    let disagreement = |standing: &Standing| stats::noise(&[standing.verdicts]).unwrap_or_default();
    let mut flaky: Vec<(&PairId, &Standing)> = standings
        .iter()
        .map(|(id, standing)| (*id, standing))
        .filter(|(_, standing)| disagreement(standing) > 0.0)
        .collect();
    flaky.sort_by(|(_, a), (_, b)| disagreement(b).total_cmp(&disagreement(a)));
    let row = |(id, standing): (&PairId, &Standing)| FlakyPair {
        experiment: id.experiment.to_string(),
        eval: id.eval.to_string(),
        passed: standing.verdicts.hits,
        of: standing.verdicts.of,
        attempts: format!("{}/{}", standing.attempts.hits, standing.attempts.of),
    };
    flaky.into_iter().map(row).collect()
}

fn outlook(runs: u32, samples: &[Count]) -> Outlook {
    let mean = |of: fn(Count, u32) -> Option<f64>| {
        let each: Option<Vec<f64>> = samples.iter().map(|count| of(*count, runs)).collect();
        let each = each.filter(|each| !each.is_empty())?;
        Some(four_decimals(each.iter().sum::<f64>() / each.len() as f64))
    };
    Outlook {
        runs,
        detectable: stats::detectable_at(runs, samples).map(four_decimals),
        any_passes: mean(stats::pass_at_k),
        all_pass: mean(stats::pass_hat_k),
    }
}

fn warnings(runs: &[ResultSet], verdicts: Verdicts) -> Vec<String> {
    let mut warnings = Vec::new();
    for run in runs {
        let source = &run.source;
        if run.pairs.iter().any(|pair| pair.samples.is_none()) {
            warnings.push(format!(
                "the attempts of `{source}` are not known one by one: its verdicts {}",
                match verdicts {
                    Verdicts::LeftOut => "are no part of the outlook",
                    Verdicts::CountAsAttempts => "count as attempts",
                }
            ));
        }
        if run.is_partial_selection() {
            warnings.push(format!("`{source}` is a part of its suite"));
        }
    }
    for (what, differ) in [
        (
            "policy",
            differ(runs, |run| run.policy.map(|policy| policy.to_string())),
        ),
        (
            "number of attempts",
            differ(runs, |run| run.runs.map(|runs| runs.to_string())),
        ),
    ] {
        if differ {
            warnings.push(format!(
                "the runs differ in their {what}: they are not runs of the same thing"
            ));
        }
    }
    warnings
}

fn differ(runs: &[ResultSet], value: impl Fn(&ResultSet) -> Option<String>) -> bool {
    let known: std::collections::BTreeSet<String> = runs.iter().filter_map(value).collect();
    known.len() > 1
}

#[cfg(test)]
mod tests;
