//! Pull requests: by number, and by the head that a run has measured.

use serde::Deserialize;

use super::client::{Ask, Client};
use super::error::{GithubError, Problem};
use super::{Repository, segment};

/// The permission that reading pull requests needs.
const PULL_REQUESTS_READ: &str = "pull-requests: read";

/// Nobody has more open pull requests from one branch.
const MAX_PAGES: usize = 10;

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
    let ask = Ask::new(format!("read pull request {number}"), PULL_REQUESTS_READ);
    let listed: Listed = client
        .get(&ask, &format!("/repos/{repository}/pulls/{number}"))
        .await?;
    listed
        .known()
        .ok_or_else(|| ask.failed(Problem::Lacks("a head, a base and a number")))
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
    let ask = Ask::new(format!("find the pull request of `{commit}`"), PULL_REQUESTS_READ);
    let from = segment(&format!("{}:{branch}", head.owner()));
    let name = head.to_string();
    for page in 1..=MAX_PAGES {
        let path = format!("/repos/{repository}/pulls?state=open&head={from}&per_page=100&page={page}");
        let (listed, more): (Vec<Listed>, bool) = client.page(&ask, &path).await?;
        // An owner may have several repositories of one network, and a branch of that name in each.
        let found = listed.into_iter().filter_map(Listed::known).find(|request| {
            request.head == commit
                && request
                    .head_repository
                    .as_deref()
                    .is_some_and(|repository| repository.eq_ignore_ascii_case(&name))
        });
        if found.is_some() || !more {
            return Ok(found);
        }
    }
    Ok(None)
}

#[derive(Deserialize)]
struct Listed {
    number: Option<u64>,
    state: Option<String>,
    head: Option<End>,
    base: Option<End>,
}

#[derive(Deserialize)]
struct End {
    sha: Option<String>,
    #[serde(rename = "ref")]
    branch: Option<String>,
    repo: Option<Named>,
}

#[derive(Deserialize)]
struct Named {
    full_name: Option<String>,
}

impl Listed {
    fn known(self) -> Option<PullRequest> {
        let head = self.head?;
        Some(PullRequest {
            number: self.number?,
            open: self.state.as_deref() == Some("open"),
            head: head.sha?,
            head_repository: head.repo.and_then(|repository| repository.full_name),
            base_branch: self.base?.branch?,
        })
    }
}
