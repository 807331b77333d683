//! What can be wrong with a source of results, in words for whoever named it.

use std::fmt;
use std::io;

use super::harness::ReadError;
use super::json::BadJson;
use crate::model::InvalidId;
use crate::model::summary::SUMMARY_SCHEMA;

/// Results that cannot be read.
#[derive(Debug)]
pub struct ResultsError {
    /// The source, or the file in it.
    pub place: String,
    /// What is wrong with it.
    pub problem: Problem,
}

impl fmt::Display for ResultsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read results from `{}`: {}", self.place, self.problem)
    }
}

impl std::error::Error for ResultsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.problem.source()
    }
}

/// What is wrong with a source of results.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// It names no results at all.
    #[error("it names no results")]
    NoSource,
    /// It can only be reached on GitHub.
    #[error("only the action, on GitHub, can reach it")]
    OnGitHub,
    /// Nothing is there.
    #[error("there is no such file or directory")]
    Missing,
    /// Something is there that the operating system does not let us read.
    #[error("it cannot be opened or read to its end")]
    Io(#[source] io::Error),
    /// It is beyond the cap.
    #[error("it is larger than 256 MiB")]
    TooLarge,
    /// It is not JSON, or not of the expected shape.
    #[error(transparent)]
    Json(#[from] BadJson),
    /// It is a harness's file that cannot be read.
    #[error(transparent)]
    Harness(Box<ReadError>),
    /// The same, in a row of an array.
    #[error("row {row}: {problem}")]
    Row {
        /// From 1.
        row: usize,
        /// What is wrong with it.
        problem: BadJson,
    },
    /// It begins with neither a bracket nor a brace.
    #[error("expected a JSON array of rows or a `summary.json`, found `{0}`")]
    NotResults(String),
    /// It is an object that does not say what it is.
    #[error(
        "it is a JSON object without `schema`: expected an array of rows, a `summary.json` of evalwave, an inspect_ai log, \
         or promptfoo's output"
    )]
    NoSchema,
    /// It is a document of ours of another kind or a newer version.
    #[error("it is written as `{0}`, and this version of evalwave reads `{SUMMARY_SCHEMA}`")]
    Schema(String),
    /// It is a run directory whose run did not end.
    #[error(
        "the run in it did not end: there is a journal and no `summary.json`\n`evalwave report` shows what the journal holds"
    )]
    Unfinished,
    /// A directory without anything that looks like a result.
    #[error(
        "there is no result in it\nexpected `summary.json`, `<experiment>/<eval>.json`, \
         `raw-results-<experiment>__<eval>/<eval>.json` or `<experiment>/<eval>/run-<n>/result.json`"
    )]
    NoResults,
    /// A row or document lacks what it cannot do without.
    #[error("{item} has no `{field}`")]
    Lacks {
        /// Which row or file.
        item: String,
        /// What it lacks.
        field: &'static str,
    },
    /// A row or document names its eval twice, differently.
    #[error("{item} has `eval` `{eval}` and `eval_id` `{eval_id}`")]
    TwoEvals {
        /// Which row or file.
        item: String,
        /// One name.
        eval: String,
        /// The other.
        eval_id: String,
    },
    /// A row or document has an id that cannot be used.
    #[error("{item}: {problem}")]
    Id {
        /// Which row or file.
        item: String,
        /// What is wrong with the id.
        problem: InvalidId,
    },
    /// A row or document says that it passed and that nothing was measured.
    #[error("{item} has `passed: true` and `attempts: 0`")]
    PassedNothing {
        /// Which row or file.
        item: String,
    },
    /// Two rows or documents are about the same thing.
    #[error("{first} and {second} are both {what}\nattempts of one pair are told apart by `run`")]
    Duplicate {
        /// The earlier one.
        first: String,
        /// The later one.
        second: String,
        /// The pair or attempt.
        what: String,
    },
    /// A directory name that can be split into a pair in more ways than one.
    #[error(
        "`{0}` can be read as more than one pair, and no result in it says which\n\
         expected a file named after its eval"
    )]
    Ambiguous(String),
    /// A reference that is not written as `git:REF:PATH`.
    #[error("expected `git:REF:PATH`, REF without a leading `-`")]
    GitForm,
    /// There is no git.
    #[error("git cannot be started")]
    GitMissing(#[source] io::Error),
    /// The directory is in no repository.
    #[error("`{directory}` is in no git repository that can be read: {detail}")]
    NoRepository {
        /// Where it was looked for.
        directory: String,
        /// What git says.
        detail: String,
    },
    /// The reference is unknown, and fetching it did not help.
    #[error("there is no commit `{reference}` here, and it cannot be fetched from `origin`: {detail}")]
    NoReference {
        /// As written.
        reference: String,
        /// What git says.
        detail: String,
    },
    /// The commit does not have the path.
    #[error("commit `{commit}` has no `{path}`\nthe path starts at the repository's root")]
    NotInCommit {
        /// Abbreviated.
        commit: String,
        /// As written.
        path: String,
    },
    /// git failed in a way that is not foreseen.
    #[error("git {command} failed: {detail}")]
    Git {
        /// The subcommand.
        command: String,
        /// What git says.
        detail: String,
    },
}

impl Problem {
    /// Names the place.
    pub(super) fn at(self, place: &str) -> ResultsError {
        ResultsError {
            place: place.to_owned(),
            problem: self,
        }
    }

    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(self)
    }
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        Self::Harness(Box::new(error))
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            _ => Self::Io(error),
        }
    }
}
