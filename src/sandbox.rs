//! What a sandbox is to the runner. An engine starts empty sandboxes, moves files and runs commands; it knows
//! nothing of suites, results, time limits or tries.

mod limit;
pub mod local;
#[cfg(unix)]
pub mod supervisor;

use std::io;

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;

use crate::config::CommandLine;
use crate::model::{Boot, ErrorClass};

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
    /// Files and symbolic links, relative to the root, sorted; their directories are implied.
    pub files: Vec<Utf8PathBuf>,
}

/// What to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxSpec {
    /// Unique among all runs; safe as a file, host and container name.
    pub name: String,
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

    /// Starts an empty sandbox.
    async fn start(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, SandboxError>;
}

/// A running sandbox. Paths are relative to its workspace.
#[async_trait]
pub trait Sandbox: Send {
    /// From a prepared image or from nothing.
    fn boot(&self) -> Boot;

    /// What confines the attempt, in words, for its record.
    fn confinement(&self) -> Vec<String>;

    /// Brings the workspace in.
    async fn upload(&mut self, workspace: &Workspace) -> Result<(), SandboxError>;

    /// Deletes every file that `pattern` (a glob; a plain path is one too) matches.
    async fn remove(&mut self, pattern: &str) -> Result<(), SandboxError>;

    /// Runs a command to its end, its output (both streams, in order) sent in chunks.
    ///
    /// Dropping the future kills the command with everything it started; `stop` waits for that.
    async fn exec(&mut self, command: &Command, output: &mpsc::Sender<Vec<u8>>)
    -> Result<Exit, SandboxError>;

    /// Writes a tar of `from` (a file or directory), its entries named from `from`'s last component on.
    /// `None` where there is no such path.
    async fn download(
        &mut self,
        from: &Utf8Path,
        into: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<Option<()>, SandboxError>;

    /// Kills what runs and deletes everything. Returns when nothing is left.
    async fn stop(self: Box<Self>) -> Result<(), SandboxError>;
}
