//! Snapshots with `attempt.setup` done, for warm boots: how one is known, found, made and deleted. They are found by
//! the name of the sandbox that made them; nothing of them is kept here.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::Method;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use super::api::{Created, Snapshot, SnapshotStatus, Snapshots, Status};
use super::checkout::check_out;
use super::client::Ask;
use super::create::{NoSandbox, body, create, tag, version};
use super::error::{Problem, VercelError};
use super::script::Script;
use super::session::{Session, Start};
use super::{Engine, VercelBackend, archive};
use crate::config::{CommandLine, VercelBase, VercelConfig};
use crate::glob::PathGlobs;
use crate::sandbox::{SandboxError, SandboxSpec, Setup};

/// Another number where a snapshot holds something else.
const FORMAT: &str = "evalwave.warm/1";

/// Where every machine runs.
const ARCHITECTURE: &str = "linux/x86_64";

/// Files that say which tools are meant; where they are, they are part of the key.
const TOOL_VERSIONS: [&str; 6] = [
    ".node-version",
    ".nvmrc",
    ".python-version",
    ".tool-versions",
    "rust-toolchain",
    "rust-toolchain.toml",
];

/// The label that says which build a sandbox belongs to.
const BUILD_TAG: &str = "evalwave-build";

/// How often another build is looked after.
const LOOK: Duration = Duration::from_secs(5);

/// How long making a snapshot may take.
const MAKING: Duration = Duration::from_secs(600);

/// Time for a machine to start and be stored, besides the time for `setup`.
const AROUND: Duration = Duration::from_secs(1_800);

/// A snapshot is good for a build that finds it only if it lives as long.
const FRESH: Duration = Duration::from_secs(24 * 3600);

/// What a snapshot depends on, in short. Not on the commit, the vCPUs, or any secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

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

impl Key {
    /// The key of what `setup` does in this configuration.
    fn of(config: &VercelConfig, setup: &Setup) -> Result<Self, SandboxError> {
        let command = setup.command.as_ref().ok_or_else(|| {
            SandboxError::new(
                "there is nothing for a snapshot to hold: `attempt.setup` is not there, or not the same for every attempt",
            )
        })?;
        let mut hash = Sha256::new();
        let mut add = |name: &str, value: &[u8]| {
            // Lengths keep neighbours apart.
            hash.update(format!("{name} {}\n", value.len()));
            hash.update(value);
        };
        add("format", FORMAT.as_bytes());
        add("architecture", ARCHITECTURE.as_bytes());
        match &config.base {
            VercelBase::Runtime(name) => add("runtime", name.as_bytes()),
            VercelBase::Image(name) => add("image", name.as_bytes()),
        }
        match &command.line {
            CommandLine::Shell(text) => add("shell", text.as_bytes()),
            CommandLine::Argv(argv) => argv.iter().for_each(|word| add("word", word.as_bytes())),
        }
        for (name, value) in &command.env {
            if !name.starts_with("EVALWAVE_") {
                add(name, value.as_bytes());
            }
        }
        let files = &setup.workspace.files;
        let mut globs = Vec::new();
        for text in config.warm.as_deref().unwrap_or_default() {
            let glob = PathGlobs::new(std::slice::from_ref(text)).map_err(|error| {
                SandboxError::io("cannot use `sandbox.warm.files`", std::io::Error::other(error))
            })?;
            // A key without it would be the same whatever becomes of the file.
            if !files.iter().any(|file| glob.match_within(file.as_std_path())) {
                return Err(SandboxError::new(format!(
                    "`sandbox.warm.files` names `{text}`, and no file of `attempt.upload` is that"
                )));
            }
            globs.push(glob);
        }
        for file in files.iter() {
            let is_named = globs.iter().any(|glob| glob.match_within(file.as_std_path()));
            if is_named || TOOL_VERSIONS.contains(&file.as_str()) {
                let content = fs_err::read(setup.workspace.root.join(file));
                let content = content
                    .map_err(|error| SandboxError::io("cannot read a file of `sandbox.warm.files`", error))?;
                add(file.as_str(), &content);
            }
        }
        let digest = hash.finalize();
        Ok(Self(
            digest[..8].iter().map(|byte| format!("{byte:02x}")).collect(),
        ))
    }

    /// The sandbox that makes it.
    fn builder(&self) -> String {
        format!("evalwave-warm-{self}")
    }
}

impl VercelBackend {
    /// The snapshot that a run would start from now, or why there is none.
    ///
    /// # Errors
    /// The service does not say; the key cannot be made out.
    pub async fn check_snapshot(&self, setup: &Setup) -> Result<Result<SnapshotState, String>, SandboxError> {
        let engine = &self.0;
        let checked = match &engine.config.snapshot_id {
            Some(id) => engine.named(id, setup.spec.limit).await,
            None => {
                engine
                    .keyed(&Key::of(&engine.config, setup)?, setup.spec.limit)
                    .await
            }
        };
        checked.map_err(VercelError::in_creation)
    }

    /// Makes the snapshot, unless it is there; one build of a key at a time.
    ///
    /// # Errors
    /// No machine is to be had, or `attempt.setup` fails in it.
    pub async fn build_snapshot(
        &self,
        setup: &Setup,
        output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<SnapshotState, SandboxError> {
        let engine = &self.0;
        let key = Key::of(&engine.config, setup)?;
        let deadline = tokio::time::Instant::now() + setup.limit + AROUND;
        loop {
            let found = engine
                .keyed(&key, FRESH)
                .await
                .map_err(VercelError::in_creation)?;
            if let Ok(found) = found {
                return Ok(found);
            }
            let built = engine.build(&key, setup, output).await?;
            if let Some(snapshot) = built {
                return Ok(SnapshotState {
                    is_new: true,
                    ..state(&snapshot, Some(&key))
                });
            }
            if tokio::time::Instant::now() >= deadline {
                return Err(SandboxError::new(format!(
                    "another build of the same snapshot does not come to an end: sandbox `{}`",
                    key.builder()
                )));
            }
            say(
                output,
                "another build of the same snapshot is under way: waiting for it\n",
            )
            .await;
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Deletes the sandbox of a build that was given up, which the next one would wait for. One of another process is let
    /// be.
    ///
    /// # Errors
    /// The service does not delete it, or does not say whose it is; the key cannot be made out.
    pub async fn give_up_build(&self, setup: &Setup) -> Result<(), SandboxError> {
        let engine = &self.0;
        let name = Key::of(&engine.config, setup)?.builder();
        let given_up = async {
            match engine.find_builder(&name).await? {
                Some(found) if is_of_build(&found, &setup.spec.run_id) => {
                    engine.account.reaper.delete(&name, None).await.map(drop)
                }
                _ => Ok(()),
            }
        };
        given_up.await.map_err(VercelError::in_creation)
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
        let builder = Key::of(&engine.config, setup)?.builder();
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
    /// The snapshot for a run's sandboxes, or why there is none; `None` where none is wanted.
    pub(super) async fn find_snapshot(
        &self,
        setup: &Setup,
    ) -> Result<Option<Result<String, String>>, VercelError> {
        let needed = setup.spec.limit;
        let checked = match (&self.config.snapshot_id, &self.config.warm) {
            (Some(id), _) => self.named(id, needed).await,
            (None, Some(_)) => match Key::of(&self.config, setup) {
                Ok(key) => self.keyed(&key, needed).await,
                Err(error) => return Ok(Some(Err(error.to_string()))),
            },
            (None, None) => return Ok(None),
        };
        match checked {
            Ok(state) => Ok(Some(state.map(|state| state.id))),
            // Without credentials nothing can be had at all; a service in trouble may still have sandboxes.
            Err(error) if error.is_definite() => Err(error),
            Err(error) => Ok(Some(Err(error.to_string()))),
        }
    }

    async fn named(&self, id: &str, needed: Duration) -> Result<Result<SnapshotState, String>, VercelError> {
        let ask = Ask::get("look at the snapshot", vec!["v2", "sandboxes", "snapshots", id]);
        match self.account.client.ask::<super::api::OfSnapshot>(&ask).await {
            Ok(found) => Ok(self
                .usable(&found.snapshot, needed)
                .map(|()| state(&found.snapshot, None))),
            Err(error) if matches!(error.status(), Some(400 | 404 | 410)) => {
                Ok(Err(format!("snapshot `{id}` is not there: {}", error.problem)))
            }
            Err(error) => Err(error),
        }
    }

    async fn keyed(&self, key: &Key, needed: Duration) -> Result<Result<SnapshotState, String>, VercelError> {
        let mut why = format!("there is no snapshot for key {key} (`evalwave snapshot build` makes it)");
        for snapshot in self.snapshots_of(&key.builder()).await? {
            match self.usable(&snapshot, needed) {
                Ok(()) => return Ok(Ok(state(&snapshot, Some(key)))),
                Err(reason) => why = reason,
            }
        }
        Ok(Err(why))
    }

    /// The snapshots that a sandbox has made, the newest first.
    async fn snapshots_of(&self, builder: &str) -> Result<Vec<Snapshot>, VercelError> {
        let ask = Ask::get("look for the snapshot", vec!["v2", "sandboxes", "snapshots"]).query(vec![
            ("project", &self.account.client.project_id),
            ("name", builder),
            ("limit", "20"),
            ("sortOrder", "desc"),
        ]);
        match self.account.client.ask::<Snapshots>(&ask).await {
            Ok(mut found) => {
                found
                    .snapshots
                    .sort_by(|one, other| other.created_at.0.total_cmp(&one.created_at.0));
                Ok(found.snapshots)
            }
            Err(error) if error.is_gone() => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Whether a snapshot can be started from, and will be so long.
    fn usable(&self, snapshot: &Snapshot, needed: Duration) -> Result<(), String> {
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
        match self.account.client.ask::<Value>(&ask).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_gone() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes a snapshot; `None` where another build is at it.
    async fn build(
        &self,
        key: &Key,
        setup: &Setup,
        output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<Option<Snapshot>, SandboxError> {
        let name = key.builder();
        let found = self.find_builder(&name).await.map_err(VercelError::in_creation)?;
        match found.map(|found| found.session.status) {
            None => {}
            Some(Status::Pending | Status::Running | Status::Stopping | Status::Snapshotting) => {
                return Ok(None);
            }
            // What is left of a build that failed is in the way of this one.
            Some(_) => {
                let deleted = self.account.reaper.delete(&name, None).await;
                deleted.map_err(VercelError::in_creation)?;
            }
        }
        say(output, &format!("building a snapshot in sandbox `{name}`\n")).await;
        let Some(session) = self
            .builder(&name, setup)
            .await
            .map_err(VercelError::in_creation)?
        else {
            return Ok(None);
        };
        let made = self.fill(&name, &session, setup, output).await;
        let made = match made {
            Ok(()) => self
                .store(&name, &session)
                .await
                .map_err(VercelError::in_creation),
            Err(error) => Err(error),
        };
        if made.is_err() {
            // The next build would wait for this one.
            let _ = self.account.reaper.delete(&name, Some(&session)).await;
        }
        made.map(Some)
    }

    async fn find_builder(&self, name: &str) -> Result<Option<Created>, VercelError> {
        let ask = Ask::get("look after the builder", vec!["v2", "sandboxes", name])
            .query(vec![("projectId", &self.account.client.project_id)]);
        match self.account.client.ask::<Created>(&ask).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_gone() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The machine that makes it; `None` where somebody else's took the name first.
    async fn builder(&self, name: &str, setup: &Setup) -> Result<Option<Session>, VercelError> {
        let spec = SandboxSpec {
            name: name.to_owned(),
            run_id: setup.spec.run_id.clone(),
            labels: vec![("build", setup.spec.run_id.clone())],
            limit: setup.limit + AROUND,
        };
        // No keys where nothing needs them: what is injected for attempts is none of the builder's business.
        let config = VercelConfig {
            timeout: None,
            network_policy: None,
            ..self.config.clone()
        };
        let origin = self.cold_origin();
        let body = body(&self.account.client.project_id, &config, &spec, &origin);
        let version = version(&config, &origin);
        let (_place, turn) = self.account.creations.admit(config.vcpus).await;
        let created = match create(
            &self.account.client,
            &self.account.creations,
            config.vcpus,
            version,
            name,
            &body,
            turn,
        )
        .await
        {
            Err(NoSandbox::Refused(error))
                if error.refusal().is_some_and(|refusal| refusal.is_duplicate_name()) =>
            {
                return Ok(None);
            }
            created => created.map_err(NoSandbox::error)?,
        };
        if !is_of_build(&created, &setup.spec.run_id) {
            return Ok(None);
        }
        let session = self.session(&created.session);
        session
            .wait_running(&self.account.client, created.session.status)
            .await?;
        Ok(Some(session))
    }

    /// Does in it what a snapshot is to hold: `setup`, and nothing of one commit.
    async fn fill(
        &self,
        name: &str,
        session: &Session,
        setup: &Setup,
        output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<(), SandboxError> {
        let client = &self.account.client;
        let lost = VercelError::in_sandbox;
        let repository = self.fetched();
        if let Some(repository) = repository {
            check_out(client, session, repository, false, self.config.submodules).await?;
        }
        let uploads = repository.is_none();
        if uploads && !setup.workspace.files.is_empty() {
            let archive = self.archives.of(&setup.workspace, &session.cwd).await?;
            session.write(client, archive, "/").await.map_err(lost)?;
        }
        let Some(command) = &setup.command else {
            return Ok(());
        };
        let id = format!("{name}-setup");
        let start = Start {
            id: &id,
            script: Script::run(&id, false, &[], &command.line),
            env: command.env.clone(),
        };
        let running = session.run(client, start, output, |_| {});
        let code = tokio::time::timeout(setup.limit, running)
            .await
            .map_err(|_| {
                SandboxError::new(format!(
                    "`attempt.setup` took longer than its limit of {} s",
                    setup.limit.as_secs()
                ))
            })?
            .map_err(lost)?;
        if code != 0 {
            return Err(SandboxError::new(format!(
                "`attempt.setup` ended with exit code {code}"
            )));
        }
        // The files of this commit would stay where a later one has none.
        let mut forget = "rm -rf /tmp/.evalwave".to_owned();
        if uploads {
            let list = archive::list(&setup.workspace, &session.cwd)
                .map_err(|error| SandboxError::io("cannot list the workspace", error))?;
            session.write(client, list, "/").await.map_err(lost)?;
            forget = format!("xargs -0 rm -f -- </{0} && rm -f /{0} && {forget}", archive::LIST);
        }
        let what = "take the commit's files out of the snapshot";
        let forgot = session
            .script(client, what, &Script::plain(&forget, []), &[], false)
            .await;
        let forgot = forgot.map_err(lost)?;
        match forgot.code {
            0 => Ok(()),
            _ => Err(SandboxError::new(format!("cannot {what}: {}", forgot.why()))),
        }
    }

    /// Keeps the machine's files. An answer that is lost is found again by the builder's name.
    async fn store(&self, name: &str, session: &Session) -> Result<Snapshot, VercelError> {
        let error = match session.snapshot(&self.account.client, MAKING).await {
            Ok(snapshot) => return Ok(snapshot),
            Err(error) => error,
        };
        if error.is_definite() {
            return Err(error);
        }
        for tried in 1..=10 {
            self.account.client.wait(super::error::Again::Soon, tried).await;
            let found = self.snapshots_of(name).await?;
            let created = found
                .into_iter()
                .find(|snapshot| snapshot.status == SnapshotStatus::Created);
            if let Some(snapshot) = created {
                return Ok(snapshot);
            }
        }
        Err(VercelError {
            asked: error.asked,
            problem: Problem::Unexpected(format!("it is not known what became of it: {}", error.problem)),
        })
    }
}

/// Whether a sandbox makes the snapshot of this build, and not of another with the same key.
fn is_of_build(found: &Created, run_id: &str) -> bool {
    let tags = found.sandbox.as_ref().and_then(|sandbox| sandbox.tags.as_ref());
    tags.and_then(|tags| tags.get(BUILD_TAG)) == Some(&tag(run_id))
}

fn state(snapshot: &Snapshot, key: Option<&Key>) -> SnapshotState {
    SnapshotState {
        id: snapshot.id.clone(),
        key: key.cloned(),
        created_at: snapshot.created_at.moment(),
        expires_at: snapshot.expires_at.filter(|at| at.0 > 0.0).map(|at| at.moment()),
        bytes: snapshot.size_bytes,
        is_new: false,
    }
}

async fn say(output: &mpsc::Sender<Vec<u8>>, line: &str) {
    // Whoever does not listen does not want to know.
    let _ = output.send(line.as_bytes().to_vec()).await;
}
