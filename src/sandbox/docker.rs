//! The engine of containers: each sandbox is a container of a Docker engine, each command an exec in it. It asks the
//! engine's API and needs no `docker` command.

mod archive;
mod connection;
mod container;
mod credentials;
mod exec;
mod ignore;
mod image;
mod reaper;
mod warm;
mod workspace;

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use bollard::Docker;
use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::{
    CreateContainerOptions, CreateContainerOptionsBuilder, StartContainerOptions,
};
use camino::{Utf8Path, Utf8PathBuf};
use tokio::sync::{OnceCell, Semaphore, mpsc};

use super::local::capacity_for;
use super::under_way::UnderWay;
use super::{Backend, Capacity, Ledger, Reaper, Sandbox, SandboxError, SandboxSpec, Setup, Warm};
use crate::config::{DockerConfig, DockerMount};
use crate::model::Boot;
pub use connection::DockerEngine;
use connection::failed;
use container::{DockerSandbox, Place};
use image::Image;
pub use reaper::DockerReaper;

/// Most containers that may be starting, or being deleted, at once: an engine is no faster beyond.
const STARTING: usize = 8;

/// The label with the run that owns a container.
const RUN_LABEL: &str = "evalwave.run";

/// What keeps a container alive.
const IDLE: &str = include_str!("docker/idle.sh");

/// Sandboxes in containers.
pub struct DockerBackend {
    shared: Arc<Shared>,
    reaper: DockerReaper,
    capacity: Capacity,
    image: OnceCell<Image>,
}

/// What the sandboxes of a run share.
struct Shared {
    docker: Docker,
    config: DockerConfig,
    /// Where relative paths of the configuration start.
    root: Utf8PathBuf,
    creating: UnderWay,
    deleting: Semaphore,
}

impl DockerBackend {
    /// Sandboxes of an engine. Relative paths of `config` start at `root`.
    ///
    /// # Errors
    /// An engine that cannot be spoken to: what was tried, and what to do. A mount of this machine that is not there.
    pub fn new(config: &DockerConfig, engine: DockerEngine, root: &Utf8Path) -> Result<Self, SandboxError> {
        if engine.is_here() {
            check_mounts(config, root)?;
        }
        let docker = engine.connect()?;
        let creating = UnderWay::default();
        Ok(Self {
            shared: Arc::new(Shared {
                docker,
                config: config.clone(),
                root: root.to_owned(),
                creating: creating.clone(),
                deleting: Semaphore::new(STARTING),
            }),
            capacity: capacity(config, &engine),
            reaper: DockerReaper::after(engine, creating),
            image: OnceCell::new(),
        })
    }

    /// The image, made ready with nobody to tell where nobody has asked for that before.
    async fn image(&self) -> Result<&Image, SandboxError> {
        let silent = mpsc::channel(1).0;
        let make = || image::make_ready(&self.shared, self.reaper.engine(), &silent);
        self.image.get_or_try_init(make).await
    }
}

/// What the engine can take at once: memory is reckoned where the engine is on this machine.
pub fn capacity(config: &DockerConfig, engine: &DockerEngine) -> Capacity {
    let mut capacity = capacity_for(config.memory_per_attempt);
    if !engine.is_here() {
        capacity.running = None;
    }
    capacity.starting = STARTING;
    capacity
}

#[async_trait]
impl Backend for DockerBackend {
    fn capacity(&self) -> Capacity {
        self.capacity.clone()
    }

    async fn prepare(
        &self,
        setup: &Setup,
        ledger: &dyn Ledger,
        output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<Warm, SandboxError> {
        let mut image = image::make_ready(&self.shared, self.reaper.engine(), output).await?;
        let warm = match &setup.command {
            _ if !self.shared.config.warm => Warm::Cold(None),
            None => Warm::Cold(Some(
                "`attempt.setup` has to be the same for all attempts for `warm: true`".to_owned(),
            )),
            Some(command) => warm::make(&self.shared, &image, setup, command, ledger, output).await?,
        };
        match &warm {
            Warm::From(name) => image.becomes(name, Boot::Warm),
            Warm::Cold(_) => {
                if let Some(name) = workspace::keep(&self.shared, &image, setup, ledger, output).await {
                    image.becomes(&name, Boot::Cold);
                }
            }
        }
        // A second call changes nothing.
        let _ = self.image.set(image);
        Ok(warm)
    }

    async fn start(&self, spec: &SandboxSpec, _: &dyn Ledger) -> Result<Box<dyn Sandbox>, SandboxError> {
        let image = self.image().await?;
        Ok(Box::new(create(&self.shared, image, spec).await?))
    }

    fn reaper(&self) -> &dyn Reaper {
        &self.reaper
    }
}

/// Creates a container and starts it. An engine that was asked for it makes it also where nobody waits any more: that one
/// is deleted. What cannot be deleted the run finds by its label, at its end.
async fn create(
    shared: &Arc<Shared>,
    image: &Image,
    spec: &SandboxSpec,
) -> Result<DockerSandbox, SandboxError> {
    let options = CreateContainerOptionsBuilder::default().name(&container_name(&spec.name));
    let options = match &shared.config.platform {
        Some(platform) => options.platform(platform),
        None => options,
    };
    let body = shared.body(image, spec);
    let (docker, same) = (shared.docker.clone(), shared.docker.clone());
    let creation = async move { create_and_start(&docker, options.build(), body).await };
    let undo = async move |created: Result<String, SandboxError>| {
        if let Ok(id) = created {
            let _ = reaper::delete(&same, &id).await;
        }
    };
    let created = shared.creating.carry(creation, undo).await;
    let id = created.map_err(|error| SandboxError::io("cannot create the container", error))??;
    Ok(DockerSandbox::new(
        Arc::clone(shared),
        spec.name.clone(),
        id,
        Place::of(image, &shared.config),
    ))
}

/// Gives the engine's own id.
async fn create_and_start(
    docker: &Docker,
    options: CreateContainerOptions,
    body: ContainerCreateBody,
) -> Result<String, SandboxError> {
    let created = docker.create_container(Some(options), body).await;
    let id = created
        .map_err(|error| failed("cannot create the container", error))?
        .id;
    let started = docker.start_container(&id, None::<StartContainerOptions>).await;
    if let Err(error) = started {
        let _ = reaper::delete(docker, &id).await;
        return Err(failed("cannot start the container", error));
    }
    Ok(id)
}

/// Where a mount is on the engine's machine; `None` where its source is a volume's name.
fn host_path(root: &Utf8Path, mount: &DockerMount) -> Option<Utf8PathBuf> {
    let is_path = mount.source.contains('/') || mount.source.starts_with(['.', '~']);
    is_path.then(|| root.join(&mount.source))
}

/// What is not there the engine would create, as a directory of root's.
fn check_mounts(config: &DockerConfig, root: &Utf8Path) -> Result<(), SandboxError> {
    let missing = config.mounts.iter().find_map(|mount| {
        let path = host_path(root, mount)?;
        (!path.exists()).then_some((mount, path))
    });
    let Some((mount, path)) = missing else {
        return Ok(());
    };
    let hint = match mount.source.starts_with('~') {
        true => "write the home directory out in `sandbox.mounts`: `~` has no meaning there",
        false => "create it, or change `sandbox.mounts`",
    };
    Err(SandboxError::new(format!(
        "cannot mount `{}`: there is no `{path}`\n{hint}",
        mount.source
    )))
}

/// What the engine calls a sandbox.
fn container_name(name: &str) -> String {
    format!("evalwave-{name}")
}

impl Shared {
    fn body(&self, image: &Image, spec: &SandboxSpec) -> ContainerCreateBody {
        let mut labels: HashMap<String, String> = spec
            .labels
            .iter()
            .map(|(name, value)| (format!("evalwave.{name}"), value.clone()))
            .collect();
        labels.insert(RUN_LABEL.to_owned(), spec.run_id.clone());
        let idle = [
            "sh",
            "-c",
            IDLE,
            "evalwave",
            &spec.limit.as_secs().max(1).to_string(),
        ];
        ContainerCreateBody {
            image: Some(image.id.clone()),
            entrypoint: Some(idle.map(str::to_owned).into()),
            cmd: Some(Vec::new()),
            env: Some(image.environment()),
            user: self.config.user.clone(),
            working_dir: Some(image.workspace.to_string()),
            labels: Some(labels),
            // Of its own accord it only sleeps; what an attempt says is read from its exec.
            attach_stdout: Some(false),
            attach_stderr: Some(false),
            volumes: self.config.read_only.then(|| vec![image.workspace.to_string()]),
            host_config: Some(self.host_config()),
            ..ContainerCreateBody::default()
        }
    }

    fn host_config(&self) -> HostConfig {
        let config = &self.config;
        let memory = config
            .memory
            .map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
        HostConfig {
            memory,
            // The same number is no swap at all: an attempt that needs more is told so at once.
            memory_swap: memory,
            nano_cpus: config.cpus.map(|cpus| (cpus * 1e9) as i64),
            pids_limit: config.pids.map(|pids| i64::try_from(pids).unwrap_or(i64::MAX)),
            network_mode: Some(config.network.clone()),
            init: Some(config.init),
            readonly_rootfs: Some(config.read_only),
            tmpfs: config
                .read_only
                .then(|| HashMap::from([("/tmp".to_owned(), "exec,mode=1777".to_owned())])),
            privileged: Some(config.privileged),
            binds: Some(config.mounts.iter().map(|mount| self.bind(mount)).collect()),
            // At the end of its own time limit it goes, whoever is there to delete it.
            auto_remove: Some(true),
            ..HostConfig::default()
        }
    }

    /// All that the configuration says of a container, with where its mounts come from, for a hash.
    fn container(&self) -> String {
        let mounts: Vec<String> = self.config.mounts.iter().map(|mount| self.bind(mount)).collect();
        format!("{:?} {mounts:?}", self.config)
    }

    /// A source that is no path is a volume's name.
    fn bind(&self, mount: &DockerMount) -> String {
        let source = match host_path(&self.root, mount) {
            Some(path) => path.into_string(),
            None => mount.source.clone(),
        };
        let mode = if mount.read_only { "ro" } else { "rw" };
        format!("{source}:{}:{mode}", mount.target)
    }
}
