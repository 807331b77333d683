//! Waits for a call's turn in a bucket. Does not know what is called.

use std::sync::{Mutex, PoisonError};

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

    /// Waits for a call's turn.
    pub(in crate::sandbox) async fn turn(&self) {
        let now = self.begun.elapsed();
        let at = self
            .bucket
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .turn(now);
        if at > now {
            tokio::time::sleep_until(self.begun + at).await;
        }
    }
}
