//! What a run has used of its budget, and when it will be used up. Knows no attempts; time is a value.

use std::fmt;
use std::time::Duration;

/// Caps on what a run may use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    /// Time of all sandboxes together.
    pub sandbox_time: Option<Duration>,
    /// USD.
    pub cost: Option<f64>,
    /// What a second of a sandbox costs, in USD.
    pub cost_per_second: f64,
}

/// What a run has used of its budget before it goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    /// Time of all sandboxes together.
    pub sandbox_time: Duration,
    /// USD, besides what sandboxes cost.
    pub cost: f64,
}

/// Why a run was stopped: it had used its budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Exhausted {
    /// The time of its sandboxes.
    SandboxTime(Duration),
    /// USD.
    Cost(f64),
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SandboxTime(cap) => write!(
                f,
                "the budget of {} sandbox-minutes was used up (`budget.sandbox-minutes`)",
                round(cap.as_secs_f64() / 60.0)
            )?,
            Self::Cost(cap) => write!(f, "the budget of ${} was used up (`budget.cost`)", round(*cap))?,
        }
        f.write_str(", so what ran was stopped and nothing else was started")
    }
}

fn round(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// Counts what is used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    budget: Budget,
    held: Duration,
    running: u32,
    /// Until when `held` is counted.
    since: Duration,
    /// USD besides the sandboxes.
    spent: f64,
}

impl Meter {
    pub(super) fn new(budget: Budget, used: Used) -> Self {
        Self {
            budget,
            held: used.sandbox_time,
            running: 0,
            since: Duration::ZERO,
            spent: used.cost,
        }
    }

    /// A sandbox is held from `at` on, which may be heard of late.
    pub(super) fn start(&mut self, at: Duration) {
        self.count(at);
        self.held = self.held.saturating_add(self.since.saturating_sub(at));
        self.running += 1;
    }

    pub(super) fn end(&mut self, now: Duration) {
        self.count(now);
        self.running -= 1;
    }

    pub(super) fn spend(&mut self, usd: f64) {
        self.spent += usd.max(0.0);
    }

    /// What is used up at `now`.
    pub(super) fn exhausted(&mut self, now: Duration) -> Option<Exhausted> {
        self.count(now);
        match self.budget {
            Budget {
                sandbox_time: Some(cap),
                ..
            } if self.held >= cap => Some(Exhausted::SandboxTime(cap)),
            Budget { cost: Some(cap), .. } if self.cost() >= cap => Some(Exhausted::Cost(cap)),
            _ => None,
        }
    }

    /// When the budget will be used up, if what runs goes on and nothing else starts.
    pub(super) fn exhausted_at(&self) -> Option<Duration> {
        if self.running == 0 {
            return None;
        }
        let time = self
            .budget
            .sandbox_time
            .map(|cap| cap.saturating_sub(self.held).as_secs_f64());
        let cost = self.budget.cost.filter(|_| self.budget.cost_per_second > 0.0);
        let cost = cost.map(|cap| (cap - self.cost()).max(0.0) / self.budget.cost_per_second);
        let left = time.into_iter().chain(cost).reduce(f64::min)? / f64::from(self.running);
        let left = Duration::try_from_secs_f64(left).ok()?;
        // A rounding must not wake anybody before there is something to do.
        Some(
            self.since
                .saturating_add(left)
                .saturating_add(Duration::from_millis(1)),
        )
    }

    fn cost(&self) -> f64 {
        self.spent + self.held.as_secs_f64() * self.budget.cost_per_second
    }

    fn count(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.since);
        self.held = self.held.saturating_add(passed.saturating_mul(self.running));
        self.since = self.since.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, Exhausted, Meter, Used};
    use std::time::Duration;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_time_of_all_sandboxes_counts_together() {
        let budget = Budget {
            sandbox_time: Some(s(100)),
            ..Budget::default()
        };
        let mut meter = Meter::new(budget, Used::default());
        meter.start(s(0));
        meter.start(s(10));
        assert_eq!(
            meter.exhausted_at(),
            Some(s(10) + s(45) + Duration::from_millis(1))
        );
        meter.end(s(40));
        assert_eq!(meter.exhausted(s(69)), None);
        assert_eq!(meter.exhausted(s(70)), Some(Exhausted::SandboxTime(s(100))));
    }

    #[test]
    fn a_sandbox_that_is_heard_of_late_counts_from_its_start() {
        let budget = Budget {
            sandbox_time: Some(s(100)),
            ..Budget::default()
        };
        let mut meter = Meter::new(budget, Used::default());
        assert_eq!(meter.exhausted(s(50)), None);
        meter.start(s(20));
        assert_eq!(meter.exhausted(s(119)), None);
        assert_eq!(meter.exhausted(s(120)), Some(Exhausted::SandboxTime(s(100))));
    }

    #[test]
    fn what_results_report_counts_beside_what_sandboxes_cost() {
        let budget = Budget {
            cost: Some(10.0),
            cost_per_second: 0.1,
            ..Budget::default()
        };
        let mut meter = Meter::new(budget, Used::default());
        meter.start(s(0));
        meter.spend(4.0);
        assert_eq!(meter.exhausted(s(59)), None);
        assert_eq!(meter.exhausted_at(), Some(s(60) + Duration::from_millis(1)));
        assert_eq!(meter.exhausted(s(60)), Some(Exhausted::Cost(10.0)));
        assert_eq!(
            Exhausted::Cost(10.0).to_string(),
            "the budget of $10 was used up (`budget.cost`), so what ran was stopped and nothing else was started"
        );
    }
}
