//! Reads what a harness's command leaves as the result of an attempt, or of several. Knows no files, and nothing of how
//! the command ended.

mod agent_eval;
mod auto;
mod evals;
mod graded;
mod harbor;
mod inspect;
mod junit;
mod once;
mod promptfoo;
mod value;

use super::json::{self, BadJson};
use crate::config::Format;
use crate::model::Reading;
use crate::redact::Redactor;
use crate::zip::{self, Archive, BadZip};

/// What a document says.
#[derive(Debug)]
pub struct Read {
    /// Its attempts in their order; at least one.
    pub attempts: Vec<Reading>,
    /// It is of format `evals`, so that it can be published as it is.
    pub is_evals: bool,
}

/// A result that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Not JSON, or two verdicts.
    #[error(transparent)]
    Json(#[from] BadJson),
    /// An archive that cannot be read.
    #[error(transparent)]
    Zip(#[from] BadZip),
    /// A file in an archive is not JSON, or of another shape.
    #[error("`{name}` in it: {problem}")]
    Entry {
        /// The file.
        name: String,
        /// What is wrong with it.
        problem: BadJson,
    },
    /// One line of several.
    #[error("line {number}: {problem}")]
    Line {
        /// From 1.
        number: usize,
        /// What is wrong with it.
        problem: Box<ReadError>,
    },
    /// `passed` is something else than true or false.
    #[error("`passed` is {0}: expected true or false")]
    Passed(String),
    /// It is not what its format says.
    #[error("it is no result of format `{format}`: {what}")]
    Document {
        /// The format.
        format: &'static str,
        /// What is wrong.
        what: String,
    },
    /// `auto` found no format that it knows, or more than one.
    #[error("the result's format cannot be told: {0}\nname it with `attempt.format`")]
    Unknown(String),
    /// `exit-code` has no document.
    #[error("with `format: exit-code` there is no document to read")]
    NoDocument,
}

impl ReadError {
    fn document(format: &'static str, what: impl Into<String>) -> Self {
        Self::Document {
            format,
            what: what.into(),
        }
    }
}

/// Reads a result.
///
/// `auto` takes a document for what its content says that it is, and for nothing where that is not one format. The
/// verdict of `exit-code` is in no document: asking for it is an error.
///
/// # Errors
/// What the bytes are instead of a result.
pub fn read(format: &Format, bytes: &[u8]) -> Result<Read, ReadError> {
    let one = |reading| vec![reading];
    let attempts = match format {
        Format::Auto => return auto::read(bytes),
        Format::Evals => {
            return Ok(Read {
                attempts: one(evals::read(evals::parse(json::text(bytes)?)?)?),
                is_evals: true,
            });
        }
        Format::ExitCode => return Err(ReadError::NoDocument),
        Format::Junit => one(junit::read(junit::text(bytes)?)?),
        Format::AgentEval => one(agent_eval::read(json::text(bytes)?)?),
        Format::Inspect => inspect::read(bytes)?,
        Format::Harbor => one(harbor::read(json::text(bytes)?)?),
        Format::Promptfoo => promptfoo::read(json::text(bytes)?)?,
        Format::Jsonl(at) => graded::read_lines(json::text(bytes)?, at)?,
        Format::Json(at) => one(graded::read(json::text(bytes)?, at)?),
    };
    Ok(Read {
        attempts,
        is_evals: false,
    })
}

/// Takes secrets out of a result, in an archive out of each of its files.
///
/// # Errors
/// An archive that cannot be read: what is in it is not known.
pub fn redact(bytes: &[u8], redactor: &Redactor) -> Result<Vec<u8>, ReadError> {
    if !zip::is_zip(bytes) {
        return Ok(redactor.bytes(bytes).into_owned());
    }
    let archive = Archive::open(bytes, inspect::LIMITS)?;
    Ok(archive.map(|file| redactor.bytes(&file).into_owned())?)
}

/// A row of a whole run that one document holds.
pub(super) struct Row {
    pub(super) experiment: String,
    pub(super) eval: String,
    /// From 1.
    pub(super) run: u32,
    pub(super) ending: RowEnding,
    pub(super) labels: Vec<(&'static str, String)>,
}

/// How an attempt in a document ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowEnding {
    Passed,
    Failed,
    Errored,
}

/// The rows of a document that holds a whole run; `None` where it is not of a format that can.
pub(super) fn rows(bytes: &[u8]) -> Result<Option<Vec<Row>>, ReadError> {
    if zip::is_zip(bytes) {
        return inspect::rows(bytes).map(Some);
    }
    match auto::candidates_of_object(json::text(bytes)?)?.as_slice() {
        [auto::Candidate::Inspect] => inspect::rows(bytes).map(Some),
        [auto::Candidate::Promptfoo] => promptfoo::rows(json::text(bytes)?).map(Some),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests;
