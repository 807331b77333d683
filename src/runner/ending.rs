//! What a try came to, as its driver hears it: records to keep, a sandbox to use again, and whether to try again.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::RecordError;
use crate::model::{
    AttemptDetails, AttemptError, AttemptRecord, CancelReason, ErrorClass, Outcome, Phase, Produces, RunPlan,
};
use crate::sandbox::Sandbox;
use crate::schedule::Ending;

/// How long a throttled attempt waits before its second try; doubled for each further one.
const THROTTLED_DELAY: Duration = Duration::from_secs(10);

/// However often it was throttled, it waits no longer.
const LONGEST_DELAY: Duration = Duration::from_secs(300);

/// The attempts that end together: one, or with `produces: pair` all of a pair.
pub(super) type Ends = Vec<(AttemptRecord, AttemptDetails)>;

/// The indexes of the attempts that one start makes, where it is the start of the attempt `index`.
pub(super) fn indexes(plan: &RunPlan, index: u32) -> RangeInclusive<u32> {
    match plan.produces {
        Produces::Attempt => index..=index,
        Produces::Pair => 1..=plan.runs,
    }
}

/// What a try came to.
pub(super) struct TryEnd {
    /// A record for each attempt that it made.
    pub(super) records: Ends,
    /// The sandbox, to be used again or stopped.
    pub(super) sandbox: Option<Box<dyn Sandbox>>,
    /// Whether another attempt of the pair may use it.
    pub(super) reusable: bool,
    /// Whether a fresh try could give a result.
    pub(super) retry: bool,
    /// Whether a provider throttled it, so that the next try should wait.
    pub(super) throttled: bool,
    /// Whether what it came to could be kept before another try.
    pub(super) kept: Result<(), RecordError>,
}

impl TryEnd {
    /// What is left to say where the try's own task broke.
    pub(super) fn broken(indexes: RangeInclusive<u32>, try_number: u32, why: &str) -> Self {
        let error = AttemptError {
            class: ErrorClass::Exec,
            phase: Phase::Command,
            message: format!("the attempt broke inside evalwave: {why}"),
            exit_code: None,
            signal: None,
        };
        let record = |index| AttemptRecord {
            outcome: Outcome::Errored,
            reason: None,
            error: Some(error.clone()),
            tries: try_number,
            ..AttemptRecord::not_started(index, CancelReason::Run)
        };
        Self {
            records: indexes
                .map(|index| (record(index), AttemptDetails::default()))
                .collect(),
            sandbox: None,
            reusable: false,
            retry: false,
            throttled: false,
            kept: Ok(()),
        }
    }

    /// What the scheduler is told; `try_number` is that of this session of the run, from 1.
    pub(super) fn ending(&self, try_number: u32) -> Ending {
        let mut records = self.records.iter().map(|(record, _)| record);
        if let Some(graded) = records.clone().find(|record| record.outcome.is_graded()) {
            return Ending::Graded {
                outcome: graded.outcome,
                score: graded.score,
                command: graded
                    .phases
                    .command
                    .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            };
        }
        match records.find_map(|record| Some(record.error.as_ref()?.class)) {
            Some(class) => Ending::Errored {
                class,
                retry: self.retry,
                delay: match self.throttled {
                    true => throttled_delay(try_number),
                    false => Duration::ZERO,
                },
            },
            None => Ending::Cancelled,
        }
    }
}

fn throttled_delay(try_number: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(try_number.saturating_sub(1));
    THROTTLED_DELAY.saturating_mul(doubled).min(LONGEST_DELAY)
}

#[cfg(test)]
mod tests {
    use super::{Ending, TryEnd, throttled_delay};

    #[test]
    fn a_task_that_broke_ends_every_attempt_that_it_was_to_make() {
        let end = TryEnd::broken(1..=3, 2, "it panicked");
        assert_eq!(end.records.len(), 3);
        assert!(end.records.iter().all(|(record, _)| record.tries == 2));
        assert!(matches!(end.ending(1), Ending::Errored { retry: false, .. }));
    }

    #[test]
    fn a_throttled_attempt_waits_twice_as_long_each_time_and_never_longer_than_five_minutes() {
        let waits = [1, 2, 5, 6, 12, 100].map(|number| throttled_delay(number).as_secs());
        assert_eq!(waits, [10, 20, 160, 300, 300, 300]);
    }
}
