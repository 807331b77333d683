//! Plans that run side by side, each with its own engine and directory: this revision, and the base that it is measured
//! against. Decides nothing of what they come to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::job::{self, Means};
use super::recorder::{Audience, Recording};
use super::signals::Signals;
use super::sources::Suite;
use super::{Failure, engine, tell};
use crate::catalog::{self, Leash};
use crate::model::{Concurrency, Run, RunPlan};
use crate::plan;
use crate::runner::{self, Earlier, Job};
use crate::sandbox::Backend;
use crate::store::{self, RunDir};

/// Where an arm's files come from and go.
pub(super) struct Place<'a> {
    /// What it is called in progress lines; empty for the run itself.
    pub(super) name: &'static str,
    /// The workspace.
    pub(super) root: &'a Utf8Path,
    pub(super) run_id: String,
    pub(super) directory: Utf8PathBuf,
    /// What becomes of a run that is there already.
    pub(super) occupied: Occupied,
}

/// What becomes of a run that a directory holds already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occupied {
    /// It is the user's: nothing is run.
    Refuse,
    /// It gives way.
    Replace,
    /// It goes on. Below the run's own directory there may be none yet, or one that has not begun.
    Resume,
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
        let mut job = job::job(
            config,
            common.means,
            workspace,
            plan,
            place.run_id,
            common.started_at,
        )?;
        if place.root == common.suite.root
            && let Some(revision) = engine::revision(&config.sandbox)
        {
            job.commit = catalog::commit_named(place.root, revision);
        }
        let resumes = place.occupied == Occupied::Resume
            && (place.name.is_empty() || store::has_begun(&place.directory));
        let (backend, directory) = if resumes {
            let commit = job.commit.as_deref();
            let (directory, run) = RunDir::resume(&place.directory, &job.plan, commit, &config.attempt)?;
            job.run_id.clone_from(&run.id);
            job.started_at = run.started_at;
            job.earlier = Some(Earlier {
                run,
                resumed_at: common.started_at,
            });
            (
                engine::backend(&config.sandbox, &job, &common.suite.root, common.context)?,
                directory,
            )
        } else {
            let backend = engine::backend(&config.sandbox, &job, &common.suite.root, common.context)?;
            // What has not begun has nothing that could be lost.
            let replace = place.occupied != Occupied::Refuse;
            let directory = RunDir::create(&place.directory, replace, &job.plan, &config.attempt)?;
            (backend, directory)
        };
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
/// for both, each keeps its own places, and half of all is the most that it could have. Returns
/// whether they can run at once: of a single place, each gets all in its turn.
pub(super) fn share(head: &mut RunPlan, base: &mut RunPlan, most: Option<usize>) -> bool {
    for plan in [&mut *head, &mut *base] {
        plan.budget = plan.budget.part(0.5);
    }
    let places = most;
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
        if let Some(places) = places {
            for (plan, half) in [(head, places.div_ceil(2)), (base, places / 2)] {
                plan.concurrency.most = Some(half.max(plan.concurrency.value));
            }
        }
        return true;
    };
    // What one does not need is the other's.
    let of_base = base
        .concurrency
        .value
        .min((most / 2).max(most.saturating_sub(head.concurrency.value)));
    for (plan, places) in [(head, most - of_base), (base, of_base)] {
        plan.concurrency.most = Some(places);
        let value = places.min(plan.concurrency.value);
        if value < plan.concurrency.value {
            plan.concurrency = Concurrency {
                most: Some(places),
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

/// Threads for disk work and for looking up hosts, however large the wave: each takes memory. On Windows, whoever reads what
/// a command prints has one as long as the command is silent.
#[cfg(unix)]
const BLOCKING_THREADS: usize = 32;

/// Runs arms, and whatever else waits for something; SIGINT and SIGTERM cancel all of it.
pub(super) struct Driver {
    runtime: tokio::runtime::Runtime,
    cancel: CancellationToken,
    leash: Arc<Leash>,
    under_way: Arc<AtomicBool>,
}

impl Driver {
    pub(super) fn new() -> Result<Self, Failure> {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        #[cfg(unix)]
        runtime.max_blocking_threads(BLOCKING_THREADS);
        let runtime = runtime
            .enable_all()
            .build()
            .context("cannot start the asynchronous runtime")?;
        let (cancel, leash) = (CancellationToken::new(), Arc::new(Leash::default()));
        let under_way = Arc::new(AtomicBool::new(false));
        // Signals are watched from here on, not only when the task has its first turn.
        let watching = {
            let _entered = runtime.enter();
            Signals::watch()
        };
        match watching {
            Ok(signals) => {
                let (cancel, leash) = (cancel.clone(), Arc::clone(&leash));
                drop(runtime.spawn(signals.cancel(cancel, leash, Arc::clone(&under_way))));
            }
            Err(error) => tell(&format!(
                "warning: signals cannot be watched, an interrupt will lose what runs: {error}"
            )),
        }
        Ok(Self {
            runtime,
            cancel,
            leash,
            under_way,
        })
    }

    /// From here on there is something to be brought to an end when a signal comes.
    pub(super) fn set_out(&self) {
        self.under_way.store(true, Ordering::SeqCst);
    }

    /// What the suite's own command is held by.
    pub(super) fn leash(&self) -> &Leash {
        &self.leash
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
                most: None,
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
            shard: None,
            sandbox: "local".to_owned(),
            config_hash: String::new(),
        }
    }

    type Shares = [(usize, usize, Option<usize>); 2];

    /// What runs at once, at once under the limit, and may at most run at once.
    fn shared(value: usize, limit: usize, most: Option<usize>) -> (bool, Shares) {
        let (mut head, mut base) = (plan(value, limit), plan(value, limit));
        for plan in [&mut head, &mut base] {
            plan.concurrency.most = most;
        }
        let at_once = share(&mut head, &mut base, most);
        let of = |plan: &RunPlan| {
            assert_eq!(plan.budget.sandbox_seconds, Some(300.0));
            let concurrency = &plan.concurrency;
            (concurrency.value, plan.limits[0].concurrency, concurrency.most)
        };
        (at_once, [of(&head), of(&base)])
    }

    #[test]
    fn two_revisions_have_together_what_one_would_have() {
        assert_eq!(shared(8, 5, None), (true, [(8, 3, None), (8, 2, None)]));
        assert_eq!(shared(8, 5, Some(9)), (true, [(5, 3, Some(5)), (4, 2, Some(4))]));
        assert_eq!(
            shared(8, 5, Some(25)),
            (true, [(8, 3, Some(13)), (8, 2, Some(12))]),
            "what they do not need is half theirs too"
        );
    }

    #[test]
    fn two_revisions_that_one_place_or_one_limit_cannot_hold_run_one_after_the_other() {
        assert_eq!(shared(8, 5, Some(1)), (false, [(8, 5, Some(1)); 2]));
        assert_eq!(shared(8, 1, None), (false, [(8, 1, None); 2]));
    }
}
