//! Asks git, and only reads: what changed since a reference, which files are tracked, which commit is checked out.

use std::process::Output;

use camino::{Utf8Path, Utf8PathBuf};

use super::CatalogError;
use super::path::{path, utf8};
use crate::git;

/// The files below `root` that differ from where `HEAD` and `reference` part: committed since, changed since, or not
/// tracked and not ignored. A renamed file counts under both names. Paths are relative to `root`, sorted.
///
/// # Errors
/// No git, no repository, a reference that is not in it or has no history in common, a name that is not UTF-8.
pub fn changed_files(root: &Utf8Path, reference: &str) -> Result<Vec<Utf8PathBuf>, CatalogError> {
    if reference.is_empty() || reference.starts_with('-') || reference.contains(char::is_control) {
        return Err(CatalogError::BadReference(reference.to_owned()));
    }
    let what = "tell which files changed";
    if !in_work_tree(root, "leave out `--changed-since`")? {
        return Err(CatalogError::NoRepository(root.to_owned()));
    }
    let run = |args: &[&str]| -> Result<Option<Vec<u8>>, CatalogError> {
        let output = call(root, args).map_err(no_git("leave out `--changed-since`"))?;
        Ok(output.status.success().then_some(output.stdout))
    };
    let commit = format!("{reference}^{{commit}}");
    let since = run(&["rev-parse", "--verify", "--quiet", &commit])?
        .ok_or_else(|| CatalogError::UnknownReference(reference.to_owned()))?;
    let since = String::from_utf8_lossy(&since).trim().to_owned();
    let base = run(&["merge-base", &since, "HEAD"])?
        .ok_or_else(|| CatalogError::NoMergeBase(reference.to_owned()))?;
    let base = String::from_utf8_lossy(&base).trim().to_owned();

    let diff = [
        "diff",
        "--name-only",
        "-z",
        "--no-renames",
        "--no-ext-diff",
        "--relative",
        &base,
        "--",
    ];
    let mut files = names(&checked(root, &diff, what)?)?;
    let untracked = ["ls-files", "-z", "--others", "--exclude-standard"];
    files.extend(names(&checked(root, &untracked, what)?)?);
    files.sort();
    files.dedup();
    Ok(files)
}

/// The commit that is checked out, in full; `None` where there is no repository, no commit, or no git.
pub fn commit(root: &Utf8Path) -> Option<String> {
    commit_of(root, "HEAD")
}

/// The second parent of the commit that is checked out: what was merged to make it. A shallow clone has its name too.
pub fn second_parent(root: &Utf8Path) -> Option<String> {
    let object = answer(root, &["cat-file", "commit", "HEAD"])?;
    let header = object.lines().take_while(|line| !line.is_empty());
    let mut parents = header.filter_map(|line| line.strip_prefix("parent "));
    parents.nth(1).map(str::to_owned)
}

/// The commit that a revision means, in full; a whole one need not be here.
pub fn commit_named(root: &Utf8Path, revision: &str) -> Option<String> {
    let is_whole = revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    commit_of(root, revision).or_else(|| is_whole.then(|| revision.to_ascii_lowercase()))
}

/// The commit that a reference names, in full.
pub(super) fn commit_of(root: &Utf8Path, reference: &str) -> Option<String> {
    answer(
        root,
        &[
            "rev-parse",
            "--verify",
            "--quiet",
            &format!("{reference}^{{commit}}"),
        ],
    )
}

/// Where `HEAD` and a reference part.
pub(super) fn merge_base(root: &Utf8Path, reference: &str) -> Option<String> {
    answer(root, &["merge-base", "HEAD", reference])
}

/// The line that git answers; `None` where it fails or has nothing to say.
pub(super) fn answer(root: &Utf8Path, args: &[&str]) -> Option<String> {
    let output = call(root, args).ok()?;
    let line = String::from_utf8(output.stdout).ok()?;
    let line = line.trim();
    (output.status.success() && !line.is_empty()).then(|| line.to_owned())
}

/// Whether a file is as the commit that is checked out has it; `path` starts at `directory`.
pub fn is_tracked(directory: &Utf8Path, path: &Utf8Path) -> bool {
    let path = directory.join(path);
    path.is_file()
        && says_yes(directory, &["ls-files", "--error-unmatch", "--", path.as_str()])
        && says_yes(directory, &["diff", "--quiet", "HEAD", "--", path.as_str()])
}

/// Whether `root` lies in a work tree. `without` is what works without git.
///
/// # Errors
/// No git, or a repository that git refuses to look at: what it holds is not known then, and must not be guessed.
pub(super) fn in_work_tree(root: &Utf8Path, without: &'static str) -> Result<bool, CatalogError> {
    let output = call(root, &["rev-parse", "--is-inside-work-tree"]).map_err(no_git(without))?;
    if output.status.success() {
        return Ok(output.stdout.starts_with(b"true"));
    }
    // Git says the same of a broken link to a repository, but without these words.
    if String::from_utf8_lossy(&output.stderr).contains("not a git repository (or any") {
        Ok(false)
    } else {
        Err(failed("look at the repository", &output))
    }
}

/// What git prints.
///
/// # Errors
/// No git, or anything but success; `what` was to be done.
pub(super) fn checked(root: &Utf8Path, args: &[&str], what: &'static str) -> Result<Vec<u8>, CatalogError> {
    let output = call(root, args).map_err(no_git("set `attempt.upload.git` to `false`"))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(failed(what, &output))
    }
}

/// Whether git answers yes (0) to a question, rather than no (1) or that it cannot tell.
pub(super) fn says_yes(root: &Utf8Path, args: &[&str]) -> bool {
    call(root, args).is_ok_and(|output| output.status.success())
}

fn failed(what: &'static str, output: &Output) -> CatalogError {
    let said = super::command::printable(&output.stderr);
    CatalogError::Git {
        what,
        stderr: said.trim_start().to_owned(),
    }
}

pub(super) fn no_git(without: &'static str) -> impl Fn(std::io::Error) -> CatalogError {
    move |source| CatalogError::NoGit { without, source }
}

fn names(output: &[u8]) -> Result<Vec<Utf8PathBuf>, CatalogError> {
    output
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| utf8(path(name.strip_suffix(b"/").unwrap_or(name))))
        .collect()
}

fn call(root: &Utf8Path, args: &[&str]) -> std::io::Result<Output> {
    git::command(root, args).output()
}
