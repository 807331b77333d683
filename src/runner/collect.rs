//! Brings an attempt's result and files out of its sandbox. What comes out is an archive that nobody vouches for.

mod archive;
mod kept;
mod result;

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use tokio_util::sync::CancellationToken;

use super::Job;
use crate::aggregate::{Failure, Found};
use crate::config::AttemptConfig;
use crate::config::template::{PathGlob, UnknownPlaceholder, Values, plain};
use crate::model::Reading;
use crate::sandbox::Sandbox;

/// Where an attempt's result and files are, relative to the workspace.
pub(super) struct Paths {
    /// Where the result is; `None` where the exit code alone decides.
    pub(super) result: Option<PathGlob>,
    keep: Option<Utf8PathBuf>,
}

impl Paths {
    /// Fills in an attempt's values.
    pub(super) fn of(attempt: &AttemptConfig, values: &Values) -> Result<Self, UnknownPlaceholder> {
        let result = attempt.result.as_ref();
        let keep = attempt.keep.as_ref();
        let keep = keep.map(|keep| keep.path.render(values)).transpose()?;
        Ok(Self {
            result: result.map(|result| result.render_path(values)).transpose()?,
            keep: keep.map(|keep| Utf8PathBuf::from(plain(&keep))),
        })
    }
}

/// What was brought out.
#[derive(Default)]
pub(super) struct Collected {
    /// The results in name order of their files: no more than the attempts that were asked for.
    pub(super) results: Vec<Located>,
    /// Where a result was looked for.
    pub(super) expected_at: String,
    /// What a reader should know: files left out.
    pub(super) notes: Vec<String>,
}

/// A result, and where it lay.
pub(super) struct Located {
    /// The path in the workspace.
    pub(super) path: String,
    /// What lay there.
    pub(super) result: ResultFile,
    /// See [`crate::model::AttemptDetails::harness_file`].
    pub(super) harness_file: Option<String>,
}

impl Located {
    /// Where there is no file.
    pub(super) fn missing(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            result: ResultFile::Missing,
            harness_file: None,
        }
    }
}

/// What lay at a result's path.
pub(super) enum ResultFile {
    /// No file.
    Missing,
    /// A file that is no valid result, and why.
    Unreadable(String),
    /// A valid result.
    Read(Box<Reading>),
}

impl ResultFile {
    /// As it is judged.
    pub(super) fn found(&self) -> Found<'_> {
        match self {
            Self::Missing => Found::Nothing,
            Self::Unreadable(why) => Found::Unreadable(why),
            Self::Read(reading) => Found::Reading(reading),
        }
    }

    /// The reading, where there is one.
    pub(super) fn into_reading(self) -> Option<Box<Reading>> {
        match self {
            Self::Read(reading) => Some(reading),
            Self::Missing | Self::Unreadable(_) => None,
        }
    }
}

/// Brings the result and the kept files into `directory`.
///
/// # Errors
/// The result could not be brought out. Files that could not are a note: the result stands without them.
pub(super) async fn collect(
    sandbox: &mut dyn Sandbox,
    paths: &Paths,
    job: &Arc<Job>,
    directory: &Utf8Path,
) -> Result<Collected, Failure> {
    let mut collected = Collected::default();
    let given_up = CancellationToken::new();
    let _until_it_is_over = given_up.clone().drop_guard();
    if let Some(path) = &paths.result {
        collected = result::collect(sandbox, path, job, directory, &given_up).await?;
    }
    if let Some(keep) = &paths.keep {
        match kept::collect(sandbox, keep, job, directory, &given_up).await {
            Ok(notes) => collected.notes.extend(notes),
            Err(why) => collected.notes.push(format!("`{keep}` was not kept: {why}")),
        }
    }
    Ok(collected)
}

/// Work on the disk goes on though nobody waits for it any more. It must not write then: the directory may be another
/// try's.
fn still_wanted(given_up: &CancellationToken) -> std::io::Result<()> {
    match given_up.is_cancelled() {
        true => Err(std::io::Error::other("the try has ended")),
        false => Ok(()),
    }
}
