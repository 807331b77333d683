//! A tree of result files, on disk or in a commit: which of its paths are results, and of which pair.

use std::collections::BTreeSet;

use percent_encoding::percent_decode_str;

use super::attempts;
use super::error::{Problem, ResultsError};
use super::json::{self, BadJson};
use super::rows::Row;
use crate::model::layout::{JOURNAL_FILE, RAW_RESULTS, SUMMARY_FILE};
use crate::model::{Policy, ResultSet, file_name};

/// Files by paths with `/`, relative to the directory that is the source.
pub(super) trait Tree {
    /// Every file that can be a result, sorted.
    fn paths(&mut self) -> Result<Vec<String>, Problem>;

    /// The bytes of one of them.
    fn read(&mut self, path: &str) -> Result<Vec<u8>, Problem>;
}

/// Whether a directory `depth` levels below the root can have results in or below it.
pub(super) fn may_hold_results(path: &str, depth: usize) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    match depth {
        1 | 2 => !name.starts_with('.'),
        3 => run_number(name).is_some(),
        _ => false,
    }
}

/// Reads a run directory or a directory of raw result files.
pub(super) fn read(
    source: &str,
    tree: &mut dyn Tree,
    policy: Option<Policy>,
) -> Result<ResultSet, ResultsError> {
    let within = |path: &str| format!("{}/{path}", source.trim_end_matches('/'));
    let paths = tree.paths().map_err(|problem| problem.at(source))?;
    let has = |name: &str| paths.binary_search_by(|path| path.as_str().cmp(name)).is_ok();
    if has(SUMMARY_FILE) {
        let bytes = tree
            .read(SUMMARY_FILE)
            .map_err(|problem| problem.at(&within(SUMMARY_FILE)))?;
        if is_ours(&bytes) {
            return super::parse_summary(&within(SUMMARY_FILE), &bytes)
                .map(|summary| attempts::of_summary(source, &summary, policy));
        }
    } else if has(JOURNAL_FILE) {
        return Err(Problem::Unfinished.at(source));
    }

    let found: Vec<Found> = paths.iter().filter_map(|path| Found::of(path)).collect();
    let mut items: Vec<String> = Vec::new();
    let mut rows: Vec<Row> = Vec::new();
    for found in &found {
        let row = read_row(found, tree).map_err(|problem| problem.at(&within(found.path)))?;
        rows.push(row);
        items.push(found.path.to_owned());
    }
    for directory in without_result(&paths, &found) {
        let documents =
            under_other_names(directory, &paths, tree).map_err(|problem| problem.at(&within(directory)))?;
        if documents.is_empty() {
            rows.push(no_result_of(directory).map_err(|problem| problem.at(source))?);
            items.push(directory.to_owned());
        }
        for (path, row) in documents {
            rows.push(row);
            items.push(path.to_owned());
        }
    }
    if rows.is_empty() {
        return Err(Problem::NoResults.at(source));
    }
    attempts::assemble(source, rows, policy, &|row| format!("`{}`", items[row]))
        .map_err(|problem| problem.at(source))
}

/// A file that is a result, with what its path says.
#[derive(Debug, PartialEq, Eq)]
struct Found<'a> {
    path: &'a str,
    experiment: String,
    eval: String,
    run: Option<u32>,
}

impl<'a> Found<'a> {
    fn of(path: &'a str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').collect();
        let (directory, eval, run) = match parts.as_slice() {
            [directory, file] => (*directory, file.strip_suffix(".json")?, None),
            [directory, eval, run, "result.json"] => (*directory, *eval, Some(run_number(run)?)),
            _ => return None,
        };
        if directory.starts_with('.') || eval.starts_with('.') {
            return None;
        }
        let (experiment, eval) = match directory.strip_prefix(RAW_RESULTS) {
            // The tree of an attempt lies here too: only the file that is named after the eval is the result.
            Some(pair) => {
                let experiment = pair.strip_suffix(eval)?.strip_suffix("__")?;
                (decode(experiment)?, decode(eval)?)
            }
            None => (directory.to_owned(), eval.to_owned()),
        };
        Some(Self {
            path,
            experiment,
            eval,
            run,
        })
    }
}

fn run_number(name: &str) -> Option<u32> {
    name.strip_prefix("run-")?.parse().ok()
}

fn decode(name: &str) -> Option<String> {
    let decoded = percent_decode_str(name).decode_utf8().ok()?;
    Some(decoded.into_owned()).filter(|decoded| !decoded.is_empty())
}

/// The document's own names go before those of its path, which some harnesses shorten.
fn read_row(found: &Found<'_>, tree: &mut dyn Tree) -> Result<Row, Problem> {
    let bytes = tree.read(found.path)?;
    let mut row: Row = json::parse(json::text(&bytes)?)?;
    let says_what_it_is = row.eval.is_some() || row.eval_id.is_some();
    if row.passed.is_none() && says_what_it_is && !row.throttled {
        row.passed = Some(false);
    }
    row.experiment.get_or_insert_with(|| found.experiment.clone());
    if !says_what_it_is {
        row.eval = Some(found.eval.clone());
    }
    row.run = found.run.or(row.run);
    Ok(row)
}

/// Directories of pairs, by their name, that hold files but no result: their attempts gave none.
fn without_result<'a>(paths: &'a [String], found: &[Found<'_>]) -> BTreeSet<&'a str> {
    let directory_of = |path: &'a str| path.split_once('/').map(|(directory, _)| directory);
    let mut directories: BTreeSet<&str> = paths
        .iter()
        .filter_map(|path| directory_of(path))
        .filter(|directory| directory.starts_with(RAW_RESULTS))
        .collect();
    for found in found {
        if let Some((directory, _)) = found.path.split_once('/') {
            directories.remove(directory);
        }
    }
    directories
}

/// The documents in a pair's directory that say what stands for it, whatever they are called (`publish.as`). A file
/// that an attempt has left there may look like one, but of no other pair.
fn under_other_names<'a>(
    directory: &str,
    paths: &'a [String],
    tree: &mut dyn Tree,
) -> Result<Vec<(&'a str, Row)>, Problem> {
    let is_in = |path: &&'a String| {
        let rest = path
            .strip_prefix(directory)
            .and_then(|rest| rest.strip_prefix('/'));
        // As deep as a directory is looked into.
        let is_near = |rest: &str| match rest.split('/').collect::<Vec<_>>().as_slice() {
            [_] => true,
            [within, _] => !within.starts_with('.'),
            [within, run, _] => !within.starts_with('.') && run_number(run).is_some(),
            _ => false,
        };
        rest.is_some_and(|rest| rest.ends_with(".json") && is_near(rest))
    };
    let mut documents = Vec::new();
    for path in paths.iter().filter(is_in) {
        let bytes = tree.read(path)?;
        let row: Result<Row, BadJson> = json::text(&bytes).and_then(json::parse);
        let is_document = |row: &Row| row.passed.is_some() && row.attempts.is_some();
        if let Some(row) = row.ok().filter(is_document) {
            documents.extend(of_directory(directory, row)?.map(|row| (path.as_str(), row)));
        }
    }
    Ok(documents)
}

/// A row with the names that its pair's directory has; `None` where its own are others.
fn of_directory(directory: &str, row: Row) -> Result<Option<Row>, Problem> {
    if let (Some(experiment), Some(eval)) = (&row.experiment, row.eval.as_ref().or(row.eval_id.as_ref())) {
        let own = format!("{RAW_RESULTS}{}__{}", file_name(experiment), file_name(eval));
        return Ok(Some(row).filter(|_| own == directory));
    }
    let named = no_result_of(directory)?;
    let is_same = |own: Option<&String>, named: &Option<String>| own.is_none() || own == named.as_ref();
    let is_its_own = is_same(row.experiment.as_ref(), &named.experiment)
        && is_same(row.eval.as_ref().or(row.eval_id.as_ref()), &named.eval);
    Ok(is_its_own.then_some(Row {
        experiment: named.experiment,
        eval: named.eval,
        eval_id: None,
        ..row
    }))
}

fn no_result_of(directory: &str) -> Result<Row, Problem> {
    let pair = directory.strip_prefix(RAW_RESULTS).unwrap_or(directory);
    let ambiguous = || Problem::Ambiguous(directory.to_owned());
    let (experiment, eval) = pair.split_once("__").ok_or_else(ambiguous)?;
    // `a___b` splits in two places as well.
    if pair.rsplit_once("__") != Some((experiment, eval)) {
        return Err(ambiguous());
    }
    Ok(Row {
        experiment: Some(decode(experiment).ok_or_else(ambiguous)?),
        eval: Some(decode(eval).ok_or_else(ambiguous)?),
        attempts: Some(0),
        ..Row::default()
    })
}

/// A harness may leave a `summary.json` of its own.
fn is_ours(bytes: &[u8]) -> bool {
    match json::text(bytes).and_then(json::schema) {
        Ok(schema) => schema.is_some_and(|schema| schema.starts_with("evalwave.")),
        // Broken: whoever wrote it, the message about it is worth more than silence.
        Err(_) => true,
    }
}
