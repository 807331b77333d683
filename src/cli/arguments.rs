//! The command line, as it is written and explained.

use camino::Utf8PathBuf;
use clap::{Args, Parser, ValueEnum};

use crate::model::RunPlan;
use crate::plan::{Globs, LabelGlobs};

/// Runs the eval suite of an AI agent in parallel sandboxes and says what changed against a baseline.
#[derive(Debug, Parser)]
#[command(name = "evalwave", version, propagate_version = true, max_term_width = 100, after_help = START)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Subcommand,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum Subcommand {
    /// Show what `run` would do: pairs, attempts, how many at once and why; nothing is spent
    Plan(PlanArguments),
    /// Run the suite, decide each pair, compare with a baseline
    #[command(after_help = EXIT_CODES)]
    Run(RunArguments),
    /// Compare two sets of results that are there already; nothing is run
    #[command(after_help = EXIT_CODES)]
    Compare(CompareArguments),
    /// Compare runs of the same thing: how noisy they are, and what each gate would have done
    Calibrate(CalibrateArguments),
    /// Show a run again from its directory
    Report(ReportArguments),
    /// Join the run directories of shards; say what is missing
    #[command(after_help = EXIT_CODES)]
    Merge(MergeArguments),
    /// Do what a step of a GitHub workflow asks for (called by action.yml, not by hand)
    #[command(after_help = EXIT_CODES)]
    Action,
    /// Post or update the comment of a run, in a workflow that follows the run's own
    Comment(DirectoryArguments),
    /// Finish what a run that died has left behind: its sandboxes, its comment
    Cleanup(CleanupArguments),
    /// Make, look at or delete the snapshot that sandboxes of Vercel start from, with `attempt.setup` done
    Snapshot(SnapshotArguments),
    /// Look at the repository, write a first evalwave.yml and workflow, and show the plan
    Init(InitArguments),
    /// Print the JSON Schema of a document
    Schema(SchemaArguments),
    /// Print a script with which a shell completes commands and flags
    #[command(after_help = COMPLETIONS)]
    Completions(CompletionsArguments),
    /// Print a page of the manual
    #[command(after_help = MAN)]
    Man(ManArguments),
}

const START: &str = "\
Start with `evalwave plan`: it reads evalwave.yml, shows what would run, and spends nothing.
Each command explains itself: `evalwave run --help`.";

const EXIT_CODES: &str = "\
Exit codes:
    0  done, and no gate failed
    1  a gate named in `fail-on` failed
    2  wrong usage, or a configuration or input that cannot be read: nothing was run
    3  incomplete: a pair has no result, for reasons that are not the agent's, or a file was not written
    4  nothing was measured: the suite is empty, or no attempt gave a result
  130  cancelled";

const COMPLETIONS: &str = "\
For example, in ~/.bashrc:
  source <(evalwave completions bash)";

const MAN: &str = "\
For example:
  evalwave man run | man -l -";

/// What to run.
#[derive(Debug, Default, Args)]
pub(super) struct SelectionArguments {
    /// The configuration [default: evalwave.yml, then .github/evalwave.yml]
    #[arg(short, long, value_name = "FILE")]
    pub(super) config: Option<Utf8PathBuf>,
    /// Take the pairs from a JSON or YAML file, `-` for standard input
    #[arg(long, value_name = "FILE|-")]
    pub(super) pairs: Option<String>,
    /// Take the pairs from JSON text
    #[arg(long, value_name = "JSON")]
    pub(super) pairs_json: Option<String>,
    /// Only pairs of these experiments, like 'claude-*' (repeatable, comma-separated)
    #[arg(long, value_name = "GLOB")]
    pub(super) experiment: Vec<Globs>,
    /// Only pairs of these evals (repeatable, comma-separated)
    #[arg(long, value_name = "GLOB")]
    pub(super) eval: Vec<Globs>,
    /// Only pairs with this label, like provider=anthropic (repeatable, comma-separated)
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) label: Vec<LabelGlobs>,
    /// Only pairs whose files changed since this commit (see `suite.changed`)
    #[arg(long, value_name = "REF")]
    pub(super) changed_since: Option<String>,
    /// Only part K of N parts that together are the whole selection, like 2/4
    #[arg(long, value_name = "K/N")]
    pub(super) shard: Option<String>,
    /// Attempts of each pair
    #[arg(long, value_name = "N")]
    pub(super) runs: Option<String>,
    /// When attempts start: sequential, parallel or adaptive
    #[arg(long, value_name = "STRATEGY")]
    pub(super) strategy: Option<String>,
    /// Short for `--strategy parallel` with every attempt at once; `=false` for sequential
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(super) parallel_attempts: Option<String>,
    /// How many attempts run at once (with `sequential`: pairs)
    #[arg(long, value_name = "N|auto")]
    pub(super) concurrency: Option<String>,
    /// How long the agent may take for one attempt, like 90s or 12m
    #[arg(long, value_name = "DURATION")]
    pub(super) timeout: Option<String>,
    /// Where attempts run: local, docker, vercel or command
    #[arg(long, value_name = "KIND")]
    pub(super) sandbox: Option<String>,
}

impl SelectionArguments {
    /// Whether a plan without pairs is as it should be: of the suite's pairs none has changed, or none is in the shard.
    pub(super) fn is_skipped(&self, plan: &RunPlan) -> bool {
        let changed = given(self.changed_since.as_deref());
        let may_be_empty = changed.or(given(self.shard.as_deref())).is_some();
        plan.pairs.is_empty() && plan.selection.of > 0 && may_be_empty
    }
}

/// What a flag was given, an empty text being none.
pub(super) fn given<T: AsRef<str> + ?Sized>(flag: Option<&T>) -> Option<&T> {
    flag.filter(|text| !text.as_ref().trim().is_empty())
}

/// A path that has to be named: an empty one, which would be the current directory, is none.
fn named(text: &str) -> Result<Utf8PathBuf, &'static str> {
    given(Some(text))
        .map(Utf8PathBuf::from)
        .ok_or("expected a path, found an empty text")
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum TextOrJson {
    Text,
    Json,
}

#[derive(Debug, Args)]
pub(super) struct PlanArguments {
    #[command(flatten)]
    pub(super) selection: SelectionArguments,
    /// What the run is compared with, and durations are taken from: a file, a directory, git:REF:PATH, measure, none
    #[arg(long, value_name = "SRC")]
    pub(super) baseline: Option<String>,
    /// Earlier results, each a run, which durations are taken from too (repeatable)
    #[arg(long, value_name = "SRC", num_args = 1..)]
    pub(super) history: Vec<String>,
    /// How to print the plan
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: TextOrJson,
}

#[derive(Debug, Args)]
pub(super) struct RunArguments {
    #[command(flatten)]
    pub(super) selection: SelectionArguments,
    /// Where to write the run [default: evalwave-out/<run id>]
    #[arg(short, long, value_name = "DIR")]
    pub(super) output_dir: Option<Utf8PathBuf>,
    /// Go on with the run that the output directory holds [default: evalwave-out/latest]: what has a result is kept
    #[arg(long, conflicts_with = "overwrite")]
    pub(super) resume: bool,
    /// Replace the run that the output directory holds
    #[arg(long)]
    pub(super) overwrite: bool,
    /// What to compare with: a file, a directory, git:REF:PATH, measure, measure:REF, none
    #[arg(long, value_name = "SRC")]
    pub(super) baseline: Option<String>,
    /// What makes the run fail, like incomplete,regression,below:80%
    #[arg(long, value_name = "LIST")]
    pub(super) fail_on: Option<String>,
    /// Earlier runs, from which flaky pairs are known (repeatable)
    #[arg(long, value_name = "SRC", num_args = 1..)]
    pub(super) history: Vec<String>,
    /// Try each flipped pair so many times more before it is called a flip
    #[arg(long, value_name = "N")]
    pub(super) confirm: Option<String>,
    /// How to print the summary
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: TextOrJson,
    /// Show no progress, only what goes wrong and the summary
    #[arg(short, long, conflicts_with = "verbose")]
    pub(super) quiet: bool,
    /// Tell when each try starts and how each attempt ends, also below a live view
    #[arg(short, long)]
    pub(super) verbose: bool,
}

/// How a comparison is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ComparisonFormat {
    Text,
    Markdown,
    Json,
}

#[derive(Debug, Args)]
pub(super) struct CompareArguments {
    /// What to compare with: a file, a directory, git:REF:PATH, - for standard input
    #[arg(long, value_name = "SRC", required = true)]
    pub(super) baseline: Vec<String>,
    /// What to compare, from the same kinds of sources
    #[arg(long, value_name = "SRC", required = true)]
    pub(super) current: Vec<String>,
    /// Earlier runs, from which flaky pairs are known (repeatable)
    #[arg(long, value_name = "SRC", num_args = 1..)]
    pub(super) history: Vec<String>,
    /// What makes the command fail, like regression,drop:5pp
    #[arg(long, value_name = "LIST")]
    pub(super) fail_on: Option<String>,
    /// How attempts decide a pair where the results do not say: any, all, majority, mean:0.5
    #[arg(long, value_name = "POLICY")]
    pub(super) policy: Option<String>,
    /// Show the pass rate by this label too
    #[arg(long, value_name = "LABEL")]
    pub(super) group_by: Option<String>,
    /// How to print the comparison
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: ComparisonFormat,
}

#[derive(Debug, Args)]
pub(super) struct CalibrateArguments {
    /// Runs of the same thing, two at least: files, directories, git:REF:PATH
    #[arg(value_name = "SRC", required = true, num_args = 2..)]
    pub(super) runs: Vec<String>,
    /// Gates to try [default: regression,significant,inconclusive,drop:5pp,not-proven:5pp]
    #[arg(long, value_name = "LIST")]
    pub(super) fail_on: Option<String>,
    /// How attempts decide a pair where the results do not say: any, all, majority, mean:0.5
    #[arg(long, value_name = "POLICY")]
    pub(super) policy: Option<String>,
    /// Show the pass rate by this label too; `significant` looks at it
    #[arg(long, value_name = "LABEL")]
    pub(super) group_by: Option<String>,
    /// How to print the calibration
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: TextOrJson,
}

/// How a run is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// For a terminal.
    Text,
    /// For a comment or a file.
    Markdown,
    /// For a browser: one file.
    Html,
    /// JUnit XML, a test case for each pair.
    Junit,
    /// Common Test Report Format, a test for each pair.
    Ctrf,
    /// The summary.
    Json,
    /// The array of result rows that publishing steps read.
    Results,
    /// JSON Lines, a line for each attempt.
    Jsonl,
}

#[derive(Debug, Args)]
pub(super) struct ReportArguments {
    /// The run directory
    #[arg(value_name = "DIR", value_parser = named)]
    pub(super) directory: Utf8PathBuf,
    /// As what to show it
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: ReportFormat,
    /// With `--format results`: the rows to graft this run's into, `-` for standard input
    #[arg(long, value_name = "FILE|-")]
    pub(super) merge: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct MergeArguments {
    /// Run directories of one plan's parts, or directories that hold some; files of `DIR` may lie in `DIR-files`
    #[arg(value_name = "DIR", required = true, value_parser = named)]
    pub(super) directories: Vec<Utf8PathBuf>,
    /// Where to write the whole
    #[arg(short, long, value_name = "DIR", value_parser = named)]
    pub(super) output_dir: Utf8PathBuf,
    /// The configuration, for gates and baseline [default: evalwave.yml, then .github/evalwave.yml, then none]
    #[arg(short, long, value_name = "FILE")]
    pub(super) config: Option<Utf8PathBuf>,
    /// What to compare with: a file, a directory, git:REF:PATH, none
    #[arg(long, value_name = "SRC")]
    pub(super) baseline: Option<String>,
    /// Findings that make the command fail, like incomplete,regression,below:80%
    #[arg(long, value_name = "LIST")]
    pub(super) fail_on: Option<String>,
    /// Earlier results, each a run, which flaky pairs are known from (repeatable)
    #[arg(long, value_name = "SRC", num_args = 1..)]
    pub(super) history: Vec<String>,
    /// How to print the summary
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: TextOrJson,
}

#[derive(Debug, Args)]
pub(super) struct DirectoryArguments {
    /// The run directory
    #[arg(value_name = "DIR", value_parser = named)]
    pub(super) directory: Utf8PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct CleanupArguments {
    /// The run directory [default: evalwave-out/latest]
    #[arg(value_name = "DIR")]
    pub(super) directory: Option<Utf8PathBuf>,
    /// The run's configuration, where its sandboxes are made by commands [default: evalwave.yml, then
    /// .github/evalwave.yml]
    #[arg(short, long, value_name = "FILE")]
    pub(super) config: Option<Utf8PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct InitArguments {
    /// Take this preset, whatever the repository looks like
    #[arg(long, value_name = "NAME")]
    pub(super) preset: Option<String>,
    /// Run only on pull requests with this label
    #[arg(long, value_name = "LABEL")]
    pub(super) label: Option<String>,
}

/// What is done with a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SnapshotAction {
    /// Make it, unless it is there; print its id.
    Build,
    /// Print what a run would start from now; exit code 3 if from nothing.
    Check,
    /// Delete it.
    Delete,
}

#[derive(Debug, Args)]
pub(super) struct SnapshotArguments {
    /// What to do
    #[arg(value_enum)]
    pub(super) action: SnapshotAction,
    /// The configuration [default: evalwave.yml, then .github/evalwave.yml]
    #[arg(short, long, value_name = "FILE")]
    pub(super) config: Option<Utf8PathBuf>,
}

/// A document with a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Document {
    Config,
    Summary,
}

#[derive(Debug, Args)]
pub(super) struct SchemaArguments {
    /// Which document: that of evalwave.yml, or of summary.json
    #[arg(value_enum)]
    pub(super) document: Document,
}

#[derive(Debug, Args)]
pub(super) struct CompletionsArguments {
    /// Which shell
    #[arg(value_enum)]
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(super) struct ManArguments {
    /// The command to tell of, like run [default: evalwave itself]
    #[arg(value_name = "COMMAND")]
    pub(super) command: Option<String>,
}
