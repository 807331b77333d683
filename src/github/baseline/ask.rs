//! What GitHub is asked about runs and commits. Decides nothing.

use std::collections::{HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::order::Run;
use crate::github::artifact::ACTIONS_READ;
use crate::github::client::{Ask, Client};
use crate::github::error::{GithubError, Problem};
use crate::github::{Repository, segment};

/// Artifacts are kept no longer unless somebody has said so.
const WINDOW: SignedDuration = SignedDuration::from_hours(90 * 24);

/// Most pages of a list of runs, 100 on each: GitHub lists no more of those that match a filter.
const RUN_PAGES: usize = 10;

/// Most pages of a list of commits, 100 on each.
const COMMIT_PAGES: usize = 3;

/// The permission that commits need.
const CONTENTS_READ: &str = "contents: read";

/// The first parent of a commit.
pub(super) async fn first_parent(
    client: &Client,
    repository: &Repository,
    commit: &str,
) -> Result<Option<String>, GithubError> {
    let ask = Ask::new(format!("read the parents of `{commit}`"), CONTENTS_READ);
    let path = format!("/repos/{}/git/commits/{}", repository, segment(commit));
    let commit: Commit = match client.get(&ask, &path).await {
        // What was merged for a test only may be gone by now.
        Err(error) if matches!(error.status(), Some(404 | 422)) => return Ok(None),
        commit => commit?,
    };
    Ok(commit.known().and_then(|(_, parents)| parents.into_iter().next()))
}

/// Where `head` left `base`.
pub(super) async fn merge_base(
    client: &Client,
    repository: &Repository,
    base: &str,
    head: &str,
) -> Result<Option<String>, GithubError> {
    #[derive(Deserialize)]
    struct Compared {
        merge_base_commit: Option<Commit>,
    }
    let ask = Ask::new(format!("find where `{head}` left `{base}`"), CONTENTS_READ);
    let path = format!(
        "/repos/{}/compare/{}...{}?per_page=1",
        repository,
        segment(base),
        segment(head)
    );
    let compared: Compared = match client.get(&ask, &path).await {
        // No common history.
        Err(error) if error.status() == Some(404) => return Ok(None),
        compared => compared?,
    };
    Ok(compared.merge_base_commit.and_then(|commit| commit.sha))
}

/// One workflow of one repository.
#[derive(Clone, Copy, Debug)]
pub(super) struct Workflow<'a> {
    pub(super) client: &'a Client,
    pub(super) repository: &'a Repository,
    /// Its file name.
    pub(super) file: &'a str,
}

impl Workflow<'_> {
    /// Its finished runs of the last months that match `filter`, newest first, until `enough` of them are `wanted`.
    pub(super) async fn runs(
        &self,
        filter: &str,
        now: Timestamp,
        enough: usize,
        wanted: impl Fn(&Run) -> bool,
    ) -> Result<Vec<Run>, GithubError> {
        let ask = Ask::new(format!("list the runs of `{}`", self.file), ACTIONS_READ);
        let since = now.checked_sub(WINDOW).unwrap_or(Timestamp::UNIX_EPOCH);
        let created = segment(&format!(">={}", since.strftime("%Y-%m-%d")));
        let mut runs = Vec::new();
        for page in 1..=RUN_PAGES {
            let path = format!(
                "/repos/{}/actions/workflows/{}/runs?{filter}&status=completed&created={created}\
                 &exclude_pull_requests=true&per_page=100&page={page}",
                self.repository,
                segment(self.file),
            );
            let (listed, more): (Runs, bool) = match self.client.page(&ask, &path).await {
                // A workflow that GitHub does not know yet has never run on the default branch.
                Err(error) if error.status() == Some(404) => return Ok(runs),
                listed => listed?,
            };
            let listed = listed.workflow_runs.into_iter();
            runs.extend(listed.filter_map(ListedRun::known).filter(&wanted));
            if !more || runs.len() >= enough {
                break;
            }
        }
        Ok(runs)
    }

    /// One run.
    pub(super) async fn run(&self, id: u64) -> Result<Option<Run>, GithubError> {
        let ask = Ask::new(format!("read run {id}"), ACTIONS_READ);
        let path = format!("/repos/{}/actions/runs/{id}", self.repository);
        match self.client.get::<ListedRun>(&ask, &path).await {
            Err(error) if error.is_gone() => Ok(None),
            listed => Ok(listed?.known()),
        }
    }

    /// The parents of `commit` and of its ancestors, until all of `looked_for` are among them or it is far enough.
    pub(super) async fn ancestry(
        &self,
        commit: &str,
        looked_for: &HashSet<&str>,
    ) -> Result<HashMap<String, Vec<String>>, GithubError> {
        let ask = Ask::new(format!("list the commits before `{commit}`"), CONTENTS_READ);
        let mut parents = HashMap::new();
        for page in 1..=COMMIT_PAGES {
            let path = format!(
                "/repos/{}/commits?sha={}&per_page=100&page={page}",
                self.repository,
                segment(commit)
            );
            let (listed, more): (Vec<Commit>, bool) = match self.client.page(&ask, &path).await {
                // A branch that was pushed by force may have left the commit behind.
                Err(error) if matches!(error.status(), Some(404 | 409 | 422)) => break,
                listed => listed?,
            };
            parents.extend(listed.into_iter().filter_map(Commit::known));
            if !more || looked_for.iter().all(|commit| parents.contains_key(*commit)) {
                break;
            }
        }
        Ok(parents)
    }

    /// The commit of a tag.
    pub(super) async fn commit_of_tag(&self, tag: &str) -> Result<Option<String>, GithubError> {
        let ask = Ask::new(format!("find the commit of tag `{tag}`"), CONTENTS_READ);
        let path = format!(
            "/repos/{}/commits/{}",
            self.repository,
            segment(&format!("tags/{tag}"))
        );
        match self.client.get::<Commit>(&ask, &path).await {
            Err(error) if matches!(error.status(), Some(404 | 422)) => Ok(None),
            commit => Ok(commit?.sha),
        }
    }

    /// The tag of the latest release.
    pub(super) async fn latest_release(&self) -> Result<Option<String>, GithubError> {
        let ask = Ask::new("find the latest release", CONTENTS_READ);
        let path = format!("/repos/{}/releases/latest", self.repository);
        match self.client.get::<Release>(&ask, &path).await {
            Err(error) if error.status() == Some(404) => Ok(None),
            release => Ok(release?.tag_name),
        }
    }

    /// The tag of the release before the one of `tag`, or of the newest one where `tag` has none yet.
    pub(super) async fn release_before(&self, tag: &str) -> Result<Option<String>, GithubError> {
        let ask = Ask::new(format!("find the release before `{tag}`"), CONTENTS_READ);
        let path = format!("/repos/{}/releases?per_page=100", self.repository);
        let releases: Vec<Release> = self.client.get(&ask, &path).await?;
        let own = releases
            .iter()
            .position(|release| release.tag_name.as_deref() == Some(tag));
        Ok(releases
            .into_iter()
            .skip(own.map_or(0, |own| own + 1))
            .find(|release| release.draft != Some(true) && release.prerelease != Some(true))
            .and_then(|release| release.tag_name))
    }

    /// The repository's default branch.
    pub(super) async fn default_branch(&self) -> Result<String, GithubError> {
        #[derive(Deserialize)]
        struct About {
            default_branch: Option<String>,
        }
        let ask = Ask::new("find the default branch", CONTENTS_READ);
        let about: About = self
            .client
            .get(&ask, &format!("/repos/{}", self.repository))
            .await?;
        about
            .default_branch
            .ok_or_else(|| ask.failed(Problem::Lacks("a default branch")))
    }
}

#[derive(Deserialize)]
struct Runs {
    workflow_runs: Vec<ListedRun>,
}

#[derive(Deserialize)]
struct ListedRun {
    id: Option<u64>,
    run_number: Option<u64>,
    event: Option<String>,
    head_branch: Option<String>,
    head_sha: Option<String>,
    status: Option<String>,
    created_at: Option<Timestamp>,
    html_url: Option<String>,
    repository: Option<Numbered>,
    head_repository: Option<Numbered>,
}

#[derive(Deserialize)]
struct Numbered {
    id: Option<u64>,
}

impl ListedRun {
    fn known(self) -> Option<Run> {
        let number = |repository: Option<Numbered>| repository.and_then(|repository| repository.id);
        let (own, head) = (number(self.repository), number(self.head_repository));
        Some(Run {
            id: self.id?,
            number: self.run_number,
            event: self.event,
            branch: self.head_branch,
            commit: self.head_sha,
            completed: self.status.as_deref() == Some("completed"),
            from_here: own.is_some() && own == head,
            created_at: self.created_at,
            url: self.html_url,
        })
    }
}

#[derive(Deserialize)]
struct Commit {
    sha: Option<String>,
    parents: Option<Vec<Parent>>,
}

#[derive(Deserialize)]
struct Parent {
    sha: Option<String>,
}

impl Commit {
    fn known(self) -> Option<(String, Vec<String>)> {
        let parents = self.parents.unwrap_or_default();
        Some((
            self.sha?,
            parents.into_iter().filter_map(|parent| parent.sha).collect(),
        ))
    }
}

#[derive(Deserialize)]
struct Release {
    tag_name: Option<String>,
    draft: Option<bool>,
    prerelease: Option<bool>,
}
