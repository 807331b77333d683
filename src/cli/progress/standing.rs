//! How a run stands: a fold over its events, time being a value. Knows neither clocks nor how it is shown.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use crate::model::{AttemptId, AttemptRecord, Event, Outcome, PairId, Produces, RunPlan};
use crate::runner::Job;

/// A pause that is shorter is nothing to speak of, however short `attempt.grace` is.
const LEAST_PAUSE: Duration = Duration::from_secs(10);

/// A run as far as it has come. Times are since a moment that all of a process's runs have in common.
#[derive(Debug)]
pub(in crate::cli) struct Standing {
    /// What runs, with a space behind it; empty for the run itself.
    pub(super) name: &'static str,
    pub(super) plan: RunPlan,
    /// How long nothing may progress before it is said.
    grace: Duration,
    /// When it began, and whether it is over.
    begun: Option<Duration>,
    over: bool,
    /// When something last happened.
    moved: Duration,
    positions: HashMap<PairId, usize>,
    /// What has ended of each pair, in plan order.
    pub(super) pairs: Vec<Tally>,
    /// Of all of them together.
    whole: Tally,
    /// Starts that have not ended.
    running: BTreeMap<Start, Running>,
    /// Starts that failed and wait to be tried again.
    retrying: BTreeSet<Start>,
}

/// A pair by its place in the plan, and the attempt of it that is started: the first one where one command runs the
/// whole pair.
type Start = (usize, u32);

/// A start that has not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    /// Since when.
    pub(super) since: Duration,
    pub(super) try_number: u32,
}

/// How many attempts ended, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tally {
    pub(super) planned: usize,
    pub(super) passed: usize,
    /// Timed out ones among them.
    pub(super) failed: usize,
    pub(super) errored: usize,
    /// Never needed, or stopped.
    pub(super) cancelled: usize,
    pub(super) running: usize,
    pub(super) retrying: usize,
    /// Seconds that the graded ones took, all together.
    pub(super) seconds: f64,
}

impl Tally {
    pub(super) fn ended(&self) -> usize {
        self.passed + self.failed + self.errored + self.cancelled
    }

    pub(super) fn waiting(&self) -> usize {
        self.planned
            .saturating_sub(self.ended() + self.running + self.retrying)
    }

    fn count(&mut self, record: &AttemptRecord) {
        match record.outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Failed | Outcome::TimedOut => self.failed += 1,
            Outcome::Errored => self.errored += 1,
            Outcome::Cancelled => self.cancelled += 1,
        }
        if record.outcome.is_graded() {
            self.seconds += record.seconds;
        }
    }

    fn add(&mut self, other: &Self) {
        self.planned += other.planned;
        self.passed += other.passed;
        self.failed += other.failed;
        self.errored += other.errored;
        self.cancelled += other.cancelled;
        self.running += other.running;
        self.retrying += other.retrying;
        self.seconds += other.seconds;
    }
}

impl Standing {
    /// A run that has not begun.
    pub(in crate::cli) fn new(name: &'static str, plan: &RunPlan, grace: Duration) -> Self {
        let ids = plan.pairs.iter().enumerate();
        let tally = Tally {
            planned: plan.runs as usize,
            ..Tally::default()
        };
        Self {
            name,
            grace: grace.max(LEAST_PAUSE),
            begun: None,
            over: false,
            moved: Duration::ZERO,
            positions: ids.map(|(at, pair)| (pair.id.clone(), at)).collect(),
            pairs: vec![tally; plan.pairs.len()],
            whole: Tally {
                planned: plan.attempts(),
                ..Tally::default()
            },
            running: BTreeMap::new(),
            retrying: BTreeSet::new(),
            plan: plan.clone(),
        }
    }

    /// A run that has not begun, or that goes on: what has a result already counts as ended.
    pub(in crate::cli) fn of(name: &'static str, job: &Job) -> Self {
        let mut standing = Self::new(name, &job.plan, job.attempt.grace);
        for (planned, pair) in job
            .earlier
            .iter()
            .flat_map(|earlier| earlier.run.plan.pairs.iter().zip(&earlier.run.pairs))
        {
            let graded = pair.records.iter().filter(|record| record.outcome.is_graded());
            if let Some(at) = standing.positions.get(&planned.id).copied() {
                graded.for_each(|record| standing.end(at, record));
            }
        }
        standing
    }

    /// Takes an event in that happened at `now`. Events come from many attempts at once: a try may be heard to begin
    /// before the one that failed.
    pub(in crate::cli) fn apply(&mut self, event: &Event, now: Duration) {
        self.moved = now;
        match event {
            Event::RunStarted { .. } | Event::RunResumed { .. } => self.begun = Some(now),
            Event::RunEnded { .. } => self.over = true,
            Event::SandboxesAt { .. }
            | Event::SandboxNamed { .. }
            | Event::SandboxCreated { .. }
            | Event::SandboxGone { .. }
            | Event::Preparing { .. }
            | Event::RunConcluded { .. }
            | Event::PairEnded { .. } => {}
            Event::AttemptStarted {
                attempt, try_number, ..
            } => {
                if let Some(start) = self.start(&attempt.pair, attempt.index) {
                    self.retrying.remove(&start);
                    let running = Running {
                        since: now,
                        try_number: *try_number,
                    };
                    self.running.insert(start, running);
                }
            }
            Event::TryFailed {
                attempt, try_number, ..
            } => {
                if let Some(start) = self.start(&attempt.pair, attempt.index) {
                    let later = |running: &Running| running.try_number > *try_number;
                    if !self.running.get(&start).is_some_and(later) {
                        self.running.remove(&start);
                        self.retrying.insert(start);
                    }
                }
            }
            Event::AttemptEnded { pair, record, .. } => {
                if let Some(start) = self.start(pair, record.index) {
                    self.running.remove(&start);
                    self.retrying.remove(&start);
                    self.end(start.0, record);
                }
            }
        }
    }

    fn end(&mut self, pair: usize, record: &AttemptRecord) {
        for tally in [&mut self.pairs[pair], &mut self.whole] {
            tally.count(record);
        }
    }

    fn start(&self, pair: &PairId, index: u32) -> Option<Start> {
        let index = match self.plan.produces {
            Produces::Attempt => index,
            Produces::Pair => 1,
        };
        Some((*self.positions.get(pair)?, index))
    }

    /// Attempts that one start makes.
    pub(super) fn attempts_per_start(&self) -> usize {
        match self.plan.produces {
            Produces::Attempt => 1,
            Produces::Pair => self.plan.runs as usize,
        }
    }

    /// Whether it has begun and is not over.
    pub(in crate::cli) fn is_live(&self) -> bool {
        self.begun.is_some() && !self.over
    }

    /// How long it has been going on.
    pub(super) fn elapsed(&self, now: Duration) -> Duration {
        now.saturating_sub(self.begun.unwrap_or(now))
    }

    /// How long nothing has happened, where that is longer than it should be.
    pub(super) fn stuck(&self, now: Duration) -> Option<Duration> {
        Some(now.saturating_sub(self.moved)).filter(|still| *still >= self.grace)
    }

    /// How each pair stands, in plan order.
    pub(super) fn tallies(&self) -> Vec<Tally> {
        let mut tallies = self.pairs.clone();
        for (pair, _) in self.running.keys() {
            tallies[*pair].running += self.attempts_per_start();
        }
        for (pair, _) in &self.retrying {
            tallies[*pair].retrying += self.attempts_per_start();
        }
        tallies
    }

    /// How the whole run stands.
    pub(super) fn total(&self) -> Tally {
        let each = self.attempts_per_start();
        Tally {
            running: self.running.len() * each,
            retrying: self.retrying.len() * each,
            ..self.whole
        }
    }

    /// How each experiment stands, in the order in which the plan names them first.
    pub(super) fn experiments(&self) -> Vec<(&str, Tally)> {
        let mut rows: Vec<(&str, Tally)> = Vec::new();
        let mut at = HashMap::new();
        for (pair, tally) in self.plan.pairs.iter().zip(self.tallies()) {
            let name = pair.id.experiment.as_str();
            let at = *at.entry(name).or_insert_with(|| {
                rows.push((name, Tally::default()));
                rows.len() - 1
            });
            rows[at].1.add(&tally);
        }
        rows
    }

    /// Every start that has not ended, by its pair's place in the plan.
    pub(super) fn running(&self) -> impl Iterator<Item = (usize, Running)> + '_ {
        self.running.iter().map(|((pair, _), running)| (*pair, *running))
    }

    /// The attempt that has been running for longest.
    pub(super) fn oldest(&self) -> Option<(AttemptId, Running)> {
        let oldest = self.running.iter().min_by_key(|(_, running)| running.since);
        let ((pair, index), running) = oldest?;
        let attempt = AttemptId {
            pair: self.plan.pairs[*pair].id.clone(),
            index: *index,
        };
        Some((attempt, *running))
    }

    /// How long an attempt of a pair takes, in seconds: as it was predicted, or as those took that have ended.
    pub(super) fn expected(&self, pair: usize) -> Option<f64> {
        let tally = &self.pairs[pair];
        let graded = tally.passed + tally.failed;
        let measured = (graded > 0).then(|| tally.seconds / graded as f64);
        let around = self.plan.overhead_seconds.unwrap_or_default();
        let command = self.plan.pairs[pair].predicted_seconds;
        let predicted = command.map(|command| command + around);
        predicted.or(measured).filter(|seconds| seconds.is_finite())
    }
}
