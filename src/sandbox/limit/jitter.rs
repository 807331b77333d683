//! Chance for waiting times, so that those who were refused together do not come back together. Seeded.

use std::time::Duration;

/// A source of chance; the same seed gives the same times.
#[derive(Clone, Debug)]
pub(in crate::sandbox) struct Jitter(fastrand::Rng);

impl Jitter {
    /// A source that starts from `seed`.
    pub(in crate::sandbox) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// `time` times something between `low` and `high`.
    pub(in crate::sandbox) fn stretch(&mut self, time: Duration, low: f64, high: f64) -> Duration {
        time.mul_f64(low + (high - low) * self.0.f64())
    }
}
