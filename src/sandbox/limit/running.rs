//! How many sandboxes may run at once: a limit that throttling cuts and quiet time lets grow again. Time is a value.

use std::time::Duration;

/// However often the engine throttles, so many may run.
const LEAST: usize = 4;

/// What is left of the limit after a cut.
const CUT: f64 = 0.8;

/// Throttling within so long is one episode, which cuts once. What the engine says of waiting has no part in it: told
/// to wait for long again and again, the limit would never grow.
const COOLDOWN: Duration = Duration::from_secs(30);

/// How often a limit that was cut grows, once the engine is quiet.
const GROWS_EVERY: Duration = Duration::from_secs(15);

/// By how much of the most it grows, at least 1.
const GROWS_BY: f64 = 0.1;

/// A limit that can be resized, and what is running below it.
#[derive(Clone, Debug)]
pub(in crate::sandbox) struct Running {
    most: usize,
    limit: usize,
    running: usize,
    /// When the current episode is over, and from when on the limit grows.
    calm_at: Duration,
    grown_at: Duration,
}

impl Running {
    /// A limit of `most`, at least 1.
    pub(in crate::sandbox) fn new(most: usize) -> Self {
        let most = most.max(1);
        Self {
            most,
            limit: most,
            running: 0,
            calm_at: Duration::ZERO,
            grown_at: Duration::ZERO,
        }
    }

    /// Takes a place, where one is free. Otherwise: when to ask again, where time alone can free one.
    pub(in crate::sandbox) fn take(&mut self, now: Duration) -> Result<(), Option<Duration>> {
        self.grow(now);
        if self.running < self.limit {
            self.running += 1;
            return Ok(());
        }
        Err((self.limit < self.most).then(|| self.calm_at.max(self.grown_at + GROWS_EVERY)))
    }

    /// Gives a place back.
    pub(in crate::sandbox) fn release(&mut self) {
        self.running -= 1;
    }

    /// The engine throttles: the limit is cut, once an episode.
    pub(in crate::sandbox) fn throttled(&mut self, now: Duration) {
        if now < self.calm_at {
            return;
        }
        self.grow(now);
        let cut = (self.limit as f64 * CUT) as usize;
        self.limit = cut.max(LEAST.min(self.most));
        self.calm_at = now + COOLDOWN;
        self.grown_at = self.calm_at;
    }

    /// The limit as it is now.
    #[cfg(test)]
    pub(in crate::sandbox) fn limit(&self) -> usize {
        self.limit
    }

    fn grow(&mut self, now: Duration) {
        let step = ((self.most as f64 * GROWS_BY) as usize).max(1);
        while self.limit < self.most && self.grown_at + GROWS_EVERY <= now {
            self.limit = (self.limit + step).min(self.most);
            self.grown_at += GROWS_EVERY;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Running;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn an_episode_of_throttling_cuts_once_however_many_are_refused() {
        let mut running = Running::new(474);
        for second in 100..120 {
            running.throttled(at(second));
        }
        assert_eq!(running.limit(), 379);
        running.throttled(at(131));
        assert_eq!(running.limit(), 303);
    }

    #[test]
    fn the_limit_never_falls_below_four_nor_rises_above_what_it_was() {
        let mut running = Running::new(10);
        for episode in 0..50 {
            running.throttled(at(31 * episode));
        }
        assert_eq!(running.limit(), 4);
        assert!(running.take(at(100_000)).is_ok());
        assert_eq!(running.limit(), 10);
        let mut small = Running::new(2);
        small.throttled(at(0));
        assert_eq!(small.limit(), 2);
    }

    #[test]
    fn whoever_waits_is_told_when_the_limit_has_grown() {
        let mut running = Running::new(100);
        for _ in 0..80 {
            running.take(at(0)).unwrap();
        }
        running.throttled(at(10));
        assert_eq!(running.take(at(11)), Err(Some(at(55))));
        assert_eq!(running.take(at(55)), Ok(()));
        // Without a cut only somebody's end frees a place.
        let mut full = Running::new(1);
        full.take(at(0)).unwrap();
        assert_eq!(full.take(at(1)), Err(None));
        full.release();
        assert_eq!(full.take(at(1)), Ok(()));
    }
}
