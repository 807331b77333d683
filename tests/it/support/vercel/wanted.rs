//! What is asked of a sandbox that is created, forked or updated, and whether it may be.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::answer::Answer;
use super::machine::Disk;
use super::state::{State, now};

/// What is asked, of which nothing has to be there.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Asked {
    pub(crate) project_id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) ports: Option<Vec<u16>>,
    pub(crate) source: Option<Source>,
    pub(crate) timeout: Option<u64>,
    pub(crate) resources: Option<Resources>,
    pub(crate) runtime: Option<String>,
    pub(crate) image: Option<String>,
    pub(crate) persistent: Option<bool>,
    pub(crate) network_policy: Option<Value>,
    pub(crate) env: Option<BTreeMap<String, String>>,
    pub(crate) tags: Option<BTreeMap<String, String>>,
    pub(crate) snapshot_expiration: Option<u64>,
    pub(crate) keep_last_snapshots: Option<Value>,
    pub(crate) current_snapshot_id: Option<String>,
}

/// What it is to have.
#[derive(Deserialize)]
pub(crate) struct Resources {
    pub(crate) vcpus: Option<u64>,
}

/// What is on its disk at first.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Source {
    #[serde(rename = "type")]
    kind: String,
    url: Option<String>,
    revision: Option<String>,
    depth: Option<u32>,
    username: Option<String>,
    password: Option<String>,
    snapshot_id: Option<String>,
}

const MOST_PORTS: usize = 15;
const MOST_TAGS: usize = 5;
pub(crate) const FIVE_MINUTES: u64 = 300_000;

impl Asked {
    /// Whether a sandbox may be like this.
    pub(crate) fn checked(&self, state: &State) -> Result<(), Answer> {
        let wrong = |message: String| Err(Answer::bad_request(&message));
        if self.runtime.is_some() && self.image.is_some() {
            return wrong("`runtime` and `image` cannot be used together".to_owned());
        }
        if self
            .timeout
            .is_some_and(|timeout| timeout > state.limits.timeout_ms)
        {
            return Err(too_long(state));
        }
        if self.timeout.is_some_and(|timeout| timeout < 1000) {
            return wrong("`timeout` must be at least 1000".to_owned());
        }
        let vcpus = self.vcpus();
        if vcpus == 0 || (vcpus != 1 && vcpus % 2 == 1) || vcpus > state.limits.vcpus {
            let most = state.limits.vcpus;
            return wrong(format!("`resources.vcpus` must be 1 or even, and at most {most}"));
        }
        if self.ports.as_ref().is_some_and(|ports| ports.len() > MOST_PORTS) {
            return wrong(format!("At most {MOST_PORTS} ports"));
        }
        if self.tags.as_ref().is_some_and(|tags| tags.len() > MOST_TAGS) {
            return wrong(format!("At most {MOST_TAGS} tags"));
        }
        let safe = |char: char| char.is_ascii_alphanumeric() || "-_.~".contains(char);
        match &self.name {
            Some(name) if name.is_empty() || !name.chars().all(safe) => {
                wrong(format!("Invalid name `{name}`"))
            }
            Some(name) if state.sandboxes.contains_key(name) => wrong(format!(
                "A sandbox with the name '{name}' already exists for this project."
            )),
            _ => Ok(()),
        }
    }

    pub(crate) fn vcpus(&self) -> u64 {
        self.resources
            .as_ref()
            .and_then(|resources| resources.vcpus)
            .unwrap_or(2)
    }

    /// What is on the disk at first, and the snapshot that it is of.
    pub(crate) fn disk(&self, state: &mut State) -> Result<(Disk, Option<String>), Answer> {
        let Some(source) = &self.source else {
            return Ok((Disk::Empty, None));
        };
        let missing = |key: &str| Answer::bad_request(&format!("Missing `source.{key}`"));
        match source.kind.as_str() {
            "snapshot" => {
                if self.runtime.is_some() || self.image.is_some() {
                    return Err(Answer::bad_request("A snapshot has its own runtime"));
                }
                let id = source.snapshot_id.clone().ok_or_else(|| missing("snapshotId"))?;
                use_snapshot(state, &id)?;
                Ok((Disk::Snapshot(id.clone()), Some(id)))
            }
            "git" => {
                let disk = Disk::Git {
                    url: source.url.clone().ok_or_else(|| missing("url"))?,
                    revision: source.revision.clone(),
                    depth: source.depth,
                    user: source.username.clone().zip(source.password.clone()),
                };
                Ok((disk, None))
            }
            other => Err(Answer::bad_request(&format!("Unknown source `{other}`"))),
        }
    }
}

pub(crate) fn too_long(state: &State) -> Answer {
    let most = state.limits.timeout_ms;
    Answer::refused(
        400,
        "sandbox_timeout_invalid",
        &format!("The timeout exceeds the maximum of {most} ms"),
    )
}

/// Marks a snapshot as used.
pub(crate) fn use_snapshot(state: &mut State, id: &str) -> Result<(), Answer> {
    match state.snapshots.get_mut(id).filter(|snapshot| snapshot.usable()) {
        Some(snapshot) => {
            snapshot.last_used = Some(now());
            Ok(())
        }
        None => Err(Answer::refused(
            410,
            "snapshot_not_found",
            &format!("Snapshot not found: {id}"),
        )),
    }
}
