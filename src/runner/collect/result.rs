//! An attempt's result: found in what was downloaded, secrets taken out, kept as its harness wrote it, and read.

use std::io::Read as _;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use globset::GlobSet;
use tokio_util::sync::CancellationToken;

use super::archive::{Archive, lost, not_stored, safe_path};
use super::{Collected, Located, ResultFile, still_wanted};
use crate::aggregate::Failure;
use crate::config::Format;
use crate::config::template::PathGlob;
use crate::glob::path_glob;
use crate::model::layout::RESULT_FILE;
use crate::model::with_causes;
use crate::model::{ErrorClass, Produces};
use crate::results::harness::{self, Read};
use crate::runner::Job;
use crate::sandbox::Sandbox;

/// A result is read into memory, so it may not be larger than this.
const MAX_RESULT: u64 = 64 << 20;

/// Downloads what lies below the fixed part of the path and takes the files that match.
pub(super) async fn collect(
    sandbox: &mut dyn Sandbox,
    path: &PathGlob,
    job: &Arc<Job>,
    directory: &Utf8Path,
    given_up: &CancellationToken,
) -> Result<Collected, Failure> {
    let glob = path_glob(&path.pattern).map_err(|error| lost(ErrorClass::Collect, &error))?;
    let wanted = GlobSet::new([glob]).map_err(|error| lost(ErrorClass::Collect, &error))?;
    let found = Collected {
        expected_at: path.shown.clone(),
        ..Collected::default()
    };
    let Some(archive) = Archive::download(sandbox, &path.base, directory, MAX_RESULT).await? else {
        return Ok(found);
    };
    let harvest = Harvest {
        archive,
        parent: path.base.parent().unwrap_or(Utf8Path::new("")).to_owned(),
        wanted,
        job: Arc::clone(job),
        directory: directory.to_owned(),
        given_up: given_up.clone(),
    };
    tokio::task::spawn_blocking(move || harvest.reap(found))
        .await
        .map_err(|error| lost(ErrorClass::Collect, &error))?
}

struct Harvest {
    archive: Archive,
    /// What the archive's paths are relative to.
    parent: Utf8PathBuf,
    /// One pattern. As a set it needs no regular expression where it is a plain path, and most are.
    wanted: GlobSet,
    job: Arc<Job>,
    directory: Utf8PathBuf,
    given_up: CancellationToken,
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
                collected.results = vec![Located {
                    result: ResultFile::Unreadable(note),
                    ..Located::missing(path)
                }];
                return Ok(collected);
            }
            collected.notes.push(note);
        }
        for found in matches.into_iter().take(wanted) {
            let left = wanted - collected.results.len();
            let results = self.read(&found, collected.results.len())?;
            if results.len() > left {
                collected.notes.push(format!(
                    "`{}` holds {} attempts, {left} expected: the first ones are read",
                    found.path,
                    results.len()
                ));
            }
            collected.results.extend(results.into_iter().take(left));
        }
        Ok(collected)
    }

    /// Keeps a file without its secrets, with each attempt that it holds, and reads it. `before` is how many attempts
    /// other files held.
    fn read(&self, found: &Match, before: usize) -> Result<Vec<Located>, Failure> {
        let located = |result, harness_file| Located {
            path: found.path.clone(),
            result,
            harness_file,
        };
        let unreadable = |why: String, file| vec![located(ResultFile::Unreadable(why), file)];
        let bytes = match &found.bytes {
            Ok(bytes) => harness::redact(bytes, &self.job.redactor).map_err(|error| with_causes(&error)),
            Err(why) => Err(why.clone()),
        };
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(why) => return Ok(unreadable(why, None)),
        };
        let format = &self.job.attempt.format;
        let read = harness::read(format, &bytes).map_err(|error| with_causes(&error));
        let attempts = read.as_ref().map_or(1, |read| read.attempts.len());
        let stands_for_pair = match &read {
            Ok(read) => read.is_evals,
            Err(_) => *format == Format::Evals,
        };
        let name = match stands_for_pair {
            true => RESULT_FILE.to_owned(),
            false => file_name(&found.path),
        };
        let plan = &self.job.plan;
        let most = match plan.produces {
            Produces::Attempt => 1,
            Produces::Pair => plan.runs as usize,
        };
        for position in before..most.min(before + attempts) {
            still_wanted(&self.given_up).map_err(not_stored)?;
            write(&self.directory_of(position).join(&name), &bytes).map_err(not_stored)?;
        }
        let kept = (!stands_for_pair).then_some(name);
        Ok(match read {
            Err(why) => unreadable(why, kept),
            Ok(Read { attempts, .. }) if attempts.len() > 1 && plan.produces == Produces::Attempt => {
                let many = attempts.len();
                let why = format!(
                    "it holds {many} attempts, 1 expected\nlet the command make one, or write `produces: pair`"
                );
                unreadable(why, kept)
            }
            Ok(Read { attempts, .. }) => attempts
                .into_iter()
                .map(|reading| located(ResultFile::Read(Box::new(reading)), kept.clone()))
                .collect(),
        })
    }

    fn matches(&self) -> std::io::Result<Vec<Match>> {
        let mut matches = Vec::new();
        let mut no_file = None;
        for entry in self.archive.open()?.entries()? {
            let mut entry = entry?;
            let Some(path) = safe_path(&entry) else { continue };
            let path = self.parent.join(path);
            if !self.wanted.is_match(&path) {
                continue;
            }
            let kind = entry.header().entry_type();
            if !kind.is_file() {
                let what = if kind.is_dir() {
                    "a directory"
                } else {
                    "no regular file"
                };
                no_file.get_or_insert((path, what));
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
        if let (true, Some((path, what))) = (matches.is_empty(), no_file) {
            matches.push(Match {
                path: path.into_string(),
                bytes: Err(format!("it is {what}")),
            });
        }
        matches.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(matches)
    }

    /// The first result lies in the try's own directory, a pair's further ones beside it.
    fn directory_of(&self, position: usize) -> Utf8PathBuf {
        match (position, self.directory.parent()) {
            (1.., Some(parent)) => parent.join((position + 1).to_string()),
            _ => self.directory.clone(),
        }
    }
}

/// What a harness's file is called where it is kept: its ending tells what it is.
fn file_name(path: &str) -> String {
    const LONGEST: usize = 10;
    let ending = Utf8Path::new(path).extension().unwrap_or_default();
    let plain = ending.len() <= LONGEST && ending.chars().all(|char| char.is_ascii_alphanumeric());
    match plain && !ending.is_empty() {
        true => format!("result.{ending}"),
        false => "result.txt".to_owned(),
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
