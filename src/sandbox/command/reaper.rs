//! Deletes what a run left of its sandboxes, by the user's own `list` and `delete`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, StreamExt as _};

use super::engine::Engine;
use super::id::{Listed, listed};
use crate::config::template::Values;
use crate::model::{LeftSandbox, Whereabouts, file_name};
use crate::sandbox::{Reaped, Reaper, SandboxError};

/// How long one `delete` or `list` may take.
const LIMIT: Duration = Duration::from_secs(120);
/// How many are deleted at once.
const AT_ONCE: usize = 8;

/// Deletes sandboxes that the user's commands have made, from any process that knows the commands.
#[derive(Clone, Debug)]
pub struct CommandReaper {
    pub(super) engine: Arc<Engine>,
}

#[async_trait]
impl Reaper for CommandReaper {
    fn whereabouts(&self) -> Whereabouts {
        Whereabouts::Command
    }

    async fn reap(&self, run_id: &str, left: &[LeftSandbox]) -> Result<Reaped, SandboxError> {
        let engine = &self.engine;
        // What is about to be created is in no list yet.
        engine.creating.none().await;
        let mut ids = known(run_id, left)?;
        let there = engine.listed(run_id, left).await?;
        let before = there.as_deref().map(ids_of);
        if let Some(there) = there {
            // One that is not listed under its name and of which no id was heard was never created.
            let created: BTreeSet<&String> = left.iter().filter_map(|sandbox| sandbox.id.as_ref()).collect();
            ids.retain(|id, _| created.contains(id) || there.iter().any(|listed| listed.id == *id));
            for listed in there {
                let name = listed.name.unwrap_or_else(|| listed.id.clone());
                ids.insert(listed.id, name);
            }
        }
        let deletions: Vec<_> = ids
            .into_iter()
            .map(|(id, name)| engine.delete_any(run_id, name, id))
            .collect();
        let deleted: Vec<_> = stream::iter(deletions).buffer_unordered(AT_ONCE).collect().await;
        // A `delete` may fail, or do nothing, because there is nothing to delete.
        let is_listed = |there: &Option<BTreeSet<String>>, id: &String| {
            let there = there.as_ref();
            there.is_none_or(|there| there.contains(id))
        };
        let after = match deleted.iter().all(Result::is_ok) {
            true => Some(BTreeSet::new()),
            false => engine.listed(run_id, left).await?.as_deref().map(ids_of),
        };
        let deleted = deleted.into_iter().map(|deletion| match deletion {
            Ok(id) => Ok(is_listed(&before, &id)),
            Err((id, error)) if is_listed(&after, &id) => Err(SandboxError {
                message: format!("cannot delete the sandbox `{id}`"),
                class: None,
                source: Some(Box::new(error)),
            }),
            Err(_) => Ok(false),
        });
        Ok(deleted.collect())
    }
}

fn ids_of(listed: &[Listed]) -> BTreeSet<String> {
    listed.iter().map(|listed| listed.id.clone()).collect()
}

/// The ids that are known, with the names; a sandbox whose id was not heard of may go by its name.
fn known(run_id: &str, left: &[LeftSandbox]) -> Result<BTreeMap<String, String>, SandboxError> {
    // They were read from a file, and become words of a command.
    let odd = |word: &str| word.is_empty() || file_name(word) != *word || word.starts_with('-');
    let mut ids = BTreeMap::new();
    for sandbox in left {
        let id = sandbox.id.as_ref().unwrap_or(&sandbox.name);
        let foreign = listed(id.as_bytes()).is_err() || id.split_whitespace().count() != 1;
        if foreign || odd(&sandbox.name) || odd(run_id) {
            let message = format!(
                "cannot delete the sandbox `{}`: it is none of ours",
                sandbox.name.escape_debug()
            );
            return Err(SandboxError::new(message));
        }
        ids.insert(id.clone(), sandbox.name.clone());
    }
    Ok(ids)
}

/// Whether a sandbox's name is one of the run's.
fn is_of(run_id: &str, name: &str) -> bool {
    name.strip_prefix(run_id)
        .is_some_and(|rest| rest.starts_with('-'))
}

impl Engine {
    /// The sandboxes of the run that are there; `None` where there is no `list`.
    async fn listed(&self, run_id: &str, left: &[LeftSandbox]) -> Result<Option<Vec<Listed>>, SandboxError> {
        let Some(list) = &self.config.list else {
            return Ok(None);
        };
        let values = Values::from([("run_id", run_id)]);
        let output = limited("list", self.call("list", list, &values, None)).await?;
        let mut there = listed(&output)
            .map_err(|why| SandboxError::new(format!("cannot use what `sandbox.list` printed: {why}")))?;
        // One that is asked for the run's sandboxes knows which they are.
        if !list.uses("run_id") {
            there.retain(|listed| {
                let names = [Some(&listed.id), listed.name.as_ref()];
                names
                    .into_iter()
                    .flatten()
                    .any(|name| is_of(run_id, name) || left.iter().any(|sandbox| sandbox.name == *name))
            });
        }
        Ok(Some(there))
    }

    /// Deletes one sandbox.
    pub(super) async fn delete(&self, run_id: &str, name: &str, id: &str) -> Result<(), SandboxError> {
        let values = Values::from([("run_id", run_id), ("name", name), ("sandbox", id)]);
        let template = &self.config.delete;
        limited("delete", self.call("delete", template, &values, None)).await?;
        Ok(())
    }

    /// The same of one of many; says of which.
    async fn delete_any(
        &self,
        run_id: &str,
        name: String,
        id: String,
    ) -> Result<String, (String, SandboxError)> {
        let values = Values::from([
            ("run_id", run_id),
            ("name", name.as_str()),
            ("sandbox", id.as_str()),
        ]);
        self.halt(&values).await;
        match self.delete(run_id, &name, &id).await {
            Ok(()) => Ok(id),
            Err(error) => Err((id, error)),
        }
    }
}

async fn limited<T>(
    key: &str,
    work: impl Future<Output = Result<T, SandboxError>>,
) -> Result<T, SandboxError> {
    match tokio::time::timeout(LIMIT, work).await {
        Ok(done) => done,
        Err(_) => {
            let limit = LIMIT.as_secs();
            Err(SandboxError::new(format!(
                "`sandbox.{key}` took longer than {limit} s"
            )))
        }
    }
}
