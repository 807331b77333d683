//! What an earlier attempt of this job has left: its journal and its files, so that only what is missing runs again.

use camino::Utf8Path;
use fs_err as fs;

use super::subject::Revision;
use crate::cli::Failure;
use crate::cli::baseline::Baseline;
use crate::cli::context::Context;
use crate::cli::measure::{self, Base};
use crate::cli::sources::Suite;
use crate::github::artifact::{self, Artifact};
use crate::github::event::Invocation;
use crate::github::{Client, log};
use crate::model::layout::{ATTEMPTS_DIR, BASELINE_DIR, JOURNAL_FILE, RAW_RESULTS};
use crate::model::{RunPlan, with_causes};
use crate::{catalog, store};

/// Where an earlier attempt is looked for, and where what it left goes.
pub(super) struct Rerun<'a> {
    pub(super) client: &'a Client,
    pub(super) invocation: &'a Invocation,
    /// The name that the results are kept as.
    pub(super) artifact: &'a str,
    pub(super) directory: &'a Utf8Path,
    /// What this attempt would be called.
    pub(super) run_id: &'a str,
    pub(super) suite: &'a Suite,
    pub(super) baseline: &'a Baseline,
    pub(super) context: &'a Context,
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Left {
    /// The directory holds a run that can go on.
    Run {
        /// In words, what of it is not there.
        notes: Vec<String>,
    },
    /// Everything runs, and why.
    Nothing(String),
}

/// The journals of an earlier attempt, or why one is not there.
struct Journals {
    own: Vec<u8>,
    base: Result<Vec<u8>, String>,
}

impl Rerun<'_> {
    /// Brings it into the directory, where it is of the same plan.
    pub(super) async fn fetch(&self, plan: &RunPlan, revision: &Revision) -> Left {
        let nothing = |of: &str, why: String| {
            format!(
                "attempt {} of this job: nothing {of}is taken over from an earlier one: {why}",
                self.invocation.run_attempt
            )
        };
        let journals = match self.own(plan, revision).await {
            Ok(journals) => journals,
            Err(why) => return Left::Nothing(nothing("", why)),
        };
        let base = self.base(journals.base, plan).err();
        let base = base.map(|why| nothing("of the base revision ", why));
        let files = self.files().await.err();
        Left::Run {
            notes: base.into_iter().chain(files).collect(),
        }
    }

    /// The run itself; gives what else there is.
    async fn own(&self, plan: &RunPlan, revision: &Revision) -> Result<Journals, String> {
        if let Some(why) = revision.unknown() {
            return Err(why);
        }
        let journals = self.journals().await?;
        unpack(self.directory, &journals.own, plan, revision.commit.as_deref())?;
        Ok(journals)
    }

    /// The base revision's run, where it is measured beside this one.
    fn base(&self, journal: Result<Vec<u8>, String>, plan: &RunPlan) -> Result<(), String> {
        let Baseline::Measure(revision) = self.baseline else {
            return Ok(());
        };
        let journal = journal?;
        let in_full = |failure: Failure| with_causes(failure.error.as_ref());
        let base = Base::check_out(self.suite, revision.as_ref(), self.run_id, self.context);
        let base = base.map_err(in_full)?;
        match base.plan(self.suite, plan).map_err(in_full)? {
            Some(plan) => {
                let commit = catalog::commit(base.root());
                let directory = measure::directory(self.directory);
                unpack(&directory, &journal, &plan, commit.as_deref())
            }
            // Nothing of it runs.
            None => Ok(()),
        }
    }

    async fn journals(&self) -> Result<Journals, String> {
        let artifact = self.newest(self.artifact).await?;
        let of_base = format!("{BASELINE_DIR}/{JOURNAL_FILE}");
        let files = [JOURNAL_FILE, &of_base];
        let read = artifact::read_each(self.client, &self.invocation.repository, &artifact, files);
        let [own, base] = read.await.map_err(|error| with_causes(&error))?;
        Ok(Journals {
            own: own.map_err(|error| with_causes(&error))?,
            base: base.map_err(|error| with_causes(&error)),
        })
    }

    async fn newest(&self, name: &str) -> Result<Artifact, String> {
        let Invocation {
            repository, run_id, ..
        } = self.invocation;
        let listed = artifact::list(self.client, repository, *run_id, name)
            .await
            .map_err(|error| with_causes(&error))?;
        listed
            .into_iter()
            .next()
            .ok_or_else(|| format!("there is no artifact `{}`", log::line(name)))
    }

    /// The files of its attempts; without them their results still count.
    async fn files(&self) -> Result<(), String> {
        let missing = |why: String| {
            format!(
                "the files of attempts that were taken over from an earlier attempt of this job are not here: {why}"
            )
        };
        let artifact = self
            .newest(&format!("{}-files", self.artifact))
            .await
            .map_err(missing)?;
        let files = artifact::read_all(self.client, &self.invocation.repository, &artifact);
        for (path, bytes) in files.await.map_err(|error| missing(with_causes(&error)))? {
            // Nothing else of a run directory is in there.
            let first = path.components().next().map_or("", |first| first.as_str());
            if first != ATTEMPTS_DIR && !first.starts_with(RAW_RESULTS) {
                continue;
            }
            let to = self.directory.join(&path);
            let write = || {
                fs::create_dir_all(to.parent().unwrap_or(self.directory))?;
                fs::write(&to, &bytes)
            };
            write().map_err(|error| missing(error.to_string()))?;
        }
        Ok(())
    }
}

/// Writes a journal into its directory, where it is of the same plan.
fn unpack(directory: &Utf8Path, journal: &[u8], plan: &RunPlan, commit: Option<&str>) -> Result<(), String> {
    let path = directory.join(JOURNAL_FILE);
    let write = || {
        fs::create_dir_all(directory)?;
        fs::write(&path, journal)
    };
    let written = write().map_err(|error| error.to_string());
    let checked = written.and_then(|()| {
        store::difference(directory, plan, commit)
            .map_err(|error| with_causes(&error))
            .and_then(|difference| difference.map_or(Ok(()), Err))
    });
    if checked.is_err() {
        // Whatever was written of it must not be taken for this run.
        let _ = fs::remove_file(&path);
    }
    checked
}
