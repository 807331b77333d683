//! A bucket of calls that refills at a steady rate: each call is told when its turn is, in order. Does not wait itself.

use std::time::Duration;

/// Hands out turns so that no span of `window` ever holds more than the quota.
#[derive(Clone, Debug)]
pub(in crate::sandbox) struct Bucket {
    /// Between two calls that wait for each other.
    interval: Duration,
    /// How far ahead of a steady rate calls may be, after a pause.
    ahead: Duration,
    /// When the next call would be due at a steady rate.
    due: Duration,
}

impl Bucket {
    /// A bucket for `quota` calls (at least 1) in each `window`: up to a tenth of them at once, the others spread.
    pub(in crate::sandbox) fn new(quota: u32, window: Duration) -> Self {
        let quota = quota.max(1);
        let at_once = (quota / 10).max(1);
        // Whoever comes with a full bucket spends what is at once and what flows in meanwhile.
        let steady = (quota - at_once).max(1);
        let interval = window / steady;
        Self {
            interval,
            ahead: interval * (at_once - 1),
            due: Duration::ZERO,
        }
    }

    /// Takes a turn, and tells when it is: `now`, or later.
    pub(in crate::sandbox) fn turn(&mut self, now: Duration) -> Duration {
        let at = self.look(now);
        self.due = self.due.max(now) + self.interval;
        at
    }

    /// When the next turn is, without taking it.
    pub(in crate::sandbox) fn look(&self, now: Duration) -> Duration {
        now.max(self.due.saturating_sub(self.ahead))
    }

    /// Lets nobody have a turn before `until`; those that have one already keep it.
    pub(in crate::sandbox) fn pause(&mut self, until: Duration) {
        self.due = self.due.max(until + self.ahead);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Bucket;

    /// The most of `times`, which are in order, that any span of a length holds.
    fn most_within(times: &[Duration], window: Duration) -> usize {
        let in_span = |from: usize| {
            times[from..]
                .iter()
                .take_while(|time| **time < times[from] + window)
                .count()
        };
        (0..times.len()).map(in_span).max().unwrap_or(0)
    }

    #[test]
    fn no_second_ever_holds_more_deletes_than_the_quota_and_none_waits_for_ever() {
        let second = Duration::from_secs(1);
        let mut bucket = Bucket::new(20, second);
        let times: Vec<Duration> = (0..474).map(|_| bucket.turn(Duration::ZERO)).collect();
        assert!(most_within(&times, second) <= 20);
        assert!(times.is_sorted());
        // 474 deletions at 20 a second.
        assert!(times[473] < Duration::from_secs(28), "{:?}", times[473]);
    }

    #[test]
    fn no_minute_ever_holds_more_requests_than_the_quota_however_they_come() {
        let minute = Duration::from_secs(60);
        let mut bucket = Bucket::new(1_000, minute);
        let mut times = Vec::new();
        for burst in 0..40_u64 {
            let now = Duration::from_secs(burst * burst % 97 + burst * 20);
            times.extend((0..(burst * 37 % 200)).map(|_| bucket.turn(now)));
        }
        times.sort();
        assert!(most_within(&times, minute) <= 1_000);
    }

    #[test]
    fn a_few_calls_after_a_pause_go_at_once() {
        let mut bucket = Bucket::new(10_000, Duration::from_secs(60));
        let now = Duration::from_secs(1_000);
        assert!((0..1_000).all(|_| bucket.turn(now) == now));
        assert!(bucket.turn(now) > now);
    }

    #[test]
    fn nobody_has_a_turn_in_a_pause() {
        let mut bucket = Bucket::new(100, Duration::from_secs(60));
        let until = Duration::from_secs(30);
        bucket.pause(until);
        assert_eq!(bucket.turn(Duration::ZERO), until);
        assert!(bucket.turn(Duration::ZERO) > until);
    }

    #[test]
    fn a_quota_of_one_is_kept_too() {
        let minute = Duration::from_secs(60);
        let mut bucket = Bucket::new(1, minute);
        assert_eq!(bucket.turn(Duration::ZERO), Duration::ZERO);
        assert_eq!(bucket.turn(Duration::ZERO), minute);
    }
}
