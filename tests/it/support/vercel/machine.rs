//! What a session runs on: a real machine of processes, or one that only lets time pass.

mod light;
mod real;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use tokio::sync::mpsc::UnboundedReceiver;

pub(crate) use light::{Light, LightRule};
use real::Place;

/// Receives what is printed, and on which stream.
pub(crate) type Print = Arc<dyn Fn(&'static str, String) + Send + Sync>;

/// What is on a new disk.
pub(crate) enum Disk {
    Empty,
    Snapshot(String),
    Git {
        url: String,
        revision: Option<String>,
        depth: Option<u32>,
        user: Option<(String, String)>,
    },
}

/// A command.
pub(crate) struct Job {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    pub(crate) cwd: String,
    pub(crate) env: BTreeMap<String, String>,
    /// Of the sandbox.
    pub(crate) tags: BTreeMap<String, String>,
    /// After which it is killed.
    pub(crate) timeout: Option<Duration>,
}

/// What machines are made of.
pub(crate) enum Machines {
    /// Processes, each machine's in namespaces of its own.
    Real(Place),
    /// Nothing but time.
    Light(Arc<Light>),
}

impl Machines {
    /// Machines of processes, made with this `bwrap`.
    pub(crate) fn real(bwrap: impl Into<Utf8PathBuf>) -> io::Result<Self> {
        Ok(Self::Real(Place::new(bwrap.into())?))
    }

    pub(crate) fn light(light: Light) -> Self {
        Self::Light(Arc::new(light))
    }

    pub(crate) async fn boot(&self, disk: Disk) -> io::Result<Machine> {
        match self {
            Self::Real(place) => Ok(Machine::Real(Box::new(place.boot(disk).await?))),
            Self::Light(light) => Ok(Machine::Light(Arc::clone(light))),
        }
    }

    /// Kills what runs and keeps the disk under this name; how many bytes are on it.
    pub(crate) async fn save(&self, machine: &Machine, name: &str) -> io::Result<u64> {
        match (self, machine) {
            (Self::Real(place), Machine::Real(machine)) => place.save(machine, name).await,
            _ => Ok(0),
        }
    }
}

/// One machine.
pub(crate) enum Machine {
    Real(Box<real::Machine>),
    Light(Arc<Light>),
}

impl Machine {
    /// Runs to the end; the exit code, which of a signal is 128 more than its number.
    pub(crate) async fn run(&self, job: Job, signals: &mut UnboundedReceiver<i32>, print: Print) -> i32 {
        match self {
            Self::Real(machine) => machine.run(job, signals, print).await,
            Self::Light(light) => light.run(&job, signals, &print).await,
        }
    }

    /// Unpacks a compressed tar.
    pub(crate) async fn write(&self, directory: &str, archive: &[u8]) -> io::Result<()> {
        match self {
            Self::Real(machine) => machine.write(directory, archive).await,
            Self::Light(_) if archive.starts_with(&[0x1f, 0x8b]) => Ok(()),
            Self::Light(_) => Err(io::Error::other("not in gzip format")),
        }
    }

    /// `None` where there is no such file.
    pub(crate) async fn read(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        match self {
            Self::Real(machine) => machine.read(path).await,
            Self::Light(light) => Ok(light.file(path)),
        }
    }

    pub(crate) async fn mkdir(&self, path: &str, recursive: bool) -> io::Result<()> {
        match self {
            Self::Real(machine) => machine.mkdir(path, recursive).await,
            Self::Light(_) => Ok(()),
        }
    }

    /// Kills everything on it.
    pub(crate) fn kill(&self) {
        if let Self::Real(machine) = self {
            machine.kill();
        }
    }
}
