//! Deletes sandboxes, within the rate that the account allows, and finds those that a run has left behind. Knows a run
//! by its label alone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, StreamExt as _};
use reqwest::Method;
use serde::de::IgnoredAny;

use super::api::Sandboxes;
use super::client::{Ask, Client, Tries};
use super::create::{RUN_TAG, tag};
use super::error::{Again, VercelError};
use super::list::list;
use super::session::Session;
use crate::model::{LeftSandbox, Whereabouts};
use crate::sandbox::limit::{Bucket, Control};
use crate::sandbox::{Reaped, Reaper, SandboxError};

/// Deletions under way at once.
const AT_ONCE: usize = 32;

/// No answer keeps deletions waiting for longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A machine whose turn to be deleted is later than this is stopped before.
const SOON: Duration = Duration::from_secs(2);

/// Deletes sandboxes of one project.
#[derive(Debug)]
pub(super) struct VercelReaper {
    client: Arc<Client>,
    deletes: Control,
    whereabouts: Whereabouts,
}

impl VercelReaper {
    pub(super) fn new(client: Arc<Client>, deletes_per_second: u32, whereabouts: Whereabouts) -> Self {
        Self {
            client,
            deletes: Control::new(Bucket::new(deletes_per_second, Duration::from_secs(1))),
            whereabouts,
        }
    }

    /// Deletes a sandbox with its machine; gives whether it was there.
    pub(super) async fn delete(&self, name: &str, session: Option<&Session>) -> Result<bool, VercelError> {
        if let Some(session) = session
            && self.deletes.wait() > SOON
        {
            // It costs while it runs. That it could not be stopped is known by its deletion.
            let _ = session.stop(&self.client).await;
        }
        let ask = Ask {
            method: Method::DELETE,
            ..Ask::get("delete the sandbox", vec!["v2", "sandboxes", name])
                .query(vec![("projectId", &self.client.project_id)])
        };
        let once = ask.clone().once();
        let mut tries = Tries::of(&self.client, &ask);
        loop {
            self.deletes.turn().await;
            match self.client.ask::<IgnoredAny>(&once).await {
                Err(error) if error.is_gone() => return Ok(false),
                Err(error) => {
                    if let Again::Throttled(Some(wait)) = error.again() {
                        // This limit is the deletions' own: nothing else has to wait for it.
                        self.deletes.pause(wait.min(LONGEST_PAUSE));
                        tries.at_once(error)?;
                    } else {
                        tries.after(error).await?;
                    }
                }
                Ok(_) => return Ok(true),
            }
        }
    }

    async fn delete_all(&self, names: impl Iterator<Item = String>) -> Reaped {
        let deletions: Vec<Result<bool, SandboxError>> = stream::iter(names)
            .map(|name| async move { self.delete(&name, None).await.map_err(VercelError::in_sandbox) })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        deletions.into_iter().collect()
    }

    /// The names of all sandboxes with a label; the list may be larger than what was asked for, so each is looked at.
    pub(super) async fn labelled(&self, name: &str, value: &str) -> Result<Vec<String>, VercelError> {
        let label = format!("{name}:{value}");
        let ask = Ask::get("list the sandboxes of the run", vec!["v2", "sandboxes"]).query(vec![
            ("project", self.client.project_id.as_str()),
            ("tags", &label),
        ]);
        let listed = list(&self.client, &ask, |page: Sandboxes| {
            (page.sandboxes, page.pagination)
        });
        let ours = listed.await?.into_iter().filter(|sandbox| {
            let tags = sandbox.tags.as_ref();
            tags.and_then(|tags| tags.get(name))
                .is_some_and(|tag| tag == value)
        });
        Ok(ours.map(|sandbox| sandbox.name).collect())
    }
}

#[async_trait]
impl Reaper for VercelReaper {
    fn whereabouts(&self) -> Whereabouts {
        self.whereabouts.clone()
    }

    async fn reap(&self, run_id: &str, left: &[LeftSandbox]) -> Result<Reaped, SandboxError> {
        // Those that are known by name first: they are deleted also where no list is to be had, however long that takes.
        let known: BTreeSet<String> = left.iter().map(|left| left.name.clone()).collect();
        let mut reaped = self.delete_all(known.iter().cloned()).await;
        match self.labelled(RUN_TAG, &tag(run_id)).await {
            Ok(listed) => {
                let more = listed.into_iter().filter(|name| !known.contains(name));
                let more = self.delete_all(more).await;
                reaped.deleted += more.deleted;
                reaped.failed.extend(more.failed);
            }
            Err(error) if reaped.failed.is_empty() => {
                return Err(SandboxError {
                    message: format!(
                        "{} of {} known by name deleted, and whether there are more is not known",
                        reaped.deleted,
                        known.len()
                    ),
                    source: Some(Box::new(error)),
                    class: None,
                });
            }
            Err(_) => {}
        }
        Ok(reaped)
    }
}
