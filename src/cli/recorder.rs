//! Hands a run's events to the run directory and to the terminal.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use camino::Utf8PathBuf;

use super::progress::Progress;
use crate::model::{AttemptId, Event, with_causes};
use crate::runner::{RecordError, Recorder};
use crate::store::{RunDir, StoreError};

/// Keeps events in a run directory, and knows whether one was lost.
pub(super) struct Keeper {
    pub(super) directory: RunDir,
    lost: AtomicBool,
}

impl Keeper {
    /// Nothing has happened yet.
    pub(super) fn new(directory: RunDir) -> Self {
        Self {
            directory,
            lost: AtomicBool::new(false),
        }
    }

    /// Whether an event could not be kept.
    pub(super) fn has_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }
}

fn record_error(error: StoreError) -> RecordError {
    RecordError(with_causes(&error))
}

#[async_trait]
impl Recorder for Keeper {
    async fn open_try(&self, attempt: &AttemptId, try_number: u32) -> Result<Utf8PathBuf, RecordError> {
        self.directory
            .open_try(attempt, try_number)
            .await
            .map_err(record_error)
    }

    async fn record(&self, event: &Event) -> Result<(), RecordError> {
        let recorded = self.directory.record(event).await;
        if recorded.is_err() {
            self.lost.store(true, Ordering::Relaxed);
        }
        recorded.map_err(record_error)
    }
}

/// Keeps events and shows them.
pub(super) struct Recording {
    pub(super) keeper: Keeper,
    progress: Progress,
}

impl Recording {
    /// Nothing has happened yet.
    pub(super) fn new(directory: RunDir, progress: Progress) -> Self {
        Self {
            keeper: Keeper::new(directory),
            progress,
        }
    }
}

#[async_trait]
impl Recorder for Recording {
    async fn open_try(&self, attempt: &AttemptId, try_number: u32) -> Result<Utf8PathBuf, RecordError> {
        self.keeper.open_try(attempt, try_number).await
    }

    async fn record(&self, event: &Event) -> Result<(), RecordError> {
        self.progress.show(event);
        self.keeper.record(event).await
    }
}
