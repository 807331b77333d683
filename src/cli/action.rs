//! `evalwave action`, what a step of a workflow calls, and `evalwave comment` and `evalwave cleanup`, which other steps
//! call: inputs and event in; a run, its outputs and its comment out.

mod baseline;
mod compare;
mod conversation;
mod findings;
mod inputs;
mod install;
mod live;
mod measure;
mod merge;
mod narrator;
mod publish;
mod rerun;
mod snapshot;
mod step;
mod subject;

use anyhow::{Context as _, anyhow};
use camino::Utf8Path;

use super::Failure;
use super::context::Context;
use crate::github::event::Invocation;
use crate::github::log::Loudness;
use crate::model::{ExitCode, with_causes};
use inputs::{Command, Inputs};
use step::Step;

/// No event is larger than this.
const MAX_EVENT_BYTES: u64 = 64 << 20;

/// Does what the inputs say; whatever goes wrong before anything runs is an annotation.
pub(super) fn action(context: &Context) -> ExitCode {
    let context = context.with_inputs();
    let mut step = Step::of(&context);
    act(&mut step, &context).unwrap_or_else(|failure| {
        step.annotate(Loudness::Error, "evalwave", &with_causes(failure.error.as_ref()));
        failure.exit
    })
}

fn act(step: &mut Step, context: &Context) -> Result<ExitCode, Failure> {
    let invocation = invocation(context)?;
    let inputs = Inputs::read(context)?;
    step.hide(inputs.token.as_deref());
    match &inputs.command {
        Command::Action => measure::measure(&inputs, &invocation, step, context),
        Command::Merge => merge::merge(&inputs, &invocation, step, context),
        Command::Install => install::install(step, context),
        Command::Compare => compare::compare(&inputs, step, context),
        Command::Comment => {
            let directory = inputs.output_dir.as_deref();
            let directory =
                directory.context("`command: comment` needs the run directory\nname it with `output-dir`")?;
            publish::publish(directory, &inputs, &invocation, step, context)
        }
        Command::Snapshot => snapshot::build(&inputs, &invocation, step, context),
    }
}

/// `evalwave comment`.
pub(super) fn comment(directory: &Utf8Path, context: &Context) -> Result<ExitCode, Failure> {
    let context = context.with_inputs();
    let invocation = invocation(&context)?;
    let inputs = Inputs::read(&context)?;
    let mut step = Step::of(&context);
    step.hide(inputs.token.as_deref());
    publish::publish(directory, &inputs, &invocation, &mut step, &context)
}

/// What `evalwave cleanup` does for a comment; gives whether there was one to finish. What cannot be finished is said; the
/// step before has the exit code that counts.
pub(super) fn cleanup(directory: &Utf8Path, context: &Context) -> Result<bool, Failure> {
    let context = context.with_inputs();
    let inputs = Inputs::read(&context)?;
    let mut step = Step::of(&context);
    step.hide(inputs.token.as_deref());
    publish::finish(directory, &inputs, &mut step, &context)
}

fn invocation(context: &Context) -> Result<Invocation, Failure> {
    let bytes = match context.variable("GITHUB_EVENT_PATH") {
        None => Vec::new(),
        Some(path) => {
            let path = context.absolute(Utf8Path::new(path));
            let size = fs_err::metadata(&path).context("cannot read the event")?.len();
            if size > MAX_EVENT_BYTES {
                return Err(
                    anyhow!("cannot read the event: {size} bytes are more than any event has").into(),
                );
            }
            fs_err::read(&path).context("cannot read the event")?
        }
    };
    Ok(Invocation::read(&context.environment, &bytes)?)
}
