//! The action's `command: install`: the steps after it find `evalwave` on their PATH.

use anyhow::{Context as _, anyhow};

use super::step::Step;
use crate::cli::Failure;
use crate::cli::context::Context;
use crate::model::ExitCode;

/// Adds this program's directory to the PATH of the steps that follow.
pub(super) fn install(step: &Step, context: &Context) -> Result<ExitCode, Failure> {
    let program = &context.program;
    let expected = format!("evalwave{}", std::env::consts::EXE_SUFFIX);
    if program.file_name() != Some(&expected) {
        return Err(anyhow!(
            "cannot install `{program}`: steps would not find `evalwave` by that name\ngive `binary-path` a file called `{expected}`"
        )
        .into());
    }
    let directory = program.parent().context("this program lies in no directory")?;
    step.add_path(directory)?;
    step.say(&format!(
        "evalwave {} is on the PATH of the steps that follow: {directory}",
        env!("CARGO_PKG_VERSION")
    ));
    Ok(ExitCode::Success)
}
