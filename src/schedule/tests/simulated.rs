//! Simulated runs, against times that a hand reckons, and large ones.

use std::collections::BTreeMap;

use super::{
    ADAPTIVE, Action, AttemptRef, CANCEL, CONTINUE, FAILED, PASSED, SEQUENTIAL, Scheduler, errored, s,
    simulate, spec,
};

#[test]
fn simulated_strategies_take_the_time_that_a_hand_reckons() {
    // Two pairs x 2; the first passes at once, the second fails its first attempt. 10 s around a fresh command.
    let course = |attempt: AttemptRef, _| match (attempt.pair, attempt.index) {
        (0, _) => (s(100), PASSED),
        (_, 1) => (s(30), FAILED),
        _ => (s(50), PASSED),
    };
    let reckon = |pace, concurrency| {
        let timeline = simulate(spec(2, 2, pace, concurrency), course, |_| s(10));
        (timeline.wall.as_secs(), timeline.sandbox_time.as_secs())
    };
    // Pair 0: 10 + 100. Pair 1: 10 + 30 + 50 in one sandbox.
    assert_eq!(reckon(SEQUENTIAL, 2), (110, 200));
    assert_eq!(reckon(SEQUENTIAL, 1), (200, 200));
    assert_eq!(reckon(CONTINUE, 4), (110, 110 + 110 + 40 + 60));
    // Both of pair 0 end together: the first decides, the second is cancelled with all its time spent.
    assert_eq!(reckon(CANCEL, 4), (110, 110 + 110 + 40 + 60));
    // One place: (0, 1), (1, 1), then (0, 2) is skipped, then (1, 2).
    assert_eq!(reckon(CANCEL, 1), (210, 110 + 40 + 60));
    assert_eq!(reckon(CONTINUE, 1), (320, 320));
}

#[test]
fn a_simulated_retry_waits_for_its_time() {
    let course = |_, try_number| match try_number {
        1 => (s(5), errored(true, 100)),
        _ => (s(7), PASSED),
    };
    let timeline = simulate(spec(1, 1, CONTINUE, 1), course, |_| s(1));
    let spans: Vec<(u64, u64)> = timeline
        .spans
        .iter()
        .map(|span| (span.start.as_secs(), span.end.as_secs()))
        .collect();
    assert_eq!(spans, [(0, 6), (106, 114)]);
    assert_eq!((timeline.wall, timeline.sandbox_time), (s(114), s(14)));
}

#[test]
fn a_hundred_thousand_attempts_are_scheduled_in_no_quadratic_time() {
    // A quadratic step would need minutes here; what it counts is checked, not how long it took.
    let course = |attempt: AttemptRef, _| {
        let outcome = if attempt.index > 1 { PASSED } else { FAILED };
        (s(attempt.pair as u64 % 97), outcome)
    };
    for (pace, until_decided) in [(SEQUENTIAL, 2), (CONTINUE, 50_000), (CANCEL, 11), (ADAPTIVE, 2)] {
        let wide = simulate(spec(10_000, 2, pace, 10_000), course, |_| s(1));
        assert_eq!(wide.spans.len(), 20_000);
        let deep = simulate(spec(1, 50_000, pace, 10), course, |_| s(1));
        assert_eq!(deep.spans.len(), until_decided);
        let undecided = simulate(spec(1, 50_000, pace, 10), |_, _| (s(1), FAILED), |_| s(1));
        assert_eq!(undecided.spans.len(), 50_000);
    }
    let at_once = simulate(spec(1, 50_000, CANCEL, 50_000), |_, _| (s(1), PASSED), |_| s(1));
    assert_eq!(at_once.spans.len(), 50_000);
    let mut scheduler = Scheduler::new(spec(50_000, 2, CONTINUE, 50_000));
    assert_eq!(scheduler.next(s(0)).len(), 50_000);
    scheduler.cancel();
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for action in scheduler.next(s(0)) {
        let name = match action {
            Action::Cancel { .. } => "cancel",
            Action::Skip { .. } => "skip",
            Action::Start { .. } | Action::GiveUp { .. } => "other",
        };
        *reasons.entry(name).or_default() += 1;
    }
    assert_eq!(reasons, BTreeMap::from([("cancel", 50_000), ("skip", 50_000)]));
}
