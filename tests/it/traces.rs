//! Traces of attempts for simulations: seeded generators, and files. Shared by the tests and the scheduling benchmark.

use std::time::Duration;

use evalwave::model::{Outcome, Policy};
use evalwave::schedule::{PairSpec, Trace, TraceAttempt, TracePair};

/// Seconds of an attempt's longest command; whatever is longer is killed there.
pub(crate) const LONGEST: f64 = 828.0;

/// What generated attempts are like. Seconds are drawn log-normally: per pair, then per attempt and for its prediction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) pairs: usize,
    pub(crate) runs: u32,
    /// Of a pair in the middle.
    pub(crate) seconds: f64,
    /// How much pairs differ.
    pub(crate) spread: f64,
    /// How much the attempts of a pair differ.
    pub(crate) noise: f64,
    /// How far a prediction is off.
    pub(crate) error: f64,
    /// No command takes longer.
    pub(crate) longest: f64,
    /// No prediction is longer: it was a duration once, and was cut off like one.
    pub(crate) longest_predicted: f64,
    /// Nothing passes.
    pub(crate) all_fail: bool,
}

/// 237 pairs x `runs`: most take a few minutes, the slowest 828 s; nine tenths of all first attempts pass, one pair in
/// ten never does.
pub(crate) fn benchmark(runs: u32) -> Shape {
    Shape {
        pairs: 237,
        runs,
        seconds: 209.0,
        spread: 0.5,
        noise: 0.2,
        error: 0.15,
        longest: LONGEST,
        longest_predicted: LONGEST,
        all_fail: false,
    }
}

impl Shape {
    /// A trace, the same for the same seed.
    pub(crate) fn trace(&self, seed: u64) -> Trace {
        let mut dice = Dice(seed);
        let pairs = (0..self.pairs).map(|_| self.pair(&mut dice)).collect();
        Trace {
            overhead: Duration::from_secs(40),
            policy: Policy::Any,
            runs: self.runs,
            pairs,
            limits: Vec::new(),
        }
    }

    fn pair(&self, dice: &mut Dice) -> TracePair {
        let usual = self.seconds * (self.spread * dice.normal()).exp();
        let predicted = (usual * (self.error * dice.normal()).exp()).min(self.longest_predicted);
        let passing = match dice.share() {
            share if share < 0.09 => 0.02,
            share if share < 0.9 => 0.93,
            _ => 0.5,
        };
        let attempts = (0..self.runs).map(|_| {
            let seconds = (1.04 * usual * (self.noise * dice.normal()).exp()).min(self.longest);
            let passes = dice.share() < passing && !self.all_fail;
            attempt(seconds, passes)
        });
        TracePair {
            attempts: attempts.collect(),
            spec: predict(Some(predicted)),
        }
    }
}

/// The same attempts with every prediction changed; `None` is no prediction.
pub(crate) fn predicted_as(trace: &Trace, mut change: impl FnMut(usize, f64) -> Option<f64>) -> Trace {
    let mut trace = trace.clone();
    for (position, pair) in trace.pairs.iter_mut().enumerate() {
        let before = pair.spec.predicted.unwrap_or_default().as_secs_f64();
        pair.spec = predict(change(position, before));
    }
    trace
}

/// The same attempts with predictions that are three times too long, three times too short, or right, at random.
pub(crate) fn wrong_by_three(trace: &Trace, seed: u64) -> Trace {
    let mut dice = Dice(seed);
    predicted_as(trace, |_, seconds| {
        let factor = [3.0, 1.0 / 3.0, 1.0][(dice.share() * 3.0) as usize];
        Some(seconds * factor)
    })
}

/// A trace with one pair that takes five times as long as the longest of the others.
pub(crate) fn with_giant(trace: &Trace) -> Trace {
    let mut trace = trace.clone();
    let giant = &mut trace.pairs[0];
    giant.attempts.fill(attempt(5.0 * LONGEST, true));
    giant.spec = predict(Some(5.0 * LONGEST));
    trace
}

/// A trace as a JSON document holds it.
pub(crate) fn read(text: &str) -> Trace {
    let document: serde_json::Value = serde_json::from_str(text).expect("a trace is JSON");
    let seconds = |value: &serde_json::Value| value.as_f64().expect("a duration is a number");
    let pairs = document["pairs"].as_array().expect("a trace has pairs");
    let pairs = pairs.iter().map(|pair| TracePair {
        spec: predict(pair["predicted_seconds"].as_f64()),
        attempts: pair["attempts"]
            .as_array()
            .expect("a pair has attempts")
            .iter()
            .map(|each| attempt(seconds(&each["seconds"]), each["passed"] == true))
            .collect(),
    });
    Trace {
        overhead: Duration::from_secs_f64(seconds(&document["overhead_seconds"])),
        policy: Policy::Any,
        runs: seconds(&document["runs"]) as u32,
        pairs: pairs.collect(),
        limits: Vec::new(),
    }
}

/// Longest attempt and all attempts: what no schedule of so many at once can be faster than.
pub(crate) fn lower_bound(trace: &Trace, concurrency: usize) -> f64 {
    let attempts = trace.pairs.iter().flat_map(|pair| &pair.attempts);
    let seconds = attempts.map(|attempt| (attempt.command + trace.overhead).as_secs_f64());
    let (longest, all) = seconds.fold((0.0_f64, 0.0), |(longest, all), each| {
        (longest.max(each), all + each)
    });
    longest.max(all / concurrency as f64)
}

/// Sandboxes that can be created at a rate that rises: so many a minute, and so many more each minute after.
pub(crate) fn creation_ramp(overhead: Duration, first: f64, more: f64) -> impl FnMut(Duration) -> Duration {
    let mut free_at = 0.0_f64;
    move |now: Duration| {
        let at = free_at.max(now.as_secs_f64());
        let rate = (first + more * (at / 60.0).floor()) / 60.0;
        free_at = at + 1.0 / rate;
        Duration::from_secs_f64(at).saturating_sub(now) + overhead
    }
}

fn predict(seconds: Option<f64>) -> PairSpec {
    PairSpec {
        predicted: seconds.map(Duration::from_secs_f64),
        ..PairSpec::default()
    }
}

fn attempt(seconds: f64, passes: bool) -> TraceAttempt {
    TraceAttempt {
        command: Duration::from_secs_f64(seconds),
        outcome: if passes { Outcome::Passed } else { Outcome::Failed },
        score: None,
    }
}

/// SplitMix64: small, and the same on every machine.
struct Dice(u64);

impl Dice {
    /// From 0 to below 1.
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Of mean 0 and standard deviation 1, by Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.share()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.share()).cos()
    }
}
