//! What a sandbox is to the runner. An engine starts empty sandboxes, moves files and runs commands; it knows
//! nothing of suites, results, time limits or tries.

mod bridge;
pub mod command;
mod disk;
pub mod docker;
mod limit;
pub mod local;
mod pack;
mod path;
#[cfg(unix)]
pub mod supervisor;
mod under_way;
pub mod vercel;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;

use crate::config::CommandLine;
use crate::model::{Boot, ErrorClass, LeftSandbox, Whereabouts};

/// What an engine can take at once, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Most sandboxes running at once; `None` is no limit of the engine's.
    pub running: Option<Limit>,
    /// Most sandboxes starting at once.
    pub starting: usize,
}

/// A limit with its reason, in words that follow "bounded by".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// At least 1.
    pub value: usize,
    /// For instance `15 GB of memory`.
    pub reason: String,
}

/// The files that every sandbox receives: a list, so that an engine moves them as it does best.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Where they lie.
    pub root: Utf8PathBuf,
    /// Files and symbolic links, relative to the root, sorted; their directories are implied. Every sandbox shares the list.
    pub files: Arc<[Utf8PathBuf]>,
}

/// What to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxSpec {
    /// Unique among all runs; safe as a file, host and container name.
    pub name: String,
    /// The run that owns it; as safe.
    pub run_id: String,
    /// What it is labelled with, besides that: whose it is, and when it has expired. Any text, but no secrets.
    pub labels: Vec<(&'static str, String)>,
    /// How long it may live at most. The runner stops it long before; this is for the engine's own time limit.
    pub limit: Duration,
}

/// What the sandboxes of a run have in common, for an engine that makes something ready for them.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The sandbox in which it may be made.
    pub spec: SandboxSpec,
    /// `attempt.setup`, where it is the same for every attempt.
    pub command: Option<Command>,
    /// What every sandbox receives.
    pub workspace: Workspace,
    /// How long `command` may take.
    pub limit: Duration,
    /// How many sandboxes there may be.
    pub sandboxes: usize,
}

/// What the sandboxes of a run start from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warm {
    /// From something in which `setup` is done, called this.
    From(String),
    /// From nothing; where something else was asked for, why.
    Cold(Option<String>),
}

/// A command for a sandbox. It runs in the workspace, with the engine's own PATH, HOME, LANG and TMPDIR and `env` on top.
#[derive(Clone, Debug)]
pub struct Command {
    /// What to run.
    pub line: CommandLine,
    /// Variables, secrets among them: never to be logged, nor put anywhere but in the environment.
    pub env: Vec<(String, String)>,
    /// Whether the processes it leaves behind live until `stop`, as the daemons of `attempt.boot` have to.
    /// Those of any other command are killed when it ends.
    pub keeps_daemons: bool,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

/// A sandbox that failed us, as opposed to a command that failed in it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SandboxError {
    /// The kind of failure; `None` is the phase's own kind.
    pub class: Option<ErrorClass>,
    /// What could not be done.
    pub message: String,
    /// The cause.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl SandboxError {
    /// A failure without another cause, of the phase's own kind.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            class: None,
            message: message.into(),
            source: None,
        }
    }

    /// A failure with its cause. A full disk and used-up memory are told by the cause; anything else is of the
    /// phase's own kind.
    pub fn io(message: impl Into<String>, source: io::Error) -> Self {
        let class = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(ErrorClass::OutOfDisk),
            io::ErrorKind::OutOfMemory => Some(ErrorClass::OutOfMemory),
            _ => None,
        };
        Self {
            class,
            message: message.into(),
            source: Some(Box::new(source)),
        }
    }
}

/// Starts sandboxes.
#[async_trait]
pub trait Backend: Send + Sync {
    /// What it can take at once.
    fn capacity(&self) -> Capacity;

    /// Makes ready what the sandboxes of a run start from, once and before the first of them: an image, a snapshot, or
    /// nothing. What it has to say meanwhile goes out in chunks.
    ///
    /// Without it no sandbox can be had. Where only `setup` cannot be done ahead, that is [`Warm::Cold`].
    async fn prepare(
        &self,
        _setup: &Setup,
        _ledger: &dyn Ledger,
        _output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<Warm, SandboxError> {
        Ok(Warm::Cold(None))
    }

    /// Waits until one more sandbox may be started, where the engine is particular about how many and how fast. What it
    /// gives stands for that turn until `start` has returned. No time limit runs meanwhile.
    async fn admit(&self, _spec: &SandboxSpec) -> Admitted {
        Admitted::default()
    }

    /// Starts an empty sandbox. Its name is in the ledger already; an engine that calls it something else says so there
    /// right after it was created. When it fails, or is dropped, the sandbox may be there all the same: [`Reaper`].
    async fn start(&self, spec: &SandboxSpec, ledger: &dyn Ledger) -> Result<Box<dyn Sandbox>, SandboxError>;

    /// What deletes the sandboxes that could not be stopped.
    fn reaper(&self) -> &dyn Reaper;
}

/// The turn of a sandbox that is about to be started. Dropped, whatever is left of it is given back.
#[derive(Default)]
pub struct Admitted(Option<Box<dyn FnOnce() + Send>>);

impl Admitted {
    /// Does this when the turn is over.
    pub fn until_dropped(give_back: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(give_back)))
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if let Some(give_back) = self.0.take() {
            give_back();
        }
    }
}

/// Keeps account of sandboxes, so that they are found after any crash.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// A sandbox that is no attempt's is about to be created.
    async fn named(&self, name: &str) -> Result<(), SandboxError>;

    /// A sandbox was created, and its engine calls it `id`.
    async fn created(&self, name: &str, id: &str) -> Result<(), SandboxError>;

    /// A sandbox is not there any more.
    async fn gone(&self, name: &str) -> Result<(), SandboxError>;
}

/// What became of the sandboxes that a run had left.
#[derive(Debug, Default)]
pub struct Reaped {
    /// How many were there, and are not any more.
    pub deleted: usize,
    /// Why, for each that is still there.
    pub failed: Vec<SandboxError>,
}

/// Of deletions, each of which says whether there was something to delete.
impl FromIterator<Result<bool, SandboxError>> for Reaped {
    fn from_iter<T: IntoIterator<Item = Result<bool, SandboxError>>>(deletions: T) -> Self {
        let mut reaped = Self::default();
        for deletion in deletions {
            match deletion {
                Ok(was_there) => reaped.deleted += usize::from(was_there),
                Err(error) => reaped.failed.push(error),
            }
        }
        reaped
    }
}

/// Deletes what a run left behind. It needs nothing that was known to the run alone.
#[async_trait]
pub trait Reaper: Send + Sync {
    /// Where another process finds the sandboxes.
    fn whereabouts(&self) -> Whereabouts;

    /// Deletes these sandboxes, and whatever else bears the run's label; those that were not there are no failure. Nothing
    /// of the run may be in use any more.
    async fn reap(&self, run_id: &str, left: &[LeftSandbox]) -> Result<Reaped, SandboxError>;
}

/// A running sandbox. Paths are relative to its workspace.
#[async_trait]
pub trait Sandbox: Send {
    /// The name that it was asked for under.
    fn name(&self) -> &str;

    /// From a prepared image or from nothing.
    fn boot(&self) -> Boot;

    /// What confines the attempt, in words, for its record.
    fn confinement(&self) -> Vec<String>;

    /// What else a reader of the attempt should know: what it was started from, and why not from something else.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Brings the workspace in.
    async fn upload(&mut self, workspace: &Workspace) -> Result<(), SandboxError>;

    /// Deletes every file that `pattern` (a glob; a plain path is one too) matches.
    async fn remove(&mut self, pattern: &str) -> Result<(), SandboxError>;

    /// Runs a command to its end, its output (both streams, in order) sent in chunks.
    ///
    /// Dropping the future kills the command with everything it started; `stop` waits for that.
    async fn exec(&mut self, command: &Command, output: &mpsc::Sender<Vec<u8>>)
    -> Result<Exit, SandboxError>;

    /// The same, for no longer than `limit` from when the command began: `None` where it was killed then. An engine far
    /// away, whose answers may be late, does not take that for the command's own time.
    async fn exec_within(
        &mut self,
        limit: Duration,
        command: &Command,
        output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<Option<Exit>, SandboxError> {
        match tokio::time::timeout(limit, self.exec(command, output)).await {
            Ok(exit) => exit.map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Writes a tar of `from` (a file or directory), its entries named from `from`'s last component on; those of the
    /// workspace itself, which is "", have their paths in it. `None` where there is no such path.
    async fn download(
        &mut self,
        from: &Utf8Path,
        into: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<Option<()>, SandboxError>;

    /// Says so where its disk is full: what a command left behind then tells nothing of the command.
    async fn full_disk(&mut self) -> Option<String> {
        None
    }

    /// Kills what runs and deletes everything. Returns when nothing is left.
    async fn stop(self: Box<Self>) -> Result<(), SandboxError>;
}
