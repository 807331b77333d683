//! The run directory: journal, attempts, published results, summary. Knows nothing of how a run is made.

mod journal;
mod merge;
mod publish;
mod resume;
mod sandboxes;

use std::collections::HashMap;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use serde::Serialize;

use crate::aggregate::Published;
use crate::config::{AttemptConfig, PublishConfig};
use crate::model::layout::{
    BASELINE_DIR, CONFIRM_DIR, JOURNAL_FILE, RAW_RESULTS, SANDBOXES_FILE, SUMMARY_FILE,
};
use crate::model::summary::SUMMARY_SCHEMA;
use crate::model::{
    AttemptDetails, AttemptId, AttemptRecord, Event, Findings, PairId, PlannedPair, Run, RunPlan, Summary,
};
use journal::Journal;

pub use journal::{Replayed, replay};
pub use merge::{PartDir, find_parts, merge};
pub use sandboxes::Sandboxes;

/// There as long as a comment goes on that this run has begun.
pub const COMMENT_FILE: &str = "comment.json";
/// An attempt's record.
const ATTEMPT_FILE: &str = "attempt.json";

/// A run directory that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The directory belongs to an earlier run.
    #[error("`{0}` already holds a run\nname another directory, or give --overwrite to replace it")]
    Occupied(Utf8PathBuf),
    /// The directory belongs to a run that has not ended.
    #[error("a run is being written into `{0}`\nwait for its end, or name another directory")]
    Running(Utf8PathBuf),
    /// The directory holds what a run would write, and no run.
    #[error("`{path}` holds `{entry}`, which belongs to no run\nname another directory, or move it away")]
    Foreign {
        /// The directory.
        path: Utf8PathBuf,
        /// What is there.
        entry: String,
    },
    /// The directory cannot be made.
    #[error("cannot create the run directory")]
    Create(#[source] std::io::Error),
    /// The directory is not a run's.
    #[error("`{0}` holds no run: neither {SUMMARY_FILE} nor {JOURNAL_FILE} is there")]
    NoRun(Utf8PathBuf),
    /// A document of a run is broken.
    #[error("cannot read `{path}`")]
    Broken {
        /// Which file.
        path: Utf8PathBuf,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// A summary of another version.
    #[error(
        "cannot read `{path}`: it is written as `{schema}`, and this version of evalwave reads `{SUMMARY_SCHEMA}`"
    )]
    Version {
        /// Which file.
        path: Utf8PathBuf,
        /// What it says of itself.
        schema: String,
    },
    /// A part that only its summary is left of.
    #[error("cannot join `{0}`: there is no {JOURNAL_FILE} in it, which every run of this version has")]
    NoJournal(Utf8PathBuf),
    /// A run that came no further than its directory.
    #[error("`{0}` holds nothing: its run died before it began\nrun it again with --overwrite")]
    Nothing(Utf8PathBuf),
    /// The directory's run measures something else.
    #[error("cannot resume `{path}`: {why}\nname another directory, or give --overwrite to replace the run")]
    Different {
        /// The directory.
        path: Utf8PathBuf,
        /// The difference.
        why: String,
    },
    /// A journal that this version cannot replay.
    #[error("cannot replay `{path}`: {why}")]
    Journal {
        /// Which file.
        path: Utf8PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The journal's writer ended early; its own error was given to an earlier caller.
    #[error("the journal is closed after an earlier error")]
    JournalClosed,
    /// The disk said no; the error names the path.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// A run directory that is being written.
#[derive(Debug)]
pub struct RunDir {
    path: Utf8PathBuf,
    journal: Journal,
    publish: PublishConfig,
    timeout: Duration,
    pairs: HashMap<PairId, PlannedPair>,
    runs: u32,
}

impl RunDir {
    /// Makes the directory for a new run.
    ///
    /// # Errors
    /// [`StoreError::Occupied`] where a run is there already, unless it is to be replaced;
    /// [`StoreError::Running`] where it has not ended; [`StoreError::Foreign`]; disk errors.
    pub fn create(
        path: &Utf8Path,
        overwrite: bool,
        plan: &RunPlan,
        attempt: &AttemptConfig,
    ) -> Result<Self, StoreError> {
        fs::create_dir_all(path).map_err(StoreError::Create)?;
        make_room(path, overwrite)?;
        let journal = Journal::create(&path.join(JOURNAL_FILE), &path.join(SANDBOXES_FILE))?;
        Ok(Self::new(path, journal, plan, attempt))
    }

    /// Goes on with the run that the directory holds; gives the run so far, with what a reader should know of its files
    /// as its notices. Records that the journal knows of and that are not there, because only the journal was kept, are
    /// written again from it.
    ///
    /// # Errors
    /// [`StoreError::NoRun`], [`StoreError::Nothing`], [`StoreError::Running`]; [`StoreError::Different`] where its plan
    /// or its commit is another one; a journal that cannot be replayed; disk errors.
    pub fn resume(
        path: &Utf8Path,
        plan: &RunPlan,
        commit: Option<&str>,
        attempt: &AttemptConfig,
    ) -> Result<(Self, Run), StoreError> {
        let journal = path.join(JOURNAL_FILE);
        if !journal.is_file() {
            return Err(StoreError::NoRun(path.to_owned()));
        }
        if journal::is_being_written(&path.join(SANDBOXES_FILE)) {
            return Err(StoreError::Running(path.to_owned()));
        }
        let replayed = replay(&journal)?;
        let unreadable = replayed.unreadable();
        let Replayed { mut run, whole, .. } = replayed;
        if let Some(why) = resume::difference(&run, plan, commit) {
            return Err(StoreError::Different {
                path: path.to_owned(),
                why,
            });
        }
        let opened = Journal::go_on(&journal, whole, &path.join(SANDBOXES_FILE))?;
        resume::restore(path, &journal, &mut run)?;
        run.notices.extend(unreadable);
        Ok((Self::new(path, opened, plan, attempt), run))
    }

    fn new(path: &Utf8Path, journal: Journal, plan: &RunPlan, attempt: &AttemptConfig) -> Self {
        Self {
            path: path.to_owned(),
            journal,
            publish: attempt.publish.clone(),
            timeout: attempt.timeout,
            pairs: plan
                .pairs
                .iter()
                .map(|pair| (pair.id.clone(), pair.clone()))
                .collect(),
            runs: plan.runs,
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Makes an empty directory for a try; the files of the try before it move to `tries/<t>`.
    ///
    /// # Errors
    /// Disk errors.
    pub async fn open_try(&self, attempt: &AttemptId, try_number: u32) -> Result<Utf8PathBuf, StoreError> {
        let path = self.path.join(attempt.path());
        blocking(move || {
            if try_number > 1 {
                move_earlier_try(&path, try_number - 1)?;
            }
            fs::create_dir_all(&path)?;
            Ok(path)
        })
        .await
    }

    /// Writes what a try came to into its directory, where that was opened.
    ///
    /// # Errors
    /// Disk errors.
    pub async fn close_try(
        &self,
        record: &AttemptRecord,
        details: &AttemptDetails,
    ) -> Result<(), StoreError> {
        match &record.path {
            Some(path) => write_attempt(&self.path.join(path), record, details).await,
            None => Ok(()),
        }
    }

    /// Writes an event, and what follows from it: `attempt.json`, a pair's published results.
    /// Returns when the event would survive a crash.
    ///
    /// # Errors
    /// Disk errors.
    pub async fn record(&self, event: &Event) -> Result<(), StoreError> {
        match event {
            Event::AttemptEnded { record, details, .. } => {
                let kept = self.close_try(record, details).await;
                // The journal knows of it whatever became of the file.
                self.journal.write(event).await.and(kept)
            }
            Event::PairEnded {
                pair,
                verdict,
                representative,
                graded,
            } => {
                let mut published = Ok(());
                if let Some(planned) = self.pairs.get(pair) {
                    let job = publish::Job {
                        run_dir: self.path.clone(),
                        pair: planned.clone(),
                        runs: self.runs,
                        timeout: self.timeout,
                        verdict: *verdict,
                        representative: *representative,
                        graded: graded.clone(),
                        config: self.publish.clone(),
                    };
                    published = blocking(move || job.run()).await;
                }
                // Not told of before it is so: a run that goes on publishes it again.
                published?;
                self.journal.write(event).await
            }
            _ => self.journal.write(event).await,
        }
    }

    /// Writes down what was found when the run had ended, so that its summary can be made again from the journal. Not for
    /// asynchronous code: it waits for the disk.
    ///
    /// # Errors
    /// Disk errors.
    pub fn conclude(&self, findings: Findings) -> Result<(), StoreError> {
        self.journal.write_now(&Event::RunConcluded {
            findings: Box::new(findings),
        })
    }

    /// Writes a document of the whole run, whole or not at all.
    ///
    /// # Errors
    /// Disk errors.
    pub fn write(&self, name: &str, text: &str) -> Result<(), StoreError> {
        write_atomically(&self.path.join(name), text.as_bytes())
    }
}

/// Points `link` at a run directory beside it, where the file system has symbolic links.
///
/// # Errors
/// Disk errors; `link` is left alone where it is something else than a link.
#[cfg(unix)]
pub fn point_latest(run_dir: &Utf8Path, link: &Utf8Path) -> Result<(), StoreError> {
    let Some(name) = run_dir.file_name() else {
        return Ok(());
    };
    if fs::symlink_metadata(link).is_ok_and(|there| !there.is_symlink()) {
        return Ok(());
    }
    let fresh = link.with_file_name(format!(".latest-{name}"));
    fs::os::unix::fs::symlink(name, &fresh)?;
    fs::rename(&fresh, link)?;
    Ok(())
}

/// Points at a run directory: not done where symbolic links need a privilege.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn point_latest(_run_dir: &Utf8Path, _link: &Utf8Path) -> Result<(), StoreError> {
    Ok(())
}

/// What a directory holds of a finished or broken-off run.
#[derive(Debug)]
pub enum Stored {
    /// Its summary.
    Summary(Box<Summary>),
    /// It has none: the run as its journal tells it.
    Journal(Box<Replayed>),
}

/// Whether a directory holds the journal of a run.
pub fn holds_run(path: &Utf8Path) -> bool {
    path.join(JOURNAL_FILE).is_file()
}

/// Whether a directory holds the journal of a run that has begun: its first line is whole.
pub fn has_begun(path: &Utf8Path) -> bool {
    holds_run(path) && !matches!(run_id(path), Err(StoreError::Nothing(_)))
}

/// Why the run that a directory holds cannot be gone on with for this plan, where it measured something else.
///
/// # Errors
/// A journal that cannot be replayed; disk errors.
pub fn difference(
    path: &Utf8Path,
    plan: &RunPlan,
    commit: Option<&str>,
) -> Result<Option<String>, StoreError> {
    let replayed = replay(&path.join(JOURNAL_FILE))?;
    Ok(resume::difference(&replayed.run, plan, commit))
}

/// The name of the run that a directory holds.
///
/// # Errors
/// [`StoreError::NoRun`], [`StoreError::Nothing`], a journal that cannot be read; disk errors.
pub fn run_id(path: &Utf8Path) -> Result<String, StoreError> {
    if !holds_run(path) {
        return Err(StoreError::NoRun(path.to_owned()));
    }
    journal::run_id(&path.join(JOURNAL_FILE))
}

/// Reads a run directory.
///
/// # Errors
/// [`StoreError::NoRun`], a broken document, disk errors.
pub fn load(path: &Utf8Path) -> Result<Stored, StoreError> {
    let summary = path.join(SUMMARY_FILE);
    if summary.is_file() {
        return read_summary(summary).map(|summary| Stored::Summary(Box::new(summary)));
    }
    let journal = path.join(JOURNAL_FILE);
    if journal.is_file() {
        return replay(&journal).map(|replayed| Stored::Journal(Box::new(replayed)));
    }
    Err(StoreError::NoRun(path.to_owned()))
}

/// The documents that a run directory holds of the pairs of its summary.
///
/// # Errors
/// Disk errors; a document that is not there is none.
pub fn published(path: &Utf8Path, summary: &Summary) -> Result<Vec<Published>, StoreError> {
    let of_pairs = summary.pairs.iter().map(|pair| publish::documents(path, pair));
    Ok(of_pairs.collect::<Result<Vec<_>, _>>()?.concat())
}

fn read_summary(path: Utf8PathBuf) -> Result<Summary, StoreError> {
    #[derive(serde::Deserialize)]
    struct Version {
        schema: String,
    }
    let text = fs::read(&path)?;
    match serde_json::from_slice::<Version>(&text) {
        Ok(Version { schema }) if schema != SUMMARY_SCHEMA => Err(StoreError::Version { path, schema }),
        _ => serde_json::from_slice(&text).map_err(|source| StoreError::Broken { path, source }),
    }
}

/// Removes an earlier run, if that is asked for, and nothing else.
fn make_room(path: &Utf8Path, overwrite: bool) -> Result<(), StoreError> {
    let mut occupied = run_entries(path)?;
    let Some(first) = occupied.first() else {
        return Ok(());
    };
    // What makes the directory a run's goes last, so that a removal that is cut off can be taken up again.
    let marks_run = |entry: &Utf8PathBuf| matches!(entry.file_name(), Some(SUMMARY_FILE | JOURNAL_FILE));
    if !occupied.iter().any(marks_run) {
        return Err(StoreError::Foreign {
            path: path.to_owned(),
            entry: first.file_name().unwrap_or_default().to_owned(),
        });
    }
    if journal::is_being_written(&path.join(SANDBOXES_FILE)) {
        return Err(StoreError::Running(path.to_owned()));
    }
    if !overwrite {
        return Err(StoreError::Occupied(path.to_owned()));
    }
    occupied.sort_by_key(marks_run);
    occupied.iter().try_for_each(|entry| remove(entry))
}

/// The entries of a directory that a run made.
fn run_entries(path: &Utf8Path) -> Result<Vec<Utf8PathBuf>, StoreError> {
    const NAMES: [&str; 9] = [
        SUMMARY_FILE,
        JOURNAL_FILE,
        SANDBOXES_FILE,
        COMMENT_FILE,
        "attempts",
        "report.md",
        "report.html",
        "junit.xml",
        "ctrf.json",
    ];
    let mut entries = Vec::new();
    for entry in path.read_dir_utf8()? {
        let entry = entry?;
        let name = entry.file_name();
        // A directory of this name may as well be the user's own.
        let is_run = [BASELINE_DIR, CONFIRM_DIR].contains(&name) && entry.path().join(JOURNAL_FILE).is_file();
        if is_run || NAMES.contains(&name) || name.starts_with(RAW_RESULTS) {
            entries.push(entry.into_path());
        }
    }
    Ok(entries)
}

fn remove(path: &Utf8Path) -> Result<(), StoreError> {
    let is_dir = fs::symlink_metadata(path)?.is_dir();
    if is_dir {
        fs::remove_dir_all(path)?
    } else {
        fs::remove_file(path)?
    }
    Ok(())
}

/// Where the files of a try are once another one has begun.
fn earlier_try(path: &Utf8Path, try_number: u32) -> Utf8PathBuf {
    path.join("tries").join(try_number.to_string())
}

/// Moves file by file: however that is cut off, it can be taken up again.
fn move_earlier_try(path: &Utf8Path, earlier: u32) -> Result<(), StoreError> {
    if !path.exists() {
        return Ok(());
    }
    let to = earlier_try(path, earlier);
    fs::create_dir_all(&to)?;
    for entry in path.read_dir_utf8()? {
        let entry = entry?;
        if !to.starts_with(entry.path()) {
            fs::rename(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct AttemptFile<'a> {
    attempt: &'a AttemptRecord,
    details: &'a AttemptDetails,
}

async fn write_attempt(
    path: &Utf8Path,
    record: &AttemptRecord,
    details: &AttemptDetails,
) -> Result<(), StoreError> {
    let text = attempt_text(record, details)?;
    let path = path.to_owned();
    blocking(move || {
        fs::create_dir_all(&path)?;
        write_atomically(&path.join(ATTEMPT_FILE), text.as_bytes())
    })
    .await
}

/// A record with its details, as a document.
fn attempt_text(attempt: &AttemptRecord, details: &AttemptDetails) -> Result<String, StoreError> {
    let mut text =
        serde_json::to_string_pretty(&AttemptFile { attempt, details }).map_err(std::io::Error::from)?;
    text.push('\n');
    Ok(text)
}

/// Writes a file under a passing name beside it, then renames it.
fn write_atomically(path: &Utf8Path, bytes: &[u8]) -> Result<(), StoreError> {
    let name = path.file_name().unwrap_or_default();
    let partial = path.with_file_name(format!(".{name}.partial"));
    let written = fs::write(&partial, bytes).and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        // It may never have come into being.
        let _ = fs::remove_file(&partial);
    }
    Ok(written?)
}

/// Runs disk work off the asynchronous threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| StoreError::Io(std::io::Error::other(error)))?
}

#[cfg(test)]
mod tests;
