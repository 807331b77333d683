//! Verdicts that changed, and attempts that pass less often. Does not say whether it means anything.

use super::Known;
use super::evidence::{self, Compared};
use super::history::Ledger;
use crate::model::comparison::{FewerPasses, Flip, Flips};
use crate::model::{Before, Outcome, PairResult, Verdict};

/// Flips each way, those not known to be flaky first.
///
/// Attempts that disagree tell of flakiness where they are on the side that passes, as they always are under `any`. On
/// the side that fails, under a policy that wants more of them to pass, they may be what a change has done.
pub(super) fn flips(compared: &[Compared<'_>], known: &Known, ledger: &Ledger) -> Flips {
    let of = |from: bool, to: bool| {
        let mut flips: Vec<Flip> = compared
            .iter()
            .filter(|pair| pair.passed_before() == from && pair.passed_now() == to)
            .map(|pair| flip(pair, known, ledger))
            .collect();
        // The pairs are in the order of their ids, and sorting keeps that.
        flips.sort_by_key(|flip| flip.flaky);
        flips
    };
    Flips {
        pass_to_fail: of(true, false),
        fail_to_pass: of(false, true),
    }
}

/// Pairs without a flip that passed a smaller share of their attempts, where these are known one by one.
pub(super) fn fewer_passes(compared: &[Compared<'_>]) -> Vec<FewerPasses> {
    let fell = |pair: &&Compared<'_>| {
        let share = |pair: &PairResult| {
            let (passed, graded) = counted(pair)?;
            (graded > 0).then(|| passed as f64 / graded as f64)
        };
        let shares = share(pair.baseline).zip(share(pair.current));
        pair.passed_before() == pair.passed_now() && shares.is_some_and(|(before, now)| now < before)
    };
    let row = |pair: &Compared<'_>| FewerPasses {
        experiment: pair.id().experiment.clone(),
        eval: pair.id().eval.clone(),
        before: standing(pair.baseline),
        now: standing(pair.current),
    };
    compared.iter().filter(fell).map(row).collect()
}

/// What a run has of a pair, as another run compared with it tells it.
pub fn before(pair: &PairResult) -> Before {
    let samples = pair.samples.as_deref().unwrap_or_default();
    let graded = samples.iter().filter(|sample| sample.outcome.is_graded());
    let seconds: Vec<f64> = graded.filter_map(|sample| sample.command_seconds).collect();
    Before {
        verdict: pair.verdict,
        result: standing(pair),
        seconds: (!seconds.is_empty())
            .then(|| milliseconds(seconds.iter().sum::<f64>() / seconds.len() as f64)),
    }
}

fn milliseconds(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

fn flip(pair: &Compared<'_>, known: &Known, ledger: &Ledger) -> Flip {
    let quarantined = known.quarantine.holds(pair.id());
    let passing = if pair.passed_before() {
        pair.baseline
    } else {
        pair.current
    };
    Flip {
        experiment: pair.id().experiment.clone(),
        eval: pair.id().eval.clone(),
        flaky: quarantined || evidence::is_split(passing) || ledger.goes_both_ways(pair),
        quarantined,
        confirmed: known
            .confirmed
            .as_ref()
            .and_then(|fresh| fresh.get(pair.id()).copied()),
        before: standing(pair.baseline),
        now: standing(pair.current),
    }
}

/// `k/n` of the attempts that gave a result, or the verdict where attempts are not known one by one.
fn standing(pair: &PairResult) -> String {
    match (counted(pair), pair.verdict) {
        (Some((passed, graded)), _) => format!("{passed}/{graded}"),
        (None, Verdict::Pass) => "pass".to_owned(),
        (None, Verdict::Fail) => "fail".to_owned(),
        (None, Verdict::Error) => "error".to_owned(),
        (None, Verdict::NotRun) => "not run".to_owned(),
    }
}

/// Passed of graded attempts.
fn counted(pair: &PairResult) -> Option<(usize, usize)> {
    let samples = pair.samples.as_ref()?;
    let count = |wanted: fn(Outcome) -> bool| samples.iter().filter(|sample| wanted(sample.outcome)).count();
    Some((
        count(|outcome| outcome == Outcome::Passed),
        count(Outcome::is_graded),
    ))
}
