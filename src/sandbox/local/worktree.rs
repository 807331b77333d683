//! A git worktree for each sandbox: what the current commit holds, without changes that are not committed.

use std::io;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};

use super::directory::remove_tree;
use crate::sandbox::SandboxError;

/// Worktrees of one run, all of the same commit.
#[derive(Debug)]
pub(super) struct Worktrees {
    root: Utf8PathBuf,
    /// Where the workspace lies in its repository; empty at the top.
    prefix: Utf8PathBuf,
    /// What all worktrees share, and write to when they commit.
    pub(super) repository: Utf8PathBuf,
    commit: String,
    environment: Vec<(String, String)>,
    /// Git's own bookkeeping of worktrees does not bear two at once.
    one_at_a_time: Mutex<()>,
}

impl Worktrees {
    /// Looks up the commit that `root` is at. `environment` is what git gets, and all that it gets.
    pub(super) fn new(root: &Utf8Path, environment: Vec<(String, String)>) -> Result<Self, SandboxError> {
        let arguments = [
            "rev-parse",
            "--path-format=absolute",
            "--git-common-dir",
            "--show-prefix",
            "HEAD^{commit}",
        ];
        let failed = |error| {
            SandboxError::io(
                format!("cannot make worktrees of `{root}`, which `workspace: worktree` needs"),
                error,
            )
        };
        let answer = git(root, &environment, &arguments).map_err(failed)?;
        let mut lines = answer.lines();
        let (Some(repository), Some(prefix), Some(commit)) = (lines.next(), lines.next(), lines.next())
        else {
            return Err(failed(io::Error::other(format!(
                "git answered `{}`",
                answer.escape_debug()
            ))));
        };
        Ok(Self {
            root: root.to_owned(),
            prefix: prefix.trim_end_matches('/').into(),
            repository: repository.into(),
            commit: commit.to_owned(),
            environment,
            one_at_a_time: Mutex::new(()),
        })
    }

    /// Makes the worktree at the empty directory `at`. Returns where the workspace is in it.
    pub(super) fn fill(&self, at: &Utf8Path) -> Result<Utf8PathBuf, SandboxError> {
        let _one = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        self.git(&[
            "worktree",
            "add",
            "--detach",
            "--quiet",
            at.as_str(),
            &self.commit,
        ])
        .map_err(|error| SandboxError::io("cannot make the sandbox's worktree", error))?;
        Ok(match self.prefix.as_str() {
            "" => at.to_owned(),
            prefix => at.join(prefix),
        })
    }

    /// Removes the worktree, also one that an attempt broke, and what git remembers of it.
    pub(super) fn empty(&self, at: &Utf8Path) -> io::Result<()> {
        let _one = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        // Twice: also when it is locked.
        if self
            .git(&["worktree", "remove", "--force", "--force", at.as_str()])
            .is_err()
        {
            remove_tree(at)?;
            self.git(&["worktree", "prune", "--expire=now"])?;
        }
        Ok(())
    }

    fn git(&self, arguments: &[&str]) -> io::Result<String> {
        git(&self.root, &self.environment, arguments)
    }
}

#[expect(clippy::disallowed_methods, reason = "only git itself can make a worktree")]
fn git(root: &Utf8Path, environment: &[(String, String)], arguments: &[&str]) -> io::Result<String> {
    let output = Command::new("git")
        // The repository's hooks are for people.
        .args(["-c", "core.hooksPath=/dev/null"])
        .args(arguments)
        .current_dir(root)
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("git says: {}", said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
