//! The files of a workspace as one compressed archive, made once for all sandboxes. Does not know where it goes.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use camino::Utf8Path;
use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::sync::Mutex;

use crate::sandbox::pack::pack;
use crate::sandbox::{SandboxError, Workspace};

/// The archive of the workspace that was asked for last.
#[derive(Debug, Default)]
pub(super) struct Archives(Mutex<Option<(Workspace, String, Bytes)>>);

impl Archives {
    /// The workspace's archive, its entries below `directory`, which is absolute.
    pub(super) async fn of(&self, workspace: &Workspace, directory: &str) -> Result<Bytes, SandboxError> {
        let mut kept = self.0.lock().await;
        if let Some((of, below, archive)) = &*kept
            && of.root == workspace.root
            && Arc::ptr_eq(&of.files, &workspace.files)
            && below == directory
        {
            return Ok(archive.clone());
        }
        let (of, below) = (workspace.clone(), directory.to_owned());
        let made =
            tokio::task::spawn_blocking(move || compress(&of, &below).map(|archive| (of, below, archive)));
        let made = made.await.map_err(io::Error::other).flatten();
        let made = made.map_err(|error| SandboxError::io("cannot pack the workspace", error))?;
        let archive = made.2.clone();
        *kept = Some(made);
        Ok(archive)
    }
}

/// Where [`list`] puts its file, below the root.
pub(super) const LIST: &str = "tmp/evalwave-uploaded";

/// An archive of one file, which holds the paths of a workspace's files, each ended by a zero.
pub(super) fn list(workspace: &Workspace, directory: &str) -> io::Result<Bytes> {
    let mut paths = Vec::new();
    for file in workspace.files.iter() {
        paths.extend(format!("{directory}/{file}\0").into_bytes());
    }
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_size(paths.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, LIST, &paths[..])?;
    Ok(Bytes::from(tar.into_inner()?.finish()?))
}

/// Who commands run as there.
const OWNER: u64 = 1000;

fn compress(workspace: &Workspace, directory: &str) -> io::Result<Bytes> {
    let below = Utf8Path::new(directory.trim_start_matches('/'));
    let into = GzEncoder::new(Vec::new(), Compression::fast());
    Ok(Bytes::from(pack(workspace, below, OWNER, into)?.finish()?))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use camino::Utf8PathBuf;

    use super::Archives;
    use crate::sandbox::Workspace;

    #[tokio::test]
    async fn files_lie_below_the_workspace_of_the_sandbox_and_are_packed_once() {
        let directory = tempfile::TempDir::new().unwrap();
        let root = Utf8PathBuf::try_from(directory.path().to_owned()).unwrap();
        fs_err::write(root.join("run"), "#!/bin/sh\n").unwrap();
        let workspace = Workspace {
            root,
            files: [Utf8PathBuf::from("run")].into(),
        };
        let archives = Archives::default();
        let bytes = archives.of(&workspace, "/vercel/sandbox").await.unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&bytes[..]));
        let mut entry = archive.entries().unwrap().next().unwrap().unwrap();
        assert_eq!(entry.path().unwrap().to_str(), Some("vercel/sandbox/run"));
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        assert_eq!(text, "#!/bin/sh\n");
        // The second time it is the same one.
        let again = archives.of(&workspace, "/vercel/sandbox").await.unwrap();
        assert_eq!(again.as_ptr(), bytes.as_ptr());
    }
}
