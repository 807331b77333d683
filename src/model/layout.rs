//! Names in a run directory, and its own, the same for whoever writes one and whoever reads it.

/// Where runs go that are not told where.
pub const OUTPUT_ROOT: &str = "evalwave-out";
/// The machine-readable result of a run.
pub const SUMMARY_FILE: &str = "summary.json";
/// What happened, a line an event.
pub const JOURNAL_FILE: &str = "journal.jsonl";
/// The names of sandboxes, each written before it is created.
pub const SANDBOXES_FILE: &str = "sandboxes.jsonl";
/// Begins the name of the directory with a pair's published results; the pair's own name follows.
pub const RAW_RESULTS: &str = "raw-results-";
/// Holds the directories of attempts.
pub const ATTEMPTS_DIR: &str = "attempts";
/// In an attempt's directory: its output.
pub const OUTPUT_FILE: &str = "output.log";
/// In an attempt's directory: its result, as its harness wrote it.
pub const RESULT_FILE: &str = "result.json";
/// In an attempt's directory: what `attempt.keep` brought back.
pub const KEPT_DIR: &str = "files";
/// Below a run directory: the run of the base revision, where the baseline was measured beside this one.
pub const BASELINE_DIR: &str = "baseline";
/// Below a run directory: the run of fresh attempts of flipped pairs.
pub const CONFIRM_DIR: &str = "confirm";
