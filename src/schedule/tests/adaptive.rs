//! When the adaptive strategy starts what, by the clock.

use super::{
    ADAPTIVE, Action, CancelReason, Ended, Ending, FAILED, LOST, Outcome, PASSED, Policy, Scheduler, Spec,
    at, cancel, end, predicted, s, skip, spec, start, started,
};

/// Pairs with these predictions in seconds, 10 s around each command.
fn adaptive(seconds: &[Option<u64>], runs: u32, concurrency: usize) -> Spec {
    Spec {
        pace: ADAPTIVE,
        overhead: Some(s(10)),
        ..predicted(seconds, runs, concurrency)
    }
}

fn passed_after(command: u64) -> Ending {
    Ending::Graded {
        outcome: Outcome::Passed,
        score: None,
        command: Some(s(command)),
    }
}

#[test]
fn the_slowest_pairs_start_all_attempts_at_once_and_the_others_when_waiting_would_cost_time() {
    let mut scheduler = Scheduler::new(adaptive(&[Some(1000), Some(1000), Some(400), Some(100)], 2, 100));
    let wave = [(0, 1), (1, 1), (2, 1), (3, 1), (0, 2), (1, 2)];
    assert_eq!(started(&scheduler.next(s(0))), wave);
    // The horizon is 1010 s; the third pair needs 10 s and one and a half times 400 s.
    assert_eq!(scheduler.wake_at(), Some(s(400)));
    assert_eq!(started(&scheduler.next(s(399))), []);
    assert_eq!(scheduler.next(s(400)), [start(2, 2, 1)]);
    // For the fourth there is time for one attempt after the other.
    scheduler.end(at(3, 1), FAILED, s(500));
    assert_eq!(scheduler.next(s(500)), [start(3, 2, 1)]);
}

#[test]
fn one_prediction_alone_makes_no_horizon() {
    // Halfway to its end, when they would still have time, the others are not put off any longer.
    let mut scheduler = Scheduler::new(adaptive(&[Some(10_000), Some(100), Some(100)], 2, 100));
    assert_eq!(started(&scheduler.next(s(0))), [(0, 1), (1, 1), (2, 1), (0, 2)]);
    assert_eq!(scheduler.wake_at(), Some(s(10_010 - 2 * 160)));
}

#[test]
fn a_decided_pair_cancels_its_other_attempts() {
    let mut scheduler = Scheduler::new(adaptive(&[Some(100)], 3, 2));
    assert_eq!(started(&scheduler.next(s(0))), [(0, 1), (0, 2)]);
    let (_, actions) = end(&mut scheduler, 0, 1, PASSED);
    let decided = CancelReason::Decided;
    assert_eq!(actions, [cancel(0, 2, decided), skip(0, 3, decided)]);
}

#[test]
fn attempts_that_are_certain_to_be_needed_go_before_speculative_ones() {
    let mut scheduler = Scheduler::new(adaptive(&[Some(900), Some(100), Some(100)], 2, 2));
    assert_eq!(started(&scheduler.next(s(0))), [(0, 1), (1, 1)]);
    // The first pair's second attempt is late already, but the third pair has not begun.
    scheduler.end(at(1, 1), FAILED, s(100));
    assert_eq!(started(&scheduler.next(s(100))), [(2, 1)]);
    scheduler.end(at(2, 1), PASSED, s(200));
    assert_eq!(started(&scheduler.next(s(200))), [(1, 2)]);
    scheduler.end(at(1, 2), PASSED, s(300));
    assert_eq!(started(&scheduler.next(s(300))), [(0, 2)]);
}

#[test]
fn what_no_policy_could_decide_without_starts_at_once() {
    let wave = |policy| {
        let spec = Spec {
            policy,
            ..adaptive(&[Some(10), Some(5000), Some(5000)], 4, 100)
        };
        let actions = Scheduler::new(spec).next(s(0));
        started(&actions).iter().filter(|(pair, _)| *pair == 0).count()
    };
    // One result decides `any` and `all`, two failures a majority of four, and a whole mean needs all.
    assert_eq!([Policy::Any, Policy::All, Policy::Majority].map(wave), [1, 1, 2]);
    let mean = |complete| Policy::Mean {
        threshold: 0.5,
        complete,
    };
    assert_eq!([mean(false), mean(true)].map(wave), [2, 4]);
}

#[test]
fn a_lost_attempt_makes_the_next_one_certain() {
    let mut scheduler = Scheduler::new(adaptive(&[Some(10), Some(500), Some(500)], 2, 100));
    scheduler.next(s(0));
    let errored = Ending::Errored {
        class: crate::model::ErrorClass::Exec,
        retry: false,
        delay: s(0),
    };
    assert_eq!(scheduler.end(at(0, 1), errored, s(3)), Ended::Final);
    assert_eq!(scheduler.next(s(3)), [start(0, 2, 1)]);
    assert_eq!(scheduler.end(at(0, 2), LOST, s(4)), Ended::Retry);
    assert_eq!(scheduler.next(s(4)), [start(0, 2, 2)]);
}

#[test]
fn without_any_prediction_the_next_attempt_starts_when_the_last_one_is_unusually_long() {
    let mut scheduler = Scheduler::new(Spec {
        pace: ADAPTIVE,
        overhead: Some(s(0)),
        ..spec(40, 2, ADAPTIVE, 80)
    });
    assert_eq!(scheduler.next(s(0)).len(), 40);
    assert_eq!(scheduler.wake_at(), None);
    // They end one a second; three fifths of them are 24.
    for pair in 0..23 {
        let now = s(pair as u64 + 1);
        scheduler.end(at(pair, 1), passed_after(pair as u64 + 1), now);
        assert_eq!(started(&scheduler.next(now)), []);
    }
    scheduler.end(at(23, 1), passed_after(24), s(24));
    assert_eq!(started(&scheduler.next(s(24))).len(), 16);
}

#[test]
fn predictions_that_turn_out_three_times_too_long_do_not_put_off_anything() {
    // All take a third of what is predicted; the shorter pairs say so in time.
    let mut seconds: Vec<Option<u64>> = vec![Some(300); 30];
    seconds.extend([Some(900), Some(3000), Some(3000)]);
    let mut scheduler = Scheduler::new(adaptive(&seconds, 2, 100));
    scheduler.next(s(0));
    // Horizon 3010 s: the pair of 900 s would wait until 1650 s.
    assert!(scheduler.wake_at() >= Some(s(1650)));
    for pair in 0..30 {
        scheduler.end(at(pair, 1), passed_after(100), s(110));
    }
    // With a third of everything it has until 1010 - 10 - 1.5 x 300 s.
    scheduler.next(s(110));
    assert_eq!(scheduler.wake_at().map(|time| time.as_secs()), Some(550));
    assert_eq!(started(&scheduler.next(s(551))), [(30, 2)]);
}

#[test]
fn nothing_is_started_early_that_has_no_place() {
    let mut scheduler = Scheduler::new(adaptive(&[Some(100), Some(100)], 2, 2));
    assert_eq!(started(&scheduler.next(s(0))), [(0, 1), (1, 1)]);
    assert_eq!(scheduler.wake_at(), None);
    let (_, actions) = end(&mut scheduler, 0, 1, PASSED);
    let skipped: Vec<&Action> = actions
        .iter()
        .filter(|action| matches!(action, Action::Skip { .. }))
        .collect();
    assert_eq!((skipped.len(), started(&actions)), (1, vec![(1, 2)]));
}
