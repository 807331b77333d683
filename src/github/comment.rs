//! The one comment of a suite on a pull request, updated in place. Knows its mark, not what it says.

use jiff::Timestamp;

use super::{Client, GithubError, Repository};

/// Where the comment goes.
#[derive(Clone, Debug)]
pub struct Target {
    /// The repository of the pull request.
    pub repository: Repository,
    /// Its number.
    pub pull_request: u64,
}

/// How far a run had got when it wrote a comment, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It goes on.
    Running,
    /// It ended before its end.
    Partial,
    /// It is done.
    Final,
}

/// Which run wrote a comment, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The suite.
    pub suite: String,
    /// `GITHUB_RUN_ID`.
    pub run_id: u64,
    /// `GITHUB_RUN_ATTEMPT`.
    pub run_attempt: u32,
    /// The commit that was measured.
    pub head: String,
    /// When it was written.
    pub time: Timestamp,
    /// How far the run had got.
    pub state: State,
}

/// What has become of the comment, with its page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Published {
    /// It was written for the first time.
    Created(String),
    /// It was written anew.
    Updated(String),
    /// It said the same already.
    Unchanged(String),
    /// It is a newer run's, and stays as it is.
    Newer(String),
}

/// A comment that was not written.
#[derive(Debug, thiserror::Error)]
pub enum CommentError {
    /// The token may not: a fork's run, Dependabot's, or a workflow without the permission.
    #[error("the token may not write comments")]
    Forbidden(#[source] GithubError),
    /// Anything else.
    #[error("the comment was not written")]
    Github(#[source] GithubError),
}

/// Writes the comment, or writes it anew. `render` gives its text in at most so many bytes.
///
/// # Errors
/// The comment is not there as it should be; nothing else depends on it.
pub async fn publish(
    client: &Client,
    target: &Target,
    stamp: &Stamp,
    render: &(dyn Fn(usize) -> String + Sync),
) -> Result<Published, CommentError> {
    let _ = (client, target, stamp, render);
    Err(CommentError::Github(super::error::unbuilt()))
}
