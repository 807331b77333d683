//! Deletes files of a workspace and packs them into a tar, without ever leaving it: what an attempt left there is not
//! to be trusted, symbolic links least of all.

use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};

use super::directory::remove_tree;
use crate::glob::{is_pattern, path_glob};
use crate::sandbox::SandboxError;
use crate::sandbox::path::inside;

/// Deletes what `pattern` matches below `root`: files, symbolic links, and directories with all that is in them.
/// A path that leads out of the workspace through a symbolic link matches nothing.
pub(super) fn remove(root: &Utf8Path, pattern: &str) -> Result<(), SandboxError> {
    let failed = |error| SandboxError::io(format!("cannot delete `{pattern}` from the sandbox"), error);
    let relative = inside(Utf8Path::new(pattern))?;
    let root = root.canonicalize_utf8().map_err(failed)?;
    remove_path(&root, &relative).map_err(failed)?;
    let fixed: Utf8PathBuf = relative
        .components()
        .take_while(|part| !is_pattern(part.as_str()))
        .collect();
    if fixed == relative {
        return Ok(());
    }
    let glob = path_glob(relative.as_str())
        .map_err(|error| failed(io::Error::other(error)))?
        .compile_matcher();
    let mut waiting = vec![fixed];
    while let Some(directory) = waiting.pop() {
        let Some(place) = resolve(&root, &directory).map_err(failed)? else {
            continue;
        };
        for entry in fs_err::read_dir(place).into_iter().flatten() {
            let entry = entry.map_err(failed)?;
            let path = directory.as_std_path().join(entry.file_name());
            if glob.is_match(&path) {
                remove_entry(&entry.path()).map_err(failed)?;
            } else if entry.file_type().map_err(failed)?.is_dir() {
                // A name that is not UTF-8 cannot be written in a pattern, but may lie on its way.
                if let Ok(path) = Utf8PathBuf::from_path_buf(path) {
                    waiting.push(path);
                }
            }
        }
    }
    Ok(())
}

/// Writes a tar of `from` below `root`. Symbolic links inside it are stored as they are; `from` itself may be reached
/// through some, as long as they stay in the workspace. Sockets, pipes and devices are left out. `None` where there is
/// neither a file nor a directory.
pub(super) fn pack(root: &Utf8Path, from: &Utf8Path, into: impl Write) -> Result<Option<()>, SandboxError> {
    let failed = |error| SandboxError::io(format!("cannot bring `{from}` out of the sandbox"), error);
    let relative = inside(from)?;
    let root = root.canonicalize_utf8().map_err(failed)?;
    let top = match root.join(&relative).as_std_path().canonicalize() {
        Ok(top) => top,
        Err(error) if is_absence(&error) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if !top.starts_with(&root) {
        return Err(SandboxError::new(format!(
            "cannot bring `{from}` out of the sandbox: it leads out of the workspace"
        )));
    }
    let metadata = fs_err::metadata(&top).map_err(failed)?;
    if !metadata.is_dir() && !metadata.is_file() {
        return Ok(None);
    }
    write_tar(top, relative.file_name().unwrap_or_default(), into).map_err(failed)?;
    Ok(Some(()))
}

/// The directory that `relative` means, if there is one and it is in the workspace.
fn resolve(root: &Utf8Path, relative: &Utf8Path) -> io::Result<Option<PathBuf>> {
    match root.join(relative).as_std_path().canonicalize() {
        Ok(place) => Ok((place.starts_with(root) && place.is_dir()).then_some(place)),
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn remove_path(root: &Utf8Path, relative: &Utf8Path) -> io::Result<()> {
    // The workspace itself has no name in it, and stays.
    let (Some(parent), Some(name)) = (relative.parent(), relative.file_name()) else {
        return Ok(());
    };
    match resolve(root, parent)? {
        Some(parent) => remove_entry(&parent.join(name)),
        None => Ok(()),
    }
}

fn remove_entry(path: &Path) -> io::Result<()> {
    let metadata = match fs_err::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if is_absence(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    let remove = || match Utf8Path::from_path(path) {
        Some(path) if metadata.is_dir() => remove_tree(path),
        None if metadata.is_dir() => fs_err::remove_dir_all(path),
        _ => fs_err::remove_file(path),
    };
    match (remove(), path.parent()) {
        (Err(error), Some(parent)) if error.kind() == io::ErrorKind::PermissionDenied => {
            allow(parent);
            remove()
        }
        (removed, _) => removed,
    }
}

fn write_tar(top: PathBuf, name: &str, into: impl Write) -> io::Result<()> {
    let mut tar = tar::Builder::new(into);
    let mut waiting = vec![(top, PathBuf::from(name))];
    while let Some((path, name)) = waiting.pop() {
        let metadata = match fs_err::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            // A daemon of `attempt.boot` may still be at work.
            Err(error) if is_absence(&error) => continue,
            Err(error) => return Err(error),
        };
        let mut header = tar::Header::new_gnu();
        header.set_metadata(&metadata);
        if metadata.is_dir() {
            if !name.as_os_str().is_empty() {
                header.set_size(0);
                tar.append_data(&mut header, &name, io::empty())?;
            }
            let mut children = Vec::new();
            for entry in allowed(&path, || fs_err::read_dir(&path))? {
                let entry = entry?;
                children.push((entry.path(), name.join(entry.file_name())));
            }
            children.sort_by(|a, b| b.cmp(a));
            waiting.extend(children);
        } else if metadata.is_symlink() {
            header.set_size(0);
            tar.append_link(&mut header, &name, fs_err::read_link(&path)?)?;
        } else if metadata.is_file() {
            let Some(file) = open_file(&path)? else { continue };
            // Exactly as many bytes as the header says, whatever becomes of the file meanwhile.
            let size = metadata.len();
            header.set_size(size);
            tar.append_data(
                &mut header,
                &name,
                file.take(size).chain(io::repeat(0)).take(size),
            )?;
        }
    }
    tar.into_inner()?.flush()
}

/// Opens a file; `None` if it has become something else, which is not waited for.
fn open_file(path: &Path) -> io::Result<Option<fs_err::File>> {
    let mut options = fs_err::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use fs_err::os::unix::fs::OpenOptionsExt as _;
        use rustix::fs::OFlags;
        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    }
    let file = allowed(path, || options.open(path))?;
    Ok(file.metadata()?.is_file().then_some(file))
}

/// Tries again with the right to, where an attempt has taken it away: the files are this user's.
fn allowed<T>(path: &Path, read: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match read() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            allow(path);
            read()
        }
        done => done,
    }
}

#[cfg(unix)]
fn allow(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;

    // If this fails, so does what it is for.
    let _ = fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o700));
}

#[cfg(not(unix))]
fn allow(_path: &Path) {}

/// Nothing is there, or only links that lead nowhere.
fn is_absence(error: &io::Error) -> bool {
    #[cfg(unix)]
    if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
        return true;
    }
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
