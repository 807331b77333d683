//! Brings an attempt's result and files out of its sandbox. What comes out is an archive that nobody vouches for.

use std::io::Read;
use std::path::Component;
use std::pin::Pin;
use std::task::{Context, Poll};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use globset::{Glob, GlobMatcher, GlobSet, GlobSetBuilder};
use tokio::io::AsyncWrite;

use super::Job;
use super::attempt::chain;
use crate::aggregate::{Failure, Found as FoundResult};
use crate::config::glob;
use crate::config::template::{PathGlob, UnknownPlaceholder, Values};
use crate::config::{AttemptConfig, Format};
use crate::model::{ErrorClass, Phase, Produces, Reading};
use crate::redact::Redactor;
use crate::results::harness::read_attempt;
use crate::sandbox::Sandbox;

/// An attempt's output.
pub(super) const OUTPUT_FILE: &str = "output.log";
/// An attempt's result, as its harness wrote it.
const RESULT_FILE: &str = "result.json";
/// The directory of what `attempt.keep` brings back.
const KEPT_DIR: &str = "files";
/// A result is read into memory, so it may not be larger than this.
const MAX_RESULT: u64 = 64 << 20;
/// Archives have headers and padding besides the files in them.
const ARCHIVE_OVERHEAD: u64 = 1 << 20;
/// A download is tried so often before the result counts as lost: the agent is not run again for it.
const DOWNLOAD_TRIES: u32 = 3;

/// Where an attempt's result and files are, relative to the workspace.
pub(super) struct Paths {
    /// Where the result is; `None` where the exit code alone decides.
    pub(super) result: Option<PathGlob>,
    keep: Option<Utf8PathBuf>,
}

impl Paths {
    /// Fills in an attempt's values.
    pub(super) fn of(attempt: &AttemptConfig, values: &Values) -> Result<Self, UnknownPlaceholder> {
        let result = attempt
            .result
            .as_ref()
            .map(|result| result.render_path(values))
            .transpose()?;
        let keep = attempt
            .keep
            .as_ref()
            .map(|keep| keep.path.render(values))
            .transpose()?;
        Ok(Self {
            result,
            keep: keep.map(Utf8PathBuf::from),
        })
    }
}

/// What was brought out.
pub(super) struct Collected {
    /// The results, by path, in name order.
    pub(super) results: Vec<(String, ResultFile)>,
    /// Where a result was looked for.
    pub(super) expected_at: String,
    /// What a reader should know: files left out.
    pub(super) notes: Vec<String>,
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
    pub(super) fn found(&self) -> FoundResult<'_> {
        match self {
            Self::Missing => FoundResult::Nothing,
            Self::Unreadable(why) => FoundResult::Unreadable(why),
            Self::Read(reading) => FoundResult::Reading(reading),
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
    job: &Job,
    directory: &Utf8Path,
) -> Result<Collected, Failure> {
    let mut collected = Collected {
        results: Vec::new(),
        expected_at: String::new(),
        notes: Vec::new(),
    };
    if let Some(result) = &paths.result {
        collected.expected_at.clone_from(&result.shown);
        let found = find_results(sandbox, result, directory).await?;
        collected.take_results(found, job, directory)?;
    }
    if let Some(keep) = &paths.keep
        && let Err(why) = keep_files(sandbox, keep, job, directory, &mut collected.notes).await
    {
        collected.notes.push(format!("`{keep}` was not kept: {why}"));
    }
    Ok(collected)
}

impl Collected {
    fn take_results(&mut self, found: Vec<Found>, job: &Job, directory: &Utf8Path) -> Result<(), Failure> {
        let wanted = match job.plan.produces {
            Produces::Attempt => 1,
            Produces::Pair => job.plan.runs as usize,
        };
        if found.len() > wanted {
            let (first, many) = (&found[0].path, found.len());
            let note = format!(
                "{many} files match `{}`, {wanted} expected: read from `{first}` on",
                self.expected_at
            );
            if job.plan.produces == Produces::Attempt {
                self.results = vec![(self.expected_at.clone(), ResultFile::Unreadable(note))];
                return Ok(());
            }
            self.notes.push(note);
        }
        for (found, position) in found.into_iter().take(wanted).zip(0_u32..) {
            let result = match found.bytes {
                Err(why) => ResultFile::Unreadable(why),
                Ok(bytes) => {
                    let bytes = job.redactor.bytes(&bytes);
                    let target = result_file(directory, position);
                    write(&target, &bytes).map_err(|error| lost(ErrorClass::Store, &chain(&error)))?;
                    read(job.attempt.format, &bytes)
                }
            };
            self.results.push((found.path, result));
        }
        Ok(())
    }
}

fn read(format: Format, bytes: &[u8]) -> ResultFile {
    match read_attempt(format, bytes) {
        Ok(reading) => ResultFile::Read(Box::new(reading)),
        Err(error) => ResultFile::Unreadable(chain(&error)),
    }
}

/// The first result lies in the try's own directory, a pair's further ones beside it.
fn result_file(directory: &Utf8Path, position: u32) -> Utf8PathBuf {
    if position == 0 {
        return directory.join(RESULT_FILE);
    }
    let parent = directory.parent().unwrap_or(directory);
    parent.join((position + 1).to_string()).join(RESULT_FILE)
}

fn write(path: &Utf8Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let partial = path.with_extension("partial");
    fs::write(&partial, bytes)?;
    fs::rename(&partial, path)
}

struct Found {
    path: String,
    bytes: Result<Vec<u8>, String>,
}

/// Downloads what lies below the fixed part of the pattern and takes the files that match.
async fn find_results(
    sandbox: &mut dyn Sandbox,
    result: &PathGlob,
    directory: &Utf8Path,
) -> Result<Vec<Found>, Failure> {
    let matcher = glob::path_glob(&result.pattern)
        .map_err(|error| lost(ErrorClass::Collect, &chain(&error)))?
        .compile_matcher();
    let base = result.base.clone();
    let archive = directory.join(".result.tar");
    let cap = MAX_RESULT + ARCHIVE_OVERHEAD;
    let Some(()) = download(sandbox, &base, &archive, cap).await? else {
        return Ok(Vec::new());
    };
    let parent = base.parent().unwrap_or(Utf8Path::new("")).to_owned();
    let from = archive.clone();
    let found = tokio::task::spawn_blocking(move || matching_files(&from, &parent, &matcher)).await;
    // The archive is a copy of what was just read; a left-over is replaced by the next try.
    let _ = fs::remove_file(&archive);
    found
        .map_err(|error| lost(ErrorClass::Collect, &error.to_string()))?
        .map_err(|error| lost(ErrorClass::Collect, &chain(&error)))
}

fn matching_files(
    archive: &Utf8Path,
    parent: &Utf8Path,
    matcher: &GlobMatcher,
) -> std::io::Result<Vec<Found>> {
    let mut found = Vec::new();
    let mut archive = tar::Archive::new(std::io::BufReader::new(fs::File::open(archive)?));
    for entry in archive.entries()? {
        let mut entry = entry?;
        let Some(path) = safe_path(&entry) else { continue };
        let path = parent.join(path);
        if !entry.header().entry_type().is_file() || !matcher.is_match(&path) {
            continue;
        }
        let bytes = if entry.size() > MAX_RESULT {
            Err(format!("it is larger than {MAX_RESULT} bytes"))
        } else {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        found.push(Found {
            path: path.into_string(),
            bytes,
        });
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// Brings `keep` into the directory of kept files.
async fn keep_files(
    sandbox: &mut dyn Sandbox,
    keep: &Utf8Path,
    job: &Job,
    directory: &Utf8Path,
    notes: &mut Vec<String>,
) -> Result<(), String> {
    let Some(config) = &job.attempt.keep else {
        return Ok(());
    };
    let archive = directory.join(".files.tar");
    let cap = config.max_size.saturating_mul(2).saturating_add(ARCHIVE_OVERHEAD);
    let downloaded = download(sandbox, keep, &archive, cap)
        .await
        .map_err(|failure| failure.message)?;
    if downloaded.is_none() {
        return Ok(());
    }
    let excluded = glob_set(&config.exclude).map_err(|error| error.to_string())?;
    let extraction = Extraction {
        archive: archive.clone(),
        into: directory.join(KEPT_DIR),
        keep: keep.to_owned(),
        excluded,
        max_size: config.max_size,
        redactor: job.redactor.clone(),
    };
    let extracted = tokio::task::spawn_blocking(move || extraction.run()).await;
    // The archive is a copy of what was just extracted.
    let _ = fs::remove_file(&archive);
    let left_out = extracted
        .map_err(|error| error.to_string())?
        .map_err(|error| chain(&error))?;
    notes.extend(left_out);
    Ok(())
}

fn glob_set(globs: &[String]) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(Glob::new(glob)?);
    }
    set.build()
}

struct Extraction {
    archive: Utf8PathBuf,
    into: Utf8PathBuf,
    keep: Utf8PathBuf,
    excluded: GlobSet,
    max_size: u64,
    redactor: Redactor,
}

impl Extraction {
    /// Extracts files and directories, secrets taken out; gives notes about what was left out.
    fn run(&self) -> std::io::Result<Vec<String>> {
        let partial = self.into.with_extension("partial");
        fs::create_dir_all(&partial)?;
        let mut archive = tar::Archive::new(std::io::BufReader::new(fs::File::open(&self.archive)?));
        let parent = self.keep.parent().unwrap_or(Utf8Path::new(""));
        let (mut left_out, mut too_large, mut size) = (0_usize, 0_usize, 0_u64);
        for entry in archive.entries()? {
            let mut entry = entry?;
            let Some(path) = safe_path(&entry) else {
                left_out += 1;
                continue;
            };
            let in_workspace = parent.join(&path);
            if self.excluded.is_match(&in_workspace) {
                continue;
            }
            // A kept directory is the root of the tree, a kept file stands in it.
            let inside = match in_workspace.strip_prefix(&self.keep) {
                Ok(inside) if !inside.as_str().is_empty() => inside.to_owned(),
                _ => Utf8PathBuf::from(self.keep.file_name().unwrap_or_default()),
            };
            let kind = entry.header().entry_type();
            if kind.is_dir() {
                if in_workspace != self.keep {
                    fs::create_dir_all(partial.join(inside))?;
                }
            } else if kind.is_file() {
                if size + entry.size() > self.max_size {
                    too_large += 1;
                    continue;
                }
                size += entry.size();
                self.write_file(&mut entry, &partial.join(inside))?;
            } else {
                left_out += 1;
            }
        }
        fs::rename(&partial, &self.into)?;
        let notes = [
            (left_out, "links and special files are not kept".to_owned()),
            (too_large, format!("`keep.max-size` is {} bytes", self.max_size)),
        ];
        let notes = notes.into_iter().filter(|(count, _)| *count > 0);
        Ok(notes
            .map(|(count, why)| format!("{count} kept paths were left out: {why}"))
            .collect())
    }

    fn write_file(&self, from: &mut impl Read, to: &Utf8Path) -> std::io::Result<()> {
        use std::io::Write as _;
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut file = fs::File::create(to)?;
        let mut stream = self.redactor.stream();
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = from.read(&mut buffer)?;
            if read == 0 {
                return file.write_all(&stream.finish());
            }
            file.write_all(&stream.push(&buffer[..read]))?;
        }
    }
}

/// An entry's path where it is UTF-8 and stays below its root.
fn safe_path<R: Read>(entry: &tar::Entry<'_, R>) -> Option<Utf8PathBuf> {
    let path = entry.path().ok()?;
    let mut safe = Utf8PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => safe.push(name.to_str()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    (!safe.as_str().is_empty()).then_some(safe)
}

/// Downloads into a file, more than once where that fails.
async fn download(
    sandbox: &mut dyn Sandbox,
    from: &Utf8Path,
    to: &Utf8Path,
    cap: u64,
) -> Result<Option<()>, Failure> {
    let mut tries = 0;
    loop {
        tries += 1;
        let file = fs::tokio::File::create(to)
            .await
            .map_err(|error| lost(ErrorClass::Store, &chain(&error)))?;
        let mut capped = Capped { file, left: cap };
        let downloaded = sandbox.download(from, &mut capped).await;
        let flushed = tokio::io::AsyncWriteExt::flush(&mut capped).await;
        match downloaded {
            Ok(found) => {
                flushed.map_err(|error| lost(ErrorClass::Store, &chain(&error)))?;
                return Ok(found);
            }
            Err(error) if tries == DOWNLOAD_TRIES || capped.left == 0 => {
                return Err(lost(error.class.unwrap_or(ErrorClass::Collect), &chain(&error)));
            }
            Err(_) => {}
        }
    }
}

fn lost(class: ErrorClass, why: &str) -> Failure {
    Failure {
        phase: Phase::Collect,
        class,
        message: why.to_owned(),
        end: None,
    }
}

/// A file that takes only so many bytes.
struct Capped {
    file: fs::tokio::File,
    left: u64,
}

impl AsyncWrite for Capped {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        if bytes.len() as u64 > self.left {
            self.left = 0;
            return Poll::Ready(Err(std::io::Error::other("it is larger than its limit")));
        }
        let written = Pin::new(&mut self.file).poll_write(cx, bytes);
        if let Poll::Ready(Ok(written)) = written {
            self.left -= written as u64;
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.file).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.file).poll_shutdown(cx)
    }
}
