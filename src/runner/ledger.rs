//! Keeps account of a run's sandboxes: each is told before it is created, and again when it is gone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::{RecordError, Recorder};
use crate::model::{AttemptId, Event, LeftSandbox};
use crate::sandbox::{Ledger, SandboxError};

/// The sandboxes of one run.
pub(super) struct Account {
    recorder: Arc<dyn Recorder>,
    /// The engine's own ids by our names.
    open: Mutex<BTreeMap<String, Option<String>>>,
}

impl Account {
    pub(super) fn new(recorder: Arc<dyn Recorder>) -> Self {
        Self {
            recorder,
            open: Mutex::default(),
        }
    }

    /// Says that a sandbox is about to be created.
    pub(super) async fn name(&self, name: &str, attempt: Option<&AttemptId>) -> Result<(), RecordError> {
        let named = Event::SandboxNamed {
            name: name.to_owned(),
            attempt: attempt.cloned(),
        };
        self.recorder.record(&named).await?;
        self.open().insert(name.to_owned(), None);
        Ok(())
    }

    /// Says that a sandbox is not there any more.
    pub(super) async fn close(&self, name: &str) -> Result<(), RecordError> {
        if self.open().remove(name).is_none() {
            return Ok(());
        }
        let gone = Event::SandboxGone {
            name: name.to_owned(),
        };
        self.recorder.record(&gone).await
    }

    /// Those of which that was not said.
    pub(super) fn left(&self) -> Vec<LeftSandbox> {
        let open = self.open();
        let left = open.iter().map(|(name, id)| LeftSandbox {
            name: name.clone(),
            id: id.clone(),
        });
        left.collect()
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<String, Option<String>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unkept(error: RecordError) -> SandboxError {
    SandboxError {
        class: Some(crate::model::ErrorClass::Store),
        message: "cannot keep a sandbox's name".to_owned(),
        source: Some(Box::new(error)),
    }
}

#[async_trait]
impl Ledger for Account {
    async fn named(&self, name: &str) -> Result<(), SandboxError> {
        self.name(name, None).await.map_err(unkept)
    }

    async fn created(&self, name: &str, id: &str) -> Result<(), SandboxError> {
        self.open().insert(name.to_owned(), Some(id.to_owned()));
        let created = Event::SandboxCreated {
            name: name.to_owned(),
            id: id.to_owned(),
        };
        self.recorder.record(&created).await.map_err(unkept)
    }

    async fn gone(&self, name: &str) -> Result<(), SandboxError> {
        self.close(name).await.map_err(unkept)
    }
}
