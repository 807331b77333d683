//! Pull requests: by number, and by the head that a run has measured.

use super::{Client, GithubError, Repository};

/// What a pull request is at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number.
    pub number: u64,
    /// Whether it is open.
    pub open: bool,
    /// The commit at its head.
    pub head: String,
    /// The repository that the head is in; `None` where that has been deleted.
    pub head_repository: Option<String>,
    /// The branch that it is to go into.
    pub base_branch: String,
}

/// Reads a pull request.
///
/// # Errors
/// GitHub does not answer with it.
pub async fn read(client: &Client, repository: &Repository, number: u64) -> Result<PullRequest, GithubError> {
    let _ = (client, repository, number);
    Err(super::error::unbuilt())
}

/// The open pull request whose head is `commit` on `branch` of `head`; `None` where there is none, or it has moved on.
///
/// An event of a second workflow lists no pull requests for forks, so they are looked for.
///
/// # Errors
/// GitHub does not answer.
pub async fn by_head(
    client: &Client,
    repository: &Repository,
    head: &Repository,
    branch: &str,
    commit: &str,
) -> Result<Option<PullRequest>, GithubError> {
    let _ = (client, repository, head, branch, commit);
    Err(super::error::unbuilt())
}
