//! What an earlier attempt of this job has left: its journal and its files, so that only what is missing runs again.

use camino::Utf8Path;
use fs_err as fs;

use crate::github::artifact::{self, Artifact};
use crate::github::event::Invocation;
use crate::github::{Client, log};
use crate::model::layout::{ATTEMPTS_DIR, JOURNAL_FILE, RAW_RESULTS};
use crate::model::{RunPlan, with_causes};
use crate::store;

/// Where an earlier attempt is looked for, and where what it left goes.
pub(super) struct Rerun<'a> {
    pub(super) client: &'a Client,
    pub(super) invocation: &'a Invocation,
    /// The name that the results are kept as.
    pub(super) artifact: &'a str,
    pub(super) directory: &'a Utf8Path,
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Left {
    /// The directory holds a run that can go on.
    Run {
        /// In words, where some of its files are not there.
        note: Option<String>,
    },
    /// Everything runs, and why.
    Nothing(String),
}

impl Rerun<'_> {
    /// Brings it into the directory, where it is of the same plan.
    pub(super) async fn fetch(&self, plan: &RunPlan, commit: Option<&str>) -> Left {
        match self.journal().await {
            Err(why) => Left::Nothing(format!(
                "attempt {} of this job: nothing is taken over from an earlier one: {why}",
                self.invocation.run_attempt
            )),
            Ok(journal) => match self.unpack(&journal, plan, commit) {
                Ok(()) => Left::Run {
                    note: self.files().await.err(),
                },
                Err(why) => {
                    // Whatever was written of it must not be taken for this run.
                    let _ = fs::remove_file(self.directory.join(JOURNAL_FILE));
                    Left::Nothing(format!(
                        "attempt {} of this job: nothing is taken over from an earlier one: {why}",
                        self.invocation.run_attempt
                    ))
                }
            },
        }
    }

    async fn journal(&self) -> Result<Vec<u8>, String> {
        let artifact = self.newest(self.artifact).await?;
        artifact::read(self.client, &self.invocation.repository, &artifact, JOURNAL_FILE)
            .await
            .map_err(|error| with_causes(&error))
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

    fn unpack(&self, journal: &[u8], plan: &RunPlan, commit: Option<&str>) -> Result<(), String> {
        let write = || {
            fs::create_dir_all(self.directory)?;
            fs::write(self.directory.join(JOURNAL_FILE), journal)
        };
        write().map_err(|error| error.to_string())?;
        match store::difference(self.directory, plan, commit) {
            Ok(None) => Ok(()),
            Ok(Some(why)) => Err(why),
            Err(error) => Err(with_causes(&error)),
        }
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
