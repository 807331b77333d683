//! `evalwave cleanup`: deletes the sandboxes that a run created and could not delete, and finishes its comment.

use anyhow::anyhow;
use camino::{Utf8Path, Utf8PathBuf};

use super::arguments::given;
use super::arms::Driver;
use super::context::Context;
use super::output::newest;
use super::{Failure, action, engine, measure, tell};
use crate::model::layout::{BASELINE_DIR, CONFIRM_DIR};
use crate::model::{ExitCode, Whereabouts, with_causes};
use crate::store::Sandboxes;

/// Cleans up after the run in `named`, or after the newest one. What could not be is exit code 3; another call takes it
/// up again.
pub(super) fn cleanup(
    named: Option<&Utf8Path>,
    config: Option<&Utf8Path>,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let directory = match given(named) {
        Some(named) => context.absolute(named),
        None => newest(context)
            .ok_or_else(|| anyhow!("cannot find a run to clean up after\nname its directory"))?,
    };
    if !directory.is_dir() {
        return Err(anyhow!("cannot find the run directory `{directory}`").into());
    }
    let driver = Driver::new()?;
    let left = delete_left(&directory, config, &driver, context);
    let had_comment = action::cleanup(&directory, context)?;
    if left == Left::Nothing && !had_comment {
        tell("nothing to clean up");
    }
    Ok(match left {
        Left::Some => ExitCode::Incomplete,
        Left::Nothing | Left::Deleted => ExitCode::Success,
    })
}

/// What there was to delete after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Left {
    Nothing,
    /// It is not there any more.
    Deleted,
    /// It, or a part of it, is there still, or that is not known.
    Some,
}

/// Deletes the sandboxes that a run has left, and says what became of them.
pub(super) fn delete_left(
    directory: &Utf8Path,
    config: Option<&Utf8Path>,
    driver: &Driver,
    context: &Context,
) -> Left {
    let each = arms(directory).map(|directory| {
        delete(&directory, config, driver, context).unwrap_or_else(|failure| {
            let why = with_causes(failure.error.as_ref());
            tell(&format!(
                "error: cannot tell whether anything of `{directory}` is left: {why}"
            ));
            Left::Some
        })
    });
    each.into_iter().max().unwrap_or(Left::Nothing)
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

fn delete(
    directory: &Utf8Path,
    config: Option<&Utf8Path>,
    driver: &Driver,
    context: &Context,
) -> Result<Left, Failure> {
    let Some(mut sandboxes) = Sandboxes::open(directory)? else {
        return Ok(Left::Nothing);
    };
    measure::forget(sandboxes.run_id(), context);
    let left = sandboxes.left();
    // A run that was killed between two sandboxes has left what they are made in.
    let is_here = matches!(sandboxes.whereabouts(), Whereabouts::Local { .. });
    if left.is_empty() && !is_here {
        return Ok(Left::Nothing);
    }
    let reaper = engine::reaper(sandboxes.whereabouts(), sandboxes.run_id(), config, context)?;
    let reaped = driver.finish(reaper.reap(sandboxes.run_id(), &left))?;
    if reaped.deleted > 0 {
        tell(&format!("deleted {} of `{directory}`", counted(reaped.deleted)));
    }
    let gone = left.len().saturating_sub(reaped.deleted + reaped.failed.len());
    if gone > 0 {
        tell(&format!("gone already: {} of `{directory}`", counted(gone)));
    }
    if let Some(first) = reaped.failed.first() {
        let (many, why) = (counted(reaped.failed.len()), with_causes(first));
        tell(&format!("error: still there: {many} of `{directory}`: {why}"));
        return Ok(Left::Some);
    }
    sandboxes.all_gone()?;
    Ok(match left.is_empty() {
        true => Left::Nothing,
        false => Left::Deleted,
    })
}

fn counted(sandboxes: usize) -> String {
    match sandboxes {
        1 => "1 sandbox".to_owned(),
        many => format!("{many} sandboxes"),
    }
}
