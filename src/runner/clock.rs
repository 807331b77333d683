//! Seconds of a run. Knows no time of day: a clock that is set changes nothing.

use std::time::Duration;

use tokio::time::Instant;

use crate::aggregate::round_seconds;

/// Tells how far a run is, the time of its earlier sessions included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// When this session of the run began.
    pub(super) started: Instant,
    /// How long those before it took.
    pub(super) since: Duration,
}

impl Clock {
    /// Seconds from the run's start, as every document has them.
    pub(super) fn offset(self, at: Instant) -> f64 {
        seconds(self.since + at.saturating_duration_since(self.started))
    }
}

/// Seconds, as every document has them.
pub(super) fn seconds(duration: Duration) -> f64 {
    round_seconds(duration.as_secs_f64())
}
