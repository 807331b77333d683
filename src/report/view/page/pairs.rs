//! Each pair with its attempts, as data that a page shows on demand: names and texts are numbers into lists.

use std::collections::HashMap;

use serde::Serialize;

use super::evidence::Texts;
use super::timeline::{self, Timeline};
use crate::model::comparison::Flip;
use crate::model::{
    AttemptError, AttemptRecord, Boot, CancelReason, Comparison, ErrorClass, Outcome, PairSummary, Phase,
    Summary, Verdict,
};
use crate::report::escape::visible;
use crate::report::words::dollars;

/// Longest name, in characters.
const NAME_LENGTH: usize = 200;
/// Failed checks that a page shows in all, if every attempt has as many.
const CHECKS: usize = 60_000;

/// The pairs of a run.
#[derive(Serialize)]
pub(in crate::report) struct Pairs {
    experiments: Vec<String>,
    evals: Vec<String>,
    /// Names and values.
    labels: Vec<(String, String)>,
    texts: Vec<String>,
    phases: [&'static str; 6],
    wall: f64,
    lanes: usize,
    /// Whether there is a baseline.
    compared: bool,
    pairs: Vec<PairData>,
}

/// A key that is not there is false, or not known.
#[derive(Serialize)]
struct PairData {
    experiment: usize,
    eval: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<usize>,
    verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    flip: Option<&'static str>,
    now: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before_seconds: Option<f64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    flaky: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    quarantined: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmed: Option<bool>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    loose: bool,
    /// Where its attempts' files usually are, below the run directory.
    directory: String,
    attempts: Vec<AttemptData>,
}

#[derive(Serialize)]
struct AttemptData {
    n: u32,
    outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<CancelReason>,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<f64>,
    /// Seconds of each phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    phases: Option<[Option<f64>; 6]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lane: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    boot: Option<Boot>,
    tries: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<TryData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checks: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed: Vec<Vec<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    more_failed: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    /// What all of its tries together used.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    /// The same in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<String>,
    /// Its files are in the usual directory.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    kept: bool,
    /// Where its files are, where that is not usual.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
}

#[derive(Serialize)]
struct TryData {
    n: u32,
    seconds: f64,
    error: ErrorData,
}

#[derive(Serialize)]
struct ErrorData {
    class: ErrorClass,
    phase: Phase,
    message: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
}

impl Pairs {
    /// Whether the run has none.
    pub(in crate::report) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub(super) fn of(
        summary: &Summary,
        comparison: Option<&Comparison>,
        timeline: Option<&Timeline>,
    ) -> Self {
        let flips = Flips::of(comparison);
        let mut names = Names::default();
        let mut texts = Texts::new(summary.pairs.len());
        let attempts: usize = summary.pairs.iter().map(|pair| pair.attempts.len()).sum();
        let checks = (CHECKS / attempts.max(1)).clamp(8, 50);
        let mut pairs: Vec<Option<PairData>> = summary.pairs.iter().map(|_| None).collect();
        for at in by_weight(summary, &flips) {
            let pair = &summary.pairs[at];
            let lanes = timeline.map(|timeline| timeline.lanes_of(at));
            let attempts = pair.attempts.iter().enumerate().map(|(index, attempt)| {
                let lane = lanes.and_then(|lanes| *lanes.get(index)?);
                attempt_data(pair, attempt, lane, checks, &mut texts)
            });
            let attempts = attempts.collect();
            pairs[at] = Some(pair_data(pair, &flips, attempts));
        }
        let mut pairs: Vec<PairData> = pairs.into_iter().flatten().collect();
        for (data, pair) in pairs.iter_mut().zip(&summary.pairs) {
            data.experiment = names.experiments.number(pair.experiment.as_str());
            data.eval = names.evals.number(pair.eval.as_str());
            let labels = pair.labels.0.iter();
            let labels = labels.flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
            data.labels = labels
                .map(|(name, value)| names.labels.number((name.clone(), value.clone())))
                .collect();
        }
        let shown = |name: &String| visible(name, NAME_LENGTH);
        Self {
            experiments: names
                .experiments
                .all
                .iter()
                .map(|name| visible(name, NAME_LENGTH))
                .collect(),
            evals: names
                .evals
                .all
                .iter()
                .map(|name| visible(name, NAME_LENGTH))
                .collect(),
            labels: names
                .labels
                .all
                .iter()
                .map(|(name, value)| (shown(name), shown(value)))
                .collect(),
            texts: texts.all,
            phases: timeline::phase_names(),
            wall: timeline.map_or(0.0, |timeline| timeline.wall),
            lanes: timeline.map_or(0, |timeline| timeline.lanes),
            compared: comparison.is_some(),
            pairs,
        }
    }
}

/// What the comparison says of each pair that flipped.
struct Flips<'a>(HashMap<(&'a str, &'a str), (&'static str, &'a Flip)>);

impl<'a> Flips<'a> {
    fn of(comparison: Option<&'a Comparison>) -> Self {
        let flips = comparison.map(|comparison| &comparison.flips);
        let down = flips.into_iter().flat_map(|flips| &flips.pass_to_fail);
        let up = flips.into_iter().flat_map(|flips| &flips.fail_to_pass);
        let ways = down.map(|flip| ("down", flip)).chain(up.map(|flip| ("up", flip)));
        Self(
            ways.map(|(way, flip)| ((flip.experiment.as_str(), flip.eval.as_str()), (way, flip)))
                .collect(),
        )
    }

    fn get(&self, pair: &PairSummary) -> Option<(&'static str, &'a Flip)> {
        self.0
            .get(&(pair.experiment.as_str(), pair.eval.as_str()))
            .copied()
    }
}

/// Positions of the pairs, those first whose texts matter most.
fn by_weight(summary: &Summary, flips: &Flips<'_>) -> Vec<usize> {
    let weight = |at: &usize| {
        let pair = &summary.pairs[*at];
        match (flips.get(pair), pair.verdict) {
            (Some(("down", _)), _) => 0,
            (_, Verdict::Error) => 1,
            (_, Verdict::Fail) => 2,
            (_, Verdict::Pass | Verdict::NotRun) => 3,
        }
    };
    let mut order: Vec<usize> = (0..summary.pairs.len()).collect();
    order.sort_by_key(weight);
    order
}

fn pair_data(pair: &PairSummary, flips: &Flips<'_>, attempts: Vec<AttemptData>) -> PairData {
    let flip = flips.get(pair);
    let before = pair.before.as_ref();
    let split = pair.passed_attempts > 0 && pair.passed_attempts < pair.graded_attempts;
    let before_result = flip
        .map(|(_, flip)| &flip.before)
        .or(before.map(|before| &before.result));
    PairData {
        experiment: 0,
        eval: 0,
        labels: Vec::new(),
        verdict: pair.verdict,
        flip: flip.map(|(way, _)| way),
        now: format!("{}/{}", pair.passed_attempts, pair.graded_attempts),
        before: before_result.map(|result| visible(result, NAME_LENGTH)),
        before_seconds: before.and_then(|before| before.seconds),
        flaky: split || flip.is_some_and(|(_, flip)| flip.flaky),
        quarantined: flip.is_some_and(|(_, flip)| flip.quarantined),
        confirmed: flip.and_then(|(_, flip)| flip.confirmed),
        loose: !pair.firm && matches!(pair.verdict, Verdict::Pass | Verdict::Fail),
        directory: format!("attempts/{}", pair.id().directory()),
        attempts,
    }
}

fn attempt_data(
    pair: &PairSummary,
    attempt: &AttemptRecord,
    lane: Option<usize>,
    checks: usize,
    texts: &mut Texts,
) -> AttemptData {
    let phases = timeline::phases_of(attempt);
    let failed = attempt.checks_failed.iter().take(checks).enumerate();
    let failed = failed.map(|(at, name)| {
        let note = attempt.check_notes.get(at).filter(|note| !note.is_empty());
        std::iter::once(name)
            .chain(note)
            .map(|text| texts.add(text))
            .collect()
    });
    let failed = failed.collect();
    let error = |error: &AttemptError, texts: &mut Texts| ErrorData {
        class: error.class,
        phase: error.phase,
        message: texts.add(&error.message),
        exit_code: error.exit_code,
        signal: error.signal,
    };
    let earlier = attempt.earlier.iter().map(|earlier| TryData {
        n: earlier.number,
        seconds: earlier.seconds,
        error: error(&earlier.error, texts),
    });
    let earlier = earlier.collect();
    let tokens = attempt
        .usages()
        .flat_map(|usage| [usage.input_tokens, usage.output_tokens])
        .flatten();
    let cost = attempt.usages().filter_map(|usage| usage.cost_usd);
    let usual = format!("attempts/{}/{}", pair.id().directory(), attempt.index);
    AttemptData {
        n: attempt.index,
        outcome: attempt.outcome,
        reason: attempt.reason,
        seconds: attempt.seconds,
        start: attempt.started_offset,
        phases: phases.iter().any(Option::is_some).then_some(phases),
        lane,
        boot: attempt.boot,
        tries: attempt.tries,
        earlier,
        error: attempt.error.as_ref().map(|found| error(found, texts)),
        checks: attempt.checks,
        failed,
        more_failed: Some(attempt.checks_failed.len().saturating_sub(checks)).filter(|more| *more > 0),
        output: attempt.output.as_deref().map(|output| texts.add(output)),
        score: attempt.score.map(|score| (score * 1e4).round() / 1e4),
        tokens: tokens.reduce(u64::saturating_add),
        cost: cost
            .reduce(|sum, more| sum + more)
            .filter(|cost| cost.is_finite())
            .map(dollars),
        kept: attempt.path.as_ref() == Some(&usual),
        path: attempt.path.clone().filter(|path| *path != usual),
    }
}

#[derive(Default)]
struct Names {
    experiments: Numbered<String>,
    evals: Numbered<String>,
    labels: Numbered<(String, String)>,
}

/// Things in the order in which they were first seen.
struct Numbered<T> {
    all: Vec<T>,
    numbers: HashMap<T, usize>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            numbers: HashMap::new(),
        }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Numbered<T> {
    fn number(&mut self, thing: impl Into<T>) -> usize {
        let thing = thing.into();
        if let Some(number) = self.numbers.get(&thing) {
            return *number;
        }
        self.all.push(thing.clone());
        self.numbers.insert(thing, self.all.len() - 1);
        self.all.len() - 1
    }
}
