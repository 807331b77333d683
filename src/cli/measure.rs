//! The base revision, checked out beside this one to be run at the same time.

use std::collections::HashSet;

use camino::{Utf8Path, Utf8PathBuf};

use super::arms::{Arm, Common, Occupied, Place, share};
use super::baseline::Revision;
use super::context::Context;
use super::output::Output;
use super::sources::Suite;
use super::{Failure, tell};
use crate::catalog::{self, Checkout};
use crate::model::layout::BASELINE_DIR;
use crate::model::{PairId, RunPlan, file_name};

/// The base revision.
pub(super) struct Base {
    checkout: Checkout,
    name: String,
}

impl Base {
    /// Checks it out below the directory of temporary files, where it stays until this is dropped.
    pub(super) fn check_out(
        suite: &Suite,
        revision: Option<&Revision>,
        run_id: &str,
        context: &Context,
    ) -> Result<Self, Failure> {
        let reference = revision.map(|revision| revision.reference.as_str());
        let base = catalog::base_revision(&suite.root, reference)?;
        let at = checkout(run_id, context);
        Ok(Self {
            checkout: Checkout::new(&suite.root, &base.commit, &at)?,
            name: revision.map_or(base.reference, |revision| revision.name.clone()),
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
        let has: HashSet<&PairId> = pairs.iter().map(|pair| &pair.id).collect();
        let mut plan = plan.clone();
        plan.pairs.retain(|planned| has.contains(&planned.id));
        if let Some(shard) = &mut plan.shard {
            shard.whole.retain(|planned| has.contains(&planned.id));
        }
        Ok((!plan.pairs.is_empty()).then_some(plan))
    }

    /// What readers know it by.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// Where the base revision of a run is checked out.
fn checkout(run_id: &str, context: &Context) -> Utf8PathBuf {
    context
        .temp_dir
        .join(format!("evalwave-base-{}", file_name(run_id)))
}

/// Removes what a run that was killed has left of it.
pub(super) fn forget(run_id: &str, context: &Context) {
    if let Err(error) = catalog::remove_left(&checkout(run_id, context)) {
        tell(&format!(
            "warning: the base revision is still checked out: {error}"
        ));
    }
}

/// The directory of the base's run below the run's own.
pub(super) fn directory(run: &Utf8Path) -> Utf8PathBuf {
    run.join(BASELINE_DIR)
}

/// The base revision, ready to run.
pub(super) struct Measured {
    pub(super) base: Base,
    pub(super) arm: Arm,
}

/// The base revision with what is to be run of it, before anything is written.
pub(super) struct Prepared {
    base: Base,
    plan: RunPlan,
    /// Whether there is room for both revisions at once.
    pub(super) at_once: bool,
}

impl Prepared {
    /// Checks out the base and gives it its share of the places. `None` where it has none of the pairs, or there are none.
    pub(super) fn new(
        suite: &Suite,
        revision: Option<&Revision>,
        plan: &mut RunPlan,
        run_id: &str,
        context: &Context,
    ) -> Result<Option<Self>, Failure> {
        if plan.pairs.is_empty() {
            return Ok(None);
        }
        let base = Base::check_out(suite, revision, run_id, context)?;
        let prepared = base.plan(suite, plan)?.map(|mut of_base| {
            let most = plan.concurrency.most;
            let at_once = share(plan, &mut of_base, most);
            Self {
                base,
                plan: of_base,
                at_once,
            }
        });
        Ok(prepared)
    }

    /// Makes its engine and its directory below the run's own.
    pub(super) fn arm(
        self,
        common: &Common<'_>,
        output: &Output,
        occupied: Occupied,
    ) -> Result<Measured, Failure> {
        let place = Place {
            name: "baseline ",
            root: self.base.root(),
            run_id: format!("{}-baseline", output.run_id),
            directory: directory(&output.directory),
            occupied,
        };
        let arm = Arm::new(common, place, self.plan)?;
        Ok(Measured { base: self.base, arm })
    }
}
