//! Snapshots with `attempt.setup` done, for warm boots: how one is found and deleted. They are found by the name of the
//! sandbox that made them; nothing of them is kept here.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::Method;
use serde::de::IgnoredAny;

use super::api::{OfSnapshot, Snapshot, SnapshotStatus, Snapshots};
use super::client::Ask;
use super::error::VercelError;
use super::key::Key;
use super::list::list;
use super::{Engine, VercelBackend};
use crate::sandbox::{SandboxError, Setup};

/// A snapshot that sandboxes can start from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotState {
    /// The service's id of it.
    pub id: String,
    /// What it was made for; `None` for one that was named.
    pub key: Option<Key>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it goes; `None` is never.
    pub expires_at: Option<Timestamp>,
    /// Its size in bytes, where the service says so.
    pub bytes: Option<u64>,
    /// Whether this very call has made it.
    pub is_new: bool,
}

impl VercelBackend {
    /// The snapshot that a run would start from now, or why there is none.
    ///
    /// # Errors
    /// Nothing at all is to be had from the service.
    pub async fn check_snapshot(&self, setup: &Setup) -> Result<Result<SnapshotState, String>, SandboxError> {
        let looked = self.0.look(setup).await.map_err(VercelError::in_creation)?;
        Ok(looked.unwrap_or_else(|| {
            Err("neither `sandbox.warm` nor `sandbox.snapshot-id` asks for a snapshot".to_owned())
        }))
    }

    /// Deletes the snapshots of this key, or the one that is named. Returns how many there were.
    ///
    /// # Errors
    /// The service does not delete it; the key cannot be made out.
    pub async fn delete_snapshots(&self, setup: &Setup) -> Result<usize, SandboxError> {
        let engine = &self.0;
        if let Some(id) = &engine.config.snapshot_id {
            let deleted = engine
                .delete_snapshot(id)
                .await
                .map_err(VercelError::in_creation)?;
            return Ok(usize::from(deleted));
        }
        let builder = engine.key(setup)?.builder();
        let deleted = async {
            let mut deleted = 0;
            for snapshot in engine.snapshots_of(&builder).await? {
                if snapshot.status != SnapshotStatus::Deleted {
                    deleted += usize::from(engine.delete_snapshot(&snapshot.id).await?);
                }
            }
            engine.account.reaper.delete(&builder, None).await?;
            Ok(deleted)
        };
        deleted.await.map_err(VercelError::in_creation)
    }
}

impl Engine {
    /// The id of the snapshot for a run's sandboxes, or why there is none; `None` where none is wanted.
    pub(super) async fn find_snapshot(
        &self,
        setup: &Setup,
    ) -> Result<Option<Result<String, String>>, VercelError> {
        let looked = self.look(setup).await?;
        Ok(looked.map(|looked| looked.map(|state| state.id)))
    }

    /// The key of what `setup` does here.
    pub(super) fn key(&self, setup: &Setup) -> Result<Key, SandboxError> {
        Key::of(&self.config, self.fetched(), setup)
    }

    async fn look(&self, setup: &Setup) -> Result<Option<Result<SnapshotState, String>>, VercelError> {
        let needed = setup.spec.limit;
        let looked = match (&self.config.snapshot_id, &self.config.warm) {
            (Some(id), _) => self.named(id, needed).await,
            (None, Some(_)) => match self.key(setup) {
                Ok(key) => self.keyed(&key, needed).await,
                Err(error) => return Ok(Some(Err(error.to_string()))),
            },
            (None, None) => return Ok(None),
        };
        match looked {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.shuts_out() => Err(error),
            // A service that will not look, or is in trouble, may still have sandboxes.
            Err(error) => Ok(Some(Err(error.to_string()))),
        }
    }

    async fn named(&self, id: &str, needed: Duration) -> Result<Result<SnapshotState, String>, VercelError> {
        let ask = Ask::get("look at the snapshot", vec!["v2", "sandboxes", "snapshots", id]);
        match self.account.client.ask::<OfSnapshot>(&ask).await {
            Ok(found) => Ok(self
                .usable(&found.snapshot, needed)
                .map(|()| state(&found.snapshot, None))),
            Err(error) if matches!(error.status(), Some(400 | 404 | 410)) => {
                Ok(Err(format!("snapshot `{id}` is not there: {}", error.problem)))
            }
            Err(error) => Err(error),
        }
    }

    /// The snapshot of this key that lives so long, or why there is none.
    pub(super) async fn keyed(
        &self,
        key: &Key,
        needed: Duration,
    ) -> Result<Result<SnapshotState, String>, VercelError> {
        let mut why = None;
        for snapshot in self.snapshots_of(&key.builder()).await? {
            match self.usable(&snapshot, needed) {
                Ok(()) => return Ok(Ok(state(&snapshot, Some(key)))),
                // What is wrong with the newest one tells the most.
                Err(reason) => drop(why.get_or_insert(reason)),
            }
        }
        Ok(Err(why.unwrap_or_else(|| {
            format!("there is no snapshot for key {key} (`evalwave snapshot build` makes it)")
        })))
    }

    /// The snapshots that a sandbox has made, the newest first.
    pub(super) async fn snapshots_of(&self, builder: &str) -> Result<Vec<Snapshot>, VercelError> {
        let client = &self.account.client;
        let ask = Ask::get("look for the snapshot", vec!["v2", "sandboxes", "snapshots"]).query(vec![
            ("project", &client.project_id),
            ("name", builder),
            ("sortOrder", "desc"),
        ]);
        match list(client, &ask, |page: Snapshots| (page.snapshots, page.pagination)).await {
            Ok(mut found) => {
                found.sort_by(|one, other| other.created_at.0.total_cmp(&one.created_at.0));
                Ok(found)
            }
            Err(error) if error.is_gone() => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Whether a snapshot can be started from, and will be so long.
    pub(super) fn usable(&self, snapshot: &Snapshot, needed: Duration) -> Result<(), String> {
        let id = &snapshot.id;
        match snapshot.status {
            SnapshotStatus::Created => {}
            SnapshotStatus::Deleted => return Err(format!("snapshot `{id}` is deleted")),
            SnapshotStatus::Failed => return Err(format!("snapshot `{id}` has failed")),
            SnapshotStatus::Unknown => return Err(format!("snapshot `{id}` is in an unknown state")),
        }
        // Nothing, and 0, are never.
        let expires = snapshot.expires_at.filter(|at| at.0 > 0.0).map(|at| at.moment());
        match expires {
            Some(at) if at <= self.at(Duration::ZERO) => Err(format!("snapshot `{id}` has expired, at {at}")),
            Some(at) if at <= self.at(needed) => Err(format!(
                "snapshot `{id}` expires before an attempt can end, at {at}"
            )),
            _ => Ok(()),
        }
    }

    /// Returns whether it was there.
    async fn delete_snapshot(&self, id: &str) -> Result<bool, VercelError> {
        let ask = Ask {
            method: Method::DELETE,
            ..Ask::get("delete the snapshot", vec!["v2", "sandboxes", "snapshots", id])
        };
        match self.account.client.ask::<IgnoredAny>(&ask).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_gone() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

pub(super) fn state(snapshot: &Snapshot, key: Option<&Key>) -> SnapshotState {
    SnapshotState {
        id: snapshot.id.clone(),
        key: key.cloned(),
        created_at: snapshot.created_at.moment(),
        expires_at: snapshot.expires_at.filter(|at| at.0 > 0.0).map(|at| at.moment()),
        bytes: snapshot.size_bytes,
        is_new: false,
    }
}
