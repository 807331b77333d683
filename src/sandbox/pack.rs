//! A workspace as a tar. Knows neither where it goes nor how it is compressed.

use std::io::{self, Read as _, Write};

use camino::Utf8Path;

use super::Workspace;

/// The owner of what is packed, where it is not known who commands run as.
pub(super) const ROOT: u64 = 0;

/// Writes the files and symbolic links as entries below `directory`, their permissions kept, as `owner`'s. Gives back what
/// it has written to, flushed.
///
/// # Errors
/// One of them cannot be read, or is no longer a file or link.
pub(super) fn pack<W: Write>(
    workspace: &Workspace,
    directory: &Utf8Path,
    owner: u64,
    into: W,
) -> io::Result<W> {
    let mut tar = tar::Builder::new(into);
    for file in workspace.files.iter() {
        let (path, name) = (workspace.root.join(file), directory.join(file));
        let metadata = fs_err::symlink_metadata(&path)?;
        let mut header = tar::Header::new_gnu();
        header.set_metadata(&metadata);
        header.set_uid(owner);
        header.set_gid(owner);
        if metadata.is_symlink() {
            header.set_size(0);
            tar.append_link(&mut header, &name, fs_err::read_link(&path)?)?;
        } else if metadata.is_file() {
            // Exactly as many bytes as the header says, whatever becomes of the file meanwhile.
            let size = metadata.len();
            header.set_size(size);
            let opened = fs_err::File::open(&path)?;
            let padded = opened.take(size).chain(io::repeat(0)).take(size);
            tar.append_data(&mut header, &name, padded)?;
        } else {
            return Err(io::Error::other(format!(
                "`{path}` is neither a file nor a link any more"
            )));
        }
    }
    let mut into = tar.into_inner()?;
    into.flush()?;
    Ok(into)
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Read as _;

    use camino::{Utf8Path, Utf8PathBuf};

    use super::{ROOT, pack};
    use crate::sandbox::Workspace;

    fn workspace(root: &str, files: &[&str]) -> Workspace {
        Workspace {
            root: root.into(),
            files: files.iter().map(Utf8PathBuf::from).collect(),
        }
    }

    #[test]
    fn entries_lie_below_a_directory_with_their_modes_and_are_their_new_owners() {
        let directory = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(directory.path()).unwrap();
        fs_err::create_dir(root.join("bin")).unwrap();
        fs_err::write(root.join("bin/run"), "#!/bin/sh\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o750);
        fs_err::set_permissions(root.join("bin/run"), mode).unwrap();
        fs_err::os::unix::fs::symlink("bin/run", root.join("link")).unwrap();
        let workspace = workspace(root.as_str(), &["bin/run", "link"]);
        let tar = pack(&workspace, "there".into(), 7, Vec::new()).unwrap();
        let mut archive = tar::Archive::new(&tar[..]);
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let header = entry.header();
            let link = header.link_name().unwrap().map(|to| to.display().to_string());
            let owner = (header.uid().unwrap(), header.gid().unwrap());
            let mode = link.is_none().then(|| header.mode().unwrap() & 0o777);
            let path = entry.path().unwrap().display().to_string();
            (path, mode, owner, link.unwrap_or(text))
        });
        let entries: Vec<_> = entries.collect();
        let entry = |path: &str, mode, text: &str| (path.to_owned(), mode, (7, 7), text.to_owned());
        assert_eq!(
            entries,
            [
                entry("there/bin/run", Some(0o750), "#!/bin/sh\n"),
                entry("there/link", None, "bin/run")
            ]
        );
    }

    #[test]
    fn what_is_no_file_any_more_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(directory.path()).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.join("was")).unwrap();
        let workspace = workspace(root.as_str(), &["was"]);
        let error = pack(&workspace, "".into(), ROOT, Vec::new()).unwrap_err();
        let message = format!("`{root}/was` is neither a file nor a link any more");
        assert_eq!(error.to_string(), message);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_has_the_size_that_it_had_when_it_was_looked_at_and_the_next_one_is_whole() {
        // The kernel says of each that it is empty, and then it is not.
        let tar = pack(
            &workspace("/proc", &["uptime", "version"]),
            "".into(),
            ROOT,
            Vec::new(),
        )
        .unwrap();
        let mut archive = tar::Archive::new(&tar[..]);
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            (entry.path().unwrap().display().to_string(), text)
        });
        let empty = |name: &str| (name.to_owned(), String::new());
        assert_eq!(entries.collect::<Vec<_>>(), [empty("uptime"), empty("version")]);
    }
}
