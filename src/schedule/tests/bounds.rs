//! Limits per label, and budgets: what stops attempts from starting.

use super::{
    ADAPTIVE, Budget, CONTINUE, CancelReason, Ending, ErrorClass, FAILED, LOST, PASSED, PairSpec, SEQUENTIAL,
    Scheduler, Spec, at, cancel, s, simulate, skip, spec, start, started,
};
use crate::schedule::Exhausted;

const THROTTLED: Ending = Ending::Errored {
    class: ErrorClass::Throttled,
    retry: true,
    delay: s(10),
};

/// Pairs that count against these limits, all of one run.
fn limited(pairs: &[&[usize]], limits: &[usize], concurrency: usize) -> Spec {
    let pair = |limits: &&[usize]| PairSpec {
        limits: limits.to_vec(),
        ..PairSpec::default()
    };
    Spec {
        pairs: pairs.iter().map(pair).collect(),
        limits: limits.to_vec(),
        ..spec(0, 1, CONTINUE, concurrency)
    }
}

#[test]
fn a_label_runs_no_more_at_once_than_its_limit_and_others_go_ahead() {
    let pairs: [&[usize]; 6] = [&[0], &[0], &[0], &[1], &[], &[0, 1]];
    let mut scheduler = Scheduler::new(limited(&pairs, &[2, 1], 10));
    assert_eq!(started(&scheduler.next(s(0))), [(0, 1), (1, 1), (3, 1), (4, 1)]);
    scheduler.end(at(4, 1), PASSED, s(1));
    assert_eq!(started(&scheduler.next(s(1))), []);
    scheduler.end(at(3, 1), PASSED, s(2));
    assert_eq!(started(&scheduler.next(s(2))), []);
    scheduler.end(at(0, 1), PASSED, s(3));
    scheduler.end(at(1, 1), PASSED, s(3));
    assert_eq!(started(&scheduler.next(s(3))), [(2, 1), (5, 1)]);
}

#[test]
fn in_sequence_a_limit_counts_pairs() {
    let pairs: [&[usize]; 3] = [&[0], &[0], &[0]];
    let spec = Spec {
        pace: SEQUENTIAL,
        runs: 2,
        ..limited(&pairs, &[1], 10)
    };
    let mut scheduler = Scheduler::new(spec);
    assert_eq!(started(&scheduler.next(s(0))), [(0, 1)]);
    scheduler.end(at(0, 1), FAILED, s(1));
    assert_eq!(started(&scheduler.next(s(1))), [(0, 2)]);
    scheduler.end(at(0, 2), PASSED, s(2));
    assert_eq!(started(&scheduler.next(s(2))), [(1, 1)]);
}

#[test]
fn a_throttled_label_gives_way_once_and_grows_again() {
    let mut spec = limited(&[&[0][..]; 40], &[10], 40);
    spec.retries = 100;
    let mut scheduler = Scheduler::new(spec);
    assert_eq!(scheduler.next(s(0)).len(), 10);
    // Three of one crowd are throttled: the limit is 8, and seven run.
    for pair in 0..3 {
        scheduler.end(at(pair, 1), THROTTLED, s(5));
    }
    assert_eq!(started(&scheduler.next(s(5))), [(10, 1)]);
    scheduler.end(at(3, 1), PASSED, s(30));
    assert_eq!(scheduler.next(s(30)).len(), 1);
    // It grows two minutes after the cut, and that time is told.
    assert_eq!(scheduler.wake_at(), Some(s(125)));
    assert_eq!(scheduler.next(s(125)).len(), 2);
}

#[test]
fn a_speculative_attempt_is_held_back_by_its_limit_too() {
    let spec = Spec {
        pace: ADAPTIVE,
        runs: 2,
        pairs: vec![
            PairSpec {
                predicted: Some(s(100)),
                limits: vec![0],
                ..PairSpec::default()
            },
            PairSpec {
                predicted: Some(s(90)),
                ..PairSpec::default()
            },
        ],
        ..limited(&[], &[1], 10)
    };
    let mut scheduler = Scheduler::new(spec);
    assert_eq!(started(&scheduler.next(s(0))), [(0, 1), (1, 1), (1, 2)]);
}

#[test]
fn a_run_stops_when_its_sandbox_time_is_used_up_and_keeps_what_is_graded() {
    let spec = Spec {
        budget: Budget {
            sandbox_time: Some(s(100)),
            ..Budget::default()
        },
        ..spec(4, 1, CONTINUE, 2)
    };
    let mut scheduler = Scheduler::new(spec);
    assert_eq!(scheduler.next(s(0)).len(), 2);
    scheduler.hold(at(0, 1), s(0));
    scheduler.hold(at(1, 1), s(0));
    scheduler.end(at(0, 1), PASSED, s(30));
    assert_eq!(scheduler.next(s(30)), [start(2, 1, 1)]);
    scheduler.hold(at(2, 1), s(30));
    let time = scheduler.wake_at().unwrap();
    assert_eq!(time.as_secs(), 50);
    let budget = CancelReason::Budget;
    assert_eq!(
        scheduler.next(time),
        [cancel(1, 1, budget), cancel(2, 1, budget), skip(3, 1, budget)]
    );
    assert_eq!(scheduler.exhausted(), Some(&Exhausted::SandboxTime(s(100))));
    scheduler.end(at(1, 1), Ending::Cancelled, time);
    scheduler.end(at(2, 1), Ending::Cancelled, time);
    assert!(scheduler.next(time).is_empty());
    assert!(scheduler.is_done());
}

#[test]
fn waiting_for_a_sandbox_uses_nothing_of_the_budget() {
    let spec = Spec {
        budget: Budget {
            sandbox_time: Some(s(100)),
            ..Budget::default()
        },
        ..spec(3, 1, CONTINUE, 3)
    };
    let mut scheduler = Scheduler::new(spec);
    assert_eq!(scheduler.next(s(0)).len(), 3);
    assert_eq!(scheduler.wake_at(), None);
    scheduler.hold(at(0, 1), s(0));
    scheduler.end(at(0, 1), PASSED, s(60));
    scheduler.hold(at(1, 1), s(60));
    // One that never has its turn ends without having held anything.
    scheduler.end(at(2, 1), LOST, s(99));
    assert_eq!(scheduler.next(s(99)), [start(2, 1, 2)]);
    assert_eq!(scheduler.exhausted(), None);
    assert_eq!(scheduler.wake_at().map(|time| time.as_secs()), Some(100));
}

#[test]
fn a_cost_that_results_report_stops_the_run_as_well() {
    let spec = Spec {
        budget: Budget {
            cost: Some(1.0),
            ..Budget::default()
        },
        ..spec(3, 1, CONTINUE, 1)
    };
    let mut scheduler = Scheduler::new(spec);
    scheduler.next(s(0));
    for (pair, expected) in [(0, 1), (1, 1)] {
        scheduler.spend(0.6);
        scheduler.end(at(pair, 1), PASSED, s(1));
        assert_eq!(scheduler.next(s(1)).len(), expected);
    }
    assert_eq!(scheduler.exhausted(), Some(&Exhausted::Cost(1.0)));
    assert!(scheduler.is_done());
}

#[test]
fn a_budget_is_kept_to_the_millisecond_whatever_runs() {
    for pace in [SEQUENTIAL, CONTINUE, ADAPTIVE] {
        let spec = Spec {
            budget: Budget {
                sandbox_time: Some(s(500)),
                ..Budget::default()
            },
            ..spec(20, 2, pace, 7)
        };
        let timeline = simulate(spec, |_, _| (s(30), FAILED), |_| s(3));
        let over = timeline.sandbox_time.saturating_sub(s(500));
        assert!(over.as_millis() <= 8, "{over:?}");
        assert!(timeline.sandbox_time >= s(500));
    }
}
