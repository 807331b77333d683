//! How a whole run ended, and the exit code that says so.

use crate::model::summary::{Conclusion, GateResult};
use crate::model::{CancelReason, ExitCode, Totals};

/// What the end of a run depends on.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Some attempt gave a result.
    pub measured: bool,
    /// Every planned pair is pass or fail, and nothing stopped the run before its plan was done.
    pub complete: bool,
    /// The run was cancelled.
    pub cancelled: bool,
    /// There was nothing to run, and that is fine: nothing changed, or a fork without credentials.
    pub skipped: bool,
    /// What each gate of `fail-on` found.
    pub gates: &'a [GateResult],
}

impl Facts<'_> {
    /// A run that came to its end, or was stopped for a reason, without gates.
    pub fn of(totals: &Totals, reason: Option<CancelReason>) -> Self {
        Self {
            measured: totals.attempts.graded > 0,
            complete: is_complete(totals) && reason != Some(CancelReason::Budget),
            cancelled: false,
            skipped: false,
            gates: &[],
        }
    }
}

/// Whether every planned pair is pass or fail, and there is at least one.
pub fn is_complete(totals: &Totals) -> bool {
    totals.pairs > 0 && totals.passed + totals.failed == totals.pairs
}

/// How the run ended. Where several things hold: cancelled, then nothing measured, then a failed gate, then
/// incomplete.
///
/// An incomplete run is called so even where `fail-on` lets it succeed with exit code 0. `fail-on: never`, after which no
/// gate fails, silences findings (exit codes 1 and 3) only: a run that was cancelled, or that measured nothing, has not
/// done its work, so 130 and 4 stay.
pub fn conclude(facts: Facts<'_>) -> (Conclusion, ExitCode) {
    let failed = || facts.gates.iter().filter(|gate| gate.failed);
    if facts.cancelled {
        (Conclusion::Cancelled, ExitCode::Cancelled)
    } else if facts.skipped {
        (Conclusion::Skipped, ExitCode::Success)
    } else if !facts.measured {
        (Conclusion::Empty, ExitCode::NothingMeasured)
    } else if failed().any(|gate| !gate.is_incomplete()) {
        (Conclusion::Failure, ExitCode::GateFailed)
    } else if facts.complete {
        (Conclusion::Success, ExitCode::Success)
    } else if failed().count() > 0 {
        (Conclusion::Incomplete, ExitCode::Incomplete)
    } else {
        (Conclusion::Incomplete, ExitCode::Success)
    }
}

#[cfg(test)]
mod tests {
    use super::{Facts, conclude};
    use crate::model::summary::{Conclusion, GateResult};
    use crate::model::{ExitCode, Gate};

    const COMPLETE: Facts<'_> = Facts {
        measured: true,
        complete: true,
        cancelled: false,
        skipped: false,
        gates: &[],
    };
    const INCOMPLETE: Facts<'_> = Facts {
        complete: false,
        ..COMPLETE
    };
    const NOTHING: Facts<'_> = Facts {
        measured: false,
        ..INCOMPLETE
    };

    fn found(gate: Gate, failed: bool) -> GateResult {
        GateResult {
            gate: gate.to_string(),
            failed,
            why: String::new(),
        }
    }

    #[test]
    fn a_complete_run_succeeds_where_no_gate_fails() {
        let gates = [found(Gate::Incomplete, false), found(Gate::Below(0.8), false)];
        let end = conclude(Facts {
            gates: &gates,
            ..COMPLETE
        });
        assert_eq!(end, (Conclusion::Success, ExitCode::Success));
    }

    #[test]
    fn a_pair_without_verdict_makes_the_run_incomplete_but_fails_it_only_if_asked() {
        let asked = [found(Gate::Incomplete, true)];
        let asked = conclude(Facts {
            gates: &asked,
            ..INCOMPLETE
        });
        assert_eq!(asked, (Conclusion::Incomplete, ExitCode::Incomplete));
        let not_asked = conclude(INCOMPLETE);
        assert_eq!(not_asked, (Conclusion::Incomplete, ExitCode::Success));
    }

    #[test]
    fn of_several_reasons_the_gravest_names_the_end() {
        let gates = [found(Gate::Incomplete, true), found(Gate::Error, true)];
        let mut facts = Facts {
            cancelled: true,
            gates: &gates,
            ..NOTHING
        };
        assert_eq!(conclude(facts), (Conclusion::Cancelled, ExitCode::Cancelled));
        facts.cancelled = false;
        assert_eq!(conclude(facts), (Conclusion::Empty, ExitCode::NothingMeasured));
        facts.measured = true;
        assert_eq!(conclude(facts), (Conclusion::Failure, ExitCode::GateFailed));
        facts.gates = &gates[..1];
        assert_eq!(conclude(facts), (Conclusion::Incomplete, ExitCode::Incomplete));
    }

    #[test]
    fn never_does_not_hide_that_nothing_was_measured_or_that_the_run_was_cancelled() {
        let gates = [found(Gate::Never, false)];
        let nothing = Facts {
            gates: &gates,
            ..NOTHING
        };
        assert_eq!(conclude(nothing).1, ExitCode::NothingMeasured);
        let cancelled = Facts {
            cancelled: true,
            ..nothing
        };
        assert_eq!(conclude(cancelled).1, ExitCode::Cancelled);
    }

    #[test]
    fn an_empty_suite_is_an_error_unless_it_was_meant_to_be_skipped() {
        assert_eq!(conclude(NOTHING), (Conclusion::Empty, ExitCode::NothingMeasured));
        let skipped = Facts {
            skipped: true,
            ..NOTHING
        };
        assert_eq!(conclude(skipped), (Conclusion::Skipped, ExitCode::Success));
    }
}
