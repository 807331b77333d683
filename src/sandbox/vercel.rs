//! Sandboxes of Vercel: machines of their own, far away. Everything goes over the API; a machine that is lost is lost,
//! and never resumed in silence.

mod api;
mod archive;
mod build;
mod checkout;
mod client;
mod create;
mod error;
mod key;
mod list;
mod machine;
mod printed;
mod reaper;
mod script;
mod session;
mod snapshot;
mod stream;
mod unclaimed;
mod warm;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use camino::Utf8Path;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::limit::{Admission, Creations, Rates, Throttles, Turn};
use super::local::most_open_files;
use super::under_way::UnderWay;
use super::{
    Admitted, Backend, Capacity, Ledger, Limit, Reaped, Reaper, Sandbox, SandboxError, SandboxSpec, Setup,
    Warm,
};
use crate::config::{VercelConfig, VercelFiles, VercelLimits};
use crate::model::{LeftSandbox, Whereabouts};
use archive::Archives;
use client::Client;
pub use client::Credentials;
pub use create::Repository;
use create::{Creation, NoSandbox, Origin, body, create, version};
pub use error::VercelError;
pub use key::Key;
use machine::Machine;
use reaper::VercelReaper;
use session::Session;
pub use snapshot::SnapshotState;
use unclaimed::Unclaimed;
use warm::WarmStart;

/// Open files for everything but attempts: the run's own, as many as are written at once, and the connections that are
/// not an attempt's own.
const FILES_KEPT: u64 = 64 + 512 + client::MOST_SHORT as u64 + client::MOST_IDLE as u64;

/// Open files of an attempt: the connection that its output comes over.
const FILES_PER_ATTEMPT: u64 = 1;

/// Sandboxes that may be starting at once.
const STARTING: usize = 64;

/// Who asks, and what is left of what may be asked: one for all engines of a process that use the same project.
#[derive(Debug)]
pub struct Account {
    client: Arc<Client>,
    creations: Creations,
    reaper: VercelReaper,
}

impl Account {
    /// An account's project. Nothing is asked yet; chance starts from `seed`.
    ///
    /// # Errors
    /// An address that no token may be sent to, credentials that cannot be sent.
    pub fn new(
        base_url: &str,
        limits: VercelLimits,
        credentials: &Credentials,
        seed: u64,
    ) -> Result<Self, VercelError> {
        let client = Client::new(base_url, credentials, limits.requests_per_minute, seed)?;
        let client = Arc::new(client);
        let [start, ramp, most] = limits.vcpus_per_minute;
        Ok(Self {
            creations: Creations::new(Throttles {
                running: limits.concurrent,
                rates: Rates { start, ramp, most },
                seed,
            }),
            reaper: VercelReaper::new(
                Arc::clone(&client),
                limits.deletes_per_second,
                Whereabouts::Vercel {
                    base_url: base_url.to_owned(),
                    team_id: credentials.team_id.clone(),
                    project_id: credentials.project_id.clone(),
                },
            ),
            client,
        })
    }
}

#[async_trait]
impl Reaper for Account {
    fn whereabouts(&self) -> Whereabouts {
        self.reaper.whereabouts()
    }

    async fn reap(&self, run_id: &str, left: &[LeftSandbox]) -> Result<Reaped, SandboxError> {
        self.reaper.reap(run_id, left).await
    }
}

/// Sandboxes of one project of Vercel.
#[derive(Debug)]
pub struct VercelBackend(Arc<Engine>);

/// What the sandboxes of a run share.
#[derive(Debug)]
struct Engine {
    config: VercelConfig,
    account: Arc<Account>,
    repository: Option<Repository>,
    archives: Archives,
    warm: WarmStart,
    under_way: UnderWay,
    /// The turns of sandboxes that are about to be started, by name.
    turns: Mutex<HashMap<String, (Admission, Turn)>>,
    /// The session that this process makes a snapshot of.
    own_builder: Mutex<Option<String>>,
    now: Timestamp,
    begun: Instant,
}

impl VercelBackend {
    /// An engine of an account. With a repository, sandboxes fetch their files themselves; the time is `now`.
    pub fn new(
        config: &VercelConfig,
        account: Arc<Account>,
        repository: Option<Repository>,
        now: Timestamp,
    ) -> Self {
        Self(Arc::new(Engine {
            config: config.clone(),
            account,
            repository,
            archives: Archives::default(),
            warm: WarmStart::default(),
            under_way: UnderWay::default(),
            turns: Mutex::default(),
            own_builder: Mutex::default(),
            now,
            begun: Instant::now(),
        }))
    }
}

/// What an account can take at once, and this machine: each attempt has a connection and its output open. Raises this
/// process's limit on open files as far as it goes.
pub fn capacity(config: &VercelConfig) -> Capacity {
    let most = config.limits.concurrent.max(1);
    let by_account = Limit {
        value: most,
        reason: format!("{most} sandboxes at once (`sandbox.limits.concurrent`)"),
    };
    let by_files = most_open_files().map(|files| Limit {
        value: usize::try_from(files.saturating_sub(FILES_KEPT) / FILES_PER_ATTEMPT)
            .unwrap_or(usize::MAX)
            .max(1),
        reason: format!("{files} open files at {FILES_PER_ATTEMPT} an attempt"),
    });
    Capacity {
        running: [Some(by_account), by_files]
            .into_iter()
            .flatten()
            .min_by_key(|limit| limit.value),
        starting: STARTING,
    }
}

#[async_trait]
impl Backend for VercelBackend {
    fn capacity(&self) -> Capacity {
        capacity(&self.0.config)
    }

    async fn prepare(
        &self,
        setup: &Setup,
        _ledger: &dyn Ledger,
        _output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<Warm, SandboxError> {
        let engine = &self.0;
        let found = engine
            .find_snapshot(setup)
            .await
            .map_err(VercelError::in_creation)?;
        Ok(match found {
            None => Warm::Cold(None),
            Some(Ok(id)) => {
                engine.warm.from(id.clone());
                Warm::From(format!("snapshot `{id}`"))
            }
            Some(Err(why)) => {
                engine.warm.cold(why.clone());
                Warm::Cold(Some(why))
            }
        })
    }

    async fn admit(&self, spec: &SandboxSpec) -> Admitted {
        let turn = self.0.account.creations.admit(self.0.config.vcpus).await;
        self.0.turns().insert(spec.name.clone(), turn);
        let (engine, name) = (Arc::clone(&self.0), spec.name.clone());
        Admitted::until_dropped(move || drop(engine.turns().remove(&name)))
    }

    async fn start(
        &self,
        spec: &SandboxSpec,
        _ledger: &dyn Ledger,
    ) -> Result<Box<dyn Sandbox>, SandboxError> {
        let engine = &self.0;
        let turn = engine.turns().remove(&spec.name);
        let (place, turn) = match turn {
            Some(turn) => turn,
            None => engine.account.creations.admit(engine.config.vcpus).await,
        };
        let place = Arc::new(place);
        let unclaimed = Unclaimed {
            account: Arc::clone(&engine.account),
            under_way: engine.under_way.clone(),
            name: spec.name.clone(),
            place: Some(Arc::clone(&place)),
        };
        let started = engine.start(spec, &place, turn).await;
        if !matches!(started, Err(NoSandbox::Lost(_))) {
            unclaimed.settled();
        }
        Ok(Box::new(Machine::new(
            Arc::clone(engine),
            spec.name.clone(),
            started.map_err(NoSandbox::failure)?,
            place,
        )))
    }

    fn reaper(&self) -> &dyn Reaper {
        self
    }
}

#[async_trait]
impl Reaper for VercelBackend {
    fn whereabouts(&self) -> Whereabouts {
        self.0.account.whereabouts()
    }

    /// A sandbox that the service is about to create is in no list yet, nor is it there to be deleted.
    async fn reap(&self, run_id: &str, left: &[LeftSandbox]) -> Result<Reaped, SandboxError> {
        self.0.under_way.none().await;
        self.0.account.reap(run_id, left).await
    }
}

/// A machine that runs.
#[derive(Debug)]
struct Started {
    session: Session,
    /// The snapshot that it started from, or why from none, where one was asked for.
    snapshot: Result<String, Option<String>>,
}

impl Engine {
    /// Starts a machine: from the snapshot, and where that is refused, from nothing.
    async fn start(
        &self,
        spec: &SandboxSpec,
        place: &Arc<Admission>,
        turn: Turn,
    ) -> Result<Started, NoSandbox> {
        let (turn, why) = match self.warm.now() {
            Err(why) => (turn, why),
            Ok(id) => match self.create(spec, &Origin::Snapshot(&id), place, turn).await {
                Ok(session) => {
                    let snapshot = Ok(id);
                    return Ok(Started { session, snapshot });
                }
                Err(NoSandbox::Lost(error)) => {
                    if error.is_gone() {
                        self.warm.failed(&id, &error.problem.to_string());
                    }
                    return Err(NoSandbox::Lost(error));
                }
                Err(NoSandbox::Refused(error)) => {
                    self.warm.failed(&id, &error.problem.to_string());
                    let why = format!("snapshot `{id}` cannot be used: {}", error.problem);
                    let turn = self.account.creations.again(self.config.vcpus).await;
                    (turn, Some(why))
                }
            },
        };
        let session = self.create(spec, &self.cold_origin(), place, turn).await?;
        Ok(Started {
            session,
            snapshot: Err(why),
        })
    }

    async fn create(
        &self,
        spec: &SandboxSpec,
        origin: &Origin<'_>,
        place: &Arc<Admission>,
        turn: Turn,
    ) -> Result<Session, NoSandbox> {
        let created = create(&self.creation(&self.config, spec, origin, place), turn).await?;
        let session = self.session(&created.session);
        session
            .wait_running(&self.account.client, created.session.status)
            .await
            .map_err(NoSandbox::Lost)?;
        Ok(session)
    }

    fn creation<'a>(
        &'a self,
        config: &'a VercelConfig,
        spec: &'a SandboxSpec,
        origin: &Origin<'_>,
        place: &'a Arc<Admission>,
    ) -> Creation<'a> {
        Creation {
            account: &self.account,
            under_way: &self.under_way,
            place,
            vcpus: config.vcpus,
            version: version(config, origin),
            name: &spec.name,
            body: Arc::new(body(&self.account.client.project_id, config, spec, origin)),
        }
    }

    fn cold_origin(&self) -> Origin<'_> {
        self.fetched().map_or(Origin::Nothing, Origin::Repository)
    }

    /// The repository, where sandboxes fetch their files from it.
    fn fetched(&self) -> Option<&Repository> {
        match self.config.source {
            VercelFiles::Repository => self.repository.as_ref(),
            VercelFiles::Upload => None,
        }
    }

    fn session(&self, document: &api::Session) -> Session {
        let directory = self.fetched().map(|repository| repository.directory.as_path());
        Session::of(document, directory.unwrap_or(Utf8Path::new("")))
    }

    /// When it is, so long from now.
    fn at(&self, later: Duration) -> Timestamp {
        let elapsed = self.begun.elapsed().saturating_add(later);
        self.now.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    fn turns(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Admission, Turn)>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
