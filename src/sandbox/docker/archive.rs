//! Files on their way into a container and out of it, as tars that are never whole in memory.

use std::io;

use bollard::container::PathStatResponse;
use bollard::query_parameters::{
    ContainerArchiveInfoOptionsBuilder, DownloadFromContainerOptionsBuilder, UploadToContainerOptionsBuilder,
};
use bollard::{Docker, body_try_stream};
use camino::Utf8Path;
use futures::TryStreamExt as _;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio_util::io::{ReaderStream, StreamReader, SyncIoBridge};

use super::connection::{failed, is_absent};
use crate::glob::path_glob;
use crate::sandbox::bridge::bridged;
use crate::sandbox::pack;
use crate::sandbox::path::inside;
use crate::sandbox::{SandboxError, Workspace};

/// Bytes of a tar that are under way at once.
const BUFFER: usize = 256 * 1024;

/// The bits of a mode, as the engine writes it, that make a path neither a file nor a directory: a link, a device, a
/// pipe, a socket, and what is odd.
const NO_FILE: u32 = LINK | 1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19;
const LINK: u32 = 1 << 27;

/// Puts the files of a workspace into a container's directory.
pub(super) async fn upload(
    docker: &Docker,
    id: &str,
    to: &Utf8Path,
    workspace: &Workspace,
) -> Result<(), SandboxError> {
    let options = UploadToContainerOptionsBuilder::default()
        .path(to.as_str())
        .build();
    let (tar, packing) = stream(workspace.clone());
    let uploaded = docker
        .upload_to_container(id, Some(options), body_try_stream(tar))
        .await;
    // What kept the tar from being made says more than that it ended early.
    packing
        .await
        .flatten()
        .map_err(|error| SandboxError::io("cannot read the workspace", error))?;
    uploaded.map_err(|error| failed("cannot copy the workspace into the container", error))
}

/// A tar of the files, made while it is read.
pub(super) fn stream(
    workspace: Workspace,
) -> (
    ReaderStream<DuplexStream>,
    impl Future<Output = io::Result<io::Result<()>>>,
) {
    let (sender, receiver) = tokio::io::duplex(BUFFER);
    let sender = SyncIoBridge::new(sender);
    let packing = bridged(
        move || match pack::pack(&workspace, "".into(), pack::ROOT, sender) {
            // The engine has stopped reading, and says why itself.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            packed => packed.map(drop),
        },
    );
    (ReaderStream::with_capacity(receiver, BUFFER / 4), packing)
}

/// Writes a tar of a path of the workspace; `None` where there is neither a file nor a directory.
pub(super) async fn download(
    docker: &Docker,
    id: &str,
    workspace: &Utf8Path,
    from: &Utf8Path,
    into: &mut (dyn AsyncWrite + Send + Unpin),
) -> Result<Option<()>, SandboxError> {
    let path = match inside(from)? {
        // What is in it: by its own name, which is no part of a path in it, each entry would begin with that.
        top if top.as_str().is_empty() => workspace.join("."),
        below => workspace.join(below),
    };
    let outside = || {
        SandboxError::new(format!(
            "cannot bring `{from}` out of the container: it leads out of the workspace"
        ))
    };
    // The engine follows a link on the way without a word.
    let parents = path.ancestors().skip(1);
    for parent in parents.take_while(|parent| parent.starts_with(workspace) && *parent != workspace) {
        match stat(docker, id, parent).await? {
            Some(found)
                if found.file_mode & LINK != 0
                    && !Utf8Path::new(&found.link_target).starts_with(workspace) =>
            {
                return Err(outside());
            }
            Some(_) => {}
            None => return Ok(None),
        }
    }
    let Some(mut found) = stat(docker, id, &path).await? else {
        return Ok(None);
    };
    let mut source = path.clone();
    if found.file_mode & LINK != 0 {
        source = found.link_target.clone().into();
        if !source.starts_with(workspace) {
            return Err(outside());
        }
        match stat(docker, id, &source).await? {
            Some(target) => found = target,
            None => return Ok(None),
        }
    }
    if found.file_mode & NO_FILE != 0 {
        return Ok(None);
    }
    let options = DownloadFromContainerOptionsBuilder::default()
        .path(source.as_str())
        .build();
    let pieces = docker.download_from_container(id, Some(options));
    let mut reader = StreamReader::new(Box::pin(pieces.map_err(io::Error::other)));
    let passed = match source == path {
        true => tokio::io::copy_buf(&mut reader, into).await.map(|_| ()),
        false => {
            let name = from.file_name().unwrap_or_default();
            rename(reader, into, source.file_name().unwrap_or_default(), name).await
        }
    };
    match passed {
        Ok(()) => Ok(Some(())),
        Err(error) => match error.downcast::<bollard::errors::Error>() {
            Ok(error) if is_absent(&error) => Ok(None),
            Ok(error) => Err(failed(
                format!("cannot bring `{from}` out of the container"),
                error,
            )),
            Err(error) => Err(SandboxError::io(
                format!("cannot store what `{from}` holds"),
                error,
            )),
        },
    }
}

/// Passes a tar on whose entries begin with `name` instead of `old`.
async fn rename(
    mut from: impl AsyncRead + Unpin,
    into: &mut (dyn AsyncWrite + Send + Unpin),
    old: &str,
    name: &str,
) -> io::Result<()> {
    let (mut feed, fed) = tokio::io::duplex(BUFFER);
    let (made, mut renamed) = tokio::io::duplex(BUFFER);
    let (old, name) = (old.to_owned(), name.to_owned());
    let renaming = bridged(move || {
        let mut tar = tar::Builder::new(SyncIoBridge::new(made));
        let mut source = tar::Archive::new(SyncIoBridge::new(fed));
        for entry in source.entries()? {
            let mut entry = entry?;
            let path = entry.path()?.into_owned();
            let Ok(rest) = path.strip_prefix(&old) else {
                continue;
            };
            let path = std::path::Path::new(&name).join(rest);
            let mut header = entry.header().clone();
            match entry.link_name()? {
                Some(target) => tar.append_link(&mut header, path, target)?,
                None => tar.append_data(&mut header, path, &mut entry)?,
            }
        }
        // The rest of the source is padding, which somebody has to read.
        io::copy(&mut source.into_inner(), &mut io::sink())?;
        io::Write::flush(&mut tar.into_inner()?)
    });
    let feeding = async move {
        let fed = tokio::io::copy(&mut from, &mut feed).await;
        drop(feed);
        fed
    };
    let passing = async move {
        let passed = tokio::io::copy(&mut renamed, into).await;
        // With nobody to take it, the rest is not made, and what it is made of not asked for.
        drop(renamed);
        passed
    };
    let (fed, passed) = tokio::join!(feeding, passing);
    passed?;
    fed?;
    renaming.await?
}

async fn stat(docker: &Docker, id: &str, path: &Utf8Path) -> Result<Option<PathStatResponse>, SandboxError> {
    let options = ContainerArchiveInfoOptionsBuilder::default()
        .path(path.as_str())
        .build();
    match docker.get_container_archive_info(id, Some(options)).await {
        Ok(found) => Ok(Some(found)),
        // The answer has no body that would tell a path from the whole container.
        Err(error) if is_absent(&error) => match docker.inspect_container(id, None).await {
            Ok(_) => Ok(None),
            Err(error) => Err(failed("lost the container", error)),
        },
        // Neither has this one: what is wrong is only said where the path itself is asked for.
        Err(_) => {
            let options = DownloadFromContainerOptionsBuilder::default()
                .path(path.as_str())
                .build();
            let mut asked = Box::pin(docker.download_from_container(id, Some(options)));
            match asked.try_next().await {
                Err(error) if is_absent(&error) || error.to_string().contains("not a directory") => Ok(None),
                Err(error) => Err(failed("cannot look into the container", error)),
                Ok(_) => Err(SandboxError::new("cannot look into the container")),
            }
        }
    }
}

/// Of a list as `find -print0` writes it, the paths that a glob matches.
pub(super) fn matching(listed: &[u8], pattern: &Utf8Path) -> Result<Vec<String>, SandboxError> {
    let glob = path_glob(pattern.as_str())
        .map_err(|error| SandboxError::io(format!("cannot use `{pattern}`"), io::Error::other(error)))?
        .compile_matcher();
    let paths = listed.split(|byte| *byte == 0).filter_map(|path| {
        let path = std::str::from_utf8(path).ok()?;
        glob.is_match(path.strip_prefix("./")?).then(|| path.to_owned())
    });
    Ok(paths.collect())
}
