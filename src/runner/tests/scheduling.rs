//! Strategies, limits and budgets as they are carried out.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use camino::Utf8PathBuf;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::engine::{Engine, FAIL, PASS, STARTING, Script};
use super::{Done, Memory, carry_out, config, finish, finish_planned, job, pair};
use crate::aggregate;
use crate::config::{Config, PriceConfig};
use crate::model::forecast::{BoundKind, Scheduling};
use crate::model::summary::Conclusion;
use crate::model::{
    AttemptDetails, AttemptId, AttemptRecord, CancelReason, Event, Outcome, Pair, PairResult, PlannedBudget,
    ResultSet, Sample, Strategy, Verdict,
};
use crate::plan::{self, Experience, hindsight};
use crate::runner::{Earlier, RecordError, Recorder, run};

/// Earlier results in which each pair took so many seconds, and a sandbox nothing besides.
fn experience(seconds: &[u32]) -> Experience {
    let pairs = seconds.iter().enumerate().map(|(position, seconds)| PairResult {
        id: pair(position + 1).id,
        labels: Default::default(),
        verdict: Verdict::Pass,
        firm: true,
        samples: Some(vec![Sample {
            index: 1,
            outcome: Outcome::Passed,
            stopped_early: false,
            command_seconds: Some(f64::from(*seconds)),
            overhead_seconds: Some(0.0),
            score: None,
            usage: None,
        }]),
        graded: Some(1),
    });
    let results = ResultSet::of_pairs("earlier", pairs.collect());
    Experience::of([&results], &PriceConfig::default())
}

/// How a run was scheduled.
fn looked_back(done: &Done) -> Scheduling {
    let summary = aggregate::summarize(&done.run);
    hindsight(&done.run.plan, &summary, &PriceConfig::default()).unwrap()
}

/// Pairs that take as long as they did before, unless the engine has another script for them.
async fn run_known(config: &Config, seconds: &[u32], mut engine: Engine) -> Done {
    let known = Engine::default();
    let mut scripts = known;
    for (position, seconds) in seconds.iter().enumerate() {
        for attempt in 1..=config.runs {
            let eval = format!("e{}", position + 1);
            scripts = scripts.script(&eval, attempt, 1, Script::Result(u64::from(*seconds), PASS));
        }
    }
    engine = scripts.and(engine);
    let pairs: Vec<Pair> = (1..=seconds.len()).map(pair).collect();
    finish_planned(
        config,
        &pairs,
        &experience(seconds),
        engine,
        CancellationToken::new(),
    )
    .await
}

fn starts(done: &Done, pair: usize) -> Vec<Option<f64>> {
    let records = &done.run.pairs[pair].records;
    records.iter().map(|record| record.started_offset).collect()
}

#[tokio::test(start_paused = true)]
async fn an_adaptive_run_starts_second_attempts_only_when_waiting_would_cost_time() {
    let engine = Engine::default()
        .script("e4", 1, 1, Script::Result(5, FAIL))
        .script("e4", 2, 1, Script::Result(5, PASS));
    let config = config("runs: 2\nstrategy: adaptive");
    let done = run_known(&config, &[40, 40, 25, 5], engine).await;
    assert_eq!(done.verdicts(), [Verdict::Pass; 4]);
    assert_eq!(done.seconds, 40);
    // The slowest start both at once, the third its second at 40 - 1.5 x 25 s, the fourth when its first has failed.
    assert_eq!(starts(&done, 0), [Some(0.0), Some(0.0)]);
    assert_eq!(starts(&done, 2), [Some(0.0), Some(2.5)]);
    assert_eq!(starts(&done, 3), [Some(0.0), Some(5.0)]);
    let fresh = done.engine.started.load(Ordering::SeqCst);
    assert_eq!(fresh, 8, "each attempt has a sandbox of its own");
    assert_eq!(
        done.outcomes()[2],
        [Outcome::Passed, Outcome::Cancelled],
        "a decided pair cancels its other attempt"
    );
    assert_eq!(done.run.pairs[2].records[1].reason, Some(CancelReason::Decided));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_never_needed_never_starts() {
    let done = run_known(
        &config("runs: 3\nstrategy: adaptive"),
        &[50, 50, 10],
        Engine::default(),
    )
    .await;
    assert_eq!(starts(&done, 2), [Some(0.0), None, None]);
    assert_eq!(done.seconds, 50);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_siblings_sandbox_is_gone_within_a_second() {
    let engine = Engine::default()
        .script("e1", 1, 1, Script::Result(50, PASS))
        .script("e1", 2, 1, Script::Result(10, PASS))
        .script("e2", 1, 1, Script::Result(55, PASS))
        .script("e2", 2, 1, Script::Result(55, PASS));
    let config = config("runs: 2\nstrategy: parallel\non-pass: cancel");
    let begun = tokio::time::Instant::now();
    let done = finish(&config, 2, engine, CancellationToken::new()).await;
    assert_eq!(done.seconds, 55);
    let freed = done.engine.freed.lock().unwrap();
    let after: Vec<Duration> = freed.iter().map(|time| *time - begun).collect();
    let decided = Duration::from_secs(10);
    let within = after
        .iter()
        .filter(|time| **time <= decided + Duration::from_secs(1));
    assert_eq!(within.count(), 2, "{after:?}");
}

#[tokio::test(start_paused = true)]
async fn a_label_runs_no_more_at_once_than_its_limit() {
    let config = config(
        "strategy: parallel\nlimits: [{ label: provider=one, concurrency: 2 }, { label: provider=two, concurrency: 9 }]",
    );
    let labelled = |number: usize| {
        let mut pair = pair(number);
        pair.labels
            .add("provider", if number <= 4 { "one" } else { "two" });
        pair
    };
    let pairs: Vec<Pair> = (1..=6).map(labelled).collect();
    let nothing = Experience::default();
    let done = finish_planned(
        &config,
        &pairs,
        &nothing,
        Engine::default(),
        CancellationToken::new(),
    )
    .await;
    let first: Vec<Option<f64>> = (0..6).map(|pair| starts(&done, pair)[0]).collect();
    assert_eq!(first, [0.0, 0.0, 10.0, 10.0, 0.0, 0.0].map(Some));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_has_used_its_budget_stops_and_keeps_what_is_graded() {
    let config =
        config("concurrency: 2\nstrategy: parallel\nbudget: { sandbox-minutes: 0.5, allow-unknown: true }");
    let done = finish(&config, 5, Engine::default(), CancellationToken::new()).await;
    // Two of ten seconds, then two for the ten seconds that are left.
    assert_eq!(done.seconds, 15);
    let summary = aggregate::summarize(&done.run);
    assert_eq!(summary.run.conclusion, Conclusion::Incomplete);
    assert_eq!(summary.run.reason, Some(CancelReason::Budget));
    assert_eq!((summary.totals.passed, summary.totals.not_run), (2, 3));
    assert!((summary.totals.sandbox_seconds - 30.0).abs() < 0.1);
    let notice = "the budget of 0.5 sandbox-minutes was used up";
    assert!(
        done.run.notices.iter().any(|text| text.starts_with(notice)),
        "{:?}",
        done.run.notices
    );
    assert_eq!(looked_back(&done).bounded_by.kind, BoundKind::Budget);
}

/// Twice as many pairs as may be starting at once, each of which takes ten seconds to start and ten more to run.
fn slow_to_start(more: &str) -> (Config, usize, Engine) {
    let mut engine = Engine::default();
    engine.takes = Duration::from_secs(10);
    (config(more), 2 * STARTING, engine)
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_its_turn_to_start_uses_nothing_of_the_budget() {
    let (config, pairs, engine) =
        slow_to_start("strategy: parallel\nbudget: { sandbox-minutes: 43, allow-unknown: true }");
    let done = finish(&config, pairs, engine, CancellationToken::new()).await;
    let summary = aggregate::summarize(&done.run);
    // 128 x 20 s are 42.7 minutes; half of them waited ten seconds more.
    assert_eq!(done.seconds, 30);
    assert_eq!(summary.totals.sandbox_seconds, 2560.0);
    assert_eq!((summary.totals.passed, summary.run.reason), (128, None));
}

#[tokio::test(start_paused = true)]
async fn what_is_stopped_before_its_turn_has_used_nothing() {
    let cancel = CancellationToken::new();
    let later = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        later.cancel();
    });
    let (config, pairs, engine) = slow_to_start("strategy: parallel");
    let done = finish(&config, pairs, engine, cancel).await;
    let records = || done.run.pairs.iter().flat_map(|pair| &pair.records);
    assert!(records().all(|record| record.outcome == Outcome::Cancelled && record.tries == 1));
    let waited = records().filter(|record| record.seconds == 0.0);
    assert_eq!(waited.count(), STARTING);
    let totals = aggregate::summarize(&done.run).totals;
    assert_eq!(totals.sandbox_seconds, 64.0 * 5.0);
}

#[tokio::test(start_paused = true)]
async fn what_results_report_as_their_cost_counts() {
    let costly = r#"{"passed": true, "usage": {"cost_usd": 0.7}}"#;
    let mut engine = Engine::default();
    for pair in 1..=4 {
        engine = engine.script(&format!("e{pair}"), 1, 1, Script::Result(10, costly));
    }
    let config = config("concurrency: 1\nbudget: { cost: 1.0, allow-unknown: true }");
    let done = finish(&config, 4, engine, CancellationToken::new()).await;
    let summary = aggregate::summarize(&done.run);
    assert_eq!((summary.totals.passed, summary.totals.not_run), (2, 2));
    assert_eq!(summary.totals.cost_usd, Some(1.4));
    assert_eq!(summary.run.reason, Some(CancelReason::Budget));
}

#[tokio::test(start_paused = true)]
async fn sandboxes_that_are_hired_count_by_the_second() {
    // Two vCPUs and four GB: a cent a second.
    let hired = |budget: &str| {
        let price = "price: { vcpu-hour: 9, gb-hour: 4.5 }\nsandbox: { kind: vercel }";
        config(&format!("concurrency: 2\nstrategy: parallel\n{price}\n{budget}"))
    };
    let stopped = hired("budget: { cost: 0.3, allow-unknown: true }");
    let done = finish(&stopped, 5, Engine::default(), CancellationToken::new()).await;
    assert_eq!(done.seconds, 15);
    let summary = aggregate::summarize(&done.run);
    assert_eq!(summary.run.reason, Some(CancelReason::Budget));
    assert_eq!((summary.totals.passed, summary.totals.not_run), (2, 3));

    // What it has used before it goes on.
    let pairs: Vec<Pair> = (1..=5).map(pair).collect();
    let mut job = job(
        &hired("budget: { cost: 0.4, allow-unknown: true }"),
        &pairs,
        &Experience::default(),
    );
    job.earlier = Some(Earlier {
        run: done.run,
        resumed_at: job.started_at,
    });
    let done = carry_out(job, Engine::default(), CancellationToken::new()).await;
    assert_eq!(done.seconds, 5, "two for a dime");
    assert_eq!(aggregate::summarize(&done.run).totals.passed, 2);

    let free = hired("");
    let done = finish(&free, 5, Engine::default(), CancellationToken::new()).await;
    let budget = PlannedBudget {
        sandbox_seconds: None,
        cost_usd: Some(0.75),
    };
    let left = plan::left(budget, [&done.run], &free.price)
        .unwrap()
        .cost_usd
        .unwrap();
    assert!((left - 0.25).abs() < 1e-9, "{left}");
    let summary = aggregate::summarize(&done.run);
    let scheduling = hindsight(&done.run.plan, &summary, &free.price).unwrap();
    let costs: Vec<Option<f64>> = scheduling.strategies.iter().map(|taken| taken.cost_usd).collect();
    assert!(
        costs.len() > 2 && costs.iter().all(|cost| *cost == Some(0.5)),
        "{costs:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn afterwards_it_is_said_what_bounded_the_run_and_what_others_would_have_taken() {
    let config = config("runs: 2\nstrategy: parallel");
    let done = run_known(&config, &[40, 40, 25], Engine::default()).await;
    let scheduling = looked_back(&done);
    assert_eq!(scheduling.bounded_by.kind, BoundKind::SlowestAttempt);
    assert_eq!(
        scheduling.bounded_by.why,
        "the slowest attempt, one of x × e1: 40.0 s of 40.0 s"
    );
    let taken: Vec<(Strategy, bool, f64, f64)> = scheduling
        .strategies
        .iter()
        .map(|taken| {
            (
                taken.strategy,
                taken.simulated,
                taken.wall_seconds,
                taken.sandbox_seconds,
            )
        })
        .collect();
    assert_eq!(
        taken,
        [
            (Strategy::Parallel, false, 40.0, 210.0),
            // Each with half as many at once, too.
            (Strategy::Parallel, true, 80.0, 210.0),
            (Strategy::Sequential, true, 40.0, 105.0),
            (Strategy::Sequential, true, 105.0, 105.0),
            // Two pairs of 40 s at once; the second attempt of 25 s starts at 40 - 1.5 x 25 s.
            (Strategy::Adaptive, true, 40.0, 160.0 + 25.0 + 22.5),
            (Strategy::Adaptive, true, 40.0, 120.0)
        ]
    );
    let accuracy = scheduling.accuracy.unwrap();
    assert_eq!((accuracy.known_pairs, accuracy.median_error), (3, Some(0.0)));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waited_for_places_was_bounded_by_its_concurrency() {
    let done = finish(
        &config("concurrency: 1"),
        3,
        Engine::default(),
        CancellationToken::new(),
    )
    .await;
    let bound = looked_back(&done).bounded_by;
    assert_eq!(bound.kind, BoundKind::Concurrency);
    assert_eq!(
        bound.why,
        "its concurrency of 1: x × e3, which ended last, waited 20.0 s for its start"
    );
    let engine = Engine::default()
        .script("e1", 1, 1, Script::Result(30, FAIL))
        .script("e1", 2, 1, Script::Result(20, PASS));
    let done = finish(&config("runs: 2"), 2, engine, CancellationToken::new()).await;
    let bound = looked_back(&done).bounded_by;
    assert_eq!(bound.kind, BoundKind::OneAfterAnother);
    assert_eq!(
        bound.why,
        "2 attempts of x × e1, one after another: 50.0 s of 50.0 s"
    );
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_adaptive_kept_back_was_not_bounded_by_the_concurrency() {
    let engine = Engine::default()
        .script("e3", 1, 1, Script::Result(25, FAIL))
        .script("e3", 2, 1, Script::Result(60, PASS));
    let config = config("runs: 2\nstrategy: adaptive");
    let done = run_known(&config, &[40, 40, 25], engine).await;
    assert_eq!(starts(&done, 2), [Some(0.0), Some(2.5)]);
    let bound = looked_back(&done).bounded_by;
    assert_eq!(bound.kind, BoundKind::OneAfterAnother);
    assert_eq!(
        bound.why,
        "2 attempts of x × e3, started one after another: 62.5 s of 62.5 s"
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waited_for_a_limit_was_bounded_by_it_and_not_by_its_concurrency() {
    let config = config("strategy: parallel\nlimits: [{ label: provider=one, concurrency: 1 }]");
    let mut pairs: Vec<Pair> = (1..=3).map(pair).collect();
    for pair in &mut pairs {
        pair.labels.add("provider", "one");
    }
    let nothing = Experience::default();
    let cancel = CancellationToken::new();
    let done = finish_planned(&config, &pairs, &nothing, Engine::default(), cancel).await;
    let bound = looked_back(&done).bounded_by;
    assert_eq!(bound.kind, BoundKind::Limit);
    assert_eq!(
        bound.why,
        "the limit of 1 at once for provider=one: x × e3, which ended last, waited 20.0 s for its start"
    );
}

#[tokio::test(start_paused = true)]
async fn no_strategy_is_simulated_beyond_what_may_run_at_once() {
    let config = config("runs: 2\nstrategy: sequential\nmax-concurrency: 4");
    let done = run_known(&config, &[40, 40, 25], Engine::default()).await;
    assert_eq!(done.run.plan.concurrency.value, 3);
    let strategies = looked_back(&done).strategies;
    let at_once: Vec<usize> = strategies.iter().map(|taken| taken.concurrency).collect();
    // As many as the run had, half of that, and all.
    assert_eq!(at_once, [3, 1, 4, 2, 4, 2]);
}

#[tokio::test(start_paused = true)]
async fn what_other_strategies_would_have_cost_is_told_where_every_attempt_says_what_it_used() {
    let priced = r#"{"passed": true, "usage": {"cost_usd": 0.5}}"#;
    let silent = r#"{"passed": true}"#;
    for (last, expected) in [(priced, [Some(2.0), Some(1.0)]), (silent, [None, None])] {
        let mut engine = Engine::default();
        for (pair, attempt, result) in [(1, 1, priced), (1, 2, priced), (2, 1, priced), (2, 2, last)] {
            engine = engine.script(&format!("e{pair}"), attempt, 1, Script::Result(10, result));
        }
        let config = config("runs: 2\nstrategy: parallel");
        let done = run_known(&config, &[10, 10], engine).await;
        let strategies = looked_back(&done).strategies;
        let cost = |strategy| {
            let of_it = strategies.iter().find(|taken| taken.strategy == strategy);
            of_it.unwrap().cost_usd
        };
        assert_eq!([cost(Strategy::Parallel), cost(Strategy::Sequential)], expected);
    }
}

/// Takes an hour to keep what an attempt came to.
struct Slow {
    memory: Memory,
    waiting: AtomicUsize,
    most_waiting: AtomicUsize,
}

#[async_trait]
impl Recorder for Slow {
    async fn open_try(&self, attempt: &AttemptId, try_number: u32) -> Result<Utf8PathBuf, RecordError> {
        self.memory.open_try(attempt, try_number).await
    }

    async fn close_try(&self, _: &AttemptRecord, _: &AttemptDetails) -> Result<(), RecordError> {
        Ok(())
    }

    async fn record(&self, event: &Event) -> Result<(), RecordError> {
        if matches!(event, Event::AttemptEnded { .. }) {
            let waiting = 1 + self.waiting.fetch_add(1, Ordering::SeqCst);
            self.most_waiting.fetch_max(waiting, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(3600)).await;
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_that_end_faster_than_they_are_kept_do_not_pile_up() {
    let pairs: Vec<Pair> = (1..=2500).map(pair).collect();
    let job = job(&config("concurrency: 100"), &pairs, &Experience::default());
    let slow = Arc::new(Slow {
        memory: Memory {
            directory: TempDir::new().unwrap(),
            events: std::sync::Mutex::default(),
        },
        waiting: AtomicUsize::new(0),
        most_waiting: AtomicUsize::new(0),
    });
    let engine = Arc::new(Engine::default());
    let run = run(
        Arc::new(job),
        engine,
        Arc::clone(&slow) as _,
        CancellationToken::new(),
    )
    .await;
    assert_eq!(aggregate::summarize(&run).totals.passed, 2500);
    let most = slow.most_waiting.load(Ordering::SeqCst);
    // A thousand, and those that ran by then.
    assert!((1000..=1100).contains(&most), "{most}");
}
