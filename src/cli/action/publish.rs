//! The comment of a run that this process has not made: in the workflow that follows a fork's, whose artifact is data
//! and no more, and after a run that died.

use anyhow::{Context as _, anyhow};
use camino::Utf8Path;
use serde::{Deserialize, Serialize};

use super::conversation::{Conversation, Silence, is_wanted};
use super::inputs::Inputs;
use super::step::Step;
use crate::cli::arms::Driver;
use crate::cli::context::Context;
use crate::cli::sources::comparison_config;
use crate::cli::{Failure, render, tell};
use crate::config::{self, CommentMode};
use crate::github::comment::{State, Target};
use crate::github::event::{Invocation, Trigger, WorkflowRun};
use crate::github::log::Loudness;
use crate::github::{Client, Repository, Secret, pull_request};
use crate::model::layout::{JOURNAL_FILE, SUMMARY_FILE};
use crate::model::summary::Conclusion;
use crate::model::{ExitCode, Summary, with_causes};
use crate::store::{self, Stored};
use crate::{aggregate, report, results};

/// No summary of ours is larger, and one from a fork can be as large as it likes.
const MAX_DOCUMENT_BYTES: u64 = 64 << 20;

/// Writes the comment of a run directory on the pull request that the event is about.
pub(super) fn publish(
    directory: &Utf8Path,
    inputs: &Inputs,
    invocation: &Invocation,
    step: &mut Step,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let (settings, _) = comparison_config(inputs.config.as_deref(), &inputs.given, context)?;
    let mut summary = read(&context.absolute(directory))?;
    if settings.report.comment == CommentMode::Never {
        return Ok(ExitCode::Success);
    }
    Driver::new()?.finish(async {
        let client = client(&invocation.api_url, inputs)?;
        let Some(place) = Place::find(invocation, inputs, &client).await? else {
            let message =
                "the pull request is closed, or its head has moved on: there is nothing to comment on";
            step.annotate(Loudness::Notice, "no comment", message);
            return Ok(ExitCode::Success);
        };
        distrust(&mut summary, &place.run_url, invocation);
        let talk = Conversation {
            client,
            target: Target {
                repository: invocation.repository.clone(),
                pull_request: place.pull_request,
            },
            suite: summary.run.suite.clone(),
            run_id: place.run_id,
            run_attempt: place.run_attempt,
            head: place.head,
        };
        let state = match summary.run.conclusion {
            Conclusion::Cancelled => State::Partial,
            _ => State::Final,
        };
        let render = |limit| step.clean(&report::markdown(&summary, limit));
        let fails = !matches!(summary.run.conclusion, Conclusion::Success | Conclusion::Skipped);
        if !is_wanted(settings.report.comment, &summary, fails) {
            // One that is there already says what holds now.
            return match talk.amend(&render).await {
                Ok(url) => {
                    step.outputs(&[("comment-url", url.unwrap_or_default())]);
                    Ok(ExitCode::Success)
                }
                Err(Silence::Forbidden(why) | Silence::Failed(why)) => {
                    Err(anyhow!("an earlier comment was not renewed: {why}").into())
                }
            };
        }
        match talk.write(state, false, &render).await {
            Ok(url) => {
                step.say(&format!("comment: {url}"));
                step.outputs(&[("comment-url", url)]);
                Ok(ExitCode::Success)
            }
            Err(Silence::Forbidden(why) | Silence::Failed(why)) => {
                Err(anyhow!("the comment was not written: {why}").into())
            }
        }
    })
}

/// Where the comment goes, and which run it is of.
struct Place {
    pull_request: u64,
    head: String,
    run_id: u64,
    run_attempt: u32,
    run_url: String,
}

impl Place {
    async fn find(
        invocation: &Invocation,
        inputs: &Inputs,
        client: &Client,
    ) -> Result<Option<Self>, Failure> {
        let here = |pull_request, head: &str| {
            Ok(Some(Self {
                pull_request,
                head: head.to_owned(),
                run_id: invocation.run_id,
                run_attempt: invocation.run_attempt,
                run_url: invocation.run_url(),
            }))
        };
        if let Some(approved) = &inputs.approved {
            return here(approved.pull_request, &approved.head);
        }
        if let Some(event) = invocation.pull_request() {
            return here(event.number, &event.head.sha);
        }
        let Trigger::WorkflowRun(run) = &invocation.trigger else {
            return Err(anyhow!("this event has no pull request to comment on\nrun it under `workflow_run` or `pull_request`, or give `pull-request` and `head-sha`").into());
        };
        let (Some(head), Some(branch)) = (&run.head_repository, &run.head_branch) else {
            return Ok(None);
        };
        let WorkflowRun {
            id,
            run_attempt,
            head_sha,
            ..
        } = run;
        let found = pull_request::by_head(client, &invocation.repository, &head.name, branch, head_sha)
            .await
            .context("the comment was not written")?;
        Ok(found.map(|found| Self {
            pull_request: found.number,
            head: head_sha.clone(),
            run_id: *id,
            run_attempt: *run_attempt,
            run_url: invocation.url_of_run(*id, *run_attempt),
        }))
    }
}

/// Reads a run directory as data: nothing in it is believed but what its own types hold.
fn read(directory: &Utf8Path) -> Result<Summary, Failure> {
    for name in [SUMMARY_FILE, JOURNAL_FILE] {
        let path = directory.join(name);
        let size = fs_err::symlink_metadata(&path).map_or(0, |found| found.len());
        if size > MAX_DOCUMENT_BYTES {
            return Err(anyhow!("cannot read `{path}`: {size} bytes are more than any run has").into());
        }
    }
    let path = directory.join(SUMMARY_FILE);
    let summary = if path.is_file() {
        results::parse_summary(path.as_str(), &fs_err::read(&path)?)?
    } else {
        unfinished(directory)?
    };
    if !config::is_suite_name(&summary.run.suite) {
        return Err(anyhow!("cannot use `{path}`: {:?} is no suite's name", summary.run.suite).into());
    }
    Ok(summary)
}

fn unfinished(directory: &Utf8Path) -> Result<Summary, Failure> {
    Ok(match store::load(directory)? {
        Stored::Summary(summary) => *summary,
        Stored::Journal(replayed) => {
            let mut summary = aggregate::summarize(&replayed.run);
            summary.notices.extend(render::unfinished(&replayed));
            summary
        }
    })
}

/// Takes links away that a document could lead a reader astray with: what is left leads to this repository.
fn distrust(summary: &mut Summary, run_url: &str, invocation: &Invocation) {
    summary.run.url = Some(run_url.to_owned());
    if let Some(comparison) = &mut summary.comparison {
        comparison.current.run_url = Some(run_url.to_owned());
        let home = format!(
            "{}/{}/actions/runs/",
            invocation.server_url, invocation.repository
        );
        // Dots in an address could lead out of where it begins.
        let is_run = |url: &String| {
            let run = url.strip_prefix(&home).unwrap_or_default();
            let id = run.split_once("/attempts/").map_or(run, |(id, _)| id);
            id.parse::<u64>().is_ok() && !run.contains(['.', '%', '?', '#'])
        };
        comparison.baseline.run_url.take_if(|url| !is_run(url));
    }
}

/// A comment whose last word is still to be said; the file is there exactly as long.
#[derive(Serialize, Deserialize)]
pub(super) struct Unfinished {
    repository: String,
    pull_request: u64,
    suite: String,
    run_id: u64,
    run_attempt: u32,
    run_url: String,
    head: String,
}

impl Unfinished {
    pub(super) fn of(talk: &Conversation, run_url: &str) -> Self {
        Self {
            repository: talk.target.repository.to_string(),
            pull_request: talk.target.pull_request,
            suite: talk.suite.clone(),
            run_id: talk.run_id,
            run_attempt: talk.run_attempt,
            run_url: run_url.to_owned(),
            head: talk.head.clone(),
        }
    }

    /// What cannot be written costs a comment its last word if this process is killed, and no more.
    pub(super) fn write(&self, directory: &Utf8Path) {
        let written = serde_json::to_string(self).map_err(anyhow::Error::from);
        let path = directory.join(store::COMMENT_FILE);
        let written = written.and_then(|text| Ok(fs_err::write(path, text)?));
        if let Err(error) = written {
            tell(&format!("warning: {}", with_causes(error.as_ref())));
        }
    }

    pub(super) fn remove(directory: &Utf8Path) {
        let path = directory.join(store::COMMENT_FILE);
        if path.exists()
            && let Err(error) = fs_err::remove_file(path)
        {
            tell(&format!("warning: {error}"));
        }
    }
}

/// Says the last word of a run that died before it could; gives whether it had one to say.
pub(super) fn finish(
    directory: &Utf8Path,
    inputs: &Inputs,
    step: &mut Step,
    context: &Context,
) -> Result<bool, Failure> {
    let directory = context.absolute(directory);
    let path = directory.join(store::COMMENT_FILE);
    if !path.is_file() {
        return Ok(false);
    }
    let finishing = || -> Result<String, Failure> {
        let api_url = context
            .variable("GITHUB_API_URL")
            .context("`GITHUB_API_URL` is not set")?;
        let left: Unfinished = serde_json::from_slice(&fs_err::read(&path)?)?;
        let mut summary = unfinished(&directory)?;
        summary.run.url = Some(left.run_url);
        Driver::new()?.finish(async {
            let talk = Conversation {
                client: client(api_url, inputs)?,
                target: Target {
                    repository: left.repository.parse::<Repository>()?,
                    pull_request: left.pull_request,
                },
                suite: left.suite,
                run_id: left.run_id,
                run_attempt: left.run_attempt,
                head: left.head,
            };
            let state = match directory.join(SUMMARY_FILE).is_file() {
                true if summary.run.conclusion != Conclusion::Cancelled => State::Final,
                _ => State::Partial,
            };
            let render = |limit| step.clean(&report::markdown(&summary, limit));
            talk.write(state, false, &render)
                .await
                .map_err(|silence| match silence {
                    Silence::Forbidden(why) | Silence::Failed(why) => anyhow!(why).into(),
                })
        })
    };
    match finishing() {
        Ok(url) => {
            Unfinished::remove(&directory);
            step.say(&format!("the run had no last word: {url} has it now"));
        }
        Err(failure) => {
            let why = with_causes(failure.error.as_ref());
            let message = format!("the comment of the run that died was not finished: {why}");
            step.annotate(Loudness::Warning, "evalwave cleanup", &message);
        }
    }
    Ok(true)
}

fn client(api_url: &str, inputs: &Inputs) -> Result<Client, Failure> {
    let token = inputs.token.clone().map(Secret::new);
    Ok(Client::new(api_url, token.as_ref())?)
}
