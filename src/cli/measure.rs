//! The base revision, checked out beside this one to be run at the same time.

use camino::{Utf8Path, Utf8PathBuf};

use super::Failure;
use super::context::Context;
use super::sources::Suite;
use crate::catalog::{self, Checkout};
use crate::model::layout::BASELINE_DIR;
use crate::model::{ResultSet, RunPlan, Summary};

/// The base revision.
pub(super) struct Base {
    checkout: Checkout,
    /// What it was asked for as.
    reference: String,
}

impl Base {
    /// Checks it out below the directory of temporary files, where it stays until this is dropped.
    pub(super) fn check_out(
        suite: &Suite,
        reference: Option<&str>,
        run_id: &str,
        context: &Context,
    ) -> Result<Self, Failure> {
        let base = catalog::base_revision(&suite.root, reference)?;
        let at = context.temp_dir.join(format!("evalwave-base-{run_id}"));
        Ok(Self {
            checkout: Checkout::new(&suite.root, &base.commit, &at)?,
            reference: base.reference,
        })
    }

    /// Where the suite lies in it.
    pub(super) fn root(&self) -> &Utf8Path {
        self.checkout.root()
    }

    /// The same plan for the pairs that the base has too; `None` where it has none of them.
    pub(super) fn plan(&self, suite: &Suite, plan: &RunPlan) -> Result<Option<RunPlan>, Failure> {
        // A base from before the suite was written is no error.
        if !self.root().is_dir() {
            return Ok(None);
        }
        let pairs = suite.pairs_of(self.root())?;
        let mut plan = plan.clone();
        plan.pairs
            .retain(|planned| pairs.iter().any(|pair| pair.id == planned.id));
        Ok((!plan.pairs.is_empty()).then_some(plan))
    }

    /// What it came to, as a baseline.
    pub(super) fn results(&self, summary: &Summary) -> ResultSet {
        let mut results = ResultSet::of_summary(&format!("measure:{}", self.reference), summary);
        results.reference = Some(self.reference.clone());
        results
    }
}

/// The directory of the base's run below the run's own.
pub(super) fn directory(run: &Utf8Path) -> Utf8PathBuf {
    run.join(BASELINE_DIR)
}
