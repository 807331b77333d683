//! What a plan makes of earlier durations: predictions, parts, forecasts; and of limits and budgets.

use proptest::prelude::*;

use super::{config, ids, pair, suite};
use crate::config::{
    BaselineConfig, BudgetConfig, Config, LabelGates, LimitConfig, PriceConfig, WantedConcurrency,
};
use crate::model::{Gate, Outcome, Pair, PairResult, ResultSet, RunPlan, Sample, Strategy, Usage, Verdict};
use crate::plan::{Experience, PlanError, Request, Select, build};

/// Earlier results in which the first pairs took so many seconds, and 40 s besides, and cost a dollar each.
fn experience(pairs: &[Pair], seconds: &[f64]) -> Experience {
    experience_of(pairs, seconds, Some(1.0))
}

/// Likewise, with what each of them says that it cost.
fn experience_of(pairs: &[Pair], seconds: &[f64], cost_usd: Option<f64>) -> Experience {
    let result = |(pair, seconds): (&Pair, &f64)| PairResult {
        id: pair.id.clone(),
        labels: pair.labels.clone(),
        verdict: Verdict::Pass,
        firm: true,
        samples: Some(vec![Sample {
            index: 1,
            outcome: Outcome::Passed,
            stopped_early: false,
            command_seconds: Some(*seconds),
            overhead_seconds: Some(40.0),
            score: None,
            usage: Some(Usage {
                cost_usd,
                ..Usage::default()
            }),
        }]),
        graded: Some(1),
    };
    let results = pairs.iter().zip(seconds).map(result).collect();
    Experience::of(
        [&ResultSet::of_pairs("earlier", results)],
        &PriceConfig::default(),
    )
}

fn plan(
    config: &Config,
    pairs: &[Pair],
    experience: &Experience,
    shard: &str,
    is_pinned: bool,
) -> Result<RunPlan, PlanError> {
    build(&Request {
        config,
        pairs,
        select: &Select {
            shard: (!shard.is_empty()).then(|| shard.parse().unwrap()),
            ..Select::default()
        },
        capacity: None,
        experience,
        is_pinned,
    })
}

#[test]
fn shards_are_cut_by_duration_only_where_all_of_them_know_the_same() {
    let pairs = suite(1, 5);
    let known = experience(&pairs, &[10.0, 10.0, 40.0, 10.0, 10.0]);
    let shards = |is_pinned| {
        let shard = |shard| ids(&plan(&config("x"), &pairs, &known, shard, is_pinned).unwrap());
        [shard("1/2"), shard("2/2")]
    };
    let eval = |number: usize| format!("agent-0 × build-{number}");
    assert_eq!(
        shards(true),
        [vec![eval(2)], vec![eval(0), eval(1), eval(3), eval(4)]]
    );
    assert_eq!(
        shards(false),
        [vec![eval(0), eval(2), eval(4)], vec![eval(1), eval(3)]]
    );
}

#[test]
fn each_shard_has_its_share_of_concurrency_limits_and_budget() {
    let mut config = config("x");
    config.concurrency = WantedConcurrency::Fixed(10);
    config.limits = vec![LimitConfig {
        name: "provider".to_owned(),
        value: "anthropic".to_owned(),
        concurrency: 2,
    }];
    config.budget = BudgetConfig {
        sandbox_minutes: Some(90.0),
        cost: Some(6.0),
        allow_unknown: true,
    };
    let pairs = suite(2, 12);
    let nothing = Experience::default();
    let shards = ["1/3", "2/3", "3/3"].map(|shard| plan(&config, &pairs, &nothing, shard, false).unwrap());
    assert_eq!(shards.each_ref().map(|plan| plan.concurrency.value), [4, 3, 3]);
    assert_eq!(
        shards[0].concurrency.reason,
        "4 = this shard's 4 of the 10 asked for, of pairs x runs (8 x 2 = 16): 4 waves"
    );
    // A limit that does not go round is one at once in each of them.
    assert_eq!(
        shards.each_ref().map(|plan| plan.limits[0].concurrency),
        [1, 1, 1]
    );
    for plan in &shards {
        assert_eq!(plan.budget.sandbox_seconds, Some(1800.0));
        assert_eq!(plan.budget.cost_usd, Some(2.0));
    }
    config.concurrency = WantedConcurrency::Auto;
    config.max_concurrency = Some(9);
    let plan = plan(&config, &pairs, &nothing, "1/3", false).unwrap();
    assert_eq!(
        plan.concurrency.reason,
        "3 = pairs x runs (8 x 2 = 16) bounded by max-concurrency 3, this shard's share of 9: 6 waves"
    );
}

#[test]
fn a_label_that_no_pair_has_is_a_slip() {
    let nothing = Experience::default();
    let message = |key: &str| {
        format!(
            "cannot use the label `provider=antropic` (`{key}`): the suite has no pair with it\nthe nearest is `provider=anthropic`"
        )
    };
    let (name, value) = ("provider".to_owned(), "antropic".to_owned());
    let mut limited = config("x");
    limited.limits = vec![LimitConfig {
        name: name.clone(),
        value: value.clone(),
        concurrency: 2,
    }];
    let refused = plan(&limited, &suite(2, 2), &nothing, "", false);
    assert_eq!(refused.unwrap_err().to_string(), message("limits"));
    let mut gated = config("x");
    gated.gates = vec![LabelGates {
        name,
        value,
        fail_on: vec![Gate::Regression],
    }];
    let refused = plan(&gated, &suite(2, 2), &nothing, "", false);
    assert_eq!(refused.unwrap_err().to_string(), message("gates"));
    for mut config in [limited, gated] {
        config.suite.is_given = true;
        assert_eq!(
            plan(&config, &suite(2, 2), &nothing, "", false)
                .unwrap()
                .pairs
                .len(),
            4
        );
    }
}

#[test]
fn of_more_shards_than_pairs_those_beyond_have_none() {
    let pairs = suite(1, 2);
    let known = experience(&pairs, &[10.0, 20.0]);
    let held = |shard: &str, is_pinned| ids(&plan(&config("x"), &pairs, &known, shard, is_pinned).unwrap());
    let most = usize::MAX;
    assert_eq!(held(&format!("1/{most}"), true), ["agent-0 × build-1"]);
    assert_eq!(held(&format!("2/{most}"), true), ["agent-0 × build-0"]);
    for is_pinned in [true, false] {
        assert_eq!(held(&format!("3/{most}"), is_pinned), Vec::<String>::new());
        assert_eq!(held(&format!("{most}/{most}"), is_pinned), Vec::<String>::new());
    }
}

#[test]
fn a_plan_beyond_its_budget_is_refused_before_anything_is_spent() {
    let pairs = suite(1, 4);
    let known = experience(&pairs, &[200.0; 4]);
    let budget = |sandbox_minutes, cost, allow_unknown| {
        let mut config = config("x");
        config.budget = BudgetConfig {
            sandbox_minutes,
            cost,
            allow_unknown,
        };
        config
    };
    // Eight attempts of about 240 s and a dollar each.
    let over = plan(&budget(Some(20.0), None, true), &pairs, &known, "", false);
    let message = over.unwrap_err().to_string();
    assert!(
        message.starts_with(
            "cannot keep to the budget of 20 sandbox-minutes (`budget.sandbox-minutes`): about 3"
        ),
        "{message}"
    );
    let over = plan(&budget(None, Some(7.99), true), &pairs, &known, "", false);
    assert_eq!(
        over.unwrap_err().to_string(),
        "cannot keep to the budget of $7.99 (`budget.cost`): about $8 are expected (8 to 8)\nnothing was run; select fewer pairs, take another strategy, or raise the budget"
    );
    plan(&budget(Some(60.0), Some(8.0), false), &pairs, &known, "", false).unwrap();

    // The base revision costs as much again.
    let mut measured = budget(Some(90.0), Some(8.0), false);
    measured.baseline = BaselineConfig::Measure(None);
    let over = plan(&measured, &pairs, &known, "", false)
        .unwrap_err()
        .to_string();
    assert!(over.contains("about $16 are expected"), "{over}");

    let nothing = Experience::default();
    let unknown = plan(&budget(Some(60.0), None, false), &pairs, &nothing, "", false);
    assert_eq!(
        unknown.unwrap_err().to_string(),
        "cannot tell whether the budget of 60 sandbox-minutes (`budget.sandbox-minutes`) will do: no earlier run tells what this one will use\nname a `baseline` that does, or set `budget.allow-unknown: true`: the budget still stops the run"
    );
    plan(&budget(Some(60.0), Some(1.0), true), &pairs, &nothing, "", false).unwrap();
    // Without pairs nothing is used.
    plan(&budget(Some(60.0), None, false), &[], &nothing, "", false).unwrap();
}

#[test]
fn a_forecast_counts_sandboxes_that_are_hired() {
    let pairs = suite(1, 4);
    let mut config = config("x");
    config.price.sandbox_second = 0.01;
    // Eight attempts of about 240 s.
    for (cost, of_results) in [(Some(1.0), 8.0), (None, 0.0)] {
        let known = experience_of(&pairs, &[200.0; 4], cost);
        config.budget.cost = None;
        let outlook = plan(&config, &pairs, &known, "", false).unwrap().forecast;
        let run = outlook.unwrap().run;
        let (sandboxes, cost) = (run.sandbox_seconds, run.cost_usd.unwrap());
        for (seconds, usd) in [(sandboxes.likely, cost.likely), (sandboxes.high, cost.high)] {
            let expected = of_results + 0.01 * seconds;
            assert!((usd - expected).abs() < 0.002, "{usd}, not {expected}");
        }
        config.budget.cost = Some(of_results + 15.0);
        let over = plan(&config, &pairs, &known, "", false).unwrap_err().to_string();
        assert!(over.starts_with("cannot keep to the budget of"), "{over}");
    }
    // Nothing says what one of the pairs costs besides.
    let known = experience(&pairs[..1], &[200.0]);
    let other = suite(2, 4).split_off(4);
    config.budget.cost = None;
    let forecast = plan(&config, &[&pairs[..1], &other[1..2]].concat(), &known, "", false)
        .unwrap()
        .forecast;
    assert_eq!(forecast.unwrap().run.cost_usd, None);
}

#[test]
fn a_shard_is_held_against_the_budget_of_the_whole() {
    let pairs = suite(1, 4);
    let known = experience(&pairs, &[900.0, 30.0, 30.0, 30.0]);
    let mut config = config("x");
    config.runs = 1;
    let mut refused = |minutes| {
        config.budget.sandbox_minutes = Some(minutes);
        let shards = ["1/4", "2/4", "3/4", "4/4"];
        shards.map(|shard| {
            let planned = plan(&config, &pairs, &known, shard, true);
            planned.err().map(|error| error.to_string())
        })
    };
    // About 20 minutes, of which the one with the long pair needs 16.
    assert_eq!(refused(30.0), [None, None, None, None]);
    for message in refused(12.0) {
        let message = message.unwrap();
        assert!(
            message.starts_with("cannot keep to the budget of 12 sandbox-minutes"),
            "{message}"
        );
    }
}

#[test]
fn a_forecast_is_made_of_what_is_known_and_is_not_there_where_nothing_is() {
    let pairs = suite(1, 6);
    let config = config("x");
    let unknown = plan(&config, &pairs, &Experience::default(), "", false).unwrap();
    assert_eq!((unknown.forecast, unknown.overhead_seconds), (None, None));
    assert!(unknown.pairs.iter().all(|pair| pair.predicted_seconds.is_none()));

    let known = experience(&pairs, &[100.0, 200.0, 300.0, 99_999.0]);
    let plan = plan(&config, &pairs, &known, "", false).unwrap();
    let predicted: Vec<Option<f64>> = plan.pairs.iter().map(|pair| pair.predicted_seconds).collect();
    // None is longer than an attempt may be; the last two have the median of their experiment.
    assert_eq!(predicted, [100.0, 200.0, 300.0, 1020.0, 250.0, 250.0].map(Some));
    let forecast = plan.forecast.unwrap();
    assert_eq!(forecast.known_pairs, 4);
    assert_eq!(forecast.run.strategy, Strategy::Parallel);
    // Nor is one that is drawn: the run is as long as its longest attempt.
    assert_eq!(forecast.run.wall_seconds.high, 1060.0);
    let shown: Vec<(Strategy, usize)> = forecast
        .strategies
        .iter()
        .map(|outlook| (outlook.strategy, outlook.concurrency))
        .collect();
    assert_eq!(
        shown,
        [
            (Strategy::Sequential, 6),
            (Strategy::Sequential, 3),
            (Strategy::Parallel, 12),
            (Strategy::Parallel, 6),
            (Strategy::Adaptive, 12),
            (Strategy::Adaptive, 6)
        ]
    );
    for outlook in &forecast.strategies {
        let wall = outlook.wall_seconds;
        assert!(wall.low <= wall.likely && wall.likely <= wall.high && wall.low >= 700.0);
        assert!(outlook.sandbox_seconds.likely >= outlook.wall_seconds.likely);
    }
    let sandboxes = |at: usize| forecast.strategies[at].sandbox_seconds.likely;
    assert!(sandboxes(0) < sandboxes(4) && sandboxes(4) < sandboxes(2));
}

proptest! {
    #[test]
    fn shards_by_duration_share_all_pairs_and_are_about_as_long(
        seconds in proptest::collection::vec(0.0..1000.0_f64, 1..20),
        count in 1..6_usize,
    ) {
        let pairs: Vec<Pair> = (0..seconds.len()).map(|number| pair("a", &format!("e{number}"), &[])).collect();
        let known = experience(&pairs, &seconds);
        let mut all = Vec::new();
        let mut loads = Vec::new();
        for index in 1..=count {
            let shard = plan(&config("x"), &pairs, &known, &format!("{index}/{count}"), true).unwrap();
            loads.push(shard.pairs.iter().filter_map(|pair| pair.predicted_seconds).sum::<f64>());
            all.extend(ids(&shard));
        }
        all.sort();
        let mut expected: Vec<String> = pairs.iter().map(|pair| pair.id.to_string()).collect();
        expected.sort();
        prop_assert_eq!(all, expected);
        let longest = seconds.iter().copied().fold(0.0, f64::max);
        let most = loads.iter().copied().fold(0.0, f64::max);
        let least = loads.iter().copied().fold(f64::INFINITY, f64::min);
        prop_assert!(most - least <= longest + 1e-6);
    }
}
