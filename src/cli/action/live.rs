//! What is told of a run while it goes on: the log, and a comment that says how far it is. Decides nothing.

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use tokio::sync::SetOnce;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::conversation::Conversation;
use super::narrator::Narrator;
use super::publish::Unfinished;
use super::step::Step;
use crate::cli::arms::Driver;
use crate::cli::recorder::{Audience, Show};
use crate::github::comment::State;
use crate::report;
use crate::runner::Job;

/// How often a run that goes on says how far it is.
const HEARTBEAT: Duration = Duration::from_secs(60);

/// The step's own run, and those that whoever follows it hears of.
pub(super) struct Live {
    pub(super) step: Step,
    pub(super) debug: bool,
    /// The name of the artifact that the run is kept as.
    pub(super) artifact: String,
    /// The page of the workflow run.
    pub(super) url: String,
    /// Where the run is told while it goes on.
    pub(super) talk: Option<Arc<Conversation>>,
    /// The step's own run, once it is about to start.
    head: SetOnce<Arc<Narrator>>,
    over: CancellationToken,
}

impl Live {
    pub(super) fn new(
        step: Step,
        debug: bool,
        artifact: String,
        url: String,
        talk: Option<Arc<Conversation>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            step,
            debug,
            artifact,
            url,
            talk,
            head: SetOnce::new(),
            over: CancellationToken::new(),
        })
    }

    /// Says once a minute how far the run is, until it is over.
    pub(super) async fn beat(self: Arc<Self>) {
        let head = tokio::select! {
            () = self.over.cancelled() => return,
            head = self.head.wait() => head,
        };
        let mut beat = tokio::time::interval(HEARTBEAT);
        let mut has_begun = false;
        loop {
            tokio::select! {
                () = self.over.cancelled() => return,
                _ = beat.tick() => {}
            }
            let mut summary = head.so_far();
            summary.run.url = Some(self.url.clone());
            if std::mem::replace(&mut has_begun, true) {
                self.step.say(&head.heartbeat());
            }
            if let Some(talk) = &self.talk {
                // What goes wrong here is told with the last word.
                let render = |limit| report::running(&summary, limit);
                let _ = talk.write(State::Running, false, &render).await;
            }
        }
    }

    /// Ends the beat. Two requests for one comment at once could make two of it, so the last one is waited for, but not
    /// for long.
    pub(super) fn end(&self, mut beating: JoinHandle<()>, driver: &Driver) {
        self.over.cancel();
        let limit = Duration::from_millis(if driver.is_cancelled() { 500 } else { 10_000 });
        let ended = driver.finish(async { tokio::time::timeout(limit, &mut beating).await });
        if ended.is_err() {
            beating.abort();
        }
    }
}

impl Audience for Live {
    fn attend(&self, name: &'static str, job: &Job, directory: &Utf8Path) -> Arc<dyn Show> {
        let narrator = Arc::new(Narrator::new(name, job, directory, self.step.clone(), self.debug));
        if name.is_empty() {
            // Known from here on, so that what there is is kept even if this process is killed.
            self.step.outputs(&[
                ("artifact", self.artifact.clone()),
                ("results-dir", directory.to_string()),
            ]);
            self.step.say(&format!(
                "{} pairs x {} attempts, {}, concurrency {}",
                job.plan.pairs.len(),
                job.plan.runs,
                job.plan.strategy,
                job.plan.concurrency.reason
            ));
            if let Some(talk) = &self.talk {
                Unfinished::of(talk, &self.url).write(directory);
            }
            // There is one run of the step's own.
            let _ = self.head.set(Arc::clone(&narrator));
        }
        narrator
    }
}
