//! The engines that hold the contract; `None` where one cannot be had here.

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use evalwave::config::{HomeMode, LandlockMode, LocalConfig, NetworkMode, WorkspaceMode};
use evalwave::sandbox::Backend;
use evalwave::sandbox::docker::{DockerBackend, DockerEngine};
use evalwave::sandbox::local::{LocalBackend, LocalOptions};
use evalwave::sandbox::vercel::VercelBackend;
use tempfile::TempDir;

pub(super) use super::command::{by_files, docker_cli, scripted, slurm};
use super::{Engine, argument_lists, marked_here};
use crate::support::docker::{containers, docker_config, docker_host, marked, unique};
use crate::support::engine_of_vercel::{backend, bwrap, config};
use crate::support::vercel::{Faults, Limits, Machines, State, Vercel};

/// A directory of a test's own. In the build directory rather than in /tmp, which a confined command may write to.
pub(super) fn directory() -> (TempDir, Utf8PathBuf) {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = Utf8PathBuf::from_path_buf(directory.path().canonicalize().unwrap()).unwrap();
    fs_err::create_dir(path.join("source")).unwrap();
    (directory, path)
}

struct Local {
    backend: LocalBackend,
    source: Utf8PathBuf,
    temporary: Utf8PathBuf,
    _directory: TempDir,
}

pub(super) async fn local() -> Option<Box<dyn Engine>> {
    let (directory, path) = directory();
    let (source, temporary) = (path.join("source"), path.join("temporary"));
    fs_err::create_dir(&temporary).unwrap();
    let config = LocalConfig {
        workspace: WorkspaceMode::Copy,
        link: Vec::new(),
        home: HomeMode::Private,
        landlock: LandlockMode::Auto,
        network: NetworkMode::Inherit,
        memory_per_attempt: 256_000_000,
    };
    let options = LocalOptions {
        run_id: "r1".to_owned(),
        temporary: temporary.clone(),
        program: env!("CARGO_BIN_EXE_evalwave").into(),
        path: Some("/usr/bin:/bin".to_owned()),
        home: None,
        lang: None,
        system: Vec::new(),
    };
    Some(Box::new(Local {
        backend: LocalBackend::new(&config, options, &source).unwrap(),
        source,
        temporary,
        _directory: directory,
    }))
}

#[async_trait]
impl Engine for Local {
    fn backend(&self) -> &dyn Backend {
        &self.backend
    }

    fn source(&self) -> &Utf8Path {
        &self.source
    }

    async fn left(&self) -> Vec<String> {
        let run = fs_err::read_dir(self.temporary.join("evalwave-r1"))
            .into_iter()
            .flatten();
        run.map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    async fn shown(&self) -> String {
        let names = walk(&self.temporary)
            .into_iter()
            .map(|path| path.into_string() + "\n");
        argument_lists() + &names.collect::<String>()
    }
}

/// Machines of the fake Vercel that run commands for real.
struct FakeVercel {
    backend: VercelBackend,
    source: Utf8PathBuf,
    vercel: Vercel,
    _directory: TempDir,
}

pub(super) async fn vercel() -> Option<Box<dyn Engine>> {
    let machines = Machines::real(bwrap()?).unwrap();
    let vercel = Vercel::start(0, State::new(Limits::none(), Faults::default()), machines).unwrap();
    let (directory, path) = directory();
    Some(Box::new(FakeVercel {
        backend: backend(&config(&vercel.base_url())),
        source: path.join("source"),
        vercel,
        _directory: directory,
    }))
}

#[async_trait]
impl Engine for FakeVercel {
    fn backend(&self) -> &dyn Backend {
        &self.backend
    }

    fn source(&self) -> &Utf8Path {
        &self.source
    }

    async fn left(&self) -> Vec<String> {
        self.vercel.state().sandboxes.keys().cloned().collect()
    }

    /// A machine that is deleted is killed by the kernel process by process, which this waits for.
    async fn marked(&self, mark: &str) -> usize {
        let mut same = 0;
        let mut found = marked_here(mark);
        while found > 0 && same < 5 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            let now = marked_here(mark);
            same = if now == found { same + 1 } else { 0 };
            found = now;
        }
        found
    }

    async fn shown(&self) -> String {
        let state = self.vercel.state();
        let sandboxes = state.sandboxes.values();
        let labels =
            sandboxes.map(|sandbox| format!("{} {:?} {:?}\n", sandbox.name, sandbox.tags, sandbox.env));
        let commands = state.commands.values();
        let lines = commands.map(|command| format!("{} {:?}\n", command.name, command.args));
        argument_lists() + &labels.chain(lines).collect::<String>()
    }
}

/// Every path below a directory.
pub(super) fn walk(directory: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut found = Vec::new();
    for entry in directory.read_dir_utf8().into_iter().flatten().flatten() {
        let path = entry.into_path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(walk(&path));
        }
        found.push(path);
    }
    found
}

struct Containers {
    backend: DockerBackend,
    host: String,
    run_id: String,
    source: Utf8PathBuf,
    _directory: TempDir,
}

pub(super) async fn docker() -> Option<Box<dyn Engine>> {
    let host = docker_host()?;
    let (directory, path) = directory();
    let source = path.join("source");
    let engine = DockerEngine {
        host: Some(host.clone()),
        ..DockerEngine::default()
    };
    Some(Box::new(Containers {
        backend: DockerBackend::new(&docker_config(), engine, &source).unwrap(),
        host,
        run_id: unique("contract"),
        source,
        _directory: directory,
    }))
}

#[async_trait]
impl Engine for Containers {
    fn backend(&self) -> &dyn Backend {
        &self.backend
    }

    fn run_id(&self) -> &str {
        &self.run_id
    }

    fn source(&self) -> &Utf8Path {
        &self.source
    }

    async fn left(&self) -> Vec<String> {
        let containers = containers(&self.host, &self.run_id).await;
        containers
            .into_iter()
            .map(|container| format!("{:?}", container.names))
            .collect()
    }

    async fn marked(&self, mark: &str) -> usize {
        marked(&self.host, &self.run_id, mark).await
    }

    async fn shown(&self) -> String {
        let docker = bollard::Docker::connect_with_host(&self.host).unwrap();
        let mut shown = argument_lists();
        for container in containers(&self.host, &self.run_id).await {
            let inspected = docker
                .inspect_container(&container.id.unwrap(), None)
                .await
                .unwrap();
            for exec in inspected.exec_ids.iter().flatten() {
                shown += &format!("{:?}", docker.inspect_exec(exec).await.unwrap());
            }
            shown += &format!("{inspected:?}");
        }
        shown
    }
}
