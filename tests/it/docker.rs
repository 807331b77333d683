//! The engine of containers against a real Docker engine: its keys, its images, its failures, and whole runs.

mod access;
mod creation;
mod failures;
mod images;
mod keys;
mod registry;
mod runs;
mod workspace;

use std::sync::Arc;

use assert_cmd::Command;
use camino::Utf8PathBuf;
use evalwave::config::DockerConfig;
use evalwave::sandbox::docker::{DockerBackend, DockerEngine};
use evalwave::sandbox::{Backend as _, Sandbox, SandboxSpec, Setup, Warm, Workspace};
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::support::docker::{docker_config, docker_host, unique};
use crate::support::sandbox::{Remembered, shell, spec};
use crate::support::{Suite, evalwave};

/// An engine with a configuration of a test's own.
struct Bench {
    host: String,
    config: DockerConfig,
    root: Utf8PathBuf,
    run_id: String,
    _directory: TempDir,
}

impl Bench {
    /// `None` where there is no engine.
    fn new() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        Some(Self {
            host: docker_host()?,
            config: docker_config(),
            root: Utf8PathBuf::from_path_buf(directory.path().to_owned()).unwrap(),
            run_id: unique("docker"),
            _directory: directory,
        })
    }

    fn engine(&self) -> DockerEngine {
        DockerEngine {
            host: Some(self.host.clone()),
            configuration: Some(self.root.join(".docker")),
            ..DockerEngine::default()
        }
    }

    fn backend(&self) -> Arc<DockerBackend> {
        Arc::new(DockerBackend::new(&self.config, self.engine(), &self.root).unwrap())
    }

    fn spec(&self, name: &str) -> SandboxSpec {
        SandboxSpec {
            run_id: self.run_id.clone(),
            ..spec(&format!("{}-{name}", self.run_id))
        }
    }

    async fn start(&self) -> Box<dyn Sandbox> {
        let spec = self.spec("a");
        self.backend().start(&spec, &Remembered::default()).await.unwrap()
    }

    fn client(&self) -> bollard::Docker {
        bollard::Docker::connect_with_host(&self.host).unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }
}

/// `evalwave run -o out` with an engine.
fn run_at(host: &str, suite: &Suite) -> Command {
    let mut command = evalwave(suite.path());
    command.env("DOCKER_HOST", host).args(["run", "-o", "out"]);
    command
}

/// The run's only attempt is an error of the engine, and no failure. Gives its message.
fn errored(suite: &Suite) -> String {
    let summary = suite.read_json("out/summary.json");
    assert_eq!(
        (&summary["totals"]["failed"], &summary["totals"]["errored"]),
        (&0.into(), &1.into())
    );
    let error = &summary["pairs"][0]["attempts"][0]["error"];
    assert_eq!(error["phase"], "provision", "{error}");
    error["message"].as_str().unwrap().to_owned()
}

/// Prepares, and gives what was said.
async fn prepare(bench: &Bench, command: Option<&str>) -> (Result<Warm, String>, String, Remembered) {
    let setup = setup(bench, command);
    let ledger = Remembered::default();
    let (sender, mut receiver) = mpsc::channel(16);
    let backend = bench.backend();
    let preparing = async {
        let sender = sender;
        let prepared = backend.prepare(&setup, &ledger, &sender).await;
        prepared.map_err(|error| evalwave::model::with_causes(&error))
    };
    let (prepared, said) = tokio::join!(preparing, async {
        let mut said = Vec::new();
        while let Some(chunk) = receiver.recv().await {
            said.extend(chunk);
        }
        String::from_utf8(said).unwrap()
    });
    (prepared, said, ledger)
}

/// For one sandbox.
fn setup(bench: &Bench, command: Option<&str>) -> Setup {
    Setup {
        spec: bench.spec("setup"),
        command: command.map(shell),
        workspace: workspace(bench),
        limit: std::time::Duration::from_secs(60),
        sandboxes: 1,
    }
}

fn workspace(bench: &Bench) -> Workspace {
    Workspace {
        root: bench.root.clone(),
        files: [Utf8PathBuf::from("lock.txt")].into(),
    }
}
