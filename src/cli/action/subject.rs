//! What is measured, for which pull request, and whether it may be: the refusals. Runs nothing.

use anyhow::{Context as _, anyhow};

use super::inputs::Approved;
use crate::catalog;
use crate::cli::sources::Suite;
use crate::cli::{Failure, engine};
use crate::github::baseline::{Event, Measured};
use crate::github::event::{Invocation, PullRequest, Trigger};
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

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Revision {
    /// What sandboxes fetch, where it was named: it may be another than what is checked out.
    pub(super) named: Option<String>,
    /// The commit, where git knows it.
    pub(super) commit: Option<String>,
    /// What was merged to make it, where it is a merge that is checked out.
    pub(super) merged: Option<String>,
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

impl Revision {
    pub(super) fn of(suite: &Suite) -> Self {
        let named = engine::revision(&suite.config.sandbox).map(str::to_owned);
        Self {
            commit: match &named {
                Some(name) => catalog::commit_named(&suite.root, name),
                None => catalog::commit(&suite.root),
            },
            merged: match &named {
                Some(_) => None,
                None => catalog::second_parent(&suite.root),
            },
            named,
        }
    }

    /// Why nobody knows what is measured.
    pub(super) fn unknown(&self) -> Option<String> {
        let name = self.named.as_ref().filter(|_| self.commit.is_none())?;
        Some(format!("the commit of the revision `{name}` is not known here"))
    }
}

impl Subject {
    /// What the event says.
    pub(super) fn of_event(invocation: &Invocation, revision: &Revision) -> Self {
        // Where git does not say what is checked out, GitHub does.
        let here = invocation.sha.clone().filter(|_| revision.named.is_none());
        let commit = revision.commit.clone().or(here);
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
                let (measured, note) = measured(invocation, event, revision, commit.as_ref());
                Self {
                    pull_request: Some(event.number),
                    head: Some(head.clone()),
                    event: Some(Event::PullRequest {
                        base_branch: event.base.branch.clone(),
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
            _ => {
                let commit = commit.clone();
                of(branch(here).map(|branch| Event::OnBranch { branch, commit }))
            }
        }
    }

    /// The commit of a pull request that a maintainer approved: exactly that one, as long as it is the head, and only
    /// if it is what sandboxes fetch, or what is checked out.
    pub(super) async fn of_approved(
        approved: &Approved,
        invocation: &Invocation,
        client: &Client,
        revision: &Revision,
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
        match &revision.named {
            // A branch may be another commit by the time that it is fetched.
            Some(name) if !name.eq_ignore_ascii_case(head) => {
                return Err(anyhow!(
                    "refused: {head} was approved, and sandboxes would fetch `{name}`\ngive `revision: ${{{{ inputs.head-sha }}}}`, the whole commit"
                )
                .into());
            }
            None if revision.commit.as_ref() != Some(head) => {
                return Err(anyhow!(
                    "refused: {head} was approved, and {} is checked out\ngive actions/checkout `ref: ${{{{ inputs.head-sha }}}}`",
                    revision.commit.as_deref().unwrap_or("nothing that git knows")
                )
                .into());
            }
            _ => {}
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

/// What is measured of a pull request, and in words what its head does not say.
fn measured(
    invocation: &Invocation,
    event: &PullRequest,
    revision: &Revision,
    commit: Option<&String>,
) -> (Measured, Option<String>) {
    let head = &event.head.sha;
    let of_head = || Measured::Head(head.clone());
    let Some(commit) = commit else {
        return (of_head(), revision.unknown());
    };
    if commit == head {
        return (of_head(), None);
    }
    let is_of_event =
        matches!(invocation.trigger, Trigger::PullRequest(_)) && invocation.sha.as_ref() == Some(commit);
    if is_of_event || revision.merged.as_ref() == Some(head) {
        let note = format!("measured: the merge of {} into {}", &head[..7], event.base.branch);
        return (Measured::MergeCommit(commit.clone()), Some(note));
    }
    let short: String = commit.chars().take(7).collect();
    let note = format!("measured: {short}, which is not the head of the pull request");
    (Measured::Head(commit.clone()), Some(note))
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::{Revision, Subject};
    use crate::github::baseline::{Event, Measured};
    use crate::github::event::Invocation;

    const HEAD: &str = "1111111111111111111111111111111111111111";
    const BASE: &str = "2222222222222222222222222222222222222222";
    const MERGE: &str = "3333333333333333333333333333333333333333";

    fn invocation(event: &str, reference: &str, payload: &Value) -> Invocation {
        let variables = [
            ("GITHUB_EVENT_NAME", event),
            ("GITHUB_REPOSITORY", "octo/evals"),
            ("GITHUB_REPOSITORY_ID", "1"),
            ("GITHUB_API_URL", "https://api.github.com"),
            ("GITHUB_SERVER_URL", "https://github.com"),
            ("GITHUB_RUN_ID", "9"),
            ("GITHUB_SHA", MERGE),
            ("GITHUB_REF", reference),
        ];
        let variables: BTreeMap<String, String> = variables
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        Invocation::read(&variables, payload.to_string().as_bytes()).unwrap()
    }

    fn checked_out(commit: Option<&str>) -> Revision {
        Revision {
            named: None,
            commit: commit.map(str::to_owned),
            merged: None,
        }
    }

    fn named(name: &str, commit: Option<&str>) -> Revision {
        Revision {
            named: Some(name.to_owned()),
            ..checked_out(commit)
        }
    }

    fn event(name: &str, reference: &str, payload: &Value) -> Option<Event> {
        Subject::of_event(&invocation(name, reference, payload), &checked_out(Some(MERGE))).event
    }

    fn pull_request() -> Invocation {
        let repository = json!({ "id": 1, "full_name": "octo/evals" });
        let payload = json!({ "pull_request": {
            "number": 12,
            "head": { "sha": HEAD, "ref": "faster", "repo": repository },
            "base": { "sha": BASE, "ref": "release/2", "repo": repository },
        } });
        invocation("pull_request", "refs/pull/12/merge", &payload)
    }

    #[test]
    fn what_is_checked_out_says_whether_the_head_or_its_merge_is_measured() {
        let run = pull_request();
        let of = |measured| {
            let base_branch = "release/2".to_owned();
            Some(Event::PullRequest {
                base_branch,
                measured,
            })
        };
        let merge = Subject::of_event(&run, &checked_out(Some(MERGE)));
        assert_eq!(merge.event, of(Measured::MergeCommit(MERGE.to_owned())));
        assert_eq!(
            (merge.pull_request, merge.head.as_deref()),
            (Some(12), Some(HEAD))
        );
        assert_eq!(
            merge.note.as_deref(),
            Some("measured: the merge of 1111111 into release/2")
        );
        let head = Subject::of_event(&run, &checked_out(Some(HEAD)));
        assert_eq!(
            (head.event, head.note),
            (of(Measured::Head(HEAD.to_owned())), None)
        );
        let without_git = Subject::of_event(&run, &checked_out(None));
        assert_eq!(without_git.event, of(Measured::MergeCommit(MERGE.to_owned())));

        // A merge of the head that is newer than the event, and what is neither.
        let other = "4444444444444444444444444444444444444444";
        let newer = Revision {
            merged: Some(HEAD.to_owned()),
            ..checked_out(Some(other))
        };
        let newer = Subject::of_event(&run, &newer);
        assert_eq!(newer.event, of(Measured::MergeCommit(other.to_owned())));
        let neither = Subject::of_event(&run, &checked_out(Some(other)));
        assert_eq!(
            (neither.event, neither.note.as_deref()),
            (
                of(Measured::Head(other.to_owned())),
                Some("measured: 4444444, which is not the head of the pull request")
            )
        );
    }

    #[test]
    fn a_revision_that_is_named_is_what_is_measured_whatever_is_checked_out() {
        let run = pull_request();
        let of = |revision: &Revision| {
            let subject = Subject::of_event(&run, revision);
            let Some(Event::PullRequest { measured, .. }) = subject.event else {
                panic!("{:?}", subject.event)
            };
            (measured, subject.note)
        };
        let head = || Measured::Head(HEAD.to_owned());
        assert_eq!(of(&named(HEAD, Some(HEAD))), (head(), None));
        assert_eq!(
            of(&named("refs/pull/12/merge", Some(MERGE))),
            (
                Measured::MergeCommit(MERGE.to_owned()),
                Some("measured: the merge of 1111111 into release/2".to_owned())
            )
        );
        assert_eq!(
            of(&named("v1", Some(BASE))),
            (
                Measured::Head(BASE.to_owned()),
                Some("measured: 2222222, which is not the head of the pull request".to_owned())
            )
        );
        assert_eq!(
            of(&named("faster", None)),
            (
                head(),
                Some("the commit of the revision `faster` is not known here".to_owned())
            )
        );
        let dispatched = invocation("workflow_dispatch", "refs/heads/main", &json!({}));
        for commit in [Some(HEAD), None] {
            assert_eq!(
                Subject::of_event(&dispatched, &named("faster", commit)).event,
                Some(Event::OnBranch {
                    branch: "main".to_owned(),
                    commit: commit.map(str::to_owned)
                })
            );
        }
    }

    #[test]
    fn every_other_event_is_on_a_branch_or_a_tag() {
        let branch = "main".to_owned();
        let before = Some(BASE.to_owned());
        assert_eq!(
            event("push", "refs/heads/main", &json!({ "before": BASE })),
            Some(Event::Push {
                branch: branch.clone(),
                before
            })
        );
        let tag = || Some(Event::Tag { tag: "v1".to_owned() });
        assert_eq!(event("push", "refs/tags/v1", &json!({ "before": BASE })), tag());
        assert_eq!(
            event("release", "", &json!({ "release": { "tag_name": "v1" } })),
            tag()
        );
        assert_eq!(
            event("schedule", "refs/heads/main", &json!({})),
            Some(Event::OnBranch {
                branch: branch.clone(),
                commit: Some(MERGE.to_owned())
            })
        );
        let queue = json!({ "merge_group": { "base_sha": BASE, "base_ref": "refs/heads/main" } });
        assert_eq!(
            event("merge_group", "refs/heads/gh-readonly-queue/main/pr-1", &queue),
            Some(Event::MergeGroup {
                base_branch: branch,
                base: BASE.to_owned()
            })
        );
        assert_eq!(event("workflow_dispatch", "", &json!({})), None);
    }
}
