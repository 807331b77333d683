//! Finds the results that a run is compared with among the artifacts of earlier runs. Compares nothing.

mod ask;
mod order;
mod search;

use jiff::Timestamp;

use super::{Client, GithubError, Repository};
use crate::model::{Policy, ResultSet, with_causes};
pub use search::Candidates;

/// What is looked for, and for whom.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The repository that the workflow runs in.
    pub repository: Repository,
    /// The file name of the workflow, `evals.yml`: runs of others are never a baseline.
    pub workflow: String,
    /// The suite.
    pub suite: String,
    /// What this job's results are kept as, those of the whole suite where it runs a part: earlier runs have theirs there.
    pub artifact: String,
    /// The run that asks: it is never its own baseline.
    pub run: ThisRun,
    /// Where to look.
    pub place: Place,
    /// Now: for the window in which runs are looked for, and for ages in words.
    pub now: Timestamp,
    /// What decides pairs whose attempts are known one by one; `None` keeps the verdicts that were recorded.
    pub policy: Option<Policy>,
}

/// The run that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThisRun {
    /// `GITHUB_RUN_ID`.
    pub id: u64,
    /// `GITHUB_RUN_NUMBER`.
    pub number: u64,
}

/// Where to look for a baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// `auto`: where the event says.
    Auto(Event),
    /// `artifact:NAME`: like `auto`, in an artifact of another name.
    Artifact {
        /// Its name.
        name: String,
        /// Where from.
        event: Event,
    },
    /// `run:ID`.
    Run(u64),
    /// `ref:TAG`: runs of the tag's commit.
    Tag(String),
    /// `latest-release`: runs of its commit.
    LatestRelease,
}

/// What set the workflow off, as far as it decides the baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// `pull_request`, and whatever else is about a pull request.
    PullRequest {
        /// The branch that it is to go into.
        base_branch: String,
        /// What was measured.
        measured: Measured,
    },
    /// `push` to a branch.
    Push {
        /// The branch.
        branch: String,
        /// `event.before`; all zeros, for a branch that is new, are as good as `None`.
        before: Option<String>,
    },
    /// `push` of a tag, `release`.
    Tag {
        /// The tag.
        tag: String,
    },
    /// `merge_group`.
    MergeGroup {
        /// The branch that it is to go into, without `refs/heads/`.
        base_branch: String,
        /// `merge_group.base_sha`.
        base: String,
    },
    /// `schedule`, `workflow_dispatch`, and any other on a branch.
    OnBranch {
        /// The branch.
        branch: String,
        /// The commit that was measured, where it is known.
        commit: Option<String>,
    },
}

/// Which commit of a pull request was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measured {
    /// GitHub's merge of head and base (the event's default checkout): its first parent is the base.
    MergeCommit(String),
    /// The head itself, or another commit that was named: the base is where it left the base branch.
    Head(String),
}

/// How a search for a baseline ended.
#[derive(Debug)]
pub enum Search {
    /// There is one.
    Found(Box<Found>),
    /// There is none, which is normal, and why.
    NotFound(String),
    /// Nobody knows whether there is one: the look-up failed, and how, and what to do.
    Failed(String),
}

/// The results of an earlier run.
#[derive(Clone, Debug)]
pub struct Found {
    /// The results; commit, branch, time and page of their run are known.
    pub results: ResultSet,
    /// In words: which branch, how far from the wanted commit, how old. Names in it come from outside.
    pub how: String,
    /// The run.
    pub run: u64,
}

/// The runs before a baseline.
#[derive(Debug, Default)]
pub struct Earlier {
    /// Their results, the nearest first.
    pub results: Vec<ResultSet>,
    /// Why they may not be all: the look-up failed, and how.
    pub failed: Option<String>,
    /// They are fewer than were wanted, and so many runs were opened for them, which is the most.
    pub exhausted: Option<usize>,
}

/// A commit that others are compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// In full.
    pub commit: String,
    /// The branch that it is on.
    pub branch: String,
}

/// What an event is compared with; `None` where it does not say, or GitHub does not know.
///
/// # Errors
/// GitHub does not answer.
pub async fn base(
    client: &Client,
    repository: &Repository,
    event: &Event,
) -> Result<Option<Base>, GithubError> {
    let (commit, branch) = match event {
        Event::PullRequest {
            base_branch,
            measured,
        } => {
            let commit = match measured {
                Measured::MergeCommit(commit) => ask::first_parent(client, repository, commit).await?,
                Measured::Head(commit) => ask::merge_base(client, repository, base_branch, commit).await?,
            };
            (commit, base_branch)
        }
        Event::MergeGroup { base_branch, base } => (Some(base.clone()), base_branch),
        Event::Push { branch, before } => {
            let is_new = |commit: &String| commit.bytes().all(|byte| byte == b'0');
            (before.clone().filter(|commit| !is_new(commit)), branch)
        }
        Event::OnBranch { .. } | Event::Tag { .. } => return Ok(None),
    };
    let branch = branch.clone();
    Ok(commit.map(|commit| Base { commit, branch }))
}

/// Looks for the baseline, and for as many as `history` runs before it, which are held to the same rules.
pub async fn find(client: &Client, wanted: &Wanted, history: u32) -> (Search, Earlier) {
    let history = history as usize;
    let mut candidates = match Candidates::list(client, wanted, history).await {
        Ok(candidates) => candidates,
        Err(error) => return (Search::Failed(with_causes(&error)), Earlier::default()),
    };
    let found = match candidates.next(client).await {
        Ok(Some(found)) => found,
        Ok(None) => return (Search::NotFound(candidates.why_none()), Earlier::default()),
        Err(error) => return (Search::Failed(with_causes(&error)), Earlier::default()),
    };
    let mut earlier = Earlier::default();
    while earlier.results.len() < history {
        match candidates.next(client).await {
            Ok(Some(candidate)) => {
                // What came after the baseline is no history of it.
                if candidate.results.started_at < found.results.started_at {
                    earlier.results.push(candidate.results);
                }
            }
            Ok(None) => {
                earlier.exhausted = candidates.exhausted();
                break;
            }
            Err(error) => {
                earlier.failed = Some(with_causes(&error));
                break;
            }
        }
    }
    (Search::Found(Box::new(found)), earlier)
}
