//! What the statistics promise, tried on simulated suites from fixed seeds. The whole table is
//! `cargo bench --bench statistics`.

mod suite;
mod trials;

#[test]
fn identical_runs_seldom_fail_the_gate_significant() {
    for (pairs, flaky) in [(20, 0.3), (100, 0.1), (220, 0.3)] {
        let alarms = trials::false_alarms(200, pairs, flaky, 1);
        assert!(alarms <= 10, "{alarms} of 200 with {pairs} pairs, {flaky} flaky");
    }
    assert_eq!(
        trials::false_alarms(20, 220, 0.0, 1),
        0,
        "what is not flaky never differs"
    );
}

#[test]
fn an_experiment_that_collapses_among_ten_is_found() {
    let found = trials::collapse(100);
    assert!(found >= 95, "{found} of 100");
}

#[test]
fn throttling_of_a_provider_is_named_and_unequal_flakiness_is_not() {
    let named = trials::throttled(100, 1);
    assert!(named >= 95, "{named} of 100");
    let wrongly = trials::named_for_nothing(200, 1);
    assert!(wrongly <= 2, "{wrongly} of 200");
}

/// The drop that is called detectable is found 70 to 90 times of 100, by attempts and by kind of suite, of which at least
/// one in two has such a drop.
fn assert_detected(pairs: usize, by_runs: [(u32, u64); 4]) {
    let is_right = |(found, of): (u64, u64)| (found * 10 >= of * 7) && (found * 10 <= of * 9);
    let mut by_kind = vec![(0, 0); trials::KINDS.len()];
    for (runs, tries) in by_runs {
        let mut all = (0, 0);
        for ((_, kind), sum) in trials::KINDS.iter().zip(&mut by_kind) {
            let (found, of) = trials::detected(tries, 5, pairs, *kind, runs);
            all = (all.0 + found, all.1 + of);
            *sum = (sum.0 + found, sum.1 + of);
        }
        let most = tries * 5 * trials::KINDS.len() as u64;
        assert!(
            all.1 * 2 >= most,
            "{pairs} pairs, {runs} attempts: {all:?} of {most}"
        );
        assert!(is_right(all), "{pairs} pairs, {runs} attempts: {all:?}");
    }
    for ((kind, _), sum) in trials::KINDS.iter().zip(by_kind) {
        assert!(is_right(sum), "{pairs} pairs, {kind}: {sum:?}");
    }
}

#[test]
fn the_drop_that_is_called_detectable_is_detected_in_10_pairs() {
    assert_detected(10, [(1, 40), (2, 6), (3, 3), (5, 3)]);
}

#[test]
fn the_drop_that_is_called_detectable_is_detected_in_20_pairs() {
    assert_detected(20, [(1, 12), (2, 6), (3, 3), (5, 3)]);
}

#[test]
fn the_drop_that_is_called_detectable_is_detected_in_40_pairs() {
    assert_detected(40, [(1, 8), (2, 4), (3, 2), (5, 1)]);
}

#[test]
fn the_drop_that_is_called_detectable_is_detected_in_a_large_suite() {
    let (found, of) = trials::detected(10, 20, 220, trials::Kind::Mixed(0.85, 0.1), 1);
    assert_eq!(of, 200);
    assert!((140..=180).contains(&found), "{found} of 200");
}

#[test]
fn no_drop_is_called_detectable_where_none_can_be_seen() {
    // Six pairs have to fall before it shows.
    let (_, of) = trials::detected(20, 1, 5, trials::Kind::Even(0.95), 1);
    assert_eq!(of, 0);
}

#[test]
fn a_larger_drop_is_found_more_often() {
    let [small, large] = [0.02, 0.1].map(|drop| trials::power(50, drop, 1));
    assert!(small < 25 && large > 40, "{small} and {large} of 50");
}
