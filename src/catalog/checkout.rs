//! A revision of the repository, checked out beside it. The one place of the catalog that writes.

use camino::{Utf8Path, Utf8PathBuf};

use super::CatalogError;
use super::git;

/// Branches that a remote's default branch is looked for as, where it is not known which it is.
const DEFAULT_BRANCHES: [&str; 2] = ["origin/main", "origin/master"];

/// A revision to measure against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseRevision {
    /// What it was found by.
    pub reference: String,
    /// The commit, in full.
    pub commit: String,
}

/// The commit that `reference` names, fetched from `origin` where it is not here; without one, where `HEAD` and the
/// remote's default branch part.
///
/// # Errors
/// No git, no repository, a reference that is not in it, no remote's default branch, no history in common.
pub fn base_revision(root: &Utf8Path, reference: Option<&str>) -> Result<BaseRevision, CatalogError> {
    if !git::in_work_tree(root, "name another baseline than `measure`")? {
        return Err(CatalogError::NoBaseRepository(root.to_owned()));
    }
    if let Some(reference) = reference {
        let unknown = |detail| CatalogError::UnknownBase {
            reference: reference.to_owned(),
            detail,
        };
        if reference.starts_with('-') || reference.contains(char::is_control) {
            return Err(unknown("it is no reference".to_owned()));
        }
        let commit = crate::git::commit_or_fetch(root, reference);
        return Ok(BaseRevision {
            reference: reference.to_owned(),
            commit: commit
                .map_err(git::no_git("name another baseline than `measure`"))?
                .map_err(unknown)?,
        });
    }
    let reference = default_branch(root).ok_or(CatalogError::NoDefaultBranch)?;
    let commit =
        git::merge_base(root, &reference).ok_or_else(|| CatalogError::NoBaseInCommon(reference.clone()))?;
    Ok(BaseRevision { reference, commit })
}

/// The remote's default branch as it is known here, like `origin/main`.
pub fn default_branch(root: &Utf8Path) -> Option<String> {
    let named = git::answer(
        root,
        &["symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD"],
    );
    let mut found = named.into_iter().chain(DEFAULT_BRANCHES.map(str::to_owned));
    found.find(|branch| git::commit_of(root, branch).is_some())
}

/// A work tree of one commit; gone when this is dropped.
#[derive(Debug)]
pub struct Checkout {
    repository: Utf8PathBuf,
    at: Utf8PathBuf,
    root: Utf8PathBuf,
}

impl Checkout {
    /// Checks out a commit at `at`, which must not exist.
    ///
    /// # Errors
    /// What git says.
    pub fn new(root: &Utf8Path, commit: &str, at: &Utf8Path) -> Result<Self, CatalogError> {
        let prefix = git::answer(root, &["rev-parse", "--show-prefix"]).unwrap_or_default();
        // The repository's hooks are for people.
        let add = [
            "-c",
            "core.hooksPath=/dev/null",
            "worktree",
            "add",
            "--detach",
            "--quiet",
            at.as_str(),
            commit,
        ];
        git::checked(root, &add, "check out the base revision")?;
        Ok(Self {
            repository: root.to_owned(),
            at: at.to_owned(),
            root: match prefix.trim_end_matches('/') {
                "" => at.to_owned(),
                prefix => at.join(prefix),
            },
        })
    }

    /// Where the directory that it was asked for lies in it; not there where the commit has none.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        // What is left lies with temporary files, and git forgets it by itself.
        let _ = remove(&self.repository, &self.at);
    }
}

/// Removes the checkout at `at` that a process which was killed has left, whether its repository still knows of it or not.
///
/// # Errors
/// It cannot be deleted.
pub fn remove_left(at: &Utf8Path) -> std::io::Result<()> {
    match at.exists() {
        // A work tree knows its repository.
        true => remove(at, at).or_else(|_| fs_err::remove_dir_all(at)),
        false => Ok(()),
    }
}

fn remove(repository: &Utf8Path, at: &Utf8Path) -> Result<(), CatalogError> {
    // Twice: also when it is locked.
    let remove = ["worktree", "remove", "--force", "--force", at.as_str()];
    git::checked(repository, &remove, "remove the base revision").map(drop)
}
