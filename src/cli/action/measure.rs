//! The run of a step: plan, baseline, comment, run, and everything that is told of it. GitHub may answer as it likes:
//! the run, its documents and its exit code are the same.

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::baseline::{Looked, Looking};
use super::conversation::{Conversation, Silence, is_wanted};
use super::findings;
use super::inputs::Inputs;
use super::narrator::Narrator;
use super::publish::Unfinished;
use super::step::Step;
use super::subject::{self, Subject};
use crate::cli::arguments::SelectionArguments;
use crate::cli::baseline::Baseline;
use crate::cli::conclude::{self, Judging};
use crate::cli::context::{self, Context};
use crate::cli::job::{self, Means};
use crate::cli::output::Output;
use crate::cli::sources::Suite;
use crate::cli::{Failure, REPORT_FILE, execution, keep};
use crate::compare::Known;
use crate::config::{BaselineConfig, CommentMode, Config};
use crate::github::comment::{State, Target};
use crate::github::event::Invocation;
use crate::github::log::Loudness;
use crate::github::{Client, Secret};
use crate::model::{ExitCode, Run, RunPlan, Summary, with_causes};
use crate::runner::{self, Job};
use crate::sandbox::local::harden_self;
use crate::store::RunDir;
use crate::{aggregate, catalog, report};

/// How often a run that goes on says how far it is.
const HEARTBEAT: Duration = Duration::from_secs(60);

/// Runs the suite as the inputs and the event say.
pub(super) fn measure(
    inputs: &Inputs,
    invocation: &Invocation,
    step: &mut Step,
    context: &Context,
) -> Result<ExitCode, Failure> {
    subject::refuse_dangerous(invocation, inputs.accepts_untrusted)?;
    let selection = selection(inputs, invocation, step);
    let suite = Suite::read(&selection, &[], context)?;
    refuse_unbuilt(&suite.config)?;
    let missing = job::missing_secrets(&suite.config, context);
    if let Some(why) = subject::withheld(invocation, &missing) {
        skip(&why, step);
        return Ok(ExitCode::Success);
    }
    let plan = suite.plan(&selection)?;
    let measurement = Measurement {
        skipped: selection.is_skipped(&plan),
        inputs,
        invocation,
        suite: &suite,
        context,
    };
    execution::runtime()?.block_on(measurement.run(plan, step))
}

/// What a terminal can do and a step cannot yet.
fn refuse_unbuilt(config: &Config) -> Result<(), Failure> {
    let asked = if config.confirm > 0 {
        "confirm"
    } else if matches!(config.baseline, BaselineConfig::Measure(_)) {
        "baseline: measure"
    } else {
        return Ok(());
    };
    Err(anyhow::anyhow!(
        "`{asked}` is not built into the action yet
leave it out, or use `evalwave run`"
    )
    .into())
}

/// What the inputs select.
fn selection(inputs: &Inputs, invocation: &Invocation, step: &Step) -> SelectionArguments {
    let changed_since = inputs.changed_only.then(|| invocation.changed_since()).flatten();
    if inputs.changed_only && changed_since.is_none() {
        step.say("notice: `changed-only`: this event has nothing that changes could be counted from: every pair runs");
    }
    SelectionArguments {
        config: inputs.config.clone(),
        shard: inputs.shard.map(|shard| shard.to_string()),
        changed_since: changed_since.map(str::to_owned),
        ..SelectionArguments::default()
    }
}

fn skip(why: &str, step: &Step) {
    step.annotate(Loudness::Notice, "evals skipped", why);
    step.outputs(&[("conclusion", "skipped".to_owned())]);
    step.summarize(|_| {
        format!(
            "### Evals: skipped\n{}\n",
            report::code(why).replace("<code>", "").replace("</code>", "")
        )
    });
}

struct Measurement<'a> {
    inputs: &'a Inputs,
    invocation: &'a Invocation,
    suite: &'a Suite,
    context: &'a Context,
    /// Nothing is selected, and that is fine.
    skipped: bool,
}

/// What is settled with GitHub before the run.
struct Prepared {
    subject: Subject,
    client: Option<Client>,
    looked: Looked,
    /// What could not be done, for the one warning.
    not_done: Vec<String>,
}

impl Measurement<'_> {
    async fn run(&self, plan: RunPlan, step: &mut Step) -> Result<ExitCode, Failure> {
        let cancel = CancellationToken::new();
        let watching = tokio::spawn(execution::cancel_on_signal(cancel.clone()));
        let Some(prepared) = cancel.run_until_cancelled(self.prepare()).await else {
            step.outputs(&[("conclusion", "cancelled".to_owned())]);
            return Ok(ExitCode::Cancelled);
        };
        let Prepared {
            subject,
            client,
            looked,
            mut not_done,
        } = prepared?;
        let started_at = context::now();
        let output = self.output(context::new_run_id(started_at));
        let token = self.inputs.token.as_deref();
        let hidden: Vec<&str> = token.into_iter().collect();
        let config = &self.suite.config;
        let known = conclude::known(
            &config.history,
            &config.flaky,
            Some(config.policy),
            started_at,
            self.context,
        )?;
        let means = Means::gather(config, &hidden, self.context)?;
        let workspace = job::workspace(config, &self.suite.root, &output.roots())?;
        let run_id = output.run_id.clone();
        let job = job::job(config, &means, workspace, plan, run_id, started_at)?;
        step.hide(job.secrets.iter().map(|(_, value)| value.as_str()));
        harden_self();
        let backend = execution::backend(config, &job, self.context)?;
        let directory = RunDir::create(&output.directory, false, &job.plan, &config.attempt)?;
        // Known from here on, so that what there is is kept even if this process is killed.
        step.outputs(&[
            ("artifact", self.artifact()),
            ("results-dir", output.directory.to_string()),
        ]);
        step.say(&format!(
            "{} pairs x {} attempts, {}, concurrency {}",
            job.plan.pairs.len(),
            job.plan.runs,
            job.plan.strategy,
            job.plan.concurrency.reason
        ));
        let talk = self.conversation(client, &subject).map(Arc::new);
        let narrator = Narrator::new(directory, step.clone(), self.invocation.debug, &job);
        let narrator = Arc::new(narrator);
        let live = Live {
            talk: talk.clone(),
            mode: self.suite.config.report.comment,
            narrator: Arc::clone(&narrator),
            url: self.invocation.run_url(),
            step: step.clone(),
        };
        if let (Some(talk), CommentMode::Always) = (&talk, live.mode) {
            Unfinished::of(talk, self.invocation).write(&narrator.keeper.directory);
        }
        let run = live.drive(job, backend, cancel.clone()).await;
        watching.abort();

        let (summary, exit) = self.conclude(&run, &subject, looked, known);
        let kept = keep(&narrator.keeper.directory, &summary)?;
        step.outputs(&findings::outputs(
            &summary,
            narrator.keeper.directory.path(),
            REPORT_FILE,
        ));
        step.summarize(|limit| report::markdown(&summary, limit));
        for (loudness, title, message) in findings::annotations(&summary) {
            step.annotate(loudness, &title, &message);
        }
        if let Some(talk) = &talk {
            let last = LastWord {
                talk,
                mode: live.mode,
                exit,
                summary: &summary,
                narrator: &narrator,
                step,
                invocation: self.invocation,
            };
            not_done.extend(last.say().await);
        }
        if !not_done.is_empty() {
            step.annotate(
                Loudness::Warning,
                "GitHub did not do all that it was asked",
                &not_done.join("\n"),
            );
        }
        step.say(&report::text(&summary, false));
        let lost = !kept || narrator.keeper.has_lost();
        if lost {
            let message = "not everything of this run could be written: its directory is incomplete";
            step.annotate(Loudness::Warning, "evalwave", message);
        }
        Ok(execution::exit_with(exit, lost))
    }

    async fn prepare(&self) -> Result<Prepared, Failure> {
        let mut not_done = Vec::new();
        let token = self.inputs.token.clone().map(Secret::new);
        let client = Client::new(&self.invocation.api_url, token.as_ref());
        let client = match client {
            Ok(client) => Some(client),
            Err(error) => {
                not_done.push(format!("nothing was asked of it: {}", with_causes(&error)));
                None
            }
        };
        let commit = catalog::commit(&self.suite.root);
        let subject = match (&self.inputs.approved, &client) {
            (None, _) => Subject::of_event(self.invocation, commit.as_deref()),
            (Some(approved), Some(client)) => {
                Subject::of_approved(approved, self.invocation, client, commit.as_deref()).await?
            }
            (Some(_), None) => {
                return Err(anyhow::anyhow!(
                    "cannot ask GitHub for the pull request: nothing was run\n{}",
                    not_done.join("\n")
                )
                .into());
            }
        };
        let looking = Looking {
            suite: self.suite,
            named: self.inputs.names_baseline,
            subject: &subject,
            invocation: self.invocation,
            client: client.as_ref(),
            context: self.context,
        };
        let looked = looking.look().await?;
        not_done.extend(looked.failed.clone());
        Ok(Prepared {
            subject,
            client,
            looked,
            not_done,
        })
    }

    fn output(&self, run_id: String) -> Output {
        let named = self.inputs.output_dir.clone().unwrap_or_else(|| {
            let temporary = self.context.variable("RUNNER_TEMP").map(Utf8PathBuf::from);
            temporary
                .unwrap_or_else(|| self.context.temp_dir.clone())
                .join("evalwave")
                .join(&run_id)
        });
        Output::of(Some(&named), run_id, self.context)
    }

    fn artifact(&self) -> String {
        self.inputs.artifact.clone().unwrap_or_else(|| {
            let suite = &self.suite.config.suite.name;
            match self.inputs.shard {
                None => format!("evalwave-{suite}"),
                Some(shard) => format!("evalwave-{suite}-{}", shard.to_string().replace('/', "-of-")),
            }
        })
    }

    /// Where the comment goes. A part of a suite has none: it would say less than the whole does.
    fn conversation(&self, client: Option<Client>, subject: &Subject) -> Option<Conversation> {
        let never = self.suite.config.report.comment == CommentMode::Never;
        if never || self.inputs.shard.is_some() {
            return None;
        }
        Some(Conversation {
            client: client?,
            target: Target {
                repository: self.invocation.repository.clone(),
                pull_request: subject.pull_request?,
            },
            suite: self.suite.config.suite.name.clone(),
            run_id: self.invocation.run_id,
            run_attempt: self.invocation.run_attempt,
            head: subject.head.clone().unwrap_or_default(),
        })
    }

    fn conclude(&self, run: &Run, subject: &Subject, looked: Looked, known: Known) -> (Summary, ExitCode) {
        let mut summary = aggregate::summarize(run);
        summary.run.url = Some(self.invocation.run_url());
        if run.plan.concurrency.bounded {
            summary.notices.push(execution::bounded(&run.plan));
        }
        summary.notices.extend(looked.notes);
        summary.notices.extend(subject.note.clone());
        let baseline = match looked.baseline {
            Baseline::Known(baseline) => Some(baseline),
            Baseline::None(why) => {
                summary.notices.push(why);
                None
            }
            Baseline::Measure(_) => None,
        };
        let judging = Judging {
            config: &self.suite.config,
            run,
            summary,
            baseline,
            known,
        };
        judging.conclude(run.cancelled, self.skipped)
    }
}

/// A run that goes on, and what is told of it meanwhile.
struct Live {
    talk: Option<Arc<Conversation>>,
    mode: CommentMode,
    narrator: Arc<Narrator>,
    url: String,
    step: Step,
}

impl Live {
    async fn drive(
        &self,
        job: Job,
        backend: Arc<dyn crate::sandbox::Backend>,
        cancel: CancellationToken,
    ) -> Run {
        let recorder = Arc::clone(&self.narrator) as Arc<dyn runner::Recorder>;
        let running = runner::run(Arc::new(job), backend, recorder, cancel.clone());
        tokio::pin!(running);
        let mut beat = tokio::time::interval(HEARTBEAT);
        let mut writing: Option<JoinHandle<()>> = None;
        let mut first = true;
        let run = loop {
            tokio::select! {
                run = &mut running => break run,
                _ = beat.tick() => {
                    let busy = writing.as_ref().is_some_and(|writing| !writing.is_finished());
                    let Some(mut summary) = self.narrator.so_far() else { continue };
                    summary.run.url = Some(self.url.clone());
                    if !std::mem::take(&mut first) {
                        self.step.say(&report::progress(&summary));
                    }
                    if !busy && self.mode == CommentMode::Always {
                        writing = self.talk.clone().map(|talk| tokio::spawn(say_running(talk, summary)));
                    }
                }
            }
        };
        // Two requests for one comment at once could make two of it. What hangs is not waited for.
        if let Some(mut writing) = writing {
            let limit = Duration::from_millis(if cancel.is_cancelled() { 500 } else { 10_000 });
            if tokio::time::timeout(limit, &mut writing).await.is_err() {
                writing.abort();
            }
        }
        run
    }
}

/// What goes wrong here is told with the last word.
async fn say_running(talk: Arc<Conversation>, summary: Summary) {
    let _ = talk
        .write(State::Running, false, &|limit| report::running(&summary, limit))
        .await;
}

/// The comment of a run that has ended.
struct LastWord<'a> {
    talk: &'a Conversation,
    mode: CommentMode,
    exit: ExitCode,
    summary: &'a Summary,
    narrator: &'a Narrator,
    step: &'a Step,
    invocation: &'a Invocation,
}

impl LastWord<'_> {
    /// Says it; gives what could not be done, if that is not normal.
    async fn say(&self) -> Option<String> {
        let render = |limit| self.step.clean(&report::markdown(self.summary, limit));
        if !is_wanted(self.mode, self.summary, self.exit) {
            return match self.talk.amend(&render).await {
                Ok(url) => {
                    self.step.outputs(&[("comment-url", url.unwrap_or_default())]);
                    None
                }
                // Nothing was to be said, so nobody misses it.
                Err(Silence::Forbidden(_)) => None,
                Err(Silence::Failed(why)) => Some(format!("an earlier comment was not renewed: {why}")),
            };
        }
        let unfinished = Unfinished::of(self.talk, self.invocation);
        unfinished.write(&self.narrator.keeper.directory);
        let cancelled = self.exit == ExitCode::Cancelled;
        let state = if cancelled { State::Partial } else { State::Final };
        match self.talk.write(state, cancelled, &render).await {
            Ok(url) => {
                Unfinished::remove(self.narrator.keeper.directory.path());
                self.step.outputs(&[("comment-url", url)]);
                None
            }
            Err(Silence::Forbidden(why)) => {
                Unfinished::remove(self.narrator.keeper.directory.path());
                let message = format!(
                    "{why}\nthe step's summary and the artifact say the same; `pull-requests: write` allows the comment"
                );
                self.step.annotate(Loudness::Notice, "no comment", &message);
                None
            }
            Err(Silence::Failed(why)) => Some(format!("the comment was not written: {why}")),
        }
    }
}
