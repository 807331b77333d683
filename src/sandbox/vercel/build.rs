//! How a snapshot is made: in a sandbox of its own, named by the key, of which nothing is left where that fails.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::api::{Created, Snapshot, Status};
use super::client::Ask;
use super::create::{NoSandbox, request, tag};
use super::error::{Again, Problem, VercelError};
use super::key::Key;
use super::machine::Machine;
use super::script::Script;
use super::session::Session;
use super::snapshot::{SnapshotState, state};
use super::{Engine, Started, VercelBackend, archive};
use crate::config::VercelConfig;
use crate::sandbox::limit::Admission;
use crate::sandbox::{Exit, Sandbox as _, SandboxError, SandboxSpec, Setup};

/// The label that says which build a sandbox belongs to.
const BUILD_TAG: &str = "evalwave-build";

/// How often another build is looked after.
const LOOK: Duration = Duration::from_secs(5);

/// How long making a snapshot may take.
const MAKING: Duration = Duration::from_secs(600);

/// How long the creation of a build that was given up is waited for.
const ANSWERED: Duration = Duration::from_secs(20);

/// How often one is asked for.
const TRIES: u32 = 3;

/// How often the snapshot of a session that is over is looked for.
const LOOKS: u32 = 5;

/// Time for a machine to start and be stored, besides the time for `setup`.
const AROUND: Duration = Duration::from_secs(1_800);

/// A snapshot is good for a build that finds it only if it lives as long.
const FRESH: Duration = Duration::from_secs(24 * 3600);

impl VercelBackend {
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
        let key = engine.key(setup)?;
        let deadline = Instant::now() + engine.lifetime(setup);
        loop {
            if let Some(snapshot) = engine.build(&key, setup, output).await? {
                return Ok(snapshot);
            }
            if Instant::now() >= deadline {
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
        let name = engine.key(setup)?.builder();
        // One that the service is about to create is not there to be deleted yet.
        let created = tokio::time::timeout(ANSWERED, engine.under_way.none()).await;
        created.map_err(|_| {
            SandboxError::new(format!(
                "the creation of sandbox `{name}` was not answered in {} s",
                ANSWERED.as_secs()
            ))
        })?;
        let given_up = engine.give_up(&name, &setup.spec.run_id).await;
        given_up.map_err(VercelError::in_creation)
    }
}

impl Engine {
    /// The snapshot, which is made where it is not there; `None` where another build is at it.
    async fn build(
        self: &Arc<Self>,
        key: &Key,
        setup: &Setup,
        output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<Option<SnapshotState>, SandboxError> {
        let name = key.builder();
        // Looked at before the snapshot is: a build that is over now has left it.
        let builder = self.find_builder(&name).await.map_err(VercelError::in_creation)?;
        let found = self.keyed(key, FRESH).await.map_err(VercelError::in_creation)?;
        if let Ok(found) = found {
            return Ok(Some(found));
        }
        match builder {
            Some(builder) if !builder.session.status.is_over() => return Ok(None),
            // It has the name.
            Some(_) => {
                let deleted = self.account.reaper.delete(&name, None).await;
                deleted.map_err(VercelError::in_creation)?;
            }
            None => {}
        }
        say(output, &format!("building a snapshot in sandbox `{name}`\n")).await;
        let builder = self
            .builder(&name, setup)
            .await
            .map_err(VercelError::in_creation)?;
        let Some((created, place)) = builder else {
            return Ok(None);
        };
        let session = self.session(&created.session);
        self.remember(&session);
        let limit = self.lifetime(setup);
        let making = self.make(&name, &session, created.session.status, place, setup, output);
        let made = tokio::time::timeout(limit, making).await.unwrap_or_else(|_| {
            let limit = limit.as_secs();
            Err(SandboxError::new(format!(
                "the snapshot was not made within {limit} s"
            )))
        });
        if made.is_err() {
            // The next build would wait for this one.
            let _ = self.give_up(&name, &setup.spec.run_id).await;
        }
        Ok(Some(SnapshotState {
            is_new: true,
            ..state(&made?, Some(key))
        }))
    }

    /// How long a builder may live.
    fn lifetime(&self, setup: &Setup) -> Duration {
        let limit = self.config.timeout.unwrap_or(setup.limit + AROUND);
        limit.min(VercelConfig::LONGEST)
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

    /// A sandbox for it, and its place among all; `None` where somebody else's took the name first.
    async fn builder(
        &self,
        name: &str,
        setup: &Setup,
    ) -> Result<Option<(Created, Arc<Admission>)>, VercelError> {
        let run_id = &setup.spec.run_id;
        let spec = SandboxSpec {
            name: name.to_owned(),
            run_id: run_id.clone(),
            labels: vec![("build", run_id.clone())],
            limit: self.lifetime(setup),
        };
        // No keys where nothing needs them: what is injected for attempts is none of the builder's business.
        let config = VercelConfig {
            network_policy: None,
            ..self.config.clone()
        };
        let account = &self.account;
        let (place, turn) = account.creations.admit(config.vcpus).await;
        let place = Arc::new(place);
        let creation = self.creation(&config, &spec, &self.cold_origin(), &place);
        let created = match request(&creation, turn).await {
            Ok(Some(created)) => Some(created),
            Ok(None) => match self.find_builder(name).await {
                Ok(found) => found.filter(|found| is_of_build(found, run_id)),
                Err(error) => {
                    let _ = self.give_up(name, run_id).await;
                    return Err(error);
                }
            },
            Err(NoSandbox::Refused(error)) => match error.refusal() {
                Some(refusal) if refusal.is_duplicate_name() => None,
                _ => return Err(error),
            },
            Err(NoSandbox::Lost(error)) => {
                // One that has come to be all the same would be waited for.
                let _ = self.give_up(name, run_id).await;
                return Err(error);
            }
        };
        Ok(created.map(|created| (created, place)))
    }

    /// Keeps in mind which builder is ours, whatever the service tells of its labels.
    fn remember(&self, session: &Session) {
        let mut own = self.own_builder.lock().unwrap_or_else(PoisonError::into_inner);
        *own = Some(session.id.clone());
    }

    /// Deletes this build's sandbox, if that is who has the name.
    async fn give_up(&self, name: &str, run_id: &str) -> Result<(), VercelError> {
        let Some(found) = self.find_builder(name).await? else {
            return Ok(());
        };
        let own = self
            .own_builder
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if own.as_ref() == Some(&found.session.id) || is_of_build(&found, run_id) {
            self.account.reaper.delete(name, None).await?;
        }
        Ok(())
    }

    /// Does in it what a snapshot is to hold, `setup` and nothing of one commit, and keeps that.
    async fn make(
        self: &Arc<Self>,
        name: &str,
        session: &Session,
        status: Status,
        place: Arc<Admission>,
        setup: &Setup,
        output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<Snapshot, SandboxError> {
        session
            .wait_running(&self.account.client, status)
            .await
            .map_err(VercelError::in_creation)?;
        let started = Started {
            session: session.clone(),
            snapshot: Err(None),
        };
        let mut machine = Machine::new(Arc::clone(self), name.to_owned(), started, place);
        machine.upload(&setup.workspace).await?;
        if let Some(command) = &setup.command {
            let why = match machine.exec_within(setup.limit, command, output).await? {
                Some(Exit::Code(0)) => None,
                Some(Exit::Code(code)) => Some(format!("ended with exit code {code}")),
                Some(Exit::Signal(signal)) => Some(format!("was killed by signal {signal}")),
                None => Some(format!(
                    "took longer than its limit of {} s",
                    setup.limit.as_secs()
                )),
            };
            if let Some(why) = why {
                return Err(SandboxError::new(format!("`attempt.setup` {why}")));
            }
        }
        self.forget(session, setup).await?;
        self.store(name, session).await.map_err(VercelError::in_creation)
    }

    /// Takes the commit's files out: they would stay where a later one has none.
    async fn forget(&self, session: &Session, setup: &Setup) -> Result<(), SandboxError> {
        let client = &self.account.client;
        let mut forget = "rm -rf /tmp/.evalwave".to_owned();
        if self.fetched().is_none() {
            let list = archive::list(&setup.workspace, &session.cwd)
                .map_err(|error| SandboxError::io("cannot list the workspace", error))?;
            session
                .write(client, list, "/")
                .await
                .map_err(VercelError::in_sandbox)?;
            forget = format!("xargs -0 rm -f -- </{0} && rm -f /{0} && {forget}", archive::LIST);
        }
        let what = "take the commit's files out of the snapshot";
        let forgot = session
            .script(client, what, &Script::plain(&forget, []), &[], false)
            .await;
        let forgot = forgot.map_err(VercelError::in_sandbox)?;
        match forgot.code {
            0 => Ok(()),
            _ => Err(SandboxError::new(format!("cannot {what}: {}", forgot.why()))),
        }
    }

    /// Keeps the machine's files. It is asked for again only where the machine runs on: otherwise the answer was lost.
    async fn store(&self, name: &str, session: &Session) -> Result<Snapshot, VercelError> {
        let client = &self.account.client;
        let mut tried = 0;
        let made = loop {
            tried += 1;
            let error = match session.snapshot(client, MAKING).await {
                Ok(made) => break made,
                Err(error) if error.is_definite() => return Err(error),
                Err(error) => error,
            };
            client.wait(error.again(), tried).await;
            match self.made_of(name, session, &error).await? {
                Some(made) => break made,
                None if tried == TRIES => return Err(error),
                None => {}
            }
        };
        match self.usable(&made, Duration::ZERO) {
            Ok(()) => Ok(made),
            Err(why) => Err(unexpected(why)),
        }
    }

    /// The snapshot that a session has become though the answer was this, once it is over; `None` where it runs on.
    async fn made_of(
        &self,
        name: &str,
        session: &Session,
        answer: &VercelError,
    ) -> Result<Option<Snapshot>, VercelError> {
        let mut looked = 0;
        loop {
            let found = self.find_builder(name).await?;
            let status = found.map(|found| found.session.status);
            if status == Some(Status::Running) {
                return Ok(None);
            }
            if status.is_none_or(Status::is_over) {
                looked += 1;
                let made = self.snapshots_of(name).await?.into_iter();
                // Of the same name there may be older ones.
                let mut made = made.filter(|one| one.source_session_id.as_ref() == Some(&session.id));
                if let Some(made) = made.next() {
                    return Ok(Some(made));
                }
                if looked == LOOKS {
                    let problem = &answer.problem;
                    return Err(unexpected(format!(
                        "its sandbox is over, and has left none: {problem}"
                    )));
                }
            }
            self.account.client.wait(Again::Soon, looked.max(1)).await;
        }
    }
}

fn unexpected(why: String) -> VercelError {
    VercelError {
        asked: "make the snapshot".to_owned(),
        problem: Problem::Unexpected(why),
    }
}

/// Whether a sandbox that was found by its name makes the snapshot of this build, and not of another with the same key.
fn is_of_build(found: &Created, run_id: &str) -> bool {
    let tags = found.sandbox.as_ref().and_then(|sandbox| sandbox.tags.as_ref());
    tags.and_then(|tags| tags.get(BUILD_TAG)) == Some(&tag(run_id))
}

async fn say(output: &mpsc::Sender<Vec<u8>>, line: &str) {
    // Whoever does not listen does not want to know.
    let _ = output.send(line.as_bytes().to_vec()).await;
}
