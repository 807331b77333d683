//! The run of a step: plan, baseline, comment, run, and everything that is told of it. GitHub may answer as it likes:
//! the suite runs and its documents are written, and only what is compared depends on an answer.

use std::sync::Arc;

use anyhow::anyhow;
use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;

use super::baseline::{Looked, Looking};
use super::conversation::{Conversation, Silence, is_wanted};
use super::findings;
use super::inputs::Inputs;
use super::live::Live;
use super::publish::Unfinished;
use super::rerun::{Left, Rerun};
use super::step::Step;
use super::subject::{self, Revision, Subject};
use crate::cli::arguments::SelectionArguments;
use crate::cli::arms::{Driver, Occupied};
use crate::cli::baseline::Baseline;
use crate::cli::context::{self, Context};
use crate::cli::execution::{Done, Execution, LOST};
use crate::cli::job::{self, Means};
use crate::cli::output::Output;
use crate::cli::past::Past;
use crate::cli::sources::Suite;
use crate::cli::{Failure, REPORT_FILE, conclude, engine};
use crate::compare::Known;
use crate::config::CommentMode;
use crate::github::comment::{State, Target};
use crate::github::event::Invocation;
use crate::github::log::Loudness;
use crate::github::{Client, Secret};
use crate::model::{ExitCode, RunPlan, with_causes};
use crate::{report, store};

/// Runs the suite as the inputs and the event say.
pub(super) fn measure(
    inputs: &Inputs,
    invocation: &Invocation,
    step: &mut Step,
    context: &Context,
) -> Result<ExitCode, Failure> {
    subject::refuse_dangerous(invocation, inputs.accepts_untrusted)?;
    let selection = selection(inputs, invocation, step);
    let driver = Driver::new()?;
    let suite = Suite::read(&selection, &[], &driver, context)?;
    driver.set_out();
    if skips(&suite, invocation, step, context) {
        return Ok(ExitCode::Success);
    }
    engine::check(&suite.config.sandbox, context)?;
    let measurement = Measurement {
        selection: &selection,
        inputs,
        invocation,
        suite: &suite,
        context,
    };
    measurement.run(&driver, step)
}

/// Whether the suite needs secrets that GitHub withholds here; then says so, and how it can be run.
pub(super) fn skips(suite: &Suite, invocation: &Invocation, step: &Step, context: &Context) -> bool {
    let mut missing = job::missing_secrets(&suite.config, context);
    let needed = engine::missing(&suite.config.sandbox, context);
    missing.extend(needed.iter().map(|name| format!("`{name}`")));
    let Some(why) = subject::withheld(invocation, &missing) else {
        return false;
    };
    step.annotate(Loudness::Notice, "evals skipped", &why);
    step.outputs(&[("conclusion", "skipped".to_owned())]);
    step.summarize(|_| format!("### Evals: skipped\n{why}\n"));
    true
}

/// What the inputs select.
fn selection(inputs: &Inputs, invocation: &Invocation, step: &Step) -> SelectionArguments {
    let changed_since = inputs.changed_only.then(|| invocation.changed_since()).flatten();
    if inputs.changed_only && changed_since.is_none() {
        step.say(
            "notice: `changed-only`: this event has nothing that changes could be counted from: every pair runs",
        );
    }
    SelectionArguments {
        config: inputs.config.clone(),
        shard: inputs.shard.map(|shard| shard.to_string()),
        changed_since: changed_since.map(str::to_owned),
        ..SelectionArguments::default()
    }
}

pub(super) struct Measurement<'a> {
    pub(super) inputs: &'a Inputs,
    pub(super) invocation: &'a Invocation,
    pub(super) suite: &'a Suite,
    pub(super) context: &'a Context,
    pub(super) selection: &'a SelectionArguments,
}

/// What is settled with GitHub beforehand.
pub(super) struct Prepared {
    pub(super) subject: Subject,
    pub(super) client: Option<Client>,
    pub(super) looked: Looked,
    /// What could not be done, for the one warning.
    pub(super) not_done: Vec<String>,
}

impl Measurement<'_> {
    fn run(&self, driver: &Driver, step: &mut Step) -> Result<ExitCode, Failure> {
        let config = &self.suite.config;
        let started_at = context::now();
        let token: Vec<&str> = self.inputs.token.as_deref().into_iter().collect();
        let means = Means::gather(config, &token, self.context)?;
        step.hide(means.secrets.iter().map(|(_, value)| value.as_str()));
        self.suite.check(self.selection)?;
        let Some((prepared, known)) = self.settle(started_at, driver, step)? else {
            return Ok(ExitCode::Cancelled);
        };
        let Prepared {
            subject,
            client,
            looked,
            not_done,
        } = prepared;
        let named = self.inputs.names_baseline;
        let past = Past::of(self.suite, named, &looked.baseline, &known, self.context);
        let plan = self.suite.plan(self.selection, &past)?;
        let output = self.output(context::new_run_id(started_at));
        let mut notices = looked.notes;
        notices.extend(subject.note.clone());
        let (occupied, output, told) =
            self.take_over(&plan, &looked.baseline, client.as_ref(), output, driver)?;
        notices.extend(told);
        if driver.is_cancelled() {
            step.outputs(&[("conclusion", "cancelled".to_owned())]);
            return Ok(ExitCode::Cancelled);
        }
        let talk = self.conversation(client, &subject).map(Arc::new);
        let url = self.invocation.run_url();
        let live = Live::new(
            step.clone(),
            self.invocation.debug,
            self.artifact(),
            url.clone(),
            talk.clone()
                .filter(|_| config.report.comment == CommentMode::Always),
        );
        let execution = Execution {
            skipped: self.selection.is_skipped(&plan),
            suite: self.suite,
            plan,
            baseline: looked.baseline,
            known,
            means: &means,
            output: &output,
            occupied,
            url: Some(url),
            started_at,
            audience: live.as_ref(),
            context: self.context,
        };
        let beating = driver.start(Arc::clone(&live).beat());
        let done = execution.run(driver, notices);
        live.end(beating, driver);
        let done = done?;

        self.tell(&done, &output.directory, talk.as_deref(), not_done, driver, step);
        Ok(done.exit(false))
    }

    /// Goes on where an earlier attempt of this job has stopped, if there was one; and what is to be told of it.
    fn take_over(
        &self,
        plan: &RunPlan,
        baseline: &Baseline,
        client: Option<&Client>,
        output: Output,
        driver: &Driver,
    ) -> Result<(Occupied, Output, Vec<String>), Failure> {
        let fresh = |output| Ok((Occupied::Refuse, output, Vec::new()));
        let (Some(client), 2..) = (client, self.invocation.run_attempt) else {
            return fresh(output);
        };
        if store::holds_run(&output.directory) {
            return fresh(output);
        }
        let rerun = Rerun {
            client,
            invocation: self.invocation,
            artifact: &self.artifact(),
            directory: &output.directory,
            run_id: &output.run_id,
            suite: self.suite,
            baseline,
            context: self.context,
        };
        let left = driver.wait(rerun.fetch(plan, &Revision::of(self.suite)));
        match left {
            Some(Left::Run { notes }) => {
                let run_id = store::run_id(&output.directory)?;
                let output = Output::of(Some(&output.directory), run_id, self.context);
                Ok((Occupied::Resume, output, notes))
            }
            Some(Left::Nothing(why)) => Ok((Occupied::Refuse, output, vec![why])),
            // Cancelled: nothing is run.
            None => fresh(output),
        }
    }

    /// Says on GitHub what has become of a run.
    pub(super) fn tell(
        &self,
        done: &Done,
        directory: &Utf8Path,
        talk: Option<&Conversation>,
        mut not_done: Vec<String>,
        driver: &Driver,
        step: &Step,
    ) {
        self.publish(done, directory, step);
        if let Some(talk) = talk {
            let last = LastWord {
                talk,
                mode: self.suite.config.report.comment,
                done,
                directory,
                step,
                url: &self.invocation.run_url(),
            };
            not_done.extend(driver.finish(last.say()));
        }
        if !not_done.is_empty() {
            let title = "GitHub did not do all that it was asked";
            step.annotate(Loudness::Warning, title, &not_done.join("\n"));
        }
        if done.lost {
            step.annotate(Loudness::Error, "evalwave", LOST);
        }
        step.say(&report::text(&done.summary, false));
    }

    /// Everything that needs no answer.
    fn publish(&self, done: &Done, directory: &Utf8Path, step: &Step) {
        step.outputs(&findings::outputs(&done.summary, directory, REPORT_FILE));
        step.summarize(|limit| report::markdown(&done.summary, limit));
        for (loudness, title, message) in findings::annotations(&done.summary) {
            step.annotate(loudness, &title, &message);
        }
    }

    /// What GitHub says before anything is done, and what is known besides the two sides; `None` where it is cancelled.
    pub(super) fn settle(
        &self,
        now: Timestamp,
        driver: &Driver,
        step: &Step,
    ) -> Result<Option<(Prepared, Known)>, Failure> {
        let config = &self.suite.config;
        let policy = Some(config.policy);
        let mut known = conclude::known(&config.history, &config.flaky, policy, now, self.context)?;
        let Some(prepared) = driver.wait(self.prepare()) else {
            step.outputs(&[("conclusion", "cancelled".to_owned())]);
            return Ok(None);
        };
        let mut prepared = prepared?;
        known.history.append(&mut prepared.looked.history);
        Ok(Some((prepared, known)))
    }

    async fn prepare(&self) -> Result<Prepared, Failure> {
        let mut not_done = Vec::new();
        let token = self.inputs.token.clone().map(Secret::new);
        let client = match Client::new(&self.invocation.api_url, token.as_ref()) {
            Ok(client) => Some(client),
            Err(error) => {
                not_done.push(format!("nothing was asked of it: {}", with_causes(&error)));
                None
            }
        };
        let revision = Revision::of(self.suite);
        let subject = match (&self.inputs.approved, &client) {
            (None, _) => Subject::of_event(self.invocation, &revision),
            (Some(approved), Some(client)) => {
                Subject::of_approved(approved, self.invocation, client, &revision).await?
            }
            (Some(_), None) => {
                let why = not_done.join("\n");
                return Err(anyhow!("cannot ask for the pull request: nothing was run\n{why}").into());
            }
        };
        let looking = Looking {
            suite: self.suite,
            named: self.inputs.names_baseline,
            artifact: self.artifact_of_whole(),
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
        let named = self.inputs.output_dir.clone();
        let named = named.unwrap_or_else(|| self.fresh_directory(&run_id));
        Output::of(Some(&named), run_id, self.context)
    }

    /// Where a run goes that is not told where.
    pub(super) fn fresh_directory(&self, run_id: &str) -> Utf8PathBuf {
        let temporary = self.context.variable("RUNNER_TEMP").map(Utf8PathBuf::from);
        let temporary = temporary.unwrap_or_else(|| self.context.temp_dir.clone());
        temporary.join("evalwave").join(run_id)
    }

    /// What the results are kept as.
    pub(super) fn artifact(&self) -> String {
        let named = self.inputs.artifact.clone();
        named.unwrap_or_else(|| self.artifact_of_whole() + &self.part())
    }

    /// What those of the whole suite are kept as, which is where a baseline is looked for.
    fn artifact_of_whole(&self) -> String {
        let named = self.inputs.artifact.as_deref();
        // A shard that is called otherwise than ours are does not say what the whole is called.
        let named = named.and_then(|name| name.strip_suffix(&self.part()));
        named.map_or_else(
            || format!("evalwave-{}", self.suite.config.suite.name),
            str::to_owned,
        )
    }

    /// What a shard's name has at its end.
    fn part(&self) -> String {
        let shard = self.inputs.shard.as_ref();
        shard.map_or_else(String::new, |shard| {
            format!("-{}", shard.to_string().replace('/', "-of-"))
        })
    }

    /// Where the comment goes. A part of a suite has none: it would say less than the whole does.
    pub(super) fn conversation(&self, client: Option<Client>, subject: &Subject) -> Option<Conversation> {
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
}

/// The comment of a run that has ended.
struct LastWord<'a> {
    talk: &'a Conversation,
    mode: CommentMode,
    done: &'a Done,
    directory: &'a Utf8Path,
    step: &'a Step,
    url: &'a str,
}

impl LastWord<'_> {
    /// Says it; gives what could not be done, if that is not normal.
    async fn say(&self) -> Option<String> {
        let summary = &self.done.summary;
        let render = |limit| self.step.clean(&report::markdown(summary, limit));
        if !is_wanted(self.mode, summary, self.done.exit != ExitCode::Success) {
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
        Unfinished::of(self.talk, self.url).write(self.directory);
        let cancelled = self.done.exit == ExitCode::Cancelled;
        let state = if cancelled { State::Partial } else { State::Final };
        match self.talk.write(state, cancelled, &render).await {
            Ok(url) => {
                Unfinished::remove(self.directory);
                self.step.outputs(&[("comment-url", url)]);
                None
            }
            Err(Silence::Forbidden(why)) => {
                Unfinished::remove(self.directory);
                let message = format!("{why}\nthe step's summary and the artifact say the same");
                self.step.annotate(Loudness::Notice, "no comment", &message);
                None
            }
            Err(Silence::Failed(why)) => Some(format!("the comment was not written: {why}")),
        }
    }
}
