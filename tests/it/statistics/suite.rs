//! Simulated suites: pairs whose attempts pass by chance, run as often as wanted from a fixed seed. Shared by the tests
//! and the benchmark of the statistics; knows nothing of what is compared.

use evalwave::model::{Labels, Outcome, PairId, PairResult, Policy, ResultSet, Sample, Verdict};

/// Providers with how many of a suite's experiments are theirs, in tenths.
pub(crate) const PROVIDERS: [(&str, usize); 3] = [("anthropic", 4), ("openai", 4), ("moonshotai", 2)];

/// Sebastiano Vigna's SplitMix64: the same draws on every machine.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Whether something of this probability happens.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        // The upper 53 bits make a number from 0 to below 1.
        ((self.next() >> 11) as f64) < probability * 9_007_199_254_740_992.0
    }

    /// A number from 0 to below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// A pair, by the probability that one attempt of it passes.
#[derive(Clone)]
pub(crate) struct Simulated {
    pub(crate) experiment: usize,
    pub(crate) provider: &'static str,
    pub(crate) chance: f64,
}

/// A suite of ten experiments, or of as many as there are pairs for two each.
#[derive(Clone)]
pub(crate) struct Suite {
    pub(crate) pairs: Vec<Simulated>,
}

impl Suite {
    /// So many pairs, of which this share, by provider, pass every second attempt; of the others 17 of 20 always pass
    /// and 3 never do.
    pub(crate) fn new(pairs: usize, flaky: impl Fn(&str) -> f64, random: &mut Random) -> Self {
        Self::mixed(pairs, 0.85, flaky, random)
    }

    /// So many pairs, of which this share, by provider, pass every second attempt; of the others about so many always
    /// pass and the rest never do.
    pub(crate) fn mixed(
        pairs: usize,
        passing: f64,
        flaky: impl Fn(&str) -> f64,
        random: &mut Random,
    ) -> Self {
        let experiments = (pairs / 2).min(10);
        let pairs = (0..pairs).map(|at| {
            let experiment = at % experiments;
            let provider = provider(experiment * 10 / experiments);
            let chance = if random.happens(flaky(provider)) {
                0.5
            } else if random.happens(passing) {
                1.0
            } else {
                0.0
            };
            Simulated {
                experiment,
                provider,
                chance,
            }
        });
        Self {
            pairs: pairs.collect(),
        }
    }

    /// So many pairs in ten experiments, each attempt of which passes with this probability.
    pub(crate) fn even(pairs: usize, chance: f64) -> Self {
        let pairs = (0..pairs).map(|at| Simulated {
            experiment: at % 10,
            provider: provider(at % 10),
            chance,
        });
        Self {
            pairs: pairs.collect(),
        }
    }

    /// The mean probability that an attempt passes.
    pub(crate) fn share(&self) -> f64 {
        self.pairs.iter().map(|pair| pair.chance).sum::<f64>() / self.pairs.len() as f64
    }

    /// The same suite after a change that makes pairs, drawn by chance, fail always: on average, the share of passing
    /// attempts falls by `drop`.
    pub(crate) fn fallen(&self, drop: f64, random: &mut Random) -> Self {
        let probability = drop / self.share();
        let mut fallen = self.clone();
        for pair in &mut fallen.pairs {
            if random.happens(probability) {
                pair.chance = 0.0;
            }
        }
        fallen
    }

    /// Runs every attempt of every pair, and decides by `any`.
    pub(crate) fn run(&self, source: &str, runs: u32, random: &mut Random) -> ResultSet {
        let pairs = self.pairs.iter().enumerate().map(|(at, pair)| {
            let outcomes = (0..runs).map(|_| match random.happens(pair.chance) {
                true => Outcome::Passed,
                false => Outcome::Failed,
            });
            result(at, pair, &outcomes.collect::<Vec<Outcome>>())
        });
        ResultSet {
            policy: Some(Policy::Any),
            runs: Some(runs),
            ..ResultSet::of_pairs(source, pairs.collect())
        }
    }

    /// Times out 3 of 10 pairs of a provider that pass in a run, as throttling does.
    pub(crate) fn throttle(&self, run: &mut ResultSet, provider: &str, random: &mut Random) {
        let mut passing: Vec<usize> = (0..self.pairs.len())
            .filter(|at| self.pairs[*at].provider == provider && run.pairs[*at].verdict == Verdict::Pass)
            .collect();
        for _ in 0..(passing.len() * 3).div_ceil(10) {
            let at = passing.swap_remove(random.below(passing.len()));
            let runs = run.pairs[at].samples.as_ref().map_or(1, Vec::len);
            run.pairs[at] = result(at, &self.pairs[at], &vec![Outcome::TimedOut; runs]);
        }
    }
}

fn provider(tenth: usize) -> &'static str {
    let mut end = 0;
    let mut found = PROVIDERS.iter().filter(|(_, tenths)| {
        end += tenths;
        tenth < end
    });
    found.next().map_or(PROVIDERS[0].0, |(name, _)| name)
}

fn result(at: usize, pair: &Simulated, outcomes: &[Outcome]) -> PairResult {
    let mut labels = Labels::default();
    labels.add("provider", pair.provider);
    let samples = (1..).zip(outcomes).map(|(index, outcome)| Sample {
        index,
        outcome: *outcome,
        stopped_early: false,
        command_seconds: None,
        overhead_seconds: None,
        score: None,
        usage: None,
    });
    PairResult {
        id: PairId::new(
            &format!("experiment-{}", pair.experiment),
            &format!("eval-{at:03}"),
        )
        .expect("these are ids"),
        labels,
        verdict: if outcomes.contains(&Outcome::Passed) {
            Verdict::Pass
        } else {
            Verdict::Fail
        },
        firm: true,
        samples: Some(samples.collect()),
        graded: Some(outcomes.len() as u32),
    }
}
