//! Attempts in, verdicts out: what became of an attempt, what its attempts decide of a pair, and the run's totals. Knows no files and no clock.

mod conclude;
mod document;
mod join;
mod judge;
mod members;
mod publish;
mod summarize;
mod throttling;
mod verdict;

pub use conclude::{Facts, conclude, is_complete};
pub use document::{summarize, summarize_pair};
pub use join::{Foreign, Joined, Part, join};
pub use judge::{
    CommandEnd, Course, ExitRules, Failure, Found, Judgement, Ran, Rules, judge, last_lines, with_last_lines,
};
pub use members::Members;
pub use publish::{Published, Standing, publish_document};
pub use summarize::{pair_summary, round_rate, round_seconds, totals};
pub use throttling::shows_throttling;
pub use verdict::{Grade, Tally, firm, representative, verdict};
