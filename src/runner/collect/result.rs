//! An attempt's result: found in what was downloaded, secrets taken out, kept as its harness wrote it, and read.

use std::io::Read as _;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use globset::GlobMatcher;

use super::archive::{Archive, lost, not_stored, safe_path};
use super::{Collected, ResultFile};
use crate::aggregate::Failure;
use crate::config::Format;
use crate::config::template::PathGlob;
use crate::glob::path_glob;
use crate::model::layout::RESULT_FILE;
use crate::model::{ErrorClass, Produces};
use crate::results::harness::read_attempt;
use crate::runner::Job;
use crate::runner::failure::chain;
use crate::sandbox::Sandbox;

/// A result is read into memory, so it may not be larger than this.
const MAX_RESULT: u64 = 64 << 20;

/// Downloads what lies below the fixed part of the path and takes the files that match.
pub(super) async fn collect(
    sandbox: &mut dyn Sandbox,
    path: &PathGlob,
    job: &Arc<Job>,
    directory: &Utf8Path,
) -> Result<Collected, Failure> {
    let glob = path_glob(&path.pattern).map_err(|error| lost(ErrorClass::Collect, &error))?;
    let found = Collected {
        expected_at: path.shown.clone(),
        ..Collected::default()
    };
    let archive = directory.join(".result.tar");
    let Some(archive) = Archive::download(sandbox, &path.base, archive, MAX_RESULT).await? else {
        return Ok(found);
    };
    let harvest = Harvest {
        archive,
        parent: path.base.parent().unwrap_or(Utf8Path::new("")).to_owned(),
        matcher: glob.compile_matcher(),
        job: Arc::clone(job),
        directory: directory.to_owned(),
    };
    tokio::task::spawn_blocking(move || harvest.reap(found))
        .await
        .map_err(|error| lost(ErrorClass::Collect, &error))?
}

struct Harvest {
    archive: Archive,
    /// What the archive's paths are relative to.
    parent: Utf8PathBuf,
    matcher: GlobMatcher,
    job: Arc<Job>,
    directory: Utf8PathBuf,
}

/// A file that matches.
struct Match {
    path: String,
    bytes: Result<Vec<u8>, String>,
}

impl Harvest {
    /// Keeps and reads as many matches as there are attempts.
    fn reap(&self, mut collected: Collected) -> Result<Collected, Failure> {
        let plan = &self.job.plan;
        let wanted = match plan.produces {
            Produces::Attempt => 1,
            Produces::Pair => plan.runs as usize,
        };
        let matches = self
            .matches()
            .map_err(|error| lost(ErrorClass::Collect, &error))?;
        if matches.len() > wanted {
            let (first, many) = (&matches[0].path, matches.len());
            let path = &collected.expected_at;
            let note = format!("{many} files match `{path}`, {wanted} expected: read from `{first}` on");
            if plan.produces == Produces::Attempt {
                // Which of them is the result is not known, and must not be guessed.
                collected.results = vec![(path.clone(), ResultFile::Unreadable(note))];
                return Ok(collected);
            }
            collected.notes.push(note);
        }
        for (found, position) in matches.into_iter().take(wanted).zip(0_u32..) {
            let result = match found.bytes {
                Err(why) => ResultFile::Unreadable(why),
                Ok(bytes) => {
                    let bytes = self.job.redactor.bytes(&bytes);
                    write(&self.file(position), &bytes).map_err(not_stored)?;
                    read(self.job.attempt.format, &bytes)
                }
            };
            collected.results.push((found.path, result));
        }
        Ok(collected)
    }

    fn matches(&self) -> std::io::Result<Vec<Match>> {
        let mut matches = Vec::new();
        for entry in self.archive.open()?.entries()? {
            let mut entry = entry?;
            let Some(path) = safe_path(&entry) else { continue };
            let path = self.parent.join(path);
            if !entry.header().entry_type().is_file() || !self.matcher.is_match(&path) {
                continue;
            }
            let bytes = if entry.size() > MAX_RESULT {
                Err(format!("it is larger than {MAX_RESULT} bytes"))
            } else {
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes)?;
                Ok(bytes)
            };
            matches.push(Match {
                path: path.into_string(),
                bytes,
            });
        }
        matches.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(matches)
    }

    /// The first result lies in the try's own directory, a pair's further ones beside it.
    fn file(&self, position: u32) -> Utf8PathBuf {
        match (position, self.directory.parent()) {
            (1.., Some(parent)) => parent.join((position + 1).to_string()).join(RESULT_FILE),
            _ => self.directory.join(RESULT_FILE),
        }
    }
}

fn read(format: Format, bytes: &[u8]) -> ResultFile {
    match read_attempt(format, bytes) {
        Ok(reading) => ResultFile::Read(Box::new(reading)),
        Err(error) => ResultFile::Unreadable(chain(&error)),
    }
}

fn write(path: &Utf8Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let partial = path.with_extension("partial");
    fs::write(&partial, bytes)?;
    fs::rename(&partial, path)
}
