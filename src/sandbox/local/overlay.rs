//! One copy of the workspace for a whole run, and a mount over it for each sandbox, which holds only what changed.

use std::ffi::CString;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::copy::Copier;
use super::directory::{RunDirectory, remove_tree};
use crate::sandbox::{SandboxError, Workspace};

/// The shared copy, once it is made. No sandbox has such a name: theirs are file names that need no escaping.
const BASE: &str = ".base";

/// Overlay mounts of one run.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    base: Mutex<Option<Utf8PathBuf>>,
}

impl Overlay {
    /// Tries a mount, and takes it back: whether this process may mount cannot be told otherwise.
    pub(super) fn probe(run: &RunDirectory) -> Result<Self, SandboxError> {
        let refused = |error| {
            SandboxError::io(
                "cannot mount overlays here, which `workspace: overlay` needs\n\
                 run as a user who may mount, or use `workspace: copy`",
                error,
            )
        };
        let directory = run.path().join(".probe");
        let tried = run.create().and_then(|()| {
            for part in ["base", "sandbox", "sandbox/workspace"] {
                fs_err::create_dir_all(directory.join(part))?;
            }
            mount_over(&directory.join("base"), &directory.join("sandbox"))?;
            unmount_at(&directory.join("sandbox/workspace"))
        });
        let removed = remove_tree(&directory);
        run.remove_if_empty();
        tried.and(removed).map_err(refused)?;
        Ok(Self::default())
    }

    /// Mounts the workspace into a sandbox's directory; the first one makes the copy below it.
    pub(super) fn fill(
        &self,
        run: &RunDirectory,
        copier: &Copier,
        workspace: &Workspace,
        sandbox: &Utf8Path,
    ) -> Result<(), SandboxError> {
        let base = {
            // All wait for the first one. It is never stopped halfway: the others need the copy as well.
            let mut base = self.base.lock().unwrap_or_else(PoisonError::into_inner);
            match &*base {
                Some(base) => base.clone(),
                None => base.insert(make_base(run, copier, workspace)?).clone(),
            }
        };
        mount_over(&base, sandbox)
            .map_err(|error| SandboxError::io("cannot mount the workspace into the sandbox", error))
    }

    /// Unmounts a sandbox's workspace, if it is mounted.
    pub(super) fn empty(sandbox: &Utf8Path) -> io::Result<()> {
        unmount_at(&sandbox.join("workspace"))
    }
}

fn make_base(
    run: &RunDirectory,
    copier: &Copier,
    workspace: &Workspace,
) -> Result<Utf8PathBuf, SandboxError> {
    let base = run.path().join(BASE);
    remove_tree(&base)
        .and_then(|()| fs_err::create_dir(&base))
        .map_err(|error| SandboxError::io("cannot copy the workspace", error))?;
    copier.copy(workspace, &base, &AtomicBool::new(false))?;
    Ok(base)
}

fn mount_over(base: &Utf8Path, sandbox: &Utf8Path) -> io::Result<()> {
    let (upper, work) = (sandbox.join("upper"), sandbox.join("work"));
    fs_err::create_dir(&upper)?;
    fs_err::create_dir(&work)?;
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        escaped(base),
        escaped(&upper),
        escaped(&work)
    );
    let options = CString::new(options)?;
    let at = sandbox.join("workspace");
    mount(
        "overlay",
        at.as_str(),
        "overlay",
        MountFlags::empty(),
        options.as_c_str(),
    )?;
    Ok(())
}

/// Nothing mounted there is no failure. What is still busy goes when its last user does.
pub(super) fn unmount_at(path: &Utf8Path) -> io::Result<()> {
    match unmount(path.as_str(), UnmountFlags::NOFOLLOW) {
        Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => Ok(()),
        Err(rustix::io::Errno::BUSY) => Ok(unmount(
            path.as_str(),
            UnmountFlags::NOFOLLOW | UnmountFlags::DETACH,
        )?),
        Err(error) => Err(error.into()),
    }
}

/// Colons and commas separate in mount options.
fn escaped(path: &Utf8Path) -> String {
    let mut text = String::new();
    for character in path.as_str().chars() {
        if matches!(character, '\\' | ':' | ',') {
            text.push('\\');
        }
        text.push(character);
    }
    text
}
