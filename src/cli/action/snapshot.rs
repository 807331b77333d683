//! The action's `command: snapshot`: builds the snapshot that the sandboxes of later runs start from.

use super::inputs::Inputs;
use super::step::Step;
use super::subject;
use crate::cli::arguments::SnapshotAction;
use crate::cli::arms::Driver;
use crate::cli::context::Context;
use crate::cli::sources::Suite;
use crate::cli::{Failure, engine, snapshot};
use crate::github::event::Invocation;
use crate::github::log::Loudness;
use crate::model::ExitCode;

/// Builds it, unless it is there.
pub(super) fn build(
    inputs: &Inputs,
    invocation: &Invocation,
    step: &Step,
    context: &Context,
) -> Result<ExitCode, Failure> {
    subject::refuse_dangerous(invocation, inputs.accepts_untrusted)?;
    let driver = Driver::new()?;
    let suite = Suite::read(&snapshot::selection(inputs.config.clone()), &[], &driver, context)?;
    let missing: Vec<String> = engine::missing(&snapshot::builder(&suite.config.sandbox), context)
        .iter()
        .map(|name| format!("`{name}`"))
        .collect();
    if let Some(why) = subject::withheld(invocation, &missing) {
        step.annotate(Loudness::Notice, "snapshot skipped", &why);
        step.outputs(&[("conclusion", "skipped".to_owned())]);
        return Ok(ExitCode::Success);
    }
    let exit = snapshot::act(SnapshotAction::Build, &suite, &driver, context)?;
    if exit == ExitCode::Success {
        step.outputs(&[("conclusion", "success".to_owned())]);
    }
    Ok(exit)
}
