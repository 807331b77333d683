//! How a whole run ended, and the exit code that says so.

use crate::model::summary::Conclusion;
use crate::model::{ExitCode, Gate, Totals};

/// What the end of a run depends on.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// What was measured.
    pub totals: &'a Totals,
    /// The run was cancelled.
    pub cancelled: bool,
    /// There was nothing to run, and that is fine: nothing changed, or a fork without credentials.
    pub skipped: bool,
    /// The gates of `fail-on`; none after `never`.
    pub fail_on: &'a [Gate],
    /// One of them other than `incomplete` failed.
    pub gate_failed: bool,
}

/// Whether every planned pair is pass or fail, and there is at least one.
pub fn is_complete(totals: &Totals) -> bool {
    totals.pairs > 0 && totals.passed + totals.failed == totals.pairs
}

/// How the run ended. Where several things hold: cancelled, then nothing measured, then a failed gate, then
/// incomplete.
///
/// An incomplete run is called so even where `fail-on` lets it succeed with exit code 0. `fail-on: never` is an empty
/// list, and silences findings (exit codes 1 and 3) only: a run that was cancelled, or that measured nothing, has not
/// done its work, so 130 and 4 stay.
pub fn conclude(facts: Facts<'_>) -> (Conclusion, ExitCode) {
    if facts.cancelled {
        (Conclusion::Cancelled, ExitCode::Cancelled)
    } else if facts.skipped {
        (Conclusion::Skipped, ExitCode::Success)
    } else if facts.totals.attempts.graded == 0 {
        (Conclusion::Empty, ExitCode::NothingMeasured)
    } else if facts.gate_failed {
        (Conclusion::Failure, ExitCode::GateFailed)
    } else if is_complete(facts.totals) {
        (Conclusion::Success, ExitCode::Success)
    } else if facts.fail_on.contains(&Gate::Incomplete) {
        (Conclusion::Incomplete, ExitCode::Incomplete)
    } else {
        (Conclusion::Incomplete, ExitCode::Success)
    }
}

#[cfg(test)]
mod tests {
    use super::{Facts, conclude};
    use crate::model::summary::{AttemptTotals, Conclusion};
    use crate::model::{ExitCode, Gate, Totals};

    fn totals(passed: usize, failed: usize, errored: usize) -> Totals {
        Totals {
            pairs: passed + failed + errored,
            passed,
            failed,
            errored,
            attempts: AttemptTotals {
                graded: passed + failed,
                ..AttemptTotals::default()
            },
            ..Totals::default()
        }
    }

    fn facts<'a>(totals: &'a Totals, fail_on: &'a [Gate]) -> Facts<'a> {
        Facts {
            totals,
            cancelled: false,
            skipped: false,
            fail_on,
            gate_failed: false,
        }
    }

    #[test]
    fn a_complete_run_succeeds_though_pairs_failed() {
        let totals = totals(3, 2, 0);
        let end = conclude(facts(&totals, &[Gate::Incomplete]));
        assert_eq!(end, (Conclusion::Success, ExitCode::Success));
    }

    #[test]
    fn a_pair_without_verdict_makes_the_run_incomplete_but_fails_it_only_if_asked() {
        let totals = totals(3, 2, 1);
        let asked = conclude(facts(&totals, &[Gate::Incomplete]));
        assert_eq!(asked, (Conclusion::Incomplete, ExitCode::Incomplete));
        let not_asked = conclude(facts(&totals, &[Gate::Regression]));
        assert_eq!(not_asked, (Conclusion::Incomplete, ExitCode::Success));
        let never = conclude(facts(&totals, &[]));
        assert_eq!(never, (Conclusion::Incomplete, ExitCode::Success));
    }

    #[test]
    fn of_several_reasons_the_gravest_names_the_end() {
        let nothing = totals(0, 0, 4);
        let some = totals(1, 0, 4);
        let listed = [Gate::Incomplete, Gate::Error];
        let mut facts = Facts {
            cancelled: true,
            gate_failed: true,
            ..facts(&nothing, &listed)
        };
        assert_eq!(conclude(facts), (Conclusion::Cancelled, ExitCode::Cancelled));
        facts.cancelled = false;
        assert_eq!(conclude(facts), (Conclusion::Empty, ExitCode::NothingMeasured));
        facts.totals = &some;
        assert_eq!(conclude(facts), (Conclusion::Failure, ExitCode::GateFailed));
        facts.gate_failed = false;
        assert_eq!(conclude(facts), (Conclusion::Incomplete, ExitCode::Incomplete));
    }

    #[test]
    fn never_does_not_hide_that_nothing_was_measured_or_that_the_run_was_cancelled() {
        let nothing = totals(0, 0, 4);
        assert_eq!(conclude(facts(&nothing, &[])).1, ExitCode::NothingMeasured);
        let cancelled = Facts {
            cancelled: true,
            ..facts(&nothing, &[])
        };
        assert_eq!(conclude(cancelled).1, ExitCode::Cancelled);
    }

    #[test]
    fn an_empty_suite_is_an_error_unless_it_was_meant_to_be_skipped() {
        let empty = totals(0, 0, 0);
        assert_eq!(
            conclude(facts(&empty, &[])),
            (Conclusion::Empty, ExitCode::NothingMeasured)
        );
        let skipped = Facts {
            skipped: true,
            ..facts(&empty, &[Gate::Incomplete])
        };
        assert_eq!(conclude(skipped), (Conclusion::Skipped, ExitCode::Success));
    }
}
