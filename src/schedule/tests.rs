use std::time::Duration;

use super::{
    Action, AttemptRef, Budget, Ended, Ending, Pace, PairSpec, Scheduler, Spec, Timeline, Used, retry_budget,
    simulate,
};
use crate::model::{CancelReason, ErrorClass, OnPass, Outcome, Policy};

mod adaptive;
mod bounds;
mod laws;
mod simulated;

const SEQUENTIAL: Pace = Pace::Sequential;
const CONTINUE: Pace = Pace::Parallel(OnPass::Continue);
const CANCEL: Pace = Pace::Parallel(OnPass::Cancel);
const ADAPTIVE: Pace = Pace::Adaptive;
const PASSED: Ending = graded(Outcome::Passed);
const FAILED: Ending = graded(Outcome::Failed);
const LOST: Ending = errored(true, 0);

const fn graded(outcome: Outcome) -> Ending {
    Ending::Graded {
        outcome,
        score: None,
        command: None,
    }
}

const fn errored(retry: bool, delay: u64) -> Ending {
    Ending::Errored {
        class: ErrorClass::NoResult,
        retry,
        delay: s(delay),
    }
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn at(pair: usize, index: u32) -> AttemptRef {
    AttemptRef { pair, index }
}

fn spec(pairs: usize, runs: u32, pace: Pace, concurrency: usize) -> Spec {
    Spec {
        pairs: vec![PairSpec::default(); pairs],
        runs,
        pace,
        policy: Policy::Any,
        concurrency,
        tries: 3,
        retries: 10,
        overhead: None,
        limits: Vec::new(),
        budget: Budget::default(),
        used: Used::default(),
    }
}

fn predicted(seconds: &[Option<u64>], runs: u32, concurrency: usize) -> Spec {
    let predict = |seconds: &Option<u64>| PairSpec {
        predicted: seconds.map(s),
        ..PairSpec::default()
    };
    Spec {
        pairs: seconds.iter().map(predict).collect(),
        ..spec(0, runs, CONTINUE, concurrency)
    }
}

fn start(pair: usize, index: u32, try_number: u32) -> Action {
    Action::Start {
        attempt: at(pair, index),
        try_number,
        kept: false,
    }
}

fn start_kept(pair: usize, index: u32) -> Action {
    Action::Start {
        attempt: at(pair, index),
        try_number: 1,
        kept: true,
    }
}

fn skip(pair: usize, index: u32, reason: CancelReason) -> Action {
    Action::Skip {
        attempt: at(pair, index),
        reason,
    }
}

fn cancel(pair: usize, index: u32, reason: CancelReason) -> Action {
    Action::Cancel {
        attempt: at(pair, index),
        reason,
    }
}

/// Ends a try at second 0, and says what follows and what is to be done then.
fn end(scheduler: &mut Scheduler, pair: usize, index: u32, ending: Ending) -> (Ended, Vec<Action>) {
    let ended = scheduler.end(at(pair, index), ending, s(0));
    (ended, scheduler.next(s(0)))
}

fn started(actions: &[Action]) -> Vec<(usize, u32)> {
    actions
        .iter()
        .filter_map(|action| match action {
            Action::Start { attempt, .. } => Some((attempt.pair, attempt.index)),
            _ => None,
        })
        .collect()
}

#[test]
fn parallel_starts_everything_in_one_wave_where_there_is_room() {
    let mut scheduler = Scheduler::new(spec(3, 2, CONTINUE, 6));
    let wave = [(0, 1), (1, 1), (2, 1), (0, 2), (1, 2), (2, 2)];
    assert_eq!(started(&scheduler.next(s(0))), wave);
    assert!(scheduler.next(s(0)).is_empty());
}

#[test]
fn the_longest_predicted_starts_first_and_unknown_counts_as_longest() {
    let seconds = [Some(10), None, Some(30), Some(20)];
    let mut scheduler = Scheduler::new(predicted(&seconds, 2, 100));
    let wave = started(&scheduler.next(s(0)));
    assert_eq!(
        wave,
        [(1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (3, 2), (0, 1), (0, 2)]
    );
}

#[test]
fn a_free_place_goes_to_the_longest_that_waits() {
    let mut scheduler = Scheduler::new(predicted(&[Some(1), Some(3), Some(2)], 1, 1));
    assert_eq!(started(&scheduler.next(s(0))), [(1, 1)]);
    assert_eq!(started(&end(&mut scheduler, 1, 1, FAILED).1), [(2, 1)]);
    assert_eq!(started(&end(&mut scheduler, 2, 1, FAILED).1), [(0, 1)]);
    assert_eq!(end(&mut scheduler, 0, 1, FAILED), (Ended::Final, vec![]));
    assert!(scheduler.is_done());
}

#[test]
fn parallel_runs_all_attempts_though_the_pair_is_decided() {
    let mut scheduler = Scheduler::new(spec(1, 3, CONTINUE, 2));
    scheduler.next(s(0));
    assert_eq!(end(&mut scheduler, 0, 1, PASSED).1, [start(0, 3, 1)]);
}

#[test]
fn a_decided_pair_cancels_its_running_and_skips_its_waiting_attempts() {
    let mut scheduler = Scheduler::new(spec(1, 3, CANCEL, 2));
    scheduler.next(s(0));
    let (_, actions) = end(&mut scheduler, 0, 1, PASSED);
    assert_eq!(
        actions,
        [
            cancel(0, 2, CancelReason::Decided),
            skip(0, 3, CancelReason::Decided)
        ]
    );
    assert!(!scheduler.is_done());
    assert_eq!(
        end(&mut scheduler, 0, 2, Ending::Cancelled),
        (Ended::Final, vec![])
    );
    assert!(scheduler.is_done());
}

#[test]
fn an_attempt_that_was_told_to_stop_may_still_end_but_is_not_tried_again() {
    for ending in [PASSED, LOST] {
        let mut scheduler = Scheduler::new(spec(1, 2, CANCEL, 2));
        scheduler.next(s(0));
        end(&mut scheduler, 0, 1, PASSED);
        assert_eq!(end(&mut scheduler, 0, 2, ending), (Ended::Final, vec![]));
        assert!(scheduler.is_done());
    }
}

#[test]
fn a_retry_that_waits_is_skipped_when_a_sibling_decides_the_pair() {
    let mut scheduler = Scheduler::new(spec(1, 2, CANCEL, 2));
    scheduler.next(s(0));
    assert_eq!(
        end(&mut scheduler, 0, 1, errored(true, 60)),
        (Ended::Retry, vec![])
    );
    let (_, actions) = end(&mut scheduler, 0, 2, PASSED);
    assert_eq!(actions, [skip(0, 1, CancelReason::Decided)]);
    assert_eq!(scheduler.wake_at(), None);
    assert!(scheduler.is_done());
}

#[test]
fn sequential_goes_on_in_the_kept_sandbox_until_the_pair_is_decided() {
    let mut scheduler = Scheduler::new(spec(2, 3, SEQUENTIAL, 1));
    assert_eq!(scheduler.next(s(0)), [start(0, 1, 1)]);
    assert_eq!(end(&mut scheduler, 0, 1, FAILED).1, [start_kept(0, 2)]);
    let (_, actions) = end(&mut scheduler, 0, 2, PASSED);
    assert_eq!(actions, [skip(0, 3, CancelReason::Decided), start(1, 1, 1)]);
}

#[test]
fn sequential_uses_no_sandbox_again_after_a_time_out_or_an_error() {
    let mut scheduler = Scheduler::new(spec(1, 3, SEQUENTIAL, 1));
    scheduler.next(s(0));
    let (_, actions) = end(&mut scheduler, 0, 1, graded(Outcome::TimedOut));
    assert_eq!(actions, [start(0, 2, 1)]);
    let (ended, actions) = end(&mut scheduler, 0, 2, LOST);
    assert_eq!((ended, actions), (Ended::Retry, vec![start(0, 2, 2)]));
    let (ended, actions) = end(&mut scheduler, 0, 2, errored(false, 0));
    assert_eq!((ended, actions), (Ended::Final, vec![start(0, 3, 1)]));
}

#[test]
fn sequential_counts_pairs_and_a_pair_that_has_begun_keeps_its_place() {
    let mut scheduler = Scheduler::new(spec(3, 2, SEQUENTIAL, 2));
    assert_eq!(started(&scheduler.next(s(0))), [(0, 1), (1, 1)]);
    scheduler.end(at(1, 1), FAILED, s(0));
    scheduler.end(at(0, 1), PASSED, s(0));
    let actions = scheduler.next(s(0));
    assert_eq!(
        actions,
        [
            skip(0, 2, CancelReason::Decided),
            start_kept(1, 2),
            start(2, 1, 1)
        ]
    );
}

#[test]
fn a_delayed_retry_holds_no_place() {
    for pace in [SEQUENTIAL, CONTINUE] {
        let mut scheduler = Scheduler::new(spec(2, 1, pace, 1));
        scheduler.next(s(0));
        assert_eq!(scheduler.end(at(0, 1), errored(true, 30), s(5)), Ended::Retry);
        assert_eq!(scheduler.next(s(5)), [start(1, 1, 1)]);
        assert_eq!(scheduler.wake_at(), Some(s(35)));
        assert!(scheduler.next(s(34)).is_empty());
        // Its time has come, but the place is taken.
        assert!(scheduler.next(s(35)).is_empty());
        assert_eq!(scheduler.wake_at(), None);
        scheduler.end(at(1, 1), PASSED, s(40));
        assert_eq!(scheduler.next(s(40)), [start(0, 1, 2)]);
    }
}

#[test]
fn an_attempt_is_tried_no_more_often_than_it_may_be() {
    let mut scheduler = Scheduler::new(spec(1, 1, CONTINUE, 1));
    scheduler.next(s(0));
    assert_eq!(
        end(&mut scheduler, 0, 1, LOST),
        (Ended::Retry, vec![start(0, 1, 2)])
    );
    assert_eq!(
        end(&mut scheduler, 0, 1, LOST),
        (Ended::Retry, vec![start(0, 1, 3)])
    );
    assert_eq!(end(&mut scheduler, 0, 1, LOST), (Ended::Final, vec![]));
    assert!(scheduler.is_done());
    assert!(!scheduler.retries_used_up());
    // Nothing was left to be stopped.
    assert_eq!(scheduler.stopped(), None);
}

#[test]
fn the_run_has_no_more_retries_than_its_budget() {
    let budget = Spec {
        retries: 1,
        ..spec(2, 1, CONTINUE, 2)
    };
    let mut scheduler = Scheduler::new(budget);
    scheduler.next(s(0));
    assert_eq!(end(&mut scheduler, 0, 1, LOST).0, Ended::Retry);
    assert_eq!(end(&mut scheduler, 1, 1, LOST).0, Ended::RetriesUsedUp);
    assert!(scheduler.retries_used_up());
}

#[test]
fn the_retry_budget_is_a_share_of_the_plan_and_at_least_ten() {
    assert_eq!(retry_budget(0.2, 474), 95);
    assert_eq!(retry_budget(0.2, 12), 10);
    assert_eq!(retry_budget(0.0, 100_000), 10);
}

#[test]
fn the_breaker_stops_a_run_whose_first_ten_tries_died_alike() {
    let mut scheduler = Scheduler::new(spec(20, 1, CONTINUE, 11));
    scheduler.next(s(0));
    // The first waits for another try, and so does the second, which has had two.
    for _ in 0..2 {
        assert_eq!(scheduler.end(at(1, 1), LOST, s(0)), Ended::Retry);
        scheduler.next(s(0));
    }
    scheduler.end(at(0, 1), errored(true, 60), s(0));
    for pair in 2..8 {
        scheduler.end(at(pair, 1), errored(false, 0), s(0));
    }
    assert_eq!(scheduler.stopped(), None);
    scheduler.next(s(0));
    let (ended, actions) = end(&mut scheduler, 8, 1, LOST);
    assert_eq!(ended, Ended::Final);
    let stopped = scheduler.stopped().unwrap();
    assert_eq!((stopped.class, stopped.tries), (ErrorClass::NoResult, 10));
    assert_eq!(
        stopped.to_string(),
        "the first 10 tries all ended with the error `no_result`, so nothing else was started"
    );
    assert_eq!(actions[0], Action::GiveUp { attempt: at(0, 1) });
    let breaker = CancelReason::Breaker;
    let running = (1..20).filter(|pair| actions.contains(&cancel(*pair, 1, breaker)));
    let running: Vec<usize> = running.collect();
    let waiting = (1..20).filter(|pair| actions.contains(&skip(*pair, 1, breaker)));
    assert_eq!(actions.len(), 1 + running.len() + waiting.count());
    for pair in running {
        assert_eq!(
            end(&mut scheduler, pair, 1, Ending::Cancelled),
            (Ended::Final, vec![])
        );
    }
    assert!(scheduler.is_done());
}

#[test]
fn one_result_or_another_class_disarms_the_breaker() {
    let other = Ending::Errored {
        class: ErrorClass::Setup,
        retry: true,
        delay: s(0),
    };
    for first in [PASSED, FAILED, other] {
        let mut scheduler = Scheduler::new(spec(30, 1, CONTINUE, 30));
        scheduler.next(s(0));
        scheduler.end(at(0, 1), first, s(0));
        for pair in 1..30 {
            scheduler.end(at(pair, 1), LOST, s(0));
        }
        assert_eq!(scheduler.stopped(), None);
    }
}

#[test]
fn a_sibling_that_was_stopped_does_not_disarm_the_breaker() {
    // A pair that needs all its results is decided, as an error, by the first that is lost.
    let policy = Policy::Mean {
        threshold: 0.5,
        complete: true,
    };
    let spec = Spec {
        policy,
        ..spec(20, 2, CANCEL, 40)
    };
    let mut scheduler = Scheduler::new(spec);
    scheduler.next(s(0));
    for pair in 0..10 {
        assert_eq!(scheduler.stopped(), None);
        let (_, actions) = end(&mut scheduler, pair, 1, errored(false, 0));
        assert_eq!(actions[0], cancel(pair, 2, CancelReason::Decided));
        end(&mut scheduler, pair, 2, Ending::Cancelled);
    }
    assert_eq!(scheduler.stopped().map(|stopped| stopped.tries), Some(10));
}

#[test]
fn a_cancelled_run_was_not_stopped_by_the_breaker_though_its_tries_died() {
    let mut scheduler = Scheduler::new(spec(20, 1, CONTINUE, 20));
    scheduler.next(s(0));
    scheduler.cancel();
    scheduler.next(s(0));
    for pair in 0..20 {
        assert_eq!(end(&mut scheduler, pair, 1, LOST), (Ended::Final, vec![]));
    }
    assert_eq!(scheduler.stopped(), None);
    assert!(scheduler.is_done());
}

#[test]
fn a_small_run_has_all_its_tries_before_the_breaker() {
    let spec = spec(1, 2, SEQUENTIAL, 1);
    let timeline = simulate(spec, |_, _| (s(1), LOST), |_| s(0));
    assert_eq!(timeline.spans.len(), 6);
}

#[test]
fn cancelling_the_run_stops_what_runs_and_skips_what_waits() {
    for pace in [SEQUENTIAL, CONTINUE, CANCEL] {
        let mut scheduler = Scheduler::new(spec(3, 1, pace, 2));
        scheduler.next(s(0));
        scheduler.end(at(0, 1), errored(true, 60), s(0));
        scheduler.next(s(0));
        scheduler.cancel();
        scheduler.cancel();
        assert_eq!(scheduler.wake_at(), None);
        let run = CancelReason::Run;
        assert_eq!(
            scheduler.next(s(1)),
            [skip(0, 1, run), cancel(1, 1, run), cancel(2, 1, run)]
        );
        assert_eq!(end(&mut scheduler, 1, 1, LOST), (Ended::Final, vec![]));
        assert!(!scheduler.is_done());
        assert_eq!(
            end(&mut scheduler, 2, 1, Ending::Cancelled),
            (Ended::Final, vec![])
        );
        assert!(scheduler.is_done());
        assert_eq!(scheduler.stopped(), None);
    }
}

#[test]
fn a_kept_start_does_not_come_after_the_run_is_cancelled() {
    let mut scheduler = Scheduler::new(spec(1, 2, SEQUENTIAL, 1));
    scheduler.next(s(0));
    scheduler.end(at(0, 1), FAILED, s(1));
    scheduler.cancel();
    assert_eq!(scheduler.next(s(1)), [skip(0, 2, CancelReason::Run)]);
    assert!(scheduler.is_done());
}

#[test]
fn nothing_to_do_is_done() {
    for empty in [spec(0, 2, CONTINUE, 4), spec(3, 0, SEQUENTIAL, 4)] {
        let mut scheduler = Scheduler::new(empty.clone());
        assert!(scheduler.next(s(0)).is_empty());
        assert!(scheduler.is_done());
        assert_eq!(
            simulate(empty, |_, _| (s(1), PASSED), |_| s(1)),
            Timeline::default()
        );
    }
}
