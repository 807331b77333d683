use proptest::prelude::{Strategy, prop, prop_assert, prop_assume, proptest};
use serde_json::Value;
use statrs::distribution::{Binomial, Discrete, Hypergeometric};

use super::distribution::Distribution;
use super::{
    Count, NEGLIGIBLE, Stratum, detectable, detectable_at, freeman_halton, holm, lower_bound, noise,
    pass_at_k, pass_hat_k, stratified_exact, wilson,
};

fn count(hits: u32, of: u32) -> Count {
    Count { hits, of }
}

fn stratum(before: (u32, u32), now: (u32, u32)) -> Stratum {
    Stratum {
        before: count(before.0, before.1),
        now: count(now.0, now.1),
    }
}

/// Pairs with one sample a side.
fn verdicts(both_pass: usize, down: usize, up: usize, both_fail: usize) -> Vec<Stratum> {
    let of = |before, now, times| vec![stratum((before, 1), (now, 1)); times];
    [
        of(1, 1, both_pass),
        of(1, 0, down),
        of(0, 1, up),
        of(0, 0, both_fail),
    ]
    .concat()
}

fn assert_close(ours: f64, theirs: f64, what: &str) {
    assert!(
        (ours - theirs).abs() <= 1e-9 * theirs.abs(),
        "{what}: {ours} is not {theirs}"
    );
}

fn oracle(part: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("../../../tests/oracles/stats.json")).unwrap();
    all[part].as_array().unwrap().clone()
}

fn float(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn integers(value: &Value) -> Vec<u32> {
    let each = |value: &Value| u32::try_from(value.as_u64().unwrap()).unwrap();
    value.as_array().unwrap().iter().map(each).collect()
}

fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(float).collect()
}

#[test]
fn the_stratified_test_agrees_with_mantelhaen_test_of_r() {
    let cases = oracle("stratified");
    assert!(cases.len() > 40);
    for case in cases {
        let strata: Vec<Stratum> = case["strata"]
            .as_array()
            .unwrap()
            .iter()
            .map(integers)
            .map(|row| stratum((row[0], row[1]), (row[2], row[3])))
            .collect();
        let test = stratified_exact(&strata).unwrap();
        // R goes on below what is told here.
        let theirs = float(&case["p"]).max(NEGLIGIBLE);
        assert_close(test.p_value, theirs, &case.to_string());
    }
}

#[test]
fn with_one_sample_a_side_it_is_mcnemars_exact_test() {
    for case in oracle("mcnemar") {
        let [down, up] = ["down", "up"].map(|key| usize::try_from(case[key].as_u64().unwrap()).unwrap());
        let test = stratified_exact(&verdicts(30, down, up, 4)).unwrap();
        assert_close(test.p_value, float(&case["p"]), &case.to_string());
        assert_close(test.excess, (up as f64 - down as f64) / 2.0, "excess");
    }
}

#[test]
fn mcnemar_holds_at_ten_thousand_strata() {
    let (down, up) = (300_u64, 230_u64);
    let binomial = Binomial::new(0.5, down + up).unwrap();
    let theirs: f64 = (0..=up).map(|each| 2.0 * binomial.pmf(each)).sum();
    let test = stratified_exact(&verdicts(9000, 300, 230, 470)).unwrap();
    assert_close(test.p_value, theirs, "10,000 strata");
}

#[test]
fn a_hundred_thousand_strata_of_ten_samples_are_sound() {
    let strata: Vec<Stratum> = (0..100_000_u32)
        .map(|each| stratum((each % 11, 10), ((each + each / 1000 % 2) % 11, 10)))
        .collect();
    let swapped: Vec<Stratum> = strata
        .iter()
        .map(|each| Stratum {
            before: each.now,
            now: each.before,
        })
        .collect();
    let test = stratified_exact(&strata).unwrap();
    // S is the sum of so many that it is normal: p follows from its mean and variance.
    let variance: f64 = strata
        .iter()
        .map(|each| f64::from(each.before.hits + each.now.hits))
        .map(|passes| passes * (20.0 - passes) / (4.0 * 19.0))
        .sum();
    let normal = statrs::function::erf::erfc((test.excess.abs() - 0.5) / (2.0 * variance).sqrt());
    assert!((test.p_value - normal).abs() < 1e-3, "{test:?} {normal}");
    let mirrored = stratified_exact(&swapped).unwrap();
    assert_close(mirrored.p_value, test.p_value, "mirrored");
    assert_close(mirrored.excess, -test.excess, "mirrored excess");
}

#[test]
fn what_is_too_unlikely_to_be_told_is_called_negligible() {
    let test = stratified_exact(&verdicts(0, 1000, 0, 0)).unwrap();
    assert_eq!(test.p_value, NEGLIGIBLE);
    assert!(test.excess < 0.0);
}

#[test]
fn nothing_gives_nothing() {
    assert_eq!(stratified_exact(&[]), None);
    assert_eq!(stratified_exact(&[stratum((0, 0), (1, 1))]), None);
    assert_eq!(detectable(&[]), None);
    assert_eq!(lower_bound(0.0, &[]), None);
    assert_eq!(wilson(count(0, 0)), None);
    assert!(holm(&[]).is_empty());
    assert_eq!(noise(&[]), None);
    assert_eq!(
        noise(&[count(1, 1), count(0, 0)]),
        None,
        "one sample says nothing of its noise"
    );
    assert_eq!(
        (detectable_at(0, &[count(1, 2); 9]), detectable_at(2, &[])),
        (None, None)
    );
    assert_eq!(
        (pass_at_k(count(1, 2), 0), pass_hat_k(count(1, 2), 3)),
        (None, None)
    );
    assert_eq!(freeman_halton(&[]), None);
    assert_eq!(freeman_halton(&[count(0, 9), count(0, 5)]), None, "no hits");
    assert_eq!(
        freeman_halton(&[count(3, 9), count(0, 0)]),
        None,
        "one group that counts"
    );
}

#[test]
fn the_detectable_drop_of_the_known_runs() {
    let round = |share: Option<f64>| (share.unwrap() * 1000.0).round() / 1000.0;
    assert_eq!(round(detectable(&verdicts(184, 10, 6, 20))), 0.072);
    assert_eq!(round(detectable(&verdicts(201, 10, 6, 20))), 0.067);
    assert_eq!(detectable(&verdicts(2, 1, 1, 0)), None, "above 1");
}

#[test]
fn more_samples_and_fewer_flips_see_smaller_drops() {
    let of = |strata: &[Stratum]| detectable(strata).unwrap();
    let once = vec![stratum((1, 1), (1, 1)); 100];
    assert_close(of(&once), 2.802 * 2.802 / 100.0, "nothing varies: z² / n");
    let four_times = vec![stratum((4, 4), (4, 4)); 100];
    assert_close(of(&four_times), 2.802 * 2.802 / 400.0, "four samples: a quarter");
    assert!(of(&vec![stratum((2, 4), (2, 4)); 100]) > of(&four_times));
}

#[test]
fn the_lower_bound_lies_below_the_change_and_above_minus_one() {
    let strata = verdicts(184, 10, 6, 20);
    let bound = lower_bound(-4.0 / 220.0, &strata).unwrap();
    // (1.645² + 1.645 √(1.645² + 64)) / 440 = 0.0367
    assert!((bound - (-0.01818 - 0.0367)).abs() < 1e-4, "{bound}");
    assert_eq!(lower_bound(-0.9, &verdicts(0, 1, 0, 0)), Some(-1.0));
}

#[test]
fn wilson_agrees_with_prop_test_of_r() {
    for case in oracle("wilson") {
        let [hits, of] = ["hits", "of"].map(|key| u32::try_from(case[key].as_u64().unwrap()).unwrap());
        let (low, high) = wilson(count(hits, of)).unwrap();
        assert!((low - float(&case["low"])).abs() < 1e-12, "{case}: {low}");
        assert!((high - float(&case["high"])).abs() < 1e-12, "{case}: {high}");
    }
}

#[test]
fn holm_agrees_with_p_adjust_of_r() {
    for case in oracle("holm") {
        let ours = holm(&floats(&case["p"]));
        for (ours, theirs) in ours.iter().zip(floats(&case["adjusted"])) {
            assert_close(*ours, theirs, &case.to_string());
        }
    }
}

#[test]
fn the_spread_over_groups_agrees_with_fisher_test_of_r() {
    for case in oracle("spread") {
        let groups: Vec<Count> = case["groups"]
            .as_array()
            .unwrap()
            .iter()
            .map(integers)
            .map(|row| count(row[0], row[1]))
            .collect();
        assert_close(
            freeman_halton(&groups).unwrap(),
            float(&case["p"]),
            &case.to_string(),
        );
    }
}

fn choose(n: u32, k: u32) -> f64 {
    (0..k).fold(1.0, |ways, i| ways * f64::from(n - i) / f64::from(i + 1))
}

/// Every way to deal each stratum's passes to its sides: (passes now, number of ways).
fn every_deal(strata: &[Stratum]) -> Vec<(u32, f64)> {
    let mut deals = vec![(0, 1.0)];
    for each in strata {
        let passes = each.before.hits + each.now.hits;
        let now = passes.saturating_sub(each.before.of)..=passes.min(each.now.of);
        deals = deals
            .into_iter()
            .flat_map(|(sum, ways)| {
                now.clone().map(move |now| {
                    let more = choose(each.now.of, now) * choose(each.before.of, passes - now);
                    (sum + now, ways * more)
                })
            })
            .collect();
    }
    deals
}

fn some_count(most: u32) -> impl Strategy<Value = Count> {
    (1..=most).prop_flat_map(|of| (0..=of).prop_map(move |hits| Count { hits, of }))
}

fn some_strata() -> impl Strategy<Value = Vec<Stratum>> {
    let stratum = (some_count(4), some_count(4)).prop_map(|(before, now)| Stratum { before, now });
    prop::collection::vec(stratum, 1..6)
}

proptest! {
    #[test]
    fn the_stratified_test_is_the_enumeration_of_all_deals(strata in some_strata()) {
        let deals = every_deal(&strata);
        let all: f64 = deals.iter().map(|(_, ways)| ways).sum();
        let ways_of = |sum: u32| -> f64 { deals.iter().filter(|deal| deal.0 == sum).map(|deal| deal.1).sum() };
        let observed = ways_of(strata.iter().map(|each| each.now.hits).sum());
        let most = deals.iter().map(|deal| deal.0).max().unwrap();
        let p: f64 = (0..=most).map(ways_of).filter(|ways| *ways <= observed * (1.0 + 1e-7)).sum::<f64>() / all;
        let ours = stratified_exact(&strata).unwrap();
        prop_assert!((ours.p_value - p).abs() < 1e-12, "{} is not {p}", ours.p_value);
    }

    #[test]
    fn the_spread_test_is_the_enumeration_of_all_tables(groups in prop::collection::vec(some_count(5), 2..5)) {
        let hits: u32 = groups.iter().map(|group| group.hits).sum();
        prop_assume!(hits > 0);
        let mut tables = vec![(0, 1.0)];
        for group in &groups {
            tables = tables
                .into_iter()
                .flat_map(|(sum, ways)| (0..=group.of).map(move |k| (sum + k, ways * choose(group.of, k))))
                .collect();
        }
        tables.retain(|table| table.0 == hits);
        let all: f64 = tables.iter().map(|table| table.1).sum();
        let observed: f64 = groups.iter().map(|group| choose(group.of, group.hits)).product();
        let p = tables.iter().map(|table| table.1).filter(|ways| *ways <= observed * (1.0 + 1e-7)).sum::<f64>() / all;
        let ours = freeman_halton(&groups).unwrap();
        prop_assert!((ours - p).abs() < 1e-12, "{ours} is not {p}");
    }

    #[test]
    fn the_hypergeometric_distribution_is_that_of_statrs(
        total in 1_u64..60, marked in 0.0..=1.0_f64, drawn in 0.0..=1.0_f64,
    ) {
        let [marked, drawn] = [marked, drawn].map(|share| (share * total as f64).round() as u64);
        let theirs = Hypergeometric::new(total, marked, drawn).unwrap();
        let ours = Distribution::hypergeometric(total, marked, drawn);
        for count in 0..=total {
            let (ours, theirs) = (ours.probability(count).unwrap_or(0.0), theirs.pmf(count));
            prop_assert!((ours - theirs).abs() < 1e-10, "P({count}) {ours} is not {theirs}");
        }
    }

    #[test]
    fn holm_keeps_the_order_and_never_lowers(p_values in prop::collection::vec(0.0..=1.0_f64, 0..12)) {
        let adjusted = holm(&p_values);
        for (p, a) in p_values.iter().zip(&adjusted) {
            prop_assert!(a >= p && *a <= 1.0);
            for (q, b) in p_values.iter().zip(&adjusted) {
                prop_assert!(p > q || a <= b);
            }
        }
    }
}

#[test]
fn further_attempts_agree_with_the_binomials_of_r() {
    let cases = oracle("passes");
    assert!(cases.len() > 30);
    for case in cases {
        let [hits, of, k] =
            ["hits", "of", "k"].map(|key| u32::try_from(case[key].as_u64().unwrap()).unwrap());
        for (ours, theirs) in [
            (pass_at_k(count(hits, of), k), "any"),
            (pass_hat_k(count(hits, of), k), "all"),
        ] {
            let theirs = float(&case[theirs]);
            assert!((ours.unwrap() - theirs).abs() < 1e-12, "{case}: {ours:?}");
        }
    }
}

proptest! {
    #[test]
    fn further_attempts_are_the_share_of_all_choices_of_them(
        outcomes in prop::collection::vec(proptest::bool::ANY, 1..9),
        k in 1_u32..9,
    ) {
        let of = u32::try_from(outcomes.len()).unwrap();
        let hits = outcomes.iter().filter(|passed| **passed).count();
        let counted = count(u32::try_from(hits).unwrap(), of);
        let choices: Vec<u32> = (0..1_u32 << of).filter(|choice| choice.count_ones() == k).collect();
        let passed = |choice: u32| (0..of).filter(move |at| choice >> at & 1 == 1).map(|at| outcomes[at as usize]);
        let share = |wanted: &dyn Fn(u32) -> bool| {
            (!choices.is_empty()).then(|| {
                choices.iter().filter(|choice| wanted(**choice)).count() as f64 / choices.len() as f64
            })
        };
        let close = |ours: Option<f64>, theirs: Option<f64>| match (ours, theirs) {
            (Some(ours), Some(theirs)) => (ours - theirs).abs() < 1e-12,
            (ours, theirs) => ours == theirs,
        };
        prop_assert!(close(pass_at_k(counted, k), share(&|choice| passed(choice).any(|each| each))));
        prop_assert!(close(pass_hat_k(counted, k), share(&|choice| passed(choice).all(|each| each))));
    }
}

/// Over all outcomes of so many attempts, each as likely as it is, the estimates are right on average.
#[test]
fn noise_and_further_attempts_are_unbiased() {
    let (attempts, share) = (5, 0.7);
    let binomial = Binomial::new(share, attempts).unwrap();
    let mean = |of: &dyn Fn(Count) -> f64| -> f64 {
        (0..=attempts)
            .map(|hits| binomial.pmf(hits) * of(count(u32::try_from(hits).unwrap(), 5)))
            .sum()
    };
    assert_close(
        mean(&|count| noise(&[count]).unwrap()),
        share * (1.0 - share),
        "noise",
    );
    for k in 1..=5 {
        let power = i32::try_from(k).unwrap();
        assert_close(
            mean(&|count| pass_at_k(count, k).unwrap()),
            1.0 - (1.0 - share).powi(power),
            "any",
        );
        assert_close(
            mean(&|count| pass_hat_k(count, k).unwrap()),
            share.powi(power),
            "all",
        );
    }
}

#[test]
fn what_is_detectable_ahead_is_what_a_run_of_average_noise_finds() {
    // 200 pairs of which 20 pass half of their attempts: two of 2 and 2 attempts have V = 2/3 on average.
    let groups = [vec![count(4, 4); 180], vec![count(2, 4); 20]].concat();
    let noisy = noise(&groups).unwrap();
    assert_close(noisy, 0.1 / 3.0, "2 of 4 is q(1−q) = 1/3");
    let strata = [
        vec![stratum((2, 2), (2, 2)); 180],
        vec![stratum((1, 2), (1, 2)); 20],
    ]
    .concat();
    let ahead = detectable_at(2, &groups).unwrap();
    assert_close(ahead, detectable(&strata).unwrap(), "ahead");
    let more = detectable_at(8, &groups).unwrap();
    assert!(more < ahead, "{more} {ahead}");
    assert_eq!(
        detectable_at(1, &[count(1, 2)]),
        None,
        "no drop of one pair is seen"
    );
}

#[test]
fn a_small_suite_sees_the_drop_that_its_exact_test_finds() {
    let of = |pairs| detectable(&verdicts(pairs, 0, 0, 0));
    assert_eq!(of(5), None, "five falls are p = 0.0625");
    // Six of six; of ten pairs, six or more fall with probability 0.8 at a chance of 0.6678.
    assert!(
        (of(6).unwrap() - 0.8_f64.powf(1.0 / 6.0)).abs() < 0.02,
        "{:?}",
        of(6)
    );
    assert!((of(10).unwrap() - 0.6678).abs() < 0.03, "{:?}", of(10));
}

#[test]
fn a_drop_that_there_cannot_be_is_not_detectable() {
    assert_eq!(detectable(&verdicts(5, 0, 0, 15)), None, "five pairs pass");
    assert_eq!(detectable(&verdicts(3, 0, 0, 1997)), None, "three pairs pass");
}

#[test]
fn a_drop_is_as_detectable_as_a_rise() {
    let uneven = [vec![stratum((1, 1), (3, 3)); 9], vec![stratum((0, 1), (1, 3)); 9]].concat();
    let turned: Vec<Stratum> = uneven
        .iter()
        .map(|each| Stratum {
            before: each.now,
            now: each.before,
        })
        .collect();
    assert!(detectable(&uneven).is_some());
    assert_eq!(detectable(&uneven), detectable(&turned));
}
