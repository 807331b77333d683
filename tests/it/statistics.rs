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

#[test]
fn the_drop_that_is_called_detectable_is_detected() {
    let (found, of) = trials::detected(200, 220, 0.1, 1);
    assert_eq!(of, 200);
    assert!((140..=180).contains(&found), "{found} of 200");
}

#[test]
fn a_larger_drop_is_found_more_often() {
    let [small, large] = [0.02, 0.1].map(|drop| trials::power(50, drop, 1));
    assert!(small < 25 && large > 40, "{small} and {large} of 50");
}
