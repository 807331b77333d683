//! What its attempts decide of a pair, under every policy, while some are still missing and at the end.

use crate::model::{AttemptRecord, CancelReason, Outcome, Policy, Verdict};

/// Scores are sums of decimal fractions that binary cannot hold: three of 0.7 have a mean a little below 0.7.
const MEAN_TOLERANCE: f64 = 1e-9;

/// An attempt as far as a verdict needs it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grade {
    /// How it ended.
    pub outcome: Outcome,
    /// Why it was cancelled, where it was.
    pub reason: Option<CancelReason>,
    /// 0 to 1, where the format has scores.
    pub score: Option<f64>,
}

impl From<&AttemptRecord> for Grade {
    fn from(record: &AttemptRecord) -> Self {
        Self {
            outcome: record.outcome,
            reason: record.reason,
            score: record.score,
        }
    }
}

/// What is decided of a pair, of which `planned` attempts were planned and `grades` is what became of them.
///
/// Where none gave a result: `error` if one errored, `not_run` if all were cancelled.
pub fn verdict(policy: Policy, planned: u32, grades: &[Grade]) -> Verdict {
    Tally::of(grades).verdict(policy, planned)
}

/// Whether the verdict is pass or fail, and would be the same whatever the lost attempts had given.
///
/// Lost are errored attempts and those that were cancelled with the run, not those that were stopped because the
/// pair was decided.
pub fn firm(policy: Policy, planned: u32, grades: &[Grade]) -> bool {
    let is_lost = |grade: &&Grade| match grade.outcome {
        Outcome::Errored => true,
        Outcome::Cancelled => grade.reason != Some(CancelReason::Decided),
        Outcome::Passed | Outcome::Failed | Outcome::TimedOut => false,
    };
    let lost = grades.iter().filter(is_lost).count();
    let missing = u32::try_from(lost).unwrap_or(u32::MAX);
    matches!(
        Tally::of(grades).decided(policy, planned, missing),
        Some(Verdict::Pass | Verdict::Fail)
    )
}

/// The position in `grades`, from 0, of the attempt that stands for the pair: the first whose outcome agrees with the
/// verdict.
///
/// A pass is stood for by a passed attempt, a failure by a failed or timed out one. A mean of scores can come out
/// against every single outcome: then it is the first that gave a result. Nothing stands for any other verdict.
pub fn representative(verdict: Verdict, grades: &[Grade]) -> Option<usize> {
    let first = |agrees: fn(Outcome) -> bool| grades.iter().position(|grade| agrees(grade.outcome));
    let agreeing = match verdict {
        Verdict::Pass => first(|outcome| outcome == Outcome::Passed),
        Verdict::Fail => first(|outcome| matches!(outcome, Outcome::Failed | Outcome::TimedOut)),
        Verdict::Error | Verdict::NotRun => return None,
    };
    agreeing.or_else(|| first(Outcome::is_graded))
}

/// The attempts of a pair that have ended, counted: all that a verdict depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    graded: u32,
    passed: u32,
    errored: u32,
    /// Sum over the graded attempts.
    score: f64,
}

impl Tally {
    /// Counts attempts.
    pub fn of(grades: &[Grade]) -> Self {
        let mut tally = Self::default();
        for grade in grades {
            tally.add(grade.outcome, grade.score);
        }
        tally
    }

    /// Counts one more attempt. A score counts where the attempt passed or failed; without one it is 1 or 0.
    pub fn add(&mut self, outcome: Outcome, score: Option<f64>) {
        let score = score
            .filter(|score| score.is_finite())
            .map(|score| score.clamp(0.0, 1.0));
        match outcome {
            Outcome::Passed => {
                self.graded += 1;
                self.passed += 1;
                self.score += score.unwrap_or(1.0);
            }
            Outcome::Failed => {
                self.graded += 1;
                self.score += score.unwrap_or(0.0);
            }
            Outcome::TimedOut => self.graded += 1,
            Outcome::Errored => self.errored += 1,
            Outcome::Cancelled => {}
        }
    }

    /// What is decided if no other attempt follows.
    pub fn verdict(&self, policy: Policy, planned: u32) -> Verdict {
        if self.graded == 0 {
            return if self.errored > 0 {
                Verdict::Error
            } else {
                Verdict::NotRun
            };
        }
        let passes = match policy {
            Policy::Any => self.passed > 0,
            Policy::All => self.passed == self.graded,
            Policy::Majority => self.passed > self.graded - self.passed,
            Policy::Mean { complete: true, .. } if self.graded < planned => return Verdict::Error,
            Policy::Mean { threshold, .. } => {
                self.score / f64::from(self.graded) + MEAN_TOLERANCE >= threshold
            }
        };
        if passes { Verdict::Pass } else { Verdict::Fail }
    }

    /// The verdict, if no combination of passed, failed or errored for the `missing` attempts changes it.
    ///
    /// More passes never turn a pass into a failure, nor more failures a failure into a pass; so where the three
    /// extremes agree, everything between them does.
    pub fn decided(&self, policy: Policy, planned: u32, missing: u32) -> Option<Verdict> {
        let extreme = |outcome| self.with(missing, outcome).verdict(policy, planned);
        let best = extreme(Outcome::Passed);
        let same = extreme(Outcome::Failed) == best && extreme(Outcome::Errored) == best;
        same.then_some(best)
    }

    /// Whether results of the next `more` of the `missing` attempts could decide the pair. If not, another one is
    /// certain to be needed, unless one of them errors for good.
    pub fn could_be_decided(&self, policy: Policy, planned: u32, missing: u32, more: u32) -> bool {
        let left = missing.saturating_sub(more);
        let decides = |outcome| self.with(more, outcome).decided(policy, planned, left).is_some();
        decides(Outcome::Passed) || decides(Outcome::Failed)
    }

    fn with(mut self, more: u32, outcome: Outcome) -> Self {
        match outcome {
            Outcome::Passed => {
                self.graded += more;
                self.passed += more;
                self.score += f64::from(more);
            }
            Outcome::Failed | Outcome::TimedOut => self.graded += more,
            Outcome::Errored => self.errored += more,
            Outcome::Cancelled => {}
        }
        self
    }
}

#[cfg(test)]
mod tests;
