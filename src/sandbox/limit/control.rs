//! Waits for a call's turn in a bucket. Does not know what is called.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Bucket;

/// A bucket of calls that many share.
#[derive(Debug)]
pub(in crate::sandbox) struct Control {
    begun: Instant,
    bucket: Mutex<Bucket>,
}

impl Control {
    /// Calls that start with a full bucket.
    pub(in crate::sandbox) fn new(bucket: Bucket) -> Self {
        Self {
            begun: Instant::now(),
            bucket: Mutex::new(bucket),
        }
    }

    /// Lets nobody call for so long.
    pub(in crate::sandbox) fn pause(&self, time: Duration) {
        let until = self.begun.elapsed() + time;
        self.bucket().pause(until);
    }

    /// How long a call would wait that came now.
    pub(in crate::sandbox) fn wait(&self) -> Duration {
        let now = self.begun.elapsed();
        self.bucket().look(now).saturating_sub(now)
    }

    /// Waits for a call's turn.
    pub(in crate::sandbox) async fn turn(&self) {
        let now = self.begun.elapsed();
        let at = self.bucket().turn(now);
        if at > now {
            tokio::time::sleep_until(self.begun + at).await;
        }
    }

    fn bucket(&self) -> MutexGuard<'_, Bucket> {
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
