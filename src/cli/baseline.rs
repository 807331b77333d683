//! What a run is compared with.

use anyhow::Context as _;

use super::Failure;
use super::context::Context;
use super::sources::{Suite, read_results};
use crate::config::BaselineConfig;
use crate::model::ResultSet;

/// The baseline of a run.
pub(super) enum Baseline {
    /// These results.
    Known(ResultSet),
    /// The base revision runs beside this one: this one, or the one that it was branched off from.
    Measure(Option<Revision>),
    /// There is none, and why.
    None(String),
}

/// A revision to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Revision {
    /// What git knows it by.
    pub(super) reference: String,
    /// What readers know it by.
    pub(super) name: String,
}

impl Revision {
    /// One that is called what it was asked for as.
    pub(super) fn named(reference: &str) -> Self {
        Self {
            reference: reference.to_owned(),
            name: reference.to_owned(),
        }
    }
}

impl Baseline {
    /// Reads it before the run, so that a broken baseline costs nothing.
    /// `named` says that its sources come from the command line.
    pub(super) fn read(suite: &Suite, named: bool, context: &Context) -> Result<Self, Failure> {
        let sources = match &suite.config.baseline {
            BaselineConfig::None => return Ok(Self::None("no baseline was asked for".to_owned())),
            BaselineConfig::Auto => {
                let why = "no baseline: name one with `baseline` or --baseline";
                return Ok(Self::None(why.to_owned()));
            }
            BaselineConfig::Measure(reference) => {
                return Ok(Self::Measure(reference.as_deref().map(Revision::named)));
            }
            BaselineConfig::Sources(sources) => sources,
        };
        // A path in a flag starts where the user is, one in the file where the file is.
        let directory = if named { &context.current_dir } else { &suite.root };
        // Attempts that are known one by one are decided as this run's are.
        let policy = Some(suite.config.policy);
        let results = read_results(sources, directory, policy).context("cannot read the baseline")?;
        Ok(Self::Known(results))
    }
}
