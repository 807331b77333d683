//! How many attempts with one label may run at once: fewer for a while after throttling. Knows no attempts; time is a value.

use std::time::Duration;

/// What is left of a limit after throttling.
const CUT: f64 = 0.8;
/// A limit is cut no further than to this, or to itself where it is smaller.
const LEAST: usize = 4;
/// How long an episode of throttling is, whatever else is heard of it, and how long each step of growing again takes.
const EPISODE: Duration = Duration::from_secs(60);

/// A number of attempts at once that gives way to throttling.
///
/// Everything heard within an `EPISODE` of a cut belongs to it, and so does whatever is heard of a try that started
/// before it: the tries of one crowd cut the limit once, however many they are. The episode's end does not depend on
/// how long a provider asks to wait, or a provider that keeps asking would freeze the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    most: usize,
    current: usize,
    cut_at: Option<Duration>,
    /// When it grows again, while it is cut.
    grows_at: Option<Duration>,
}

impl Limit {
    /// So many at once; 0 counts as 1.
    pub fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            current: most.max(1),
            cut_at: None,
            grows_at: None,
        }
    }

    /// How many may run at once at `now`. Times never go back.
    pub fn at(&mut self, now: Duration) -> usize {
        while let Some(time) = self.grows_at
            && time <= now
        {
            self.current = ((self.current as f64 / CUT).ceil() as usize).min(self.most);
            self.grows_at = (self.current < self.most).then(|| time.saturating_add(EPISODE));
        }
        self.current
    }

    /// Takes note that a try which started at `started` was throttled.
    pub fn throttled(&mut self, started: Duration, now: Duration) {
        let current = self.at(now);
        let is_told = self
            .cut_at
            .is_some_and(|cut| started < cut || now < cut.saturating_add(EPISODE));
        if is_told {
            return;
        }
        let cut = (current as f64 * CUT).floor() as usize;
        self.current = cut.max(LEAST.min(self.most));
        self.cut_at = Some(now);
        self.grows_at = (self.current < self.most).then(|| now.saturating_add(2 * EPISODE));
    }

    /// When it grows again, if it is cut.
    pub fn grows_at(&self) -> Option<Duration> {
        self.grows_at
    }
}

#[cfg(test)]
mod tests {
    use super::Limit;
    use std::time::Duration;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_crowd_that_is_throttled_cuts_the_limit_once() {
        let mut limit = Limit::new(200);
        for second in 0..60 {
            limit.throttled(s(0), s(30 + second));
        }
        assert_eq!(limit.at(s(89)), 160);
        // Those that started before the cut say nothing new, however late they end.
        limit.throttled(s(29), s(100));
        assert_eq!(limit.at(s(100)), 160);
    }

    #[test]
    fn throttling_that_goes_on_cuts_once_a_minute_down_to_four() {
        let mut limit = Limit::new(200);
        let after: Vec<usize> = (0..25)
            .map(|minute| {
                for second in 0..60 {
                    let now = s(60 * minute + second);
                    limit.throttled(now, now);
                }
                limit.at(s(60 * minute + 59))
            })
            .collect();
        assert_eq!(after[..6], [160, 128, 102, 81, 64, 51]);
        assert_eq!(after.last(), Some(&4));
    }

    #[test]
    fn a_limit_grows_again_step_by_step_when_throttling_is_over() {
        let mut limit = Limit::new(200);
        limit.throttled(s(0), s(0));
        limit.throttled(s(60), s(60));
        assert_eq!(limit.at(s(179)), 128);
        assert_eq!(limit.grows_at(), Some(s(180)));
        assert_eq!(limit.at(s(180)), 160);
        assert_eq!(limit.at(s(10_000)), 200);
        assert_eq!(limit.grows_at(), None);
    }

    #[test]
    fn a_small_limit_is_never_cut_below_itself() {
        let mut limit = Limit::new(3);
        limit.throttled(s(0), s(0));
        assert_eq!((limit.at(s(0)), limit.grows_at()), (3, None));
        let mut none = Limit::new(0);
        assert_eq!(none.at(s(0)), 1);
    }
}
