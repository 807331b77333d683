//! What earlier runs tell a plan: the baseline's and the history's durations, costs and pass rates. Reads no results.

use camino::Utf8Path;

use super::baseline::Baseline;
use super::context::Context;
use super::sources::Suite;
use crate::catalog;
use crate::compare::Known;
use crate::config::BaselineConfig;
use crate::plan::Experience;

/// What is known before a run.
pub(super) struct Past {
    pub(super) experience: Experience,
    /// Jobs that are planned apart come to the same parts by it.
    pub(super) is_pinned: bool,
}

impl Past {
    /// What the baseline and the history say together. `named` says that the baseline comes from the command line.
    pub(super) fn of(
        suite: &Suite,
        named: bool,
        baseline: &Baseline,
        known: &Known,
        context: &Context,
    ) -> Self {
        let results = match baseline {
            Baseline::Known(results) => Some(results),
            Baseline::Measure(_) | Baseline::None(_) => None,
        };
        let config = &suite.config;
        let of_baseline = match &config.baseline {
            BaselineConfig::None | BaselineConfig::Measure(_) => true,
            // What is newest for one job need not be for the next.
            BaselineConfig::Auto => false,
            BaselineConfig::Sources(sources) => {
                let directory = if named { &context.current_dir } else { &suite.root };
                are_pinned(sources, directory)
            }
        };
        let sources = &config.history.sources;
        let of_history = known.history.len() == sources.len() && are_pinned(sources, &context.current_dir);
        Self {
            experience: Experience::of(results.into_iter().chain(&known.history), &config.price),
            is_pinned: of_baseline && of_history,
        }
    }
}

/// Whether each source says the same in every checkout of the same commit: a file that is tracked, or a file in a commit
/// that is named by its hash.
fn are_pinned(sources: &[String], directory: &Utf8Path) -> bool {
    sources.iter().all(|source| match source.strip_prefix("git:") {
        Some(specification) => {
            let reference = specification.split(':').next().unwrap_or_default();
            reference.len() == 40 && reference.bytes().all(|byte| byte.is_ascii_hexdigit())
        }
        None => catalog::is_tracked(directory, Utf8Path::new(source)),
    })
}
