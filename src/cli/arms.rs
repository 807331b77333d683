//! Plans that run side by side, each with its own engine and directory: this revision, and the base that it is measured
//! against. Decides nothing of what they come to.

use std::sync::Arc;

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::job::{self, Means};
use super::recorder::{Audience, Recording};
use super::sources::Suite;
use super::{Failure, engine, tell};
use crate::model::{Concurrency, Run, RunPlan};
use crate::plan;
use crate::runner::{self, Job};
use crate::sandbox::Backend;
use crate::store::RunDir;

/// Where an arm's files come from and go.
pub(super) struct Place<'a> {
    /// What it is called in progress lines; empty for the run itself.
    pub(super) name: &'static str,
    /// The workspace.
    pub(super) root: &'a Utf8Path,
    pub(super) run_id: String,
    pub(super) directory: Utf8PathBuf,
    /// Whether a run that is there already gives way.
    pub(super) overwrite: bool,
}

/// What all arms of a run have in common.
pub(super) struct Common<'a> {
    pub(super) suite: &'a Suite,
    pub(super) means: &'a Means,
    pub(super) context: &'a Context,
    /// What no sandbox receives.
    pub(super) leave_out: &'a [Utf8PathBuf],
    pub(super) started_at: Timestamp,
    pub(super) audience: &'a dyn Audience,
}

/// A plan that is about to run.
pub(super) struct Arm {
    pub(super) job: Arc<Job>,
    backend: Arc<dyn Backend>,
    pub(super) recording: Arc<Recording>,
}

impl Arm {
    /// Makes its engine and its directory.
    pub(super) fn new(common: &Common<'_>, place: Place<'_>, plan: RunPlan) -> Result<Self, Failure> {
        let config = &common.suite.config;
        let workspace = job::workspace(config, place.root, common.leave_out)?;
        let job = job::job(
            config,
            common.means,
            workspace,
            plan,
            place.run_id,
            common.started_at,
        )?;
        let backend = engine::backend(&config.sandbox, &job, common.context)?;
        let directory = RunDir::create(&place.directory, place.overwrite, &job.plan, &config.attempt)?;
        let show = common.audience.attend(place.name, &job, directory.path());
        let recording = Arc::new(Recording::new(directory, show));
        Ok(Self {
            job: Arc::new(job),
            backend,
            recording,
        })
    }
}

/// Gives two plans one number of places, one budget and one set of limits between them; without a number, or with room
/// for both, each keeps its own places. Returns whether they can run at once: of a single place, each gets all in its
/// turn.
pub(super) fn share(head: &mut RunPlan, base: &mut RunPlan, most: Option<usize>) -> bool {
    for plan in [&mut *head, &mut *base] {
        plan.budget = plan.budget.part(0.5);
    }
    let most = most.filter(|most| head.concurrency.value + base.concurrency.value > *most);
    let single = head.limits.iter().map(|limit| limit.concurrency).chain(most);
    if single.min().is_some_and(|least| least < 2) {
        return false;
    }
    for (of_head, of_base) in head.limits.iter_mut().zip(&mut base.limits) {
        of_base.concurrency = of_head.concurrency / 2;
        of_head.concurrency -= of_base.concurrency;
    }
    let Some(most) = most else {
        return true;
    };
    // What one does not need is the other's.
    let of_base = base
        .concurrency
        .value
        .min((most / 2).max(most.saturating_sub(head.concurrency.value)));
    for (plan, value) in [(head, most - of_base), (base, of_base)] {
        let value = value.min(plan.concurrency.value);
        if value < plan.concurrency.value {
            plan.concurrency = Concurrency {
                value,
                reason: String::new(),
                bounded: true,
            };
            let waves = match plan::waves(plan) {
                1 => "one wave".to_owned(),
                waves => format!("{waves} waves"),
            };
            plan.concurrency.reason = format!(
                "{value} of the {most} that can run at once, shared with the other revision: {waves}"
            );
        }
    }
    true
}

/// Runs arms, and whatever else waits for something; SIGINT and SIGTERM cancel all of it.
pub(super) struct Driver {
    runtime: tokio::runtime::Runtime,
    cancel: CancellationToken,
}

impl Driver {
    pub(super) fn new() -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("cannot start the asynchronous runtime")?;
        let cancel = CancellationToken::new();
        runtime.spawn(cancel_on_signal(cancel.clone()));
        Ok(Self { runtime, cancel })
    }

    /// Waits for something; `None` if it is cancelled first.
    pub(super) fn wait<T>(&self, something: impl Future<Output = T>) -> Option<T> {
        self.runtime.block_on(self.cancel.run_until_cancelled(something))
    }

    /// Waits for something to its end, cancelled or not.
    pub(super) fn finish<T>(&self, something: impl Future<Output = T>) -> T {
        self.runtime.block_on(something)
    }

    /// Starts something that goes on meanwhile.
    pub(super) fn start<T: Send + 'static>(
        &self,
        something: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.runtime.spawn(something)
    }

    /// Whether a signal has come.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Runs the arms to their end, at once or one after another; their runs are in the same order.
    pub(super) fn run(&self, arms: &[&Arm], at_once: bool) -> Vec<Run> {
        let run = |arm: &&Arm| {
            let recorder = Arc::clone(&arm.recording) as _;
            runner::run(
                Arc::clone(&arm.job),
                Arc::clone(&arm.backend),
                recorder,
                self.cancel.clone(),
            )
        };
        self.runtime.block_on(async {
            if at_once {
                return futures::future::join_all(arms.iter().map(run)).await;
            }
            let mut runs = Vec::new();
            for arm in arms {
                runs.push(run(arm).await);
            }
            runs
        })
    }
}

async fn cancel_on_signal(cancel: CancellationToken) {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (Ok(mut interrupt), Ok(mut terminate)) =
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            tell("warning: signals cannot be watched: an interrupt will lose what runs");
            return;
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
    #[cfg(not(unix))]
    if tokio::signal::ctrl_c().await.is_err() {
        return;
    }
    tell("cancelling: nothing more starts, what runs is stopped");
    cancel.cancel();
}

#[cfg(test)]
mod tests {
    use super::share;
    use crate::model::{
        Concurrency, OnPass, PlannedBudget, PlannedLimit, Policy, Produces, RunPlan, Selection,
        SelectionKind, Strategy,
    };

    fn plan(value: usize, limit: usize) -> RunPlan {
        RunPlan {
            suite: "s".to_owned(),
            pairs: Vec::new(),
            runs: 1,
            strategy: Strategy::Parallel,
            on_pass: OnPass::Continue,
            policy: Policy::Any,
            produces: Produces::Attempt,
            concurrency: Concurrency {
                value,
                reason: String::new(),
                bounded: false,
            },
            limits: vec![PlannedLimit {
                name: "provider".to_owned(),
                value: "a".to_owned(),
                concurrency: limit,
            }],
            budget: PlannedBudget {
                sandbox_seconds: Some(600.0),
                cost_usd: None,
            },
            overhead_seconds: None,
            forecast: None,
            selection: Selection {
                kind: SelectionKind::All,
                selected: 0,
                of: 0,
            },
            sandbox: "local".to_owned(),
            config_hash: String::new(),
        }
    }

    fn shared(value: usize, limit: usize, most: Option<usize>) -> (bool, [(usize, usize, Option<f64>); 2]) {
        let (mut head, mut base) = (plan(value, limit), plan(value, limit));
        let at_once = share(&mut head, &mut base, most);
        let of = |plan: &RunPlan| {
            (
                plan.concurrency.value,
                plan.limits[0].concurrency,
                plan.budget.sandbox_seconds,
            )
        };
        (at_once, [of(&head), of(&base)])
    }

    #[test]
    fn two_revisions_have_together_what_one_would_have() {
        let half = Some(300.0);
        assert_eq!(shared(8, 5, None), (true, [(8, 3, half), (8, 2, half)]));
        assert_eq!(shared(8, 5, Some(9)), (true, [(5, 3, half), (4, 2, half)]));
    }

    #[test]
    fn two_revisions_that_one_place_or_one_limit_cannot_hold_run_one_after_the_other() {
        let half = Some(300.0);
        assert_eq!(shared(8, 5, Some(1)), (false, [(8, 5, half); 2]));
        assert_eq!(shared(8, 1, None), (false, [(8, 1, half); 2]));
    }
}
