//! The engine that needs nothing: sandboxes are directories of this machine, commands are processes below a
//! supervisor. It keeps attempts out of each other's way; it is not a security boundary.

mod capacity;
mod copy;
mod directory;
#[cfg(windows)]
mod jobs;
#[cfg(target_os = "linux")]
mod overlay;
#[cfg(unix)]
mod processes;
mod reaper;
mod transfer;
mod workspace;
mod worktree;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use tokio::io::AsyncWrite;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::io::SyncIoBridge;

use super::bridge::bridged;
use super::{
    Backend, Capacity, Command, Exit, Ledger, Limit, Reaper, Sandbox, SandboxError, SandboxSpec, Workspace,
};
use crate::config::{HomeMode, LocalConfig};
#[cfg(unix)]
use crate::config::{LandlockMode, NetworkMode};
use crate::model::Boot;
use capacity::Machine;
pub(super) use directory::RunDirectory;
use directory::remove_tree;
#[cfg(windows)]
use jobs::{Launch, Processes};
#[cfg(unix)]
use processes::{Launch, Processes};
pub use reaper::LocalReaper;
use workspace::Mode;

/// PATH where evalwave itself has none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How long `exec` goes on reading output after the command itself has ended.
const OUTPUT_LINGER: Duration = Duration::from_secs(2);

/// Most bytes in a chunk of output.
const CHUNK: usize = 16 * 1024;

/// Bytes of a tar that are under way at once.
const TAR_BUFFER: usize = 256 * 1024;

/// How many bring files out at once: each has a thread until what it hands on is stored.
const PACKING: usize = 16;

/// How many are removed at once, so that what still runs finds a thread for its own files.
const REMOVING: usize = 8;

/// What the engine needs of the process it runs in.
#[derive(Clone, Debug)]
pub struct LocalOptions {
    /// Names the run's directory; safe as a file name.
    pub run_id: String,
    /// Where the run's directory is made: the system's directory for temporary files.
    pub temporary: Utf8PathBuf,
    /// evalwave itself, started again as the supervisor of each command.
    pub program: Utf8PathBuf,
    /// evalwave's own PATH.
    pub path: Option<String>,
    /// evalwave's own HOME.
    pub home: Option<Utf8PathBuf>,
    /// evalwave's own LANG.
    pub lang: Option<String>,
    /// Variables without which the system's own programs do not run: `SystemRoot` and the like on Windows, none
    /// elsewhere.
    pub system: Vec<(String, String)>,
}

/// Sandboxes on this machine. Whatever it made is removed when it and all its sandboxes are dropped; sandboxes are
/// stopped before that. A run has one such engine: its directory is named after the run.
#[derive(Debug)]
pub struct LocalBackend {
    reaper: LocalReaper,
    run: Arc<Run>,
    capacity: Capacity,
}

/// What the sandboxes of a run share.
#[derive(Debug)]
struct Run {
    config: LocalConfig,
    options: LocalOptions,
    /// Where workspaces come from.
    source: Utf8PathBuf,
    directory: RunDirectory,
    mode: Mode,
    /// The soft limit on open files that commands get.
    open_files: Option<u64>,
    /// Has [`PACKING`] permits.
    packing: Semaphore,
    /// Has [`REMOVING`] permits.
    removing: Semaphore,
}

impl LocalBackend {
    /// Checks that the configured way of making workspaces from `source` is possible here, and raises this process's
    /// limit on open files as far as it goes (commands get the one that it had).
    ///
    /// # Errors
    /// `workspace: overlay` where mounting is not allowed, `workspace: worktree` outside a git repository or before
    /// its first commit, `home: inherit` without a HOME, a temporary directory that cannot be written.
    pub fn new(config: &LocalConfig, options: LocalOptions, source: &Utf8Path) -> Result<Self, SandboxError> {
        if config.home == HomeMode::Inherit && options.home.is_none() {
            return Err(SandboxError::new(
                "cannot give attempts the user's home, which `home: inherit` asks for: `HOME` is not set",
            ));
        }
        let directory = RunDirectory::new(&options.temporary, &options.run_id);
        let mode = Mode::new(config, source, &directory, options.for_git())?;
        // Tried once, so that it is said before anything runs.
        directory.create().map_err(|error| {
            SandboxError::io(
                format!(
                    "cannot use the temporary directory `{}`\nset `TMPDIR` to one that can be written",
                    options.temporary
                ),
                error,
            )
        })?;
        directory.remove_if_empty();
        let (capacity, open_files) = measure(config.memory_per_attempt);
        Ok(Self {
            capacity,
            reaper: LocalReaper::new(&options.temporary),
            run: Arc::new(Run {
                config: config.clone(),
                options,
                source: source.to_owned(),
                directory,
                mode,
                open_files,
                packing: Semaphore::new(PACKING),
                removing: Semaphore::new(REMOVING),
            }),
        })
    }
}

/// What this machine can take at once. Raises this process's limit on open files as far as it goes.
pub fn capacity_here(config: &LocalConfig) -> Capacity {
    measure(config.memory_per_attempt).0
}

/// The same for any engine on this machine, whose attempts are reckoned to take so much memory each, in bytes.
pub(super) fn capacity_for(memory_per_attempt: u64) -> Capacity {
    measure(memory_per_attempt).0
}

/// Most open files of this process, after its limit was raised as far as it goes; `None` where that is unknown.
pub(super) fn most_open_files() -> Option<u64> {
    #[cfg(unix)]
    return capacity::raise_open_files().1;
    #[cfg(not(unix))]
    None
}

/// How many attempts this process has files for, whose limit on them is raised as far as it goes; `None` where that is
/// unknown.
pub(super) fn limit_by_files() -> Option<Limit> {
    #[cfg(unix)]
    return capacity::raise_open_files().1.map(capacity::by_files);
    #[cfg(not(unix))]
    None
}

/// The soft limit on open files that this process was started with, where it has raised it since; raises it first.
pub(super) fn open_files_before() -> Option<u64> {
    #[cfg(unix)]
    return match capacity::raise_open_files() {
        (before, now) if before != now => before,
        _ => None,
    };
    #[cfg(not(unix))]
    None
}

/// The capacity, and the soft limit on open files that commands get.
fn measure(memory_per_attempt: u64) -> (Capacity, Option<u64>) {
    #[cfg(unix)]
    let (open_files, most_files) = capacity::raise_open_files();
    #[cfg(not(unix))]
    let (open_files, most_files) = (None, None);
    let machine = Machine {
        memory: capacity::memory_available(),
        open_files: most_files,
    };
    (capacity::capacity(machine, memory_per_attempt), open_files)
}

/// Keeps other processes of this user, attempts among them, from reading this process's memory and environment, where
/// the secrets are. Does nothing on systems other than Linux.
pub fn harden_self() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // It cannot fail with a value that is valid; and nothing would be done about it.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

#[async_trait]
impl Backend for LocalBackend {
    fn capacity(&self) -> Capacity {
        self.capacity.clone()
    }

    async fn start(&self, spec: &SandboxSpec, _: &dyn Ledger) -> Result<Box<dyn Sandbox>, SandboxError> {
        let (run, name) = (Arc::clone(&self.run), spec.name.clone());
        let directory = blocking(move || {
            let created = run.directory.create_sandbox(&name);
            created.map_err(|error| SandboxError::io("cannot create the sandbox's directory", error))
        })
        .await?;
        Ok(Box::new(LocalSandbox {
            name: spec.name.clone(),
            workspace: directory.join("workspace"),
            files: Arc::new(Files {
                run: Arc::clone(&self.run),
                directory,
                stopped: AtomicBool::new(false),
                in_use: Mutex::new(()),
            }),
            processes: Processes::default(),
        }))
    }

    fn reaper(&self) -> &dyn Reaper {
        &self.reaper
    }
}

/// A directory, and what runs in it.
struct LocalSandbox {
    name: String,
    /// Where commands run.
    workspace: Utf8PathBuf,
    files: Arc<Files>,
    processes: Processes,
}

/// A sandbox's files, which outlive it while work on them, once begun, goes on in another thread.
#[derive(Debug)]
struct Files {
    run: Arc<Run>,
    directory: Utf8PathBuf,
    /// Ends such work early.
    stopped: AtomicBool,
    /// Held by such work, and by the removal that has to wait for it.
    in_use: Mutex<()>,
}

#[async_trait]
impl Sandbox for LocalSandbox {
    fn name(&self) -> &str {
        &self.name
    }

    fn boot(&self) -> Boot {
        Boot::Cold
    }

    fn confinement(&self) -> Vec<String> {
        self.processes.confinement().to_vec()
    }

    async fn upload(&mut self, workspace: &Workspace) -> Result<(), SandboxError> {
        let workspace = workspace.clone();
        self.workspace = self
            .with_files(move |files| {
                let run = &files.run;
                run.mode
                    .fill(&run.directory, &workspace, &files.directory, &files.stopped)
            })
            .await?;
        Ok(())
    }

    async fn remove(&mut self, pattern: &str) -> Result<(), SandboxError> {
        let (workspace, pattern) = (self.workspace.clone(), pattern.to_owned());
        self.with_files(move |_| transfer::remove(&workspace, &pattern))
            .await
    }

    async fn exec(
        &mut self,
        command: &Command,
        output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<Exit, SandboxError> {
        let run = Arc::clone(&self.files.run);
        let directory = self.files.directory.clone();
        let (home, temporary) = (directory.join("home"), directory.join("tmp"));
        let home = match (run.config.home, &run.options.home) {
            (HomeMode::Inherit, Some(home)) => home,
            _ => &home,
        };
        let mut environment = run.options.environment(home, &temporary);
        environment.extend(
            command
                .env
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        );
        let launch = Launch {
            workspace: &self.workspace,
            environment,
            line: &command.line,
            keep: command.keeps_daemons,
            #[cfg(unix)]
            program: &run.options.program,
            #[cfg(unix)]
            writable: (run.config.landlock == LandlockMode::Auto).then(|| {
                let inherited = (run.config.home == HomeMode::Inherit).then_some(home.as_path());
                let shared = run.mode.shared_directory(&run.source);
                [Some(directory.as_path()), inherited, shared]
                    .into_iter()
                    .flatten()
                    .collect()
            }),
            #[cfg(unix)]
            no_network: run.config.network == NetworkMode::None,
            #[cfg(unix)]
            open_files: run.open_files,
        };
        self.processes.exec(launch, &directory, output).await
    }

    async fn download(
        &mut self,
        from: &Utf8Path,
        into: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<Option<()>, SandboxError> {
        let run = Arc::clone(&self.files.run);
        // Nobody ever closes the semaphore.
        let _packing = run.packing.acquire().await;
        let (sender, mut receiver) = tokio::io::duplex(TAR_BUFFER);
        let sender = SyncIoBridge::new(sender);
        let (workspace, path) = (self.workspace.clone(), from.to_owned());
        let files = Arc::clone(&self.files);
        let packing = bridged(move || files.with(|_| transfer::pack(&workspace, &path, sender)));
        let (packed, passed) = tokio::join!(packing, async move {
            let passed = tokio::io::copy(&mut receiver, into).await;
            // With nobody to take it, the rest of the tar is not made.
            drop(receiver);
            passed
        });
        passed.map_err(|error| SandboxError::io(format!("cannot store what `{from}` holds"), error))?;
        packed.map_err(|error| SandboxError::io(format!("cannot pack `{from}`"), error))?
    }

    #[cfg(unix)]
    async fn full_disk(&mut self) -> Option<String> {
        let (directory, workspace) = (self.files.directory.clone(), self.workspace.clone());
        let looked = blocking(move || Ok([directory, workspace].iter().find_map(|path| full(path))));
        // What cannot be looked at says nothing.
        looked.await.ok().flatten()
    }

    async fn stop(mut self: Box<Self>) -> Result<(), SandboxError> {
        self.files.stopped.store(true, Ordering::Relaxed);
        let killed = self.processes.stop(&self.files.directory).await;
        // Nobody ever closes the semaphore.
        let _removing = self.files.run.removing.acquire().await;
        let removed = self.with_files(|files| files.remove()).await;
        killed.and(removed)
    }
}

/// A disk with less than this is full: hardly a file can be written.
#[cfg(unix)]
const FULL: u64 = 64 << 10;

/// Whether hardly anything fits on the disk of a path, in words.
#[cfg(unix)]
fn full(path: &Utf8Path) -> Option<String> {
    let disk = rustix::fs::statvfs(path.as_std_path()).ok()?;
    let left = disk.f_bavail.saturating_mul(disk.f_frsize);
    // Some file systems have no fixed number of files, and say 0 of both.
    let no_files = disk.f_files > 0 && disk.f_favail == 0;
    (left < FULL || no_files)
        .then(|| format!("no space left on the disk of the sandbox ({left} bytes, at `{path}`)"))
}

impl LocalSandbox {
    /// Works on the files in a thread that may block, one piece of work at a time.
    async fn with_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Files) -> Result<T, SandboxError> + Send + 'static,
    ) -> Result<T, SandboxError> {
        let files = Arc::clone(&self.files);
        blocking(move || files.with(work)).await
    }
}

impl Files {
    /// Works on them when nobody else does.
    fn with<T>(&self, work: impl FnOnce(&Self) -> T) -> T {
        let _in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        work(self)
    }

    fn remove(&self) -> Result<(), SandboxError> {
        let emptied = self.run.mode.empty(&self.directory);
        let removed = emptied.and_then(|()| remove_tree(&self.directory));
        removed.map_err(|error| {
            SandboxError::io(
                format!("cannot remove the sandbox's directory `{}`", self.directory),
                error,
            )
        })
    }
}

impl Drop for Run {
    /// Sandboxes that were never stopped are here still.
    fn drop(&mut self) {
        let left = fs_err::read_dir(self.directory.path())
            .into_iter()
            .flatten()
            .flatten();
        for entry in left {
            if let Ok(sandbox) = Utf8PathBuf::from_path_buf(entry.path()) {
                let _ = self.mode.empty(&sandbox);
            }
        }
        let _ = self.directory.remove();
    }
}

impl LocalOptions {
    /// What every command's environment begins with.
    fn environment<'a>(&'a self, home: &'a Utf8Path, temporary: &'a Utf8Path) -> Vec<(&'a str, &'a str)> {
        let mut environment: Vec<(&str, &str)> = Vec::new();
        environment.extend(
            self.system
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        );
        environment.extend([
            ("PATH", self.path.as_deref().unwrap_or(DEFAULT_PATH)),
            ("HOME", home.as_str()),
            ("LANG", self.lang.as_deref().unwrap_or("C.UTF-8")),
            ("TMPDIR", temporary.as_str()),
        ]);
        #[cfg(windows)]
        environment.extend([
            ("USERPROFILE", home.as_str()),
            ("TEMP", temporary.as_str()),
            ("TMP", temporary.as_str()),
        ]);
        environment
    }

    /// Git needs the user's own configuration, and must not be led to another repository.
    fn for_git(&self) -> Vec<(String, String)> {
        let mut environment = self.system.clone();
        environment.push((
            "PATH".to_owned(),
            self.path.clone().unwrap_or_else(|| DEFAULT_PATH.to_owned()),
        ));
        environment.extend(self.home.iter().map(|home| ("HOME".to_owned(), home.to_string())));
        environment.push(("LANG".to_owned(), "C.UTF-8".to_owned()));
        environment.push(("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned()));
        environment
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SandboxError> + Send + 'static,
) -> Result<T, SandboxError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(SandboxError::io(
            "cannot work on the sandbox's files",
            std::io::Error::other(error),
        ))
    })
}
