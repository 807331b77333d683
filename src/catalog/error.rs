//! What can be wrong with what a repository holds, in words for its maintainer.

use camino::Utf8PathBuf;

use crate::glob::InvalidGlob;
use crate::model::InvalidId;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why pairs or files cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// There is no repository to take a base revision from.
    #[error(
        "cannot measure a base revision: `{0}` is in no git repository\nname another baseline than `measure`"
    )]
    NoBaseRepository(Utf8PathBuf),
    /// The base revision is not there.
    #[error(
        "cannot measure `{reference}`: it names no commit here, and cannot be fetched from `origin`: {detail}\nfetch it, or name another with `measure:REF`; actions/checkout fetches all of them with `fetch-depth: 0`"
    )]
    UnknownBase {
        /// What was asked for.
        reference: String,
        /// What git says.
        detail: String,
    },
    /// Nothing says which branch is the base.
    #[error(
        "cannot tell the base revision: no default branch of the remote `origin` is known\nname it, for instance `measure:main`, or run `git remote set-head origin --auto`"
    )]
    NoDefaultBranch,
    /// The base branch and this one never were one.
    #[error(
        "cannot measure a base revision: HEAD has no commit in common with `{0}`\nfetch more of the history, or name a commit with `measure:REF`"
    )]
    NoBaseInCommon(String),
    /// A file or a directory cannot be read.
    #[error("cannot read the repository")]
    Read(#[source] std::io::Error),
    /// A file of pairs, or standard input, cannot be read.
    #[error("cannot read the pairs in {origin}")]
    ReadPairs {
        /// Where they should come from.
        origin: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// There are more bytes of pairs than any suite has.
    #[error("cannot read the pairs in {0}: they are larger than 64 MiB")]
    TooLarge(String),
    /// Bytes that are no text.
    #[error("cannot read the pairs in {origin}: line {line} is not UTF-8 text")]
    NotText {
        /// Where they came from.
        origin: String,
        /// From 1.
        line: usize,
    },
    /// Text that is no list of pairs.
    #[error("cannot read the pairs in {origin}{at}")]
    Syntax {
        /// Where it came from.
        origin: String,
        /// The entry, where it is known.
        at: At,
        /// What is wrong, and on which line.
        #[source]
        source: Cause,
    },
    /// An entry that is no pair.
    #[error("cannot use entry {entry} of the pairs in {origin}")]
    Entry {
        /// Where it came from.
        origin: String,
        /// From 1.
        entry: usize,
        /// What is wrong with it.
        #[source]
        source: EntryProblem,
    },
    /// A pair that is written twice.
    #[error("cannot use entry {entry} of the pairs in {origin}: the pair `{pair}` is already entry {first}")]
    Duplicate {
        /// Where they came from.
        origin: String,
        /// From 1.
        entry: usize,
        /// The pair.
        pair: String,
        /// Where it is first, from 1.
        first: usize,
    },
    /// The command that prints pairs cannot be started.
    #[error("cannot start `{command}`, which prints the pairs")]
    Start {
        /// The command.
        command: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The command that prints pairs failed.
    #[error("cannot get the pairs from `{command}`: it ended with {status}{stderr}")]
    Command {
        /// The command.
        command: String,
        /// How it ended.
        status: String,
        /// The end of its standard error, from a second line on.
        stderr: String,
    },
    /// A glob of the suite or the upload is none.
    #[error("cannot use `{key}`")]
    Glob {
        /// The key's path.
        key: &'static str,
        /// What is wrong.
        #[source]
        source: InvalidGlob,
    },
    /// A glob of evals or experiments matches nothing but directories.
    #[error(
        "cannot use `{key}`: the glob `{glob}` matches directories and no file\nname a file in each, for instance `{glob}/PROMPT.md`"
    )]
    OnlyDirectories {
        /// The key's path.
        key: &'static str,
        /// The glob.
        glob: String,
    },
    /// An id that cannot be used.
    #[error("cannot use {from} as an id of `{key}`")]
    Id {
        /// The key's path.
        key: &'static str,
        /// The file or the list's entry.
        from: String,
        /// What is wrong with it.
        #[source]
        source: InvalidId,
    },
    /// A file in the root, whose directory has no name.
    #[error(
        "cannot name `{file}` after its directory: it lies in the root\nset `{key}.id` to `stem` to take the file's name"
    )]
    NoDirectory {
        /// The key's path.
        key: &'static str,
        /// The file.
        file: Utf8PathBuf,
    },
    /// Two files or entries that give the same id.
    #[error("cannot tell two of `{key}` apart: {first} and {second} both have the id `{id}`")]
    SameId {
        /// The key's path.
        key: &'static str,
        /// The id.
        id: String,
        /// The one.
        first: String,
        /// The other.
        second: String,
    },
    /// A listed id whose label cannot be used.
    #[error("cannot use {from} of `{key}`")]
    Label {
        /// The key's path.
        key: &'static str,
        /// The list's entry.
        from: String,
        /// What is wrong with it.
        #[source]
        source: EntryProblem,
    },
    /// Front matter that is no map of labels.
    #[error("cannot read the front matter of `{file}`, line {line}")]
    FrontMatter {
        /// The file.
        file: Utf8PathBuf,
        /// From 1, in the file.
        line: usize,
        /// What is wrong.
        #[source]
        source: Cause,
    },
    /// Two pairs that would share a directory.
    #[error(
        "cannot keep the pairs `{first}` and `{second}` apart on disk: their directories would be `{directory}` and `{other}`\nrename one of their ids; letter case does not count"
    )]
    SameDirectory {
        /// The one.
        first: String,
        /// The other.
        second: String,
        /// The one's directory.
        directory: String,
        /// The other's.
        other: String,
    },
    /// A directory name that file systems may refuse.
    #[error(
        "cannot keep the pair `{pair}` on disk: its directory's name would have {bytes} bytes, more than 200\nshorten one of its ids"
    )]
    LongDirectory {
        /// The pair.
        pair: String,
        /// The name's length.
        bytes: usize,
    },
    /// Git is not installed, or cannot be started.
    #[error("cannot start `git`\ninstall git, or do without what needs it: {without}")]
    NoGit {
        /// What works without it.
        without: &'static str,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// There is no repository to compare with.
    #[error("cannot tell which files changed: `{0}` is not in a git work tree")]
    NoRepository(Utf8PathBuf),
    /// A reference that git would take for an option, or nothing.
    #[error("cannot use `{0}` as a git reference\nname a branch, a tag or a commit")]
    BadReference(String),
    /// A reference that is not in this repository.
    #[error(
        "cannot find the commit `{0}` in this repository\nfetch it first; actions/checkout does with `fetch-depth: 0`"
    )]
    UnknownReference(String),
    /// The checkout has no history in common with the reference.
    #[error(
        "cannot find where this checkout and `{0}` part: they have no commit in common here\nfetch more history with `git fetch --unshallow`; actions/checkout does with `fetch-depth: 0`"
    )]
    NoMergeBase(String),
    /// Git failed for another reason.
    #[error("cannot {what}: git says: {stderr}")]
    Git {
        /// What was asked of it.
        what: &'static str,
        /// What it said.
        stderr: String,
    },
    /// A file whose name is no text.
    #[error(
        "cannot use the file {0:?}: its name is not UTF-8\nrename it; `attempt.upload.exclude` keeps it out of sandboxes"
    )]
    FileName(String),
    /// The output directory is the workspace itself.
    #[error(
        "cannot write the run into `{0}`: it is the workspace itself\nname a directory in it or outside of it"
    )]
    OutputIsRoot(Utf8PathBuf),
}

/// An entry's number, as part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At(pub Option<usize>);

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |entry| write!(f, ", entry {entry}"))
    }
}

/// What is wrong with one entry of a list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryProblem {
    /// A key that every pair needs.
    #[error("`{key}` is missing: expected `eval`, `experiment` and any labels{hint}")]
    Missing {
        /// The key.
        key: &'static str,
        /// A key that may be meant.
        hint: String,
    },
    /// The eval is named twice.
    #[error("`eval` and `eval_id` mean the same: expected one of them")]
    TwoEvals,
    /// A key that stands there twice.
    #[error("`{0}` is there twice")]
    Repeated(String),
    /// A value of another type.
    #[error("`{key}` is {found}: expected {expected}")]
    Type {
        /// The key.
        key: String,
        /// What stands there.
        found: &'static str,
        /// What may stand there.
        expected: &'static str,
    },
    /// An id that cannot be used.
    #[error("`{key}` is no id")]
    Id {
        /// The key.
        key: &'static str,
        /// What is wrong with it.
        #[source]
        source: InvalidId,
    },
    /// A label that has a placeholder's name.
    #[error("`{0}` cannot be a label: it is a placeholder of every attempt")]
    Reserved(String),
    /// A label's name that nothing could select.
    #[error(
        "{0:?} cannot be a label's name: expected text without `=`, `,`, braces or white space at its ends"
    )]
    LabelName(String),
    /// A label's value that does not fit on a line.
    #[error("the label `{0}` has a control character in it: expected one line of text")]
    LabelValue(String),
}
