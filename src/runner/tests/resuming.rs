//! Runs that go on: one run in several sessions counts what it would have counted in one.

use tokio_util::sync::CancellationToken;

use super::engine::{Engine, PASS, Script};
use super::{Done, carry_out, config, job, pair, replay};
use crate::aggregate;
use crate::config::PriceConfig;
use crate::model::{AttemptRecord, CancelReason, ErrorClass, Event, Outcome, Pair, PairId, Summary};
use crate::plan::{self, Experience};
use crate::runner::Earlier;

const THROTTLED: &str = r#"{"passed": false, "throttled": true, "usage": {"cost_usd": 2}}"#;
const CHEAP: &str = r#"{"passed": true, "usage": {"cost_usd": 1}}"#;

/// The sessions of a run, as its journal has them.
#[derive(Default)]
struct Sessions(Vec<Event>);

impl Sessions {
    /// One more, of the pairs in this order, whose configuration has `more` keys. Gives what it came to, and its summary,
    /// which the journal tells too.
    async fn go_on(
        &mut self,
        more: &str,
        pairs: &[usize],
        engine: Engine,
        cancel: CancellationToken,
    ) -> (Done, Summary) {
        let pairs: Vec<Pair> = pairs.iter().copied().map(pair).collect();
        let mut job = job(&config(more), &pairs, &Experience::default());
        job.earlier = (!self.0.is_empty()).then(|| Earlier {
            run: replay(&self.0),
            resumed_at: job.started_at,
        });
        let done = carry_out(job, engine, cancel).await;
        self.0.extend(done.events.iter().cloned());
        let summary = aggregate::summarize(&done.run);
        assert_eq!(aggregate::summarize(&replay(&self.0)), summary);
        (done, summary)
    }

    /// Kills the last session after the first event that is such a one.
    fn kill_after(&mut self, is_last: impl Fn(&Event) -> bool) {
        let last = self.0.iter().position(is_last).unwrap();
        self.0.truncate(last + 1);
    }
}

fn never() -> CancellationToken {
    CancellationToken::new()
}

/// A run is cancelled after so many seconds.
fn after(seconds: u64) -> CancellationToken {
    let cancel = CancellationToken::new();
    let later = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_secs(seconds)).await;
        later.cancel();
    });
    cancel
}

fn throttled(tries: std::ops::RangeInclusive<u32>) -> Engine {
    tries.fold(Engine::default(), |engine, number| {
        engine.script("e1", 1, number, Script::Result(10, THROTTLED))
    })
}

/// To the second: timers are a millisecond late.
fn sandbox_seconds(summary: &Summary) -> f64 {
    summary.totals.sandbox_seconds.round()
}

fn earlier(record: &AttemptRecord) -> Vec<u32> {
    record.earlier.iter().map(|failed| failed.number).collect()
}

#[tokio::test(start_paused = true)]
async fn what_a_stopped_attempt_has_used_counts_once_however_often_its_run_goes_on() {
    let budget = |minutes: f64| {
        format!(
            "concurrency: 2\nstrategy: parallel\nbudget: {{ sandbox-minutes: {minutes}, allow-unknown: true }}"
        )
    };
    let pairs = [1, 2, 3, 4, 5];
    let mut sessions = Sessions::default();
    let (_, first) = sessions
        .go_on(&budget(0.5), &pairs, Engine::default(), never())
        .await;
    assert_eq!(sandbox_seconds(&first), 30.0);
    for _ in 0..2 {
        let (done, again) = sessions
            .go_on(&budget(0.5), &pairs, Engine::default(), never())
            .await;
        assert_eq!((done.seconds, sandbox_seconds(&again)), (0, 30.0));
        assert_eq!(again.pairs[2].attempts[0].tries, 1);
        assert_eq!(again.pairs[2].attempts[0].reason, Some(CancelReason::Budget));
    }
    let (done, more) = sessions
        .go_on(&budget(0.7), &pairs, Engine::default(), never())
        .await;
    assert_eq!((done.seconds, sandbox_seconds(&more)), (6, 42.0));
    let (_, whole) = sessions.go_on("", &pairs, Engine::default(), never()).await;
    assert_eq!(whole.totals.passed, 5);
    assert_eq!(sandbox_seconds(&whole), 42.0 + 30.0);
}

#[tokio::test(start_paused = true)]
async fn every_try_of_every_session_is_kept_and_counts() {
    let mut sessions = Sessions::default();
    let (_, first) = sessions.go_on("", &[1], throttled(1..=3), never()).await;
    let attempt = &first.pairs[0].attempts[0];
    assert_eq!((attempt.outcome, attempt.tries), (Outcome::Errored, 3));
    assert_eq!(first.totals.cost_usd, Some(6.0));

    let engine = throttled(4..=4).script("e1", 1, 5, Script::Result(10, CHEAP));
    let (done, second) = sessions.go_on("", &[1], engine, never()).await;
    // The wait between its tries is that of a second try.
    assert_eq!(done.seconds, 10 + 10 + 10);
    let attempt = &second.pairs[0].attempts[0];
    assert_eq!((attempt.outcome, attempt.tries), (Outcome::Passed, 5));
    assert_eq!(earlier(attempt), [1, 2, 3, 4]);
    assert_eq!(second.totals.cost_usd, Some(9.0));
    assert_eq!(sandbox_seconds(&second), 50.0);
    assert_eq!(plan::used(&done.run, &PriceConfig::default()).1, 9.0);
}

#[tokio::test(start_paused = true)]
async fn what_two_parts_of_a_whole_tell_of_a_try_counts_once() {
    let mut sessions = Sessions::default();
    let engine = throttled(1..=1).script("e1", 1, 2, Script::Result(10, CHEAP));
    let (_, whole) = sessions.go_on("", &[1], engine, never()).await;
    assert_eq!(earlier(&whole.pairs[0].attempts[0]), [1]);
    let is_of_attempt = |event: &&Event| {
        matches!(
            event,
            Event::AttemptStarted { .. } | Event::TryFailed { .. } | Event::AttemptEnded { .. }
        )
    };
    let again: Vec<Event> = sessions.0.iter().filter(is_of_attempt).cloned().collect();
    let twice = aggregate::summarize(&replay(&[&sessions.0[..], &again].concat()));
    assert_eq!(twice.pairs, whole.pairs);
    assert_eq!(twice.totals, whole.totals);
}

#[tokio::test(start_paused = true)]
async fn a_try_that_failed_before_its_run_was_killed_is_kept_and_counts() {
    let mut sessions = Sessions::default();
    sessions.go_on("", &[1], throttled(1..=1), never()).await;
    sessions.kill_after(|event| matches!(event, Event::TryFailed { .. }));
    let killed = aggregate::summarize(&replay(&sessions.0));
    assert_eq!(killed.totals.cost_usd, Some(2.0));

    let budget = "budget: { cost: 2, allow-unknown: true }";
    let (done, stopped) = sessions.go_on(budget, &[1], Engine::default(), never()).await;
    let attempt = &stopped.pairs[0].attempts[0];
    assert_eq!(
        (done.seconds, stopped.run.reason),
        (0, Some(CancelReason::Budget))
    );
    assert_eq!((attempt.tries, stopped.totals.cost_usd), (1, Some(2.0)));
    assert_eq!(sandbox_seconds(&stopped), 10.0);
    let class = attempt.error.as_ref().map(|error| error.class);
    assert_eq!(class, Some(ErrorClass::Throttled));

    let (_, passed) = sessions.go_on("", &[1], Engine::default(), never()).await;
    let attempt = &passed.pairs[0].attempts[0];
    assert_eq!((attempt.tries, earlier(attempt)), (2, vec![1]));
    assert_eq!(passed.totals.cost_usd, Some(2.0));
    assert_eq!(sandbox_seconds(&passed), 20.0);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_can_start_nothing_takes_nothing_away_from_what_is_known() {
    let more = "retry: { tries: 2 }";
    let mut sessions = Sessions::default();
    let engine = throttled(1..=2).script("e2", 1, 1, Script::Result(50, PASS));
    sessions.go_on(more, &[1, 2, 3], engine, after(40)).await;

    let unready = Engine::default().unready("there is no such image");
    let (_, summary) = sessions.go_on(more, &[1, 2, 3], unready, never()).await;
    let attempt = |pair: usize| &summary.pairs[pair].attempts[0];
    let classes: Vec<ErrorClass> = (0..2)
        .map(|pair| attempt(pair).error.as_ref().unwrap().class)
        .collect();
    assert_eq!(classes, [ErrorClass::Throttled, ErrorClass::Provision]);
    assert_eq!((attempt(0).tries, earlier(attempt(0))), (2, vec![1]));
    assert_eq!((attempt(1).outcome, attempt(1).tries), (Outcome::Errored, 1));
    assert_eq!(attempt(2).outcome, Outcome::Passed);
    assert_eq!(summary.totals.cost_usd, Some(4.0));
    assert_eq!(sandbox_seconds(&summary), 20.0 + 40.0 + 10.0);
    let told = "nothing was started again: there is no such image";
    assert!(
        summary.notices.iter().any(|notice| notice == told),
        "{:?}",
        summary.notices
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_pairs_come_in_another_order_goes_on_with_what_each_of_them_had() {
    let mut sessions = Sessions::default();
    sessions
        .go_on("concurrency: 1", &[1, 2], Engine::default(), after(5))
        .await;

    let cancelled = never();
    cancelled.cancel();
    let (done, _) = sessions
        .go_on("concurrency: 1", &[2, 1], Engine::default(), cancelled)
        .await;
    let tries = |eval: &str| {
        let (_, pair) = done.run.pair(&PairId::new("x", eval).unwrap()).unwrap();
        (pair.records[0].tries, pair.held_seconds)
    };
    assert_eq!((tries("e1"), tries("e2")), ((1, 5.0), (0, 0.0)));

    let (_, whole) = sessions
        .go_on("concurrency: 1", &[2, 1], Engine::default(), never())
        .await;
    assert_eq!(whole.totals.passed, 2);
    let names = sessions.0.iter().filter_map(|event| match event {
        Event::SandboxNamed { name, .. } => Some(name.as_str()),
        _ => None,
    });
    let names: Vec<&str> = names.collect();
    assert_eq!(
        names,
        ["run-1-1-1", "run-2-1-1", "run-1-1-2"],
        "no name is given twice"
    );
}
