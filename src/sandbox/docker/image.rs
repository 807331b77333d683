//! The image that containers are made of: found, pulled or built, with its progress told.

use std::collections::BTreeMap;

use bollard::Docker;
use bollard::models::{BuildInfo, ContainerConfig, CreateImageInfo, ImageInspect};
use bollard::query_parameters::{
    BuildImageOptionsBuilder, CommitContainerOptionsBuilder, CreateImageOptionsBuilder,
};
use camino::{Utf8Path, Utf8PathBuf};
use futures::StreamExt as _;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use super::connection::{DockerEngine, failed, is_absent};
use super::{Shared, archive, credentials, ignore};
use crate::config::DockerImage;
use crate::model::Boot;
use crate::sandbox::{SandboxError, Workspace};

/// Where commands run in an image that names no directory.
const WORKSPACE: &str = "/workspace";

/// An image that the engine has.
#[derive(Clone, Debug)]
pub(super) struct Image {
    /// What containers are made of.
    pub(super) id: String,
    /// What they boot as.
    pub(super) boot: Boot,
    /// Whether the workspace is in it already.
    pub(super) holds_workspace: bool,
    /// Where commands run; absolute.
    pub(super) workspace: Utf8PathBuf,
    /// The user that it names.
    pub(super) user: Option<String>,
    /// Where it has volumes of its own.
    pub(super) volumes: Vec<String>,
    /// Its own variables.
    env: Vec<String>,
}

impl Image {
    fn of(inspected: ImageInspect, asked: &str) -> Self {
        let config = inspected.config.unwrap_or_default();
        let directory = config.working_dir.filter(|directory| directory.len() > 1);
        Self {
            id: inspected.id.unwrap_or_else(|| asked.to_owned()),
            boot: Boot::Cold,
            holds_workspace: false,
            workspace: directory.unwrap_or_else(|| WORKSPACE.to_owned()).into(),
            user: config.user.filter(|user| !user.is_empty()),
            volumes: config.volumes.unwrap_or_default(),
            env: config.env.unwrap_or_default(),
        }
    }

    /// One that was made of it, with the workspace in it.
    pub(super) fn becomes(&mut self, name: &str, boot: Boot) {
        name.clone_into(&mut self.id);
        self.boot = boot;
        self.holds_workspace = true;
    }

    /// What a container's environment has besides the image's own: nothing that the image says already.
    pub(super) fn environment(&self) -> Vec<String> {
        let defaults = ["LANG=C.UTF-8", "TMPDIR=/tmp"].into_iter();
        let missing = defaults.filter(|default| {
            let name = default.split('=').next().unwrap_or_default();
            !self
                .env
                .iter()
                .any(|variable| variable.split('=').next() == Some(name))
        });
        missing.map(str::to_owned).collect()
    }
}

/// Finds, pulls or builds the image that is configured.
pub(super) async fn make_ready(
    shared: &Shared,
    engine: &DockerEngine,
    output: &mpsc::Sender<Vec<u8>>,
) -> Result<Image, SandboxError> {
    // Said in words of its own, before anything else is asked.
    engine.negotiate(&shared.docker).await?;
    match &shared.config.image {
        DockerImage::Named(name) => {
            if let Some(found) = inspect(&shared.docker, name).await? {
                return Ok(Image::of(found, name));
            }
            pull(shared, engine, name, output).await?;
            found(&shared.docker, name).await
        }
        DockerImage::Built { context, dockerfile } => {
            let name = build(shared, engine, context, dockerfile, output).await?;
            found(&shared.docker, &name).await
        }
    }
}

/// An image that has to be there by now.
async fn found(docker: &Docker, name: &str) -> Result<Image, SandboxError> {
    let found = inspect(docker, name).await?;
    found
        .map(|found| Image::of(found, name))
        .ok_or_else(|| SandboxError::new(format!("cannot find the image `{name}` after it was made")))
}

/// What the engine knows of an image; `None` where it has none of that name.
pub(super) async fn inspect(docker: &Docker, name: &str) -> Result<Option<ImageInspect>, SandboxError> {
    match docker.inspect_image(name).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(failed(format!("cannot look at the image `{name}`"), error)),
    }
}

/// Keeps a container as an image.
pub(super) async fn commit(
    docker: &Docker,
    id: &str,
    repository: &str,
    tag: &str,
) -> Result<(), SandboxError> {
    let options = CommitContainerOptionsBuilder::default()
        .container(id)
        .repo(repository)
        .tag(tag)
        .pause(true)
        .build();
    let committed = docker.commit_container(options, ContainerConfig::default()).await;
    committed.map_err(|error| failed("cannot keep the container as an image", error))?;
    Ok(())
}

async fn pull(
    shared: &Shared,
    engine: &DockerEngine,
    name: &str,
    output: &mpsc::Sender<Vec<u8>>,
) -> Result<(), SandboxError> {
    let cannot = || {
        format!(
            "cannot pull the image `{name}`, which the engine does not have\nsee that `sandbox.image` is its name, and that `docker login` was done where it is private"
        )
    };
    say(output, &format!("pulling {name}")).await;
    let credentials = credentials::of_image(engine, name).await?;
    // Without a tag the engine would pull all there are.
    let tagged = match name
        .rsplit('/')
        .next()
        .is_some_and(|last| last.contains([':', '@']))
    {
        true => name.to_owned(),
        false => format!("{name}:latest"),
    };
    let options = CreateImageOptionsBuilder::default().from_image(&tagged);
    let options = match &shared.config.platform {
        Some(platform) => options.platform(platform),
        None => options,
    };
    let pulling = shared
        .docker
        .create_image(Some(options.build()), None, credentials);
    let mut pulling = Box::pin(pulling);
    let mut told = Told::default();
    while let Some(step) = pulling.next().await {
        let step = step.map_err(|error| failed(cannot(), error))?;
        if let Some(why) = step
            .error_detail
            .as_ref()
            .and_then(|detail| detail.message.as_ref())
        {
            return Err(SandboxError::new(format!("{}: {why}", cannot())));
        }
        if let Some(line) = told.pulled(&step) {
            say(output, &line).await;
        }
    }
    say(output, &format!("pulled {name}")).await;
    Ok(())
}

/// Builds the image under a name that says where it comes from. Returns that name.
async fn build(
    shared: &Shared,
    engine: &DockerEngine,
    context: &Utf8Path,
    dockerfile: &Utf8Path,
    output: &mpsc::Sender<Vec<u8>>,
) -> Result<String, SandboxError> {
    let root = shared.root.join(context);
    let cannot = || format!("cannot build the image from `{}`", root.join(dockerfile));
    if !root.join(dockerfile).is_file() {
        return Err(SandboxError::new(format!(
            "{}: there is no such file\nname it with `sandbox.build.dockerfile`, relative to `context`",
            cannot()
        )));
    }
    let origin = Sha256::digest(root.join(dockerfile).as_str());
    let name = format!("evalwave-build:{}", hexadecimal(&origin[..8]));
    let listing = {
        let (root, dockerfile) = (root.clone(), dockerfile.to_owned());
        tokio::task::spawn_blocking(move || ignore::context_files(&root, &dockerfile))
    };
    let files = listing
        .await
        .map_err(std::io::Error::other)
        .flatten()
        .map_err(|error| SandboxError::io(cannot(), error))?;
    say(output, &format!("building {name} from {} files", files.len())).await;
    let options = BuildImageOptionsBuilder::default()
        .dockerfile(dockerfile.as_str())
        .t(&name)
        .rm(true)
        .forcerm(true);
    let options = match &shared.config.platform {
        Some(platform) => options.platform(platform),
        None => options,
    };
    let files = files.into();
    let (tar, packing) = archive::stream(Workspace {
        root: root.clone(),
        files,
    });
    let all = credentials::of_all(engine).await?;
    let building = shared
        .docker
        .build_image(options.build(), Some(all), Some(bollard::body_try_stream(tar)));
    let mut building = Box::pin(building);
    let mut last = String::new();
    while let Some(step) = building.next().await {
        let step: BuildInfo = step.map_err(|error| failed(with_last(cannot(), &last), error))?;
        if let Some(why) = step
            .error_detail
            .as_ref()
            .and_then(|detail| detail.message.as_ref())
        {
            return Err(SandboxError::new(with_last(
                format!("{}: {why}", cannot()),
                &last,
            )));
        }
        for text in [step.stream, step.status].into_iter().flatten() {
            if !text.trim().is_empty() {
                text.trim().clone_into(&mut last);
                say(output, &last).await;
            }
        }
    }
    drop(building);
    packing
        .await
        .flatten()
        .map_err(|error| SandboxError::io(cannot(), error))?;
    Ok(name)
}

fn with_last(message: String, last: &str) -> String {
    match last {
        "" => message,
        last => format!("{message}; before that: {last}"),
    }
}

/// A line of progress; nobody may be listening.
pub(super) async fn say(output: &mpsc::Sender<Vec<u8>>, line: &str) {
    let _ = output.send(format!("{line}\n").into_bytes()).await;
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How far each layer has come, as it was last told.
#[derive(Debug, Default)]
struct Told {
    layers: BTreeMap<String, bool>,
    done: usize,
}

impl Told {
    /// A line for each layer that is complete, not for each byte of it.
    fn pulled(&mut self, step: &CreateImageInfo) -> Option<String> {
        let (layer, status) = (step.id.as_ref()?, step.status.as_deref()?);
        let complete = matches!(status, "Pull complete" | "Already exists");
        let known = self.layers.entry(layer.clone()).or_default();
        if !complete || std::mem::replace(known, true) {
            return None;
        }
        self.done += 1;
        Some(format!("layer {layer}: {} of {}", self.done, self.layers.len()))
    }
}
