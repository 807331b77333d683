//! `evalwave cleanup`: deletes the sandboxes that a run created and could not delete, and finishes its comment.

use anyhow::anyhow;
use camino::{Utf8Path, Utf8PathBuf};

use super::arms::Driver;
use super::context::Context;
use super::output::newest;
use super::{Failure, action, engine, tell};
use crate::model::layout::{BASELINE_DIR, CONFIRM_DIR};
use crate::model::{ExitCode, with_causes};
use crate::store::Sandboxes;

/// Cleans up after the run in `named`, or after the newest one. What could not be is exit code 3; another call takes it
/// up again.
pub(super) fn cleanup(
    named: Option<&Utf8Path>,
    config: Option<&Utf8Path>,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let directory = match named {
        Some(named) => context.absolute(named),
        None => newest(context)
            .ok_or_else(|| anyhow!("cannot find a run to clean up after\nname its directory"))?,
    };
    if !directory.is_dir() {
        return Err(anyhow!("cannot find the run directory `{directory}`").into());
    }
    let driver = Driver::new()?;
    let all = delete_left(&directory, config, &driver, context);
    let finished = action::cleanup(&directory, context)?;
    Ok(if all { finished } else { ExitCode::Incomplete })
}

/// Deletes the sandboxes that a run has left, and says so; gives whether none is left.
pub(super) fn delete_left(
    directory: &Utf8Path,
    config: Option<&Utf8Path>,
    driver: &Driver,
    context: &Context,
) -> bool {
    let mut all = true;
    for directory in arms(directory) {
        match delete(&directory, config, driver, context) {
            Ok(0) => {}
            Ok(1) => tell(&format!("deleted 1 sandbox of `{directory}`")),
            Ok(many) => tell(&format!("deleted {many} sandboxes of `{directory}`")),
            Err(failure) => {
                all = false;
                let why = with_causes(failure.error.as_ref());
                tell(&format!(
                    "error: the sandboxes of `{directory}` are not deleted: {why}"
                ));
            }
        }
    }
    all
}

/// Every directory in which a run of its own may be.
fn arms(directory: &Utf8Path) -> [Utf8PathBuf; 4] {
    let confirm = directory.join(CONFIRM_DIR);
    [
        directory.to_owned(),
        directory.join(BASELINE_DIR),
        confirm.join(BASELINE_DIR),
        confirm,
    ]
}

/// Gives how many it deleted.
fn delete(
    directory: &Utf8Path,
    config: Option<&Utf8Path>,
    driver: &Driver,
    context: &Context,
) -> Result<usize, Failure> {
    let Some(mut sandboxes) = Sandboxes::open(directory)? else {
        return Ok(0);
    };
    let left = sandboxes.left();
    if left.is_empty() {
        return Ok(0);
    }
    let reaper = engine::reaper(sandboxes.whereabouts(), sandboxes.run_id(), config, context)?;
    driver.finish(reaper.reap(sandboxes.run_id(), &left))?;
    sandboxes.all_gone()?;
    Ok(left.len())
}
