//! The comment of this run: when it is written, and what is said where it cannot be. Knows no run.

use std::time::Duration;

use jiff::Timestamp;

use crate::cli::context;
use crate::config::CommentMode;
use crate::github::Client;
use crate::github::comment::{self, CommentError, Published, Stamp, State, Target};
use crate::model::{Summary, with_causes};

/// The last word gets so long, GitHub's rate limits included.
const PATIENCE: Duration = Duration::from_secs(120);
/// The same once the run is cancelled: 7.5 seconds after the first signal comes the second one.
const PATIENCE_IF_CANCELLED: Duration = Duration::from_millis(1500);

/// Where a run speaks, and as whom.
#[derive(Clone, Debug)]
pub(super) struct Conversation {
    pub(super) client: Client,
    pub(super) target: Target,
    pub(super) suite: String,
    pub(super) run_id: u64,
    pub(super) run_attempt: u32,
    pub(super) head: String,
}

/// What a comment that was not written is reported as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// It is normal: the token may not.
    Forbidden(String),
    /// It is not.
    Failed(String),
}

impl Conversation {
    /// Writes the comment, or writes it anew; gives its page.
    pub(super) async fn write(
        &self,
        state: State,
        cancelled: bool,
        render: &(dyn Fn(usize) -> String + Sync),
    ) -> Result<String, Silence> {
        let stamp = self.stamp(state, context::now());
        let writing = comment::publish(&self.client, &self.target, &stamp, render);
        let url = self.answer(cancelled, async { Ok(Some(writing.await?)) }).await;
        url.map(Option::unwrap_or_default)
    }

    /// Writes the comment anew where an earlier run has left one; gives its page.
    pub(super) async fn amend(
        &self,
        render: &(dyn Fn(usize) -> String + Sync),
    ) -> Result<Option<String>, Silence> {
        let stamp = self.stamp(State::Final, context::now());
        let writing = comment::update(&self.client, &self.target, &stamp, render);
        self.answer(false, writing).await
    }

    async fn answer(
        &self,
        cancelled: bool,
        writing: impl Future<Output = Result<Option<Published>, CommentError>>,
    ) -> Result<Option<String>, Silence> {
        let patience = if cancelled {
            PATIENCE_IF_CANCELLED
        } else {
            PATIENCE
        };
        match tokio::time::timeout(patience, writing).await {
            Ok(Ok(None)) => Ok(None),
            Ok(Ok(Some(
                Published::Created(url)
                | Published::Updated(url)
                | Published::Unchanged(url)
                | Published::Newer(url),
            ))) => Ok(Some(url)),
            Ok(Err(error @ CommentError::Forbidden(_))) => Err(Silence::Forbidden(with_causes(&error))),
            Ok(Err(error)) => Err(Silence::Failed(with_causes(&error))),
            Err(_) => Err(Silence::Failed(format!(
                "GitHub has not answered for {} s",
                patience.as_secs_f32()
            ))),
        }
    }

    fn stamp(&self, state: State, time: Timestamp) -> Stamp {
        Stamp {
            suite: self.suite.clone(),
            run_id: self.run_id,
            run_attempt: self.run_attempt,
            head: self.head.clone(),
            time,
            state,
        }
    }
}

/// Whether a run is worth a comment; `fails` where its step does.
pub(super) fn is_wanted(mode: CommentMode, summary: &Summary, fails: bool) -> bool {
    match mode {
        CommentMode::Always => true,
        CommentMode::Changes => summary.comparison.as_ref().is_some_and(|comparison| {
            !comparison.flips.pass_to_fail.is_empty() || !comparison.flips.fail_to_pass.is_empty()
        }),
        CommentMode::Failures => fails,
        CommentMode::Never => false,
    }
}
