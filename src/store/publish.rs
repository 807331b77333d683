//! A decided pair's `raw-results-…` directory, in the layout that publishing steps read.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::{ATTEMPT_FILE, StoreError, remove, write_atomically};
use crate::aggregate::{Published, Standing, publish_document};
use crate::config::template::{Values, plain, stays_inside};
use crate::config::{PublishConfig, PublishWhat};
use crate::model::layout::{ATTEMPTS_DIR, KEPT_DIR, RAW_RESULTS, RESULT_FILE};
use crate::model::{
    AttemptDetails, AttemptId, AttemptRecord, Outcome, PairId, PairSummary, PlannedPair, Verdict, file_name,
};

/// What is to be published of one pair.
pub(super) struct Job {
    pub(super) run_dir: Utf8PathBuf,
    pub(super) pair: PlannedPair,
    pub(super) runs: u32,
    pub(super) timeout: Duration,
    pub(super) verdict: Verdict,
    pub(super) representative: Option<u32>,
    pub(super) graded: Vec<u32>,
    pub(super) config: PublishConfig,
}

/// In the directory of a pair's attempts: where its documents lie, where the configuration gave them other names than
/// they are looked for by.
const PUBLISHED_FILE: &str = "published.json";

/// Where a document lies in its pair's directory.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Place {
    /// Which attempt it is of, where it is of one alone.
    run: Option<u32>,
    /// With `/`.
    path: String,
}

#[derive(Deserialize)]
struct AttemptFile {
    attempt: AttemptRecord,
    details: AttemptDetails,
}

impl Job {
    /// Builds the directory under a passing name, then renames it; a pair without a result has none.
    pub(super) fn run(&self) -> Result<(), StoreError> {
        let attempts: Vec<u32> = match self.config.what {
            PublishWhat::Representative => self.representative.into_iter().collect(),
            PublishWhat::All => self.graded.clone(),
        };
        if attempts.is_empty() {
            return Ok(());
        }
        let name = format!("{RAW_RESULTS}{}", self.pair.id.directory());
        let [partial, earlier] =
            ["partial", "earlier"].map(|what| self.run_dir.join(format!(".{name}.{what}")));
        for left in [&partial, &earlier] {
            if left.exists() {
                remove(left)?;
            }
        }
        let target = self.run_dir.join(name);
        let built: Result<Vec<Place>, StoreError> = attempts
            .iter()
            .map(|index| self.publish_attempt(*index, &partial))
            .collect();
        let published = built.and_then(|places| {
            // Of a run that was resumed; a directory does not give way to another one by itself.
            let is_replaced = target.exists();
            if is_replaced {
                fs::rename(&target, &earlier)?;
            }
            fs::rename(&partial, &target)?;
            if is_replaced {
                remove(&earlier)?;
            }
            self.note(&places)
        });
        if published.is_err() {
            // It may never have come into being.
            let _ = remove(&partial);
        }
        published
    }

    /// Writes down where the documents lie, where nobody would look for them.
    fn note(&self, places: &[Place]) -> Result<(), StoreError> {
        let file = places_file(&self.run_dir, &self.pair.id);
        if places
            .iter()
            .all(|place| *place == usual(&self.pair.id, place.run))
        {
            // Of a run that was resumed.
            return match file.exists() {
                true => remove(&file),
                false => Ok(()),
            };
        }
        let text = serde_json::to_string(places).map_err(std::io::Error::from)?;
        write_atomically(&file, text.as_bytes())
    }

    fn publish_attempt(&self, index: u32, into: &Utf8Path) -> Result<Place, StoreError> {
        let attempt = AttemptId {
            pair: self.pair.id.clone(),
            index,
        };
        let from = self.run_dir.join(attempt.path());
        let file: AttemptFile = read_json(&from.join(ATTEMPT_FILE))?;
        let result = from.join(RESULT_FILE);
        let harness_file = file.details.harness_file.as_deref();
        // A command that was killed may have left anything there.
        let document = match harness_file.is_none() && result.is_file() {
            true => String::from_utf8(fs::read(&result)?).ok(),
            false => None,
        };
        // Alone, the document stands for the pair; among all, each stands for itself.
        let standing = match self.config.what {
            PublishWhat::Representative => Standing {
                passed: self.verdict == Verdict::Pass,
                attempts: u32::try_from(self.graded.len()).unwrap_or(u32::MAX),
                run: None,
            },
            PublishWhat::All => Standing {
                passed: file.attempt.outcome == Outcome::Passed,
                attempts: 1,
                run: Some(index),
            },
        };
        let document = publish_document(document.as_deref(), &self.pair.id, standing, &file.details.checks)
            .map_err(|error| StoreError::Io(error.into()))?;
        let place = Place {
            run: standing.run,
            path: self.file(&attempt)?,
        };
        let target = into.join(&place.path);
        let kept = from.join(KEPT_DIR);
        if kept.is_dir() {
            // The tree lies where the document does, so that one attempt's files stay together.
            copy_tree(&kept, target.parent().unwrap_or(into))?;
        }
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        let written = harness_file.filter(|name| !name.contains(['/', '\\']));
        // Of a run that goes on from its journal alone, what the harness wrote may be gone.
        if let Some(written) = written.map(|name| from.join(name)).filter(|path| path.is_file()) {
            // It lies beside the document that stands for it.
            let ending = written.extension().unwrap_or_default();
            fs::copy(&written, target.with_extension(format!("harness.{ending}")))?;
        }
        write_atomically(&target, document.as_bytes())?;
        Ok(place)
    }

    fn file(&self, attempt: &AttemptId) -> Result<String, StoreError> {
        let values = Values::of_attempt(&self.pair, attempt, self.runs, self.timeout).as_file_names();
        let name = self.config.file.render(&values);
        name.map(|name| plain(&name))
            .map_err(|error| StoreError::Io(std::io::Error::other(error)))
    }
}

/// The documents that a run directory holds of a pair: the one that stands for it, or else one of each of its attempts,
/// where they were published, or else where they lie as the layouts have it that publishing steps read.
pub(super) fn documents(run_dir: &Utf8Path, pair: &PairSummary) -> Result<Vec<Published>, StoreError> {
    let id = pair.id();
    let directory = run_dir.join(format!("{RAW_RESULTS}{}", id.directory()));
    let read = |place: Place| {
        let file = directory.join(&place.path);
        match stays_inside(&place.path) && file.is_file() {
            true => Ok(Some(Published {
                pair: id.clone(),
                run: place.run,
                text: fs::read_to_string(file)?,
                path: place.path,
            })),
            false => Ok(None),
        }
    };
    let noted = places_file(run_dir, &id);
    if noted.is_file() {
        let places: Vec<Place> = read_json(&noted)?;
        return places
            .into_iter()
            .filter_map(|place| read(place).transpose())
            .collect();
    }
    if let Some(document) = read(usual(&id, None))? {
        return Ok(vec![document]);
    }
    let runs = pair.attempts.iter().map(|attempt| attempt.index);
    let of_runs = runs.map(|run| read(usual(&id, Some(run))));
    of_runs.filter_map(Result::transpose).collect()
}

/// Where a document lies as the layouts have it that publishing steps read.
fn usual(pair: &PairId, run: Option<u32>) -> Place {
    let eval = file_name(pair.eval.as_str());
    let path = match run {
        None => format!("{eval}.json"),
        Some(run) => format!("{eval}/run-{run}/{RESULT_FILE}"),
    };
    Place { run, path }
}

fn places_file(run_dir: &Utf8Path, pair: &PairId) -> Utf8PathBuf {
    run_dir
        .join(ATTEMPTS_DIR)
        .join(pair.directory())
        .join(PUBLISHED_FILE)
}

fn read_json<T: for<'de> Deserialize<'de>>(path: &Utf8Path) -> Result<T, StoreError> {
    let bytes = fs::read(path)?;
    serde_json::from_slice(&bytes).map_err(|source| StoreError::Broken {
        path: path.to_owned(),
        source,
    })
}

/// Copies files and directories; of links, which nothing of ours makes, none.
pub(super) fn copy_tree(from: &Utf8Path, to: &Utf8Path) -> Result<(), StoreError> {
    fs::create_dir_all(to)?;
    for entry in from.read_dir_utf8()? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_tree(entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
