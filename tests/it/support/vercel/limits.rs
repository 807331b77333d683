//! What an account may ask for, and the largest rates that were seen. Time is a value, in milliseconds.

use std::collections::VecDeque;
use std::num::NonZeroU64;

use serde::{Deserialize, Deserializer};

/// What an account may ask for.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Limits {
    /// Sessions that are not over.
    pub(crate) concurrent: u64,
    /// vCPUs of sandboxes created in a minute: at first, more with each minute, at most.
    pub(crate) vcpus_per_minute: [u64; 3],
    pub(crate) requests_per_minute: u64,
    pub(crate) deletes_per_second: u64,
    /// How long a minute is, not 0: shorter where time is scaled.
    #[serde(deserialize_with = "positive")]
    pub(crate) minute_ms: u64,
    /// Of one sandbox.
    pub(crate) vcpus: u64,
    /// Of one sandbox.
    pub(crate) timeout_ms: u64,
}

impl Default for Limits {
    /// Those of the Pro plan.
    fn default() -> Self {
        Self {
            concurrent: 10_000,
            vcpus_per_minute: [150, 500, 5_000],
            requests_per_minute: 10_000,
            deletes_per_second: 20,
            minute_ms: 60_000,
            vcpus: 8,
            timeout_ms: 24 * 60 * 60 * 1000,
        }
    }
}

impl Limits {
    /// No rates and nothing to count, for tests of something else.
    pub(crate) fn none() -> Self {
        Self {
            concurrent: u64::MAX,
            vcpus_per_minute: [u64::MAX, 0, u64::MAX],
            requests_per_minute: u64::MAX,
            deletes_per_second: u64::MAX,
            ..Self::default()
        }
    }
}

fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    NonZeroU64::deserialize(deserializer).map(NonZeroU64::get)
}

/// Minutes without a creation after which the ramp begins again.
const IDLE_MINUTES: u64 = 10;

/// How many vCPUs may still be created. The published words leave open where a minute begins; here the first begins
/// with the first creation.
#[derive(Debug, Default)]
pub(crate) struct Quota {
    first: Option<u64>,
    last: u64,
    minute: u64,
    used: u64,
}

impl Quota {
    /// Takes from it.
    ///
    /// # Errors
    /// Nothing is taken; so many milliseconds remain of this minute.
    pub(crate) fn take(&mut self, now: u64, vcpus: u64, limits: &Limits) -> Result<(), u64> {
        let idle = self.first.is_some() && now - self.last >= IDLE_MINUTES * limits.minute_ms;
        let first = match self.first {
            Some(first) if !idle => first,
            _ => {
                self.minute = 0;
                self.used = 0;
                *self.first.insert(now)
            }
        };
        let minute = (now - first) / limits.minute_ms;
        if minute != self.minute {
            self.minute = minute;
            self.used = 0;
        }
        let [start, ramp, most] = limits.vcpus_per_minute;
        let allowed = start.saturating_add(ramp.saturating_mul(minute)).min(most);
        if self.used.saturating_add(vcpus) > allowed {
            return Err(limits.minute_ms - (now - first) % limits.minute_ms);
        }
        self.used += vcpus;
        self.last = now;
        Ok(())
    }
}

/// How much there was in any window of time, wherever it begins.
#[derive(Debug)]
pub(crate) struct Rate {
    window_ms: u64,
    recent: VecDeque<(u64, u64)>,
    sum: u64,
    peak: u64,
}

impl Rate {
    pub(crate) fn over(window_ms: u64) -> Self {
        Self {
            window_ms,
            recent: VecDeque::new(),
            sum: 0,
            peak: 0,
        }
    }

    /// Counts in windows of this length from now on.
    pub(crate) fn resize(&mut self, window_ms: u64) {
        self.window_ms = window_ms;
    }

    pub(crate) fn add(&mut self, now: u64, amount: u64) {
        self.forget(now);
        self.recent.push_back((now, amount));
        self.sum += amount;
        self.peak = self.peak.max(self.sum);
    }

    /// The milliseconds until one more fits under this limit; `None` where it does now.
    pub(crate) fn full(&mut self, now: u64, limit: u64) -> Option<u64> {
        self.forget(now);
        if self.sum < limit {
            return None;
        }
        let oldest = self.recent.front().map_or(now, |(at, _)| *at);
        Some(oldest + self.window_ms - now)
    }

    /// The most in any window.
    pub(crate) fn peak(&self) -> u64 {
        self.peak
    }

    fn forget(&mut self, now: u64) {
        while let Some((at, amount)) = self.recent.front().copied()
            && at + self.window_ms <= now
        {
            self.recent.pop_front();
            self.sum -= amount;
        }
    }
}
