//! Trials of the comparison on simulated suites: how often it finds what is there, and what is not. Prints nothing.

use evalwave::compare::{Options, compare};
use evalwave::model::Comparison;
use evalwave::model::comparison::ComparisonVerdict;

use super::suite::{PROVIDERS, Random, Suite};

/// Compared by experiment and provider.
pub(crate) fn options() -> Options {
    Options {
        alpha: 0.05,
        margin: 0.10,
        group_by: Some("provider".to_owned()),
        now: None,
    }
}

/// The gate `significant`.
fn is_significant(comparison: &Comparison) -> bool {
    matches!(
        comparison.verdict,
        ComparisonVerdict::Regressed | ComparisonVerdict::Mixed
    )
}

/// How often something happens in so many trials, each with its own seed.
fn often(trials: u64, seed: u64, mut happens: impl FnMut(&mut Random) -> bool) -> u64 {
    (0..trials)
        .filter(|trial| happens(&mut random(seed, *trial)))
        .count() as u64
}

fn random(seed: u64, trial: u64) -> Random {
    Random(
        seed.wrapping_mul(1_000_003)
            .wrapping_add(trial)
            .wrapping_mul(0x5851_f42d_4c95_7f2d),
    )
}

/// Two identical runs: how often `significant` fails.
pub(crate) fn false_alarms(trials: u64, pairs: usize, flaky: f64, runs: u32) -> u64 {
    often(trials, 1, |random| {
        let suite = Suite::new(pairs, |_| flaky, random);
        let before = suite.run("before", runs, random);
        is_significant(&compare(&before, &suite.run("now", runs, random), &options()))
    })
}

/// A drop spread over all pairs of a suite of 220, a tenth of them flaky: how often `significant` finds it.
pub(crate) fn power(trials: u64, drop: f64, runs: u32) -> u64 {
    often(trials, 2, |random| {
        let suite = Suite::new(220, |_| 0.1, random);
        let before = suite.run("before", runs, random);
        let now = suite.fallen(drop, random).run("now", runs, random);
        is_significant(&compare(&before, &now, &options()))
    })
}

/// One experiment of ten falls from .9 to .5, with 3 attempts a side: how often `significant` finds it.
pub(crate) fn collapse(trials: u64) -> u64 {
    often(trials, 3, |random| {
        let suite = Suite::even(220, 0.9);
        let mut fallen = suite.clone();
        for pair in fallen.pairs.iter_mut().filter(|pair| pair.experiment == 4) {
            pair.chance = 0.5;
        }
        let before = suite.run("before", 3, random);
        is_significant(&compare(&before, &fallen.run("now", 3, random), &options()))
    })
}

/// Throttling of one provider, a different one in each trial: how often that one is named, and as throttled.
pub(crate) fn throttled(trials: u64, runs: u32) -> u64 {
    let mut turn = 0;
    often(trials, 4, |random| {
        turn += 1;
        let provider = PROVIDERS[turn % PROVIDERS.len()].0;
        let suite = Suite::new(220, |_| 0.1, random);
        let before = suite.run("before", runs, random);
        let mut now = suite.run("now", runs, random);
        suite.throttle(&mut now, provider, random);
        let concentration = compare(&before, &now, &options()).concentration;
        concentration.is_some_and(|found| found.reading == format!("points to throttling in {provider}"))
    })
}

/// Identical runs of providers that are flaky in 5, 15 and 30 % of their pairs: how often one is named.
pub(crate) fn named_for_nothing(trials: u64, runs: u32) -> u64 {
    let flaky = |provider: &str| match provider {
        "anthropic" => 0.05,
        "openai" => 0.15,
        _ => 0.3,
    };
    often(trials, 5, |random| {
        let suite = Suite::new(220, flaky, random);
        let before = suite.run("before", runs, random);
        let comparison = compare(&before, &suite.run("now", runs, random), &options());
        comparison
            .concentration
            .is_some_and(|found| found.named.is_some())
    })
}

/// Suites of many kinds: from half to nearly all of their pairs pass, few or all of them are flaky.
pub(crate) const KINDS: [(&str, Kind); 7] = [
    ("half pass", Kind::Mixed(0.5, 0.0)),
    ("half pass, a tenth flaky", Kind::Mixed(0.5, 0.1)),
    ("most pass", Kind::Mixed(0.85, 0.0)),
    ("most pass, a tenth flaky", Kind::Mixed(0.85, 0.1)),
    ("nearly all pass, 3 of 10 flaky", Kind::Mixed(0.95, 0.3)),
    ("each passes 7 of 10 times", Kind::Even(0.7)),
    ("each passes 19 of 20 times", Kind::Even(0.95)),
];

/// What pairs a suite has.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// The share that always passes of those that are not flaky, and the flaky share of all.
    Mixed(f64, f64),
    /// How often each attempt of each pair passes.
    Even(f64),
}

/// The drop that a comparison of identical runs calls detectable: how often the test finds it in `tries` more pairs of
/// runs, where it is really there. Trials without such a drop do not count; the second number is how many tries did.
pub(crate) fn detected(trials: u64, tries: u64, pairs: usize, kind: Kind, runs: u32) -> (u64, u64) {
    let (mut found, mut counted) = (0, 0);
    for trial in 0..trials {
        let random = &mut random(6, trial);
        let suite = match kind {
            Kind::Mixed(passing, flaky) => Suite::mixed(pairs, passing, |_| flaky, random),
            Kind::Even(chance) => Suite::even(pairs, chance),
        };
        let before = suite.run("before", runs, random);
        let same = compare(&before, &suite.run("same", runs, random), &options());
        let Some(drop) = same.test.detectable.filter(|drop| *drop < suite.share()) else {
            continue;
        };
        counted += tries;
        for _ in 0..tries {
            let before = suite.run("before", runs, random);
            let now = suite.fallen(drop, random).run("now", runs, random);
            let test = compare(&before, &now, &options()).test;
            found += u64::from(test.p_value.is_some_and(|p_value| p_value < test.alpha));
        }
    }
    (found, counted)
}
