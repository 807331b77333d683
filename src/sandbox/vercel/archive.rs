//! The files of a workspace as one compressed archive, made once for all sandboxes. Does not know where it goes.

use std::io::{self, Write as _};
use std::sync::Arc;

use bytes::Bytes;
use camino::Utf8Path;
use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::sync::Mutex;

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
        let made = tokio::task::spawn_blocking(move || pack(&of, &below).map(|archive| (of, below, archive)));
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

fn pack(workspace: &Workspace, directory: &str) -> io::Result<Bytes> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    tar.follow_symlinks(false);
    let below = Utf8Path::new(directory.trim_start_matches('/'));
    for file in workspace.files.iter() {
        let path = workspace.root.join(file);
        let metadata = fs_err::symlink_metadata(&path)?;
        let mut header = tar::Header::new_gnu();
        header.set_metadata(&metadata);
        // Who we are says nothing there.
        header.set_uid(1000);
        header.set_gid(1000);
        let name = below.join(file);
        if metadata.is_symlink() {
            header.set_size(0);
            tar.append_link(&mut header, &name, fs_err::read_link(&path)?)?;
        } else if metadata.is_file() {
            let size = metadata.len();
            header.set_size(size);
            let file = io::Read::take(fs_err::File::open(&path)?, size);
            tar.append_data(
                &mut header,
                &name,
                io::Read::take(io::Read::chain(file, io::repeat(0)), size),
            )?;
        }
    }
    let mut compressed = tar.into_inner()?;
    compressed.flush()?;
    Ok(Bytes::from(compressed.finish()?))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use camino::Utf8PathBuf;

    use super::Archives;
    use crate::sandbox::Workspace;

    #[tokio::test]
    async fn files_lie_below_the_workspace_of_the_sandbox_with_their_modes_and_links() {
        let directory = tempfile::TempDir::new().unwrap();
        let root = Utf8PathBuf::try_from(directory.path().to_owned()).unwrap();
        fs_err::create_dir(root.join("bin")).unwrap();
        fs_err::write(root.join("bin/run"), "#!/bin/sh\n").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("bin/run", root.join("link")).unwrap();
        let files = if cfg!(unix) {
            &["bin/run", "link"][..]
        } else {
            &["bin/run"]
        };
        let workspace = Workspace {
            root,
            files: files.iter().map(Utf8PathBuf::from).collect(),
        };
        let archives = Archives::default();
        let bytes = archives.of(&workspace, "/vercel/sandbox").await.unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&bytes[..]));
        let mut seen = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().to_string_lossy().into_owned();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let link = entry
                .link_name()
                .unwrap()
                .map(|link| link.to_string_lossy().into_owned());
            seen.push((path, link.unwrap_or(text)));
        }
        assert_eq!(
            seen[0],
            ("vercel/sandbox/bin/run".to_owned(), "#!/bin/sh\n".to_owned())
        );
        if cfg!(unix) {
            assert_eq!(seen[1], ("vercel/sandbox/link".to_owned(), "bin/run".to_owned()));
        }
        // The second time it is the same one.
        let again = archives.of(&workspace, "/vercel/sandbox").await.unwrap();
        assert_eq!(again.as_ptr(), bytes.as_ptr());
    }
}
