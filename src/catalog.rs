//! Finds what a repository holds: pairs, changed files, the files of a workspace. Decides nothing about them.

mod checkout;
mod command;
mod discover;
mod entries;
mod error;
mod filter;
mod front_matter;
mod git;
mod harness;
mod label;
mod leash;
mod path;
mod walk;
mod workspace;
mod yaml;

use std::io::Read;

use camino::Utf8Path;

use crate::config::{SuiteConfig, SuiteSource};
use crate::model::Pair;
use entries::Syntax;

pub use checkout::{BaseRevision, Checkout, base_revision, default_branch, remove_left};
pub use error::{CatalogError, EntryProblem};
pub use git::{changed_files, commit, commit_named, is_tracked, second_parent};
pub use harness::{Harness, harnesses};
pub use leash::Leash;
pub use workspace::workspace_files;

/// Most bytes of pairs that are read from anywhere.
const MOST_BYTES: u64 = 64 << 20;

/// The suite's pairs after `include` and `exclude`, in the order in which they are written; discovered ones by
/// experiment, then eval. `stdin` is read only where the pairs come from standard input, and `leash` held only where they
/// come from a command.
///
/// An entry is a map of `eval` (or `eval_id`), `experiment` and labels. A label is a string or a list of strings, each
/// on one line; numbers and booleans are taken as they are written, `null` and empty strings are not set.
///
/// # Errors
/// Pairs that cannot be read or found, an id or label that cannot be used, the same pair twice, two pairs with the
/// same directory name, or a directory name that is too long.
pub fn pairs(
    suite: &SuiteConfig,
    root: &Utf8Path,
    stdin: &mut dyn Read,
    leash: &Leash,
) -> Result<Vec<Pair>, CatalogError> {
    let all = match &suite.source {
        SuiteSource::File(path) => {
            let origin = format!("`{path}`");
            let file = fs_err::File::open(root.join(path)).map_err(|source| read_pairs(&origin, source))?;
            let syntax = match path.extension() {
                Some("json") => Syntax::Json,
                _ => Syntax::Any,
            };
            entries::read(&text(file, &origin)?, &origin, syntax)?
        }
        SuiteSource::Stdin => {
            let origin = "standard input";
            entries::read(&text(stdin, origin)?, origin, Syntax::Any)?
        }
        SuiteSource::Json { origin, text } => entries::read(text, &format!("`{origin}`"), Syntax::Json)?,
        SuiteSource::Inline(entries) => entries::inline(entries)?,
        SuiteSource::Command(line) => {
            let origin = format!("the output of `{}`", command::shown(line));
            let output = command::output(line, root, leash)?;
            entries::read(&utf8(output, &origin)?, &origin, Syntax::Json)?
        }
        SuiteSource::Discover { evals, experiments } => discover::pairs(root, evals, experiments.as_ref())?,
    };
    let kept = filter::keep(all, &suite.include, &suite.exclude)?;
    filter::check_directories(&kept)?;
    Ok(kept)
}

fn text(from: impl Read, origin: &str) -> Result<String, CatalogError> {
    let mut bytes = Vec::new();
    from.take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| read_pairs(origin, source))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(CatalogError::TooLarge(origin.to_owned()));
    }
    utf8(bytes, origin)
}

fn read_pairs(origin: &str, source: std::io::Error) -> CatalogError {
    CatalogError::ReadPairs {
        origin: origin.to_owned(),
        source,
    }
}

fn utf8(bytes: Vec<u8>, origin: &str) -> Result<String, CatalogError> {
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        CatalogError::NotText {
            origin: origin.to_owned(),
            line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
        }
    })
}

#[cfg(test)]
mod git_tests;
#[cfg(test)]
mod tests;
