//! Reads results, of any format and from any place that needs no network, into the model. Compares nothing, and
//! does not know what asked for them.

mod attempts;
mod error;
mod files;
mod git;
pub mod harness;
mod json;
mod rows;

use std::io::Read;

use camino::Utf8Path;

pub use error::{Problem, ResultsError};
pub use json::BadJson;

use crate::model::summary::SUMMARY_SCHEMA;
use crate::model::{Policy, ResultSet, Summary};
use files::Tree;
use rows::Row;

/// No single file of results is read beyond this many bytes.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Sources that only the action on GitHub can reach: the ones with an argument, then the others.
const GITHUB_PREFIXES: [&str; 3] = ["artifact:", "run:", "ref:"];
const GITHUB_SOURCES: [&str; 3] = ["latest-release", "auto", "measure"];

/// Reads the results that `source` names.
///
/// - a run directory of ours, or a `summary.json`;
/// - a JSON array of rows;
/// - one file of a harness that holds a whole run: an inspect_ai log, promptfoo's output;
/// - a directory of raw result files: `<experiment>/<eval>.json`, `raw-results-<experiment>__<eval>/<eval>.json`,
///   or `<experiment>/<eval>/run-<n>/result.json`, where each file is one attempt;
/// - `git:REF:PATH`, any of these as it stands in a commit, PATH from the repository's root;
/// - `-`, any of the documents on `stdin`.
///
/// Relative paths start at `directory`, whose repository is the one that `git:` means. `policy` decides pairs whose
/// attempts are known one by one; without it they keep the verdict that was recorded, or are decided by
/// [`Policy::Any`] where none was.
///
/// # Errors
/// What cannot be read, where, and what was expected. `none` is an error too: it names no results, and only the
/// caller knows what that means.
pub fn read(
    source: &str,
    directory: &Utf8Path,
    policy: Option<Policy>,
    stdin: &mut dyn Read,
) -> Result<ResultSet, ResultsError> {
    let on_github = GITHUB_PREFIXES.iter().any(|prefix| source.starts_with(prefix));
    if on_github || GITHUB_SOURCES.contains(&source) {
        return Err(Problem::OnGitHub.at(source));
    }
    if source.is_empty() || source == "none" {
        return Err(Problem::NoSource.at(source));
    }
    if source == "-" {
        let bytes = read_capped(stdin).map_err(|problem| problem.at("standard input"))?;
        return parse("standard input", &bytes, policy);
    }
    if let Some(specification) = source.strip_prefix("git:") {
        return git::read(source, specification, directory, policy);
    }
    read_path(source, &directory.join(source), policy)
}

/// Reads one document: a `summary.json`, an array of rows, or a harness's file with a whole run. `name` is what messages and the set call it;
/// `policy` is as in [`read`].
///
/// # Errors
/// What cannot be read, where, and what was expected.
pub fn parse(name: &str, bytes: &[u8], policy: Option<Policy>) -> Result<ResultSet, ResultsError> {
    parse_document(name, bytes, policy).map_err(|problem| problem.at(name))
}

/// Reads a `summary.json` whole.
///
/// # Errors
/// What cannot be read, where, and what was expected; a major version that this build does not know is named.
pub fn parse_summary(name: &str, bytes: &[u8]) -> Result<Summary, ResultsError> {
    let text = json::text(bytes).map_err(|problem| Problem::from(problem).at(name))?;
    summary(text).map_err(|problem| problem.at(name))
}

fn parse_document(name: &str, bytes: &[u8], policy: Option<Policy>) -> Result<ResultSet, Problem> {
    let of_harness = |rows: Vec<harness::Row>| {
        let rows = rows.into_iter().map(Row::of_harness).collect();
        attempts::assemble(name, rows, policy, &|row| format!("result {}", row + 1))
    };
    if crate::zip::is_zip(bytes) {
        return of_harness(harness::rows(bytes)?.unwrap_or_default());
    }
    let text = json::text(bytes)?;
    match text.trim_ascii_start().bytes().next() {
        Some(b'[') => attempts::assemble(name, rows::parse(text)?, policy, &|row| {
            format!("row {}", row + 1)
        }),
        Some(b'{') => match harness::rows(bytes)? {
            Some(rows) => of_harness(rows),
            None => Ok(attempts::of_summary(name, &summary(text)?, policy)),
        },
        _ => Err(Problem::NotResults(json::excerpt(text, 0))),
    }
}

fn summary(text: &str) -> Result<Summary, Problem> {
    let schema = json::schema(text)?;
    match schema.as_deref() {
        Some(SUMMARY_SCHEMA) => Ok(json::parse(text)?),
        Some(schema) => Err(Problem::Schema(schema.to_owned())),
        None => Err(Problem::NoSchema),
    }
}

fn read_path(source: &str, path: &Utf8Path, policy: Option<Policy>) -> Result<ResultSet, ResultsError> {
    let metadata = fs_err::metadata(path).map_err(|error| Problem::from(error).at(source))?;
    if metadata.is_dir() {
        return files::read(source, &mut Directory { root: path }, policy);
    }
    let bytes = read_file(path).map_err(|problem| problem.at(source))?;
    parse(source, &bytes, policy)
}

fn read_file(path: &Utf8Path) -> Result<Vec<u8>, Problem> {
    read_capped(&mut fs_err::File::open(path)?)
}

fn read_capped(from: &mut dyn Read) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Problem::TooLarge);
    }
    Ok(bytes)
}

/// A directory on disk.
struct Directory<'a> {
    root: &'a Utf8Path,
}

impl Tree for Directory<'_> {
    /// Only what can be a result: no layout goes deeper than `<experiment>/<eval>/run-<n>/result.json`.
    fn paths(&mut self) -> Result<Vec<String>, Problem> {
        let mut paths = Vec::new();
        self.collect("", 1, &mut paths)?;
        paths.sort_unstable();
        Ok(paths)
    }

    fn read(&mut self, path: &str) -> Result<Vec<u8>, Problem> {
        read_file(&self.root.join(path))
    }
}

impl Directory<'_> {
    fn collect(&self, below: &str, depth: usize, paths: &mut Vec<String>) -> Result<(), Problem> {
        for entry in fs_err::read_dir(self.root.join(below))? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let path = match below {
                "" => name.into_owned(),
                _ => format!("{below}/{name}"),
            };
            // A link that leads nowhere is no result, and neither is a pipe.
            let Ok(metadata) = fs_err::metadata(entry.path()) else {
                continue;
            };
            if metadata.is_file() {
                paths.push(path);
            } else if metadata.is_dir() && files::may_hold_results(&path, depth) {
                self.collect(&path, depth + 1, paths)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
