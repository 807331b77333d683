//! What GitHub tells a step of a workflow: where it runs, by which event, and on what. Reads no environment and no
//! file itself, and trusts no byte of the event: a pull request's author chose many of them.

mod payload;

use std::collections::BTreeMap;

use super::Repository;
use payload::Payload;

/// A surrounding that is not a step of a workflow, or an event that cannot be one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// It is not a step of a workflow.
    #[error(
        "this runs inside GitHub Actions: `{0}` is not set in the environment\nat a terminal use `evalwave run`"
    )]
    NotOnGitHub(&'static str),
    /// A variable that GitHub sets has a value that it never has.
    #[error("cannot use the variable `{name}`: expected {expected}")]
    Variable {
        /// Its name.
        name: &'static str,
        /// What it looks like.
        expected: &'static str,
    },
    /// The event is not JSON.
    #[error("cannot read the event: {0}")]
    NotJson(String),
    /// The event lacks what events of its kind have.
    #[error("cannot read the event `{event}`: `{key}` is missing or not {expected}")]
    Lacks {
        /// The event's name.
        event: String,
        /// What it lacks.
        key: &'static str,
        /// What it looks like.
        expected: &'static str,
    },
}

/// One run of one step: everything that GitHub tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The repository that the workflow belongs to.
    pub repository: Repository,
    /// Its id, where known.
    pub repository_id: Option<u64>,
    /// Its default branch, where the event says it.
    pub default_branch: Option<String>,
    /// Where its API is, without a slash at its end.
    pub api_url: String,
    /// Where its pages are, without a slash at its end.
    pub server_url: String,
    /// The run of the workflow.
    pub run_id: u64,
    /// Its number among the runs of its workflow.
    pub run_number: u64,
    /// Which attempt at it, from 1: a re-run is another one.
    pub run_attempt: u32,
    /// The name of the workflow's file, where GitHub says it.
    pub workflow: Option<String>,
    /// The commit that GitHub means; for a pull request the merge commit.
    pub sha: Option<String>,
    /// The branch or tag in full, like `refs/heads/main`.
    pub reference: Option<String>,
    /// Who started it.
    pub actor: String,
    /// Why it runs.
    pub trigger: Trigger,
    /// Debug logging was asked for.
    pub debug: bool,
}

/// The repository that a commit is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// Its name now.
    pub name: Repository,
    /// What stays the same when it is renamed.
    pub id: u64,
}

/// Why a workflow runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A pull request; the workflow is the pull request's own.
    PullRequest(PullRequest),
    /// A pull request; the workflow is the base branch's, with its secrets.
    PullRequestTarget(PullRequest),
    /// Commits, or a tag.
    Push {
        /// The branch's commit before, where there was one.
        before: Option<String>,
    },
    /// The clock.
    Schedule,
    /// Somebody pressed the button, or another workflow did.
    WorkflowDispatch,
    /// A queue of pull requests.
    MergeGroup {
        /// The commit that the queue is built on.
        base_sha: String,
        /// The branch that it is going to, in full.
        base_ref: Option<String>,
    },
    /// Another workflow ended; this one has the base branch's secrets.
    WorkflowRun(WorkflowRun),
    /// A release.
    Release {
        /// Its tag, where it has one.
        tag: Option<String>,
    },
    /// Any other event.
    Other(String),
}

/// A pull request, as the event has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number.
    pub number: u64,
    /// What is to be merged.
    pub head: Side,
    /// Into what.
    pub base: Side,
    /// Who opened it.
    pub author: Option<String>,
}

/// One side of a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// The commit.
    pub sha: String,
    /// The branch, without `refs/heads/`.
    pub branch: String,
    /// Where it is; `None` where that repository is gone.
    pub repository: Option<Home>,
}

/// The run of another workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowRun {
    /// The run.
    pub id: u64,
    /// Which attempt at it.
    pub run_attempt: u32,
    /// What it ran on.
    pub head_sha: String,
    /// The branch that it ran on, where there was one.
    pub head_branch: Option<String>,
    /// The repository that this commit is of; `None` where it is gone.
    pub head_repository: Option<Home>,
    /// The event that it was started by.
    pub event: String,
    /// The pull requests that GitHub knows it by; none for a fork's.
    pub pull_requests: Vec<u64>,
}

/// The account whose runs have no secrets of the repository.
const DEPENDABOT: &str = "dependabot[bot]";

impl Invocation {
    /// Reads the environment and the event's JSON.
    ///
    /// # Errors
    /// Surroundings that are not GitHub's, or an event that lacks what its kind always has.
    pub fn read(environment: &BTreeMap<String, String>, event: &[u8]) -> Result<Self, EventError> {
        let variable = |name: &'static str| {
            let value = environment.get(name).map(|value| value.trim());
            value.filter(|value| !value.is_empty())
        };
        let needed = |name: &'static str| variable(name).ok_or(EventError::NotOnGitHub(name));
        let number = |name: &'static str| {
            let parsed = variable(name).map(|value| value.parse::<u64>());
            parsed.transpose().map_err(|_| EventError::Variable {
                name,
                expected: "a number",
            })
        };
        let address = |name: &'static str| {
            let value = needed(name)?.trim_end_matches('/');
            let known = ["https://", "http://"]
                .iter()
                .any(|scheme| value.starts_with(scheme));
            let clean =
                !value.contains(|character: char| character.is_whitespace() || character.is_control());
            (known && clean)
                .then(|| value.to_owned())
                .ok_or(EventError::Variable {
                    name,
                    expected: "an address that starts with https://",
                })
        };
        let name = needed("GITHUB_EVENT_NAME")?;
        let repository = needed("GITHUB_REPOSITORY")?;
        let repository: Repository = repository.parse().map_err(|_| EventError::Variable {
            name: "GITHUB_REPOSITORY",
            expected: "`owner/name`",
        })?;
        let payload = Payload::parse(name, event)?;
        Ok(Self {
            repository_id: number("GITHUB_REPOSITORY_ID")?.or_else(|| payload.number("/repository/id")),
            default_branch: payload.text("/repository/default_branch"),
            api_url: address("GITHUB_API_URL")?,
            server_url: address("GITHUB_SERVER_URL")?,
            run_id: number("GITHUB_RUN_ID")?.ok_or(EventError::NotOnGitHub("GITHUB_RUN_ID"))?,
            run_number: number("GITHUB_RUN_NUMBER")?.unwrap_or(1),
            run_attempt: number("GITHUB_RUN_ATTEMPT")?
                .and_then(|attempt| u32::try_from(attempt).ok())
                .unwrap_or(1),
            workflow: variable("GITHUB_WORKFLOW_REF").and_then(workflow_file),
            sha: variable("GITHUB_SHA")
                .filter(|sha| is_sha(sha))
                .map(str::to_owned),
            reference: variable("GITHUB_REF").map(str::to_owned),
            actor: variable("GITHUB_ACTOR").unwrap_or_default().to_owned(),
            trigger: Trigger::read(name, &payload)?,
            debug: variable("RUNNER_DEBUG") == Some("1"),
            repository,
        })
    }

    /// The page of this run.
    pub fn run_url(&self) -> String {
        self.url_of_run(self.run_id, self.run_attempt)
    }

    /// The page of a run of this repository.
    pub fn url_of_run(&self, id: u64, attempt: u32) -> String {
        let Self {
            server_url,
            repository,
            ..
        } = self;
        let page = format!("{server_url}/{repository}/actions/runs/{id}");
        match attempt {
            0 | 1 => page,
            attempt => format!("{page}/attempts/{attempt}"),
        }
    }

    /// The event's pull request.
    pub fn pull_request(&self) -> Option<&PullRequest> {
        match &self.trigger {
            Trigger::PullRequest(pull_request) | Trigger::PullRequestTarget(pull_request) => {
                Some(pull_request)
            }
            _ => None,
        }
    }

    /// Whether the event is about a commit of another repository. One that is gone counts as another one.
    pub fn is_foreign(&self) -> bool {
        let head = match &self.trigger {
            Trigger::PullRequest(pull_request) | Trigger::PullRequestTarget(pull_request) => {
                pull_request.head.repository.as_ref()
            }
            Trigger::WorkflowRun(run) => run.head_repository.as_ref(),
            _ => return false,
        };
        !head.is_some_and(|head| self.is_home(head))
    }

    /// Whether it is the workflow's own repository: by what stays when it is renamed, else by name.
    fn is_home(&self, home: &Home) -> bool {
        match self.repository_id {
            Some(id) => id == home.id,
            None => self
                .repository
                .to_string()
                .eq_ignore_ascii_case(&home.name.to_string()),
        }
    }

    /// Whether the code at hand is another's while the secrets are this repository's.
    pub fn is_dangerous(&self) -> bool {
        let has_secrets = matches!(
            self.trigger,
            Trigger::PullRequestTarget(_) | Trigger::WorkflowRun(_)
        );
        has_secrets && self.is_foreign()
    }

    /// Whether GitHub withholds the repository's secrets from this run, and whose it is.
    pub fn withholds_secrets(&self) -> Option<&'static str> {
        let by_dependabot = self.actor == DEPENDABOT;
        match &self.trigger {
            Trigger::PullRequest(_) if self.is_foreign() => Some("a fork"),
            Trigger::PullRequest(_) | Trigger::Push { .. } if by_dependabot => Some("Dependabot"),
            _ => None,
        }
    }

    /// The commit that changes are counted from, where the event knows one.
    pub fn changed_since(&self) -> Option<&str> {
        match &self.trigger {
            Trigger::PullRequest(pull_request) | Trigger::PullRequestTarget(pull_request) => {
                Some(&pull_request.base.sha)
            }
            Trigger::Push { before } => before.as_deref(),
            Trigger::MergeGroup { base_sha, .. } => Some(base_sha),
            _ => None,
        }
    }
}

impl Trigger {
    fn read(name: &str, payload: &Payload) -> Result<Self, EventError> {
        Ok(match name {
            "pull_request" => Self::PullRequest(payload.pull_request()?),
            "pull_request_target" => Self::PullRequestTarget(payload.pull_request()?),
            "push" => Self::Push {
                // A branch's first push comes after a commit of zeros.
                before: payload
                    .sha("/before")
                    .filter(|sha| sha.bytes().any(|byte| byte != b'0')),
            },
            "schedule" => Self::Schedule,
            "workflow_dispatch" => Self::WorkflowDispatch,
            "merge_group" => Self::MergeGroup {
                base_sha: payload.needed_sha("/merge_group/base_sha")?,
                base_ref: payload.text("/merge_group/base_ref"),
            },
            "workflow_run" => Self::WorkflowRun(payload.workflow_run()?),
            "release" => Self::Release {
                tag: payload.text("/release/tag_name"),
            },
            other => Self::Other(other.to_owned()),
        })
    }
}

/// Whether it is a commit's whole name.
pub fn is_sha(text: &str) -> bool {
    [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The name of the file in `owner/name/.github/workflows/evals.yml@refs/heads/main`.
fn workflow_file(text: &str) -> Option<String> {
    let (path, _) = text.split_once('@')?;
    let (_, name) = path.rsplit_once('/')?;
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests;
