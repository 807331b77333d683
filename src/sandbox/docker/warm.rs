//! The warm image: a container in which `attempt.setup` was done once, kept as an image under the hash of all that went
//! into it.

use std::io::Read as _;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use super::image::{self, Image, hexadecimal, say};
use super::{Shared, create};
use crate::config::CommandLine;
use crate::sandbox::{Command, Exit, Ledger, Sandbox as _, SandboxError, Setup, Warm, Workspace};

/// Part of each key: what older versions made is not taken for our own.
const KIND: &str = "evalwave.warm/1";

const REPOSITORY: &str = "evalwave-warm";

/// Finds the warm image, or makes it. A setup that fails is no failure of this: each sandbox then does its own, and says
/// what is wrong.
pub(super) async fn make(
    shared: &Arc<Shared>,
    image: &Image,
    setup: &Setup,
    command: &Command,
    ledger: &dyn Ledger,
    output: &mpsc::Sender<Vec<u8>>,
) -> Result<Warm, SandboxError> {
    if shared.config.read_only {
        return Ok(Warm::Cold(Some(
            "with `read-only: true` the workspace is a volume, which no image can hold".to_owned(),
        )));
    }
    if let Some(volume) = image.volumes.first() {
        return Ok(Warm::Cold(Some(format!(
            "the image has a volume at `{volume}`, which no other image can hold"
        ))));
    }
    let hashing = {
        let (image, command) = (image.id.clone(), command.clone());
        let workspace = setup.workspace.clone();
        let container = shared.container();
        tokio::task::spawn_blocking(move || key(&image, &container, &command, &workspace))
    };
    let key = hashing
        .await
        .map_err(std::io::Error::other)
        .flatten()
        .map_err(|error| SandboxError::io("cannot read the workspace", error))?;
    let name = format!("{REPOSITORY}:{key}");
    if image::inspect(&shared.docker, &name).await?.is_some() {
        say(output, &format!("setup is done already: {name}")).await;
        return Ok(Warm::From(name));
    }
    say(output, &format!("doing setup once: {name}")).await;
    ledger.named(&setup.spec.name).await?;
    let mut sandbox = create(shared, image, &setup.spec).await?;
    let made = async {
        sandbox.upload(&setup.workspace).await?;
        let why = match sandbox.exec_within(setup.limit, command, output).await? {
            Some(Exit::Code(0)) => None,
            Some(Exit::Code(code)) => Some(format!("`attempt.setup` ended with exit code {code}")),
            Some(Exit::Signal(signal)) => Some(format!("`attempt.setup` was killed by signal {signal}")),
            None => Some("`attempt.setup` took longer than its limit".to_owned()),
        };
        if why.is_none() {
            image::commit(&shared.docker, &sandbox.id, REPOSITORY, &key).await?;
        }
        Ok(why)
    };
    let made: Result<Option<String>, SandboxError> = made.await;
    let stopped = Box::new(sandbox).stop().await;
    if stopped.is_ok() {
        ledger.gone(&setup.spec.name).await?;
    }
    Ok(match made? {
        None => Warm::From(name),
        Some(why) => Warm::Cold(Some(why)),
    })
}

/// The hash of the image, what containers are told, the command with its variables, and every file of the workspace.
fn key(image: &str, container: &str, command: &Command, workspace: &Workspace) -> std::io::Result<String> {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(KIND.as_bytes());
    part(image.as_bytes());
    part(container.as_bytes());
    match &command.line {
        CommandLine::Shell(text) => {
            part(b"shell");
            part(text.as_bytes());
        }
        CommandLine::Argv(words) => {
            part(b"argv");
            part(&(words.len() as u64).to_le_bytes());
            words.iter().for_each(|word| part(word.as_bytes()));
        }
    }
    part(&(command.env.len() as u64).to_le_bytes());
    for (name, value) in &command.env {
        part(name.as_bytes());
        part(value.as_bytes());
    }
    for file in workspace.files.iter() {
        part(file.as_str().as_bytes());
        part(&content(&workspace.root.join(file))?);
    }
    Ok(hexadecimal(&hash.finalize()[..16]))
}

/// What stands for a file: its mode and the hash of what is in it, or a link's target.
fn content(path: &Utf8Path) -> std::io::Result<Vec<u8>> {
    let metadata = fs_err::symlink_metadata(path)?;
    if metadata.is_symlink() {
        let target = Utf8PathBuf::from(fs_err::read_link(path)?.to_string_lossy().into_owned());
        return Ok(format!("-> {target}").into_bytes());
    }
    let mut hash = Sha256::new();
    hash.update(format!("{:?}", metadata.permissions()));
    let mut file = fs_err::File::open(path)?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(hash.finalize().to_vec());
        }
        hash.update(&buffer[..read]);
    }
}
