//! The engine of containers against a real Docker engine: its keys, its images, its failures, and whole runs.

mod failures;
mod images;
mod keys;
mod runs;

use std::sync::Arc;

use camino::Utf8PathBuf;
use evalwave::config::DockerConfig;
use evalwave::sandbox::docker::{DockerBackend, DockerEngine};
use evalwave::sandbox::{Backend as _, Sandbox, SandboxSpec};
use tempfile::TempDir;

use crate::support::docker::{docker_config, docker_host, unique};
use crate::support::sandbox::{Remembered, spec};

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
