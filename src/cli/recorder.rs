//! Hands a run's events to the run directory, and to whoever shows them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};

use crate::model::{AttemptDetails, AttemptId, AttemptRecord, Event, with_causes};
use crate::runner::{Job, RecordError, Recorder};
use crate::store::{RunDir, StoreError};

/// Shows what happens in a run.
pub(super) trait Show: Send + Sync {
    /// Shows an event, if it is one for a reader.
    fn show(&self, event: &Event);
}

/// Finds somebody to show a run's events.
pub(super) trait Audience {
    /// For a run that is about to start in `directory`; `name` is empty for the run itself, and else what it is called.
    fn attend(&self, name: &'static str, job: &Job, directory: &Utf8Path) -> Arc<dyn Show>;
}

/// Keeps events and shows them.
pub(super) struct Recording {
    pub(super) directory: RunDir,
    show: Arc<dyn Show>,
    lost: AtomicBool,
}

impl Recording {
    /// Nothing has happened yet.
    pub(super) fn new(directory: RunDir, show: Arc<dyn Show>) -> Self {
        Self {
            directory,
            show,
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
impl Recorder for Recording {
    async fn open_try(&self, attempt: &AttemptId, try_number: u32) -> Result<Utf8PathBuf, RecordError> {
        let opened = self.directory.open_try(attempt, try_number).await;
        opened.map_err(record_error)
    }

    async fn close_try(&self, record: &AttemptRecord, details: &AttemptDetails) -> Result<(), RecordError> {
        let closed = self.directory.close_try(record, details).await;
        if closed.is_err() {
            self.lost.store(true, Ordering::Relaxed);
        }
        closed.map_err(record_error)
    }

    async fn record(&self, event: &Event) -> Result<(), RecordError> {
        let recorded = self.directory.record(event).await;
        if recorded.is_err() {
            self.lost.store(true, Ordering::Relaxed);
        }
        // Only now is what an attempt has left where it can be read.
        self.show.show(event);
        recorded.map_err(record_error)
    }
}
