//! What a run is compared with, and what its plan is made from.

use anyhow::Context as _;
use camino::Utf8Path;

use super::Failure;
use super::context::Context;
use super::sources::{Suite, read_results};
use crate::catalog;
use crate::config::{BaselineConfig, PriceConfig};
use crate::model::ResultSet;
use crate::plan::Experience;

/// The baseline of a run.
pub(super) enum Baseline {
    /// These results.
    Known {
        /// What they are.
        results: ResultSet,
        /// Every job of a workflow reads the same ones.
        is_pinned: bool,
    },
    /// There is none, and why.
    None(&'static str),
}

impl Baseline {
    /// Reads it before the run, so that a broken baseline costs nothing. `flag` is what `--baseline` says.
    pub(super) fn read(suite: &Suite, flag: Option<&str>, context: &Context) -> Result<Self, Failure> {
        let sources = match &suite.config.baseline {
            BaselineConfig::None => return Ok(Self::None("no baseline was asked for")),
            BaselineConfig::Auto => {
                return Ok(Self::None("no baseline: name one with `baseline` or --baseline"));
            }
            BaselineConfig::Sources(sources) => sources,
        };
        // A path in a flag starts where the user is, one in the file where the file is.
        let directory = match flag {
            Some(flag) if !flag.trim().is_empty() => &context.current_dir,
            _ => &suite.root,
        };
        // Attempts that are known one by one are decided as this run's are.
        let policy = Some(suite.config.policy);
        let results = read_results(sources, directory, policy).context("cannot read the baseline")?;
        Ok(Self::Known {
            results,
            is_pinned: sources.iter().all(|source| is_pinned(source, directory)),
        })
    }

    /// What it says of how long attempts take.
    pub(super) fn experience(&self, price: &PriceConfig) -> Experience {
        match self {
            Self::Known { results, .. } => Experience::of([results], price),
            Self::None(_) => Experience::default(),
        }
    }

    /// Whether shards that are planned apart come to the same parts by it.
    pub(super) fn is_pinned(&self) -> bool {
        matches!(self, Self::Known { is_pinned: true, .. })
    }
}

/// A source that says the same in every checkout of the same commit: a file that is tracked, or a file in a commit that
/// is named by its hash.
fn is_pinned(source: &str, directory: &Utf8Path) -> bool {
    match source.strip_prefix("git:") {
        Some(specification) => {
            let reference = specification.split(':').next().unwrap_or_default();
            reference.len() == 40 && reference.bytes().all(|byte| byte.is_ascii_hexdigit())
        }
        None => catalog::is_tracked(directory, Utf8Path::new(source)),
    }
}
