//! What the fake Vercel holds: sandboxes, their sessions, commands and snapshots. Plain data; knows no questions.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};

use super::counts::Counts;
use super::faults::Faults;
use super::limits::{Limits, Quota, Rate};
use super::machine::Machine;

/// What has to be presented.
pub(crate) const TOKEN: &str = "fake-vercel-token";
/// The only team.
pub(crate) const TEAM: &str = "team_fake";
/// Its only project.
pub(crate) const PROJECT: &str = "prj_fake";
/// Where commands start.
pub(crate) const CWD: &str = "/vercel/sandbox";
/// Where everything runs.
pub(crate) const REGION: &str = "iad1";

/// How long what takes time takes.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Times {
    /// A sandbox is pending.
    pub(crate) create_ms: u64,
    /// Whether a creation answers at once, with a session that is still pending.
    pub(crate) answers_pending: bool,
    /// A session is stopping.
    pub(crate) stop_ms: u64,
    /// A session is snapshotting.
    pub(crate) snapshot_ms: u64,
}

/// Where a session is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Pending,
    Running,
    Stopping,
    Snapshotting,
    Stopped,
    Failed,
    Aborted,
}

impl Status {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Snapshotting => "snapshotting",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Aborted => "aborted",
        }
    }

    pub(crate) fn over(self) -> bool {
        matches!(self, Self::Stopped | Self::Failed | Self::Aborted)
    }
}

/// A durable name.
#[derive(Clone)]
pub(crate) struct Sandbox {
    pub(crate) name: String,
    pub(crate) persistent: bool,
    pub(crate) vcpus: u64,
    pub(crate) runtime: Option<String>,
    pub(crate) image: Option<String>,
    pub(crate) timeout: u64,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) ports: Vec<u16>,
    pub(crate) policy: Option<Value>,
    pub(crate) snapshot_expiration: Option<u64>,
    pub(crate) keep_last_snapshots: Option<Value>,
    pub(crate) created: u64,
    pub(crate) updated: u64,
    /// Never empty; the last is the one now.
    pub(crate) sessions: Vec<String>,
    pub(crate) snapshot: Option<String>,
}

impl Sandbox {
    /// The session that is, or was last.
    pub(crate) fn session(&self) -> &str {
        &self.sessions[self.sessions.len() - 1]
    }
}

/// One run of a machine.
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) sandbox: String,
    pub(crate) status: Status,
    pub(crate) vcpus: u64,
    pub(crate) timeout: u64,
    pub(crate) runtime: Option<String>,
    pub(crate) policy: Option<Value>,
    pub(crate) source_snapshot: Option<String>,
    pub(crate) requested: u64,
    pub(crate) started: Option<u64>,
    pub(crate) stop_requested: Option<u64>,
    pub(crate) ended: Option<u64>,
    pub(crate) snapshotted: Option<u64>,
    pub(crate) updated: u64,
    /// There while it runs.
    pub(crate) machine: Option<Arc<Machine>>,
    pub(crate) commands: Vec<String>,
    /// Told of every change of status and time limit.
    pub(crate) changed: watch::Sender<()>,
}

impl Session {
    pub(crate) fn set(&mut self, status: Status) {
        self.status = status;
        self.updated = now();
        if status.over() {
            self.ended = Some(self.updated);
        }
        self.changed.send_replace(());
    }
}

/// What was printed, and on which stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) stream: &'static str,
    pub(crate) data: String,
}

/// A command of a session.
pub(crate) struct Command {
    pub(crate) id: String,
    pub(crate) session: String,
    pub(crate) name: String,
    /// A list of texts, as it was asked.
    pub(crate) args: Box<RawValue>,
    pub(crate) cwd: String,
    pub(crate) started: u64,
    /// The code, and after how many milliseconds.
    pub(crate) exit: Option<(i32, u64)>,
    pub(crate) log: Vec<Line>,
    pub(crate) signals: mpsc::UnboundedSender<i32>,
    /// Told of every line, of the exit and of the session's end.
    pub(crate) changed: watch::Sender<()>,
}

/// A snapshot.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(crate) id: String,
    pub(crate) sandbox: String,
    pub(crate) session: String,
    pub(crate) parent: Option<String>,
    pub(crate) deleted: bool,
    pub(crate) bytes: u64,
    pub(crate) created: u64,
    pub(crate) updated: u64,
    pub(crate) expires: Option<u64>,
    pub(crate) last_used: Option<u64>,
}

impl Snapshot {
    /// Whether a sandbox can start from it.
    pub(crate) fn usable(&self) -> bool {
        !self.deleted && self.expires.is_none_or(|at| at > now())
    }
}

/// Everything.
pub(crate) struct State {
    pub(crate) limits: Limits,
    times: watch::Sender<Times>,
    pub(crate) faults: Faults,
    pub(crate) counts: Counts,
    pub(crate) sandboxes: BTreeMap<String, Sandbox>,
    pub(crate) sessions: HashMap<String, Session>,
    pub(crate) commands: HashMap<String, Command>,
    pub(crate) snapshots: BTreeMap<String, Snapshot>,
    pub(crate) quota: Quota,
    pub(crate) requests: Rate,
    pub(crate) deletes: Rate,
    /// What the fake itself could not do.
    pub(crate) troubles: Vec<String>,
    ids: u64,
}

impl State {
    pub(crate) fn new(limits: Limits, faults: Faults) -> Self {
        Self {
            times: watch::Sender::new(Times::default()),
            faults,
            counts: Counts::new(limits.minute_ms),
            sandboxes: BTreeMap::new(),
            sessions: HashMap::new(),
            commands: HashMap::new(),
            snapshots: BTreeMap::new(),
            quota: Quota::default(),
            requests: Rate::over(limits.minute_ms),
            deletes: Rate::over(1000),
            troubles: Vec::new(),
            limits,
            ids: 0,
        }
    }

    /// What may be asked for from now on.
    pub(crate) fn limit(&mut self, limits: Limits) {
        self.requests.resize(limits.minute_ms);
        self.counts.resize(limits.minute_ms);
        self.limits = limits;
    }

    /// How long things take from now on, also those that have begun: a test that lets something take for ever ends it
    /// by this.
    pub(crate) fn take(&self, times: Times) {
        self.times.send_replace(times);
    }

    /// To look at, and to wait for a change of.
    pub(crate) fn times(&self) -> watch::Receiver<Times> {
        self.times.subscribe()
    }

    /// An id that nobody had before.
    pub(crate) fn id(&mut self, kind: &str) -> String {
        self.ids += 1;
        format!("{kind}_{:020}", self.ids)
    }

    /// Ends a session: what it ran is gone, and whoever waits is told.
    pub(crate) fn end(&mut self, id: &str, status: Status) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        if session.status.over() {
            return;
        }
        session.set(status);
        if let Some(machine) = session.machine.take() {
            machine.kill();
        }
        self.counts.live -= 1;
        for id in &session.commands {
            if let Some(command) = self.commands.get_mut(id) {
                let _ = command.signals.send(9);
                command.changed.send_replace(());
            }
        }
    }
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

pub(crate) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}
