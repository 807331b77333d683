//! What is measured, for which pull request, and whether it may be: the refusals. Runs nothing.

use anyhow::{Context as _, anyhow};

use super::inputs::Approved;
use crate::cli::Failure;
use crate::github::baseline::{Event, Measured};
use crate::github::event::{Invocation, Trigger};
use crate::github::{Client, pull_request};

/// What a run is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    /// Where the comment goes.
    pub(super) pull_request: Option<u64>,
    /// The commit that a reviewer knows it by.
    pub(super) head: Option<String>,
    /// What decides the baseline; `None` where there is no branch to look on.
    pub(super) event: Option<Event>,
    /// In words, where the commit does not say it.
    pub(super) note: Option<String>,
}

/// Refuses to run another repository's code with this repository's secrets.
pub(super) fn refuse_dangerous(invocation: &Invocation, accepted: bool) -> Result<(), Failure> {
    if !invocation.is_dangerous() || accepted {
        return Ok(());
    }
    let event = match invocation.trigger {
        Trigger::WorkflowRun(_) => "workflow_run",
        _ => "pull_request_target",
    };
    Err(anyhow!(
        "refused: under `{event}` this would run code of another repository with this repository's secrets\n\
         run it under `pull_request`, or start the approved run of one commit with `pull-request` and `head-sha`; \
         only if every secret here may leak, set `i-accept-that-this-runs-untrusted-code: true`"
    )
    .into())
}

/// Why a run whose secrets are withheld is skipped, and how it can be had; `None` where it can go on.
pub(super) fn withheld(invocation: &Invocation, missing: &[String]) -> Option<String> {
    let whose = invocation.withholds_secrets()?;
    if missing.is_empty() {
        return None;
    }
    let missing = missing.join(", ");
    let mut reason = format!("GitHub gives {whose} no secrets, and this suite needs {missing}.");
    if let Some(pull_request) = invocation.pull_request() {
        // A pull request may bring a workflow of any name.
        let plain = |name: &&str| {
            name.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
        };
        let workflow = invocation.workflow.as_deref().filter(plain).unwrap_or("WORKFLOW");
        reason += &format!(
            " A maintainer who has read the change can run exactly this commit: gh workflow run {workflow} -f pull-request={} -f head-sha={}",
            pull_request.number, pull_request.head.sha
        );
    }
    Some(reason)
}

impl Subject {
    /// What the event says. `commit` is what is checked out.
    pub(super) fn of_event(invocation: &Invocation, commit: Option<&str>) -> Self {
        let commit = commit.or(invocation.sha.as_deref()).map(str::to_owned);
        let of = |event| Self {
            pull_request: None,
            head: commit.clone(),
            event,
            note: None,
        };
        let branch = |reference: Option<&str>| match reference? {
            reference if reference.starts_with("refs/tags/") => None,
            reference => Some(
                reference
                    .strip_prefix("refs/heads/")
                    .unwrap_or(reference)
                    .to_owned(),
            ),
        };
        let here = invocation.reference.as_deref();
        if let Some(tag) = tag(invocation) {
            return of(Some(Event::Tag { tag }));
        }
        match &invocation.trigger {
            Trigger::PullRequest(event) | Trigger::PullRequestTarget(event) => {
                let head = &event.head.sha;
                let base = &event.base.branch;
                let (measured, note) = match &commit {
                    Some(commit) if commit != head => (
                        Measured::MergeCommit(commit.clone()),
                        Some(format!("measured: the merge of {} into {base}", &head[..7])),
                    ),
                    _ => (Measured::Head(head.clone()), None),
                };
                Self {
                    pull_request: Some(event.number),
                    head: Some(head.clone()),
                    event: Some(Event::PullRequest {
                        base_branch: base.clone(),
                        measured,
                    }),
                    note,
                }
            }
            Trigger::Push { before } => of(branch(here).map(|branch| Event::Push {
                branch,
                before: before.clone(),
            })),
            Trigger::MergeGroup { base_sha, base_ref } => {
                of(branch(base_ref.as_deref()).map(|base_branch| Event::MergeGroup {
                    base_branch,
                    base: base_sha.clone(),
                }))
            }
            _ => of(branch(here)
                .zip(commit.clone())
                .map(|(branch, commit)| Event::OnBranch { branch, commit })),
        }
    }

    /// The commit of a pull request that a maintainer approved: exactly that one, as long as it is the head, and only
    /// if it is what is checked out.
    pub(super) async fn of_approved(
        approved: &Approved,
        invocation: &Invocation,
        client: &Client,
        commit: Option<&str>,
    ) -> Result<Self, Failure> {
        let Approved {
            pull_request: number,
            head,
        } = approved;
        if invocation.pull_request().is_some() {
            return Err(anyhow!("`pull-request` and `head-sha` are for runs that somebody starts by hand: this event has its own").into());
        }
        let now = pull_request::read(client, &invocation.repository, *number)
            .await
            .context("cannot tell whether the approved commit is still the head: nothing was run")?;
        if !now.head.eq_ignore_ascii_case(head) {
            return Err(anyhow!(
                "refused: the head of pull request {number} has moved: {head} was approved, and it is {} now\nread what is new, then start the run with that commit",
                now.head
            )
            .into());
        }
        if commit != Some(head) {
            return Err(anyhow!(
                "refused: {head} was approved, and {} is checked out\ngive actions/checkout `ref: ${{{{ inputs.head-sha }}}}`",
                commit.unwrap_or("nothing that git knows")
            )
            .into());
        }
        Ok(Self {
            pull_request: Some(*number),
            head: Some(head.clone()),
            event: Some(Event::PullRequest {
                base_branch: now.base_branch,
                measured: Measured::Head(head.clone()),
            }),
            note: None,
        })
    }
}

/// The tag that a run is about.
fn tag(invocation: &Invocation) -> Option<String> {
    match &invocation.trigger {
        Trigger::Release { tag: Some(tag) } => Some(tag.clone()),
        _ => invocation
            .reference
            .as_deref()
            .and_then(|reference| reference.strip_prefix("refs/tags/"))
            .map(str::to_owned),
    }
}
