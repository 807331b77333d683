//! Whole runs under faults of every kind, in paused time: whatever breaks, the books balance.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{
    AttemptId, AttemptRecord, Done, Duration, Engine, Event, Experience, FAIL, Ordering, Outcome, PASS, Pair,
    Run, Script, Verdict, carry_out, config, job, pair, replay,
};
use crate::aggregate;
use crate::config::PriceConfig;
use crate::model::{CancelReason, PairSummary, Summary};
use crate::plan;
use crate::runner::Earlier;
use tokio_util::sync::CancellationToken;

/// How many suites are run, each once without faults and four times with them; `.ci/run` asks for thousands of runs.
const SUITES: &str = "EVALWAVE_TEST_FAULTS";

#[expect(
    clippy::disallowed_methods,
    reason = "a longer mode is asked for by the environment"
)]
fn suites() -> u64 {
    let asked = std::env::var(SUITES).ok();
    asked.map_or(40, |suites| suites.parse().unwrap())
}

const DEAR: &str = r#"{"passed": true, "usage": {"cost_usd": 0.25}}"#;
const THROTTLED: &str = r#"{"passed": false, "throttled": true, "usage": {"cost_usd": 1}}"#;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn one_in(&mut self, number: u64) -> bool {
        self.below(number) == 0
    }
}

/// A suite, and what each of its attempts comes to where nothing breaks.
struct Case {
    more: String,
    pairs: Vec<Pair>,
    truth: HashMap<(String, u32), Script>,
    faults: Vec<(String, u32, u32, Script)>,
}

impl Case {
    fn new(random: &mut Random) -> Self {
        let strategies = [
            "strategy: sequential",
            "strategy: parallel",
            "strategy: adaptive",
            "strategy: parallel\non-pass: cancel",
        ];
        let policies = ["any", "all", "majority"];
        let runs = 1 + random.below(3) as u32;
        let pairs = 1 + random.below(4) as usize;
        let more = format!(
            "runs: {runs}\n{}\npolicy: {}\nconcurrency: {}\nretry: {{ tries: {} }}",
            strategies[random.below(4) as usize],
            policies[random.below(3) as usize],
            1 + random.below(6),
            1 + random.below(3),
        );
        let (mut truth, mut faults) = (HashMap::new(), Vec::new());
        for number in 1..=pairs {
            for index in 1..=runs {
                let seconds = 1 + random.below(50);
                let result = match random.below(5) {
                    0 | 1 => Script::Result(seconds, FAIL),
                    // Beyond timeout and grace.
                    2 => Script::Result(100, PASS),
                    3 => Script::Result(seconds, DEAR),
                    _ => Script::Result(seconds, PASS),
                };
                truth.insert((format!("e{number}"), index), result);
                for try_number in 1..=9 {
                    if random.one_in(3) {
                        let fault = match random.below(5) {
                            0 => Script::Nothing(seconds),
                            1 => Script::NoSandbox,
                            2 => Script::LostDownloads(4, PASS),
                            3 => Script::Result(seconds, THROTTLED),
                            _ => Script::Nothing(0),
                        };
                        faults.push((format!("e{number}"), index, try_number, fault));
                    }
                }
            }
        }
        Self {
            more,
            pairs: (1..=pairs).map(pair).collect(),
            truth,
            faults,
        }
    }

    fn engine(&self, session: Session) -> Engine {
        let mut engine = Engine::default();
        for ((eval, index), script) in &self.truth {
            for try_number in 1..=12 {
                engine = engine.script(eval, *index, try_number, *script);
            }
        }
        for (eval, index, try_number, script) in self.faults.iter().filter(|_| session.broken) {
            engine = engine.script(eval, *index, *try_number, *script);
        }
        match session.unready {
            true => engine.unready("the engine is away"),
            false => engine,
        }
    }

    async fn run(&self, session: Session, earlier: Option<Run>, cancel: CancellationToken) -> Done {
        let mut pairs = self.pairs.clone();
        if session.reversed {
            pairs.reverse();
        }
        let budget = session.budget.map(|seconds| {
            let minutes = seconds as f64 / 60.0;
            format!("budget: {{ sandbox-minutes: {minutes}, allow-unknown: true }}")
        });
        let config = config(&format!("{}\n{}", self.more, budget.unwrap_or_default()));
        let mut job = job(&config, &pairs, &Experience::default());
        // The clock was set in the meantime: back, or far ahead.
        let resumed_at = ["2025-12-31T23:00:00Z", "2036-01-01T00:00:00Z"][self.pairs.len() % 2];
        job.earlier = earlier.map(|run| Earlier {
            run,
            resumed_at: resumed_at.parse().unwrap(),
        });
        carry_out(job, self.engine(session), cancel).await
    }
}

/// What befalls a session of a run.
#[derive(Clone, Copy, Default)]
struct Session {
    /// Tries have the case's faults.
    broken: bool,
    /// Nothing can be made ready for sandboxes.
    unready: bool,
    /// The pairs have been put into another order.
    reversed: bool,
    /// Seconds of sandboxes that the whole run may use.
    budget: Option<u64>,
}

impl Session {
    fn resumed(random: &mut Random) -> Self {
        Self {
            broken: true,
            unready: random.one_in(5),
            reversed: random.one_in(2),
            budget: random.one_in(4).then(|| 1 + random.below(150)),
        }
    }
}

/// What was told of every try, each of them once.
#[derive(Default)]
struct Books {
    tries: BTreeMap<(AttemptId, u32), (f64, f64)>,
    errors: BTreeMap<AttemptId, BTreeSet<u32>>,
    /// Seconds of tries that were under way when a session was killed.
    lost: f64,
}

impl Books {
    fn of(events: &[Event]) -> Self {
        let mut books = Self::default();
        let mut under_way: BTreeMap<AttemptId, (u32, f64)> = BTreeMap::new();
        for event in events {
            let (id, number, seconds, usage, failed) = match event {
                Event::AttemptStarted {
                    attempt,
                    try_number,
                    offset,
                } => {
                    under_way.insert(attempt.clone(), (*try_number, *offset));
                    continue;
                }
                Event::RunResumed { offset, .. } => {
                    let lost = std::mem::take(&mut under_way).into_values();
                    books.lost += lost.map(|(_, begun)| offset - begun).sum::<f64>();
                    continue;
                }
                Event::TryFailed {
                    attempt,
                    try_number,
                    seconds,
                    usage,
                    ..
                } => (attempt.clone(), *try_number, *seconds, *usage, true),
                Event::AttemptEnded { pair, record, .. } if record.tries > 0 => {
                    let AttemptRecord { index, tries, .. } = **record;
                    let pair = pair.clone();
                    let failed = record.error.is_some();
                    (
                        AttemptId { pair, index },
                        tries,
                        record.seconds,
                        record.usage,
                        failed,
                    )
                }
                _ => continue,
            };
            if under_way.get(&id).is_some_and(|(begun, _)| *begun <= number) {
                under_way.remove(&id);
            }
            if failed {
                books.errors.entry(id.clone()).or_default().insert(number);
            }
            let cost = usage.and_then(|usage| usage.cost_usd).unwrap_or_default();
            books.tries.entry((id, number)).or_insert((seconds, cost));
        }
        books
    }

    fn seconds(&self) -> f64 {
        self.lost + self.tries.values().map(|(seconds, _)| seconds).sum::<f64>()
    }

    fn cost(&self) -> f64 {
        self.tries.values().map(|(_, cost)| cost).sum()
    }

    /// Holds a run to them: no try is forgotten, and none counts twice.
    fn check(&self, run: &Run, pairs: &[PairSummary], case: &Case) {
        let totals = aggregate::totals(pairs);
        let (seconds, cost) = plan::used(run, &PriceConfig::default());
        let context = &case.more;
        assert!(
            (seconds - self.seconds()).abs() < 0.01,
            "{seconds} of {}\n{context}",
            self.seconds()
        );
        assert!((totals.sandbox_seconds - seconds).abs() < 0.01, "{context}");
        assert!(
            (cost - self.cost()).abs() < 1e-6,
            "{cost} of {}\n{context}",
            self.cost()
        );
        assert_eq!(totals.cost_usd.unwrap_or_default(), cost, "{context}");
        for pair in pairs {
            for attempt in &pair.attempts {
                let earlier = attempt.earlier.iter().map(|failed| failed.number);
                let last = attempt.failed_try().map(|failed| failed.number);
                let kept: Vec<u32> = earlier.chain(last).collect();
                let (pair, index) = (pair.id(), attempt.index);
                let told = self.errors.get(&AttemptId { pair, index });
                let told: Vec<u32> = told.into_iter().flatten().copied().collect();
                assert_eq!(kept, told, "of {} #{index}\n{context}", attempt.tries);
            }
        }
    }
}

/// Holds one run, or several sessions of it, to what is true of every run.
fn check(done: &Done, events: &[Event], case: &Case) {
    let summary = aggregate::summarize(&done.run);
    let attempts = summary.totals.attempts;
    let ended = attempts.graded + attempts.errored + attempts.cancelled;
    assert_eq!(
        ended, attempts.planned,
        "an attempt has no outcome, or two\n{}",
        case.more
    );
    let planned = summary
        .pairs
        .iter()
        .all(|pair| pair.attempts.len() == pair.planned_attempts as usize);
    assert!(planned, "{}", case.more);
    let wall = summary.run.wall_seconds;
    // Far less than any clock is set by.
    assert!((0.0..1800.0).contains(&wall), "{wall}");
    for attempt in summary.pairs.iter().flat_map(|pair| &pair.attempts) {
        let end = attempt.started_offset.unwrap_or_default() + attempt.seconds;
        assert!(attempt.seconds >= 0.0 && end <= wall + 0.002, "{end} of {wall}");
    }
    assert_eq!(
        done.engine.started.load(Ordering::SeqCst),
        done.engine.freed.lock().unwrap().len(),
        "a sandbox is left\n{}",
        case.more
    );
    let mut graded: HashSet<AttemptId> = HashSet::new();
    for event in events {
        match event {
            Event::AttemptStarted { attempt, .. } => {
                assert!(
                    !graded.contains(attempt),
                    "{attempt} has a result and runs again\n{}",
                    case.more
                );
            }
            Event::AttemptEnded { pair, record, .. } if record.outcome.is_graded() => {
                let id = AttemptId {
                    pair: pair.clone(),
                    index: record.index,
                };
                assert!(graded.insert(id), "{pair} has two results of one attempt");
            }
            _ => {}
        }
    }
    let told = aggregate::summarize(&replay(events));
    assert_eq!(
        told.pairs, summary.pairs,
        "the journal tells something else\n{}",
        case.more
    );
    assert_eq!(told.totals, summary.totals);
    Books::of(events).check(&done.run, &summary.pairs, case);
}

/// Where no result was lost, the verdict is the one of a run without faults.
fn same_where_nothing_was_lost(one: &Summary, other: &Summary, case: &Case) {
    for pair in &one.pairs {
        let expected = other.pairs.iter().find(|other| other.id() == pair.id());
        let expected = expected.unwrap();
        let is_lost = pair.attempts.iter().any(|attempt| {
            attempt.outcome == Outcome::Errored
                || attempt
                    .reason
                    .is_some_and(|reason| reason != CancelReason::Decided)
        });
        if !is_lost {
            assert_eq!(
                pair.verdict, expected.verdict,
                "{}\n{pair:?}\n{expected:?}",
                case.more
            );
            assert_ne!(pair.verdict, Verdict::NotRun);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_breaks_every_attempt_ends_once_and_no_result_is_lost_or_made_twice() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for _ in 0..suites() {
        let case = Case::new(&mut random);
        let whole = case.run(Session::default(), None, CancellationToken::new()).await;
        check(&whole, &whole.events, &case);
        let whole = aggregate::summarize(&whole.run);

        let cancel = CancellationToken::new();
        if random.one_in(4) {
            let (cancel, moment) = (cancel.clone(), Duration::from_secs(random.below(120)));
            tokio::spawn(async move {
                tokio::time::sleep(moment).await;
                cancel.cancel();
            });
        }
        let broken = Session {
            broken: true,
            ..Session::default()
        };
        let mut done = case.run(broken, None, cancel).await;
        check(&done, &done.events, &case);
        same_where_nothing_was_lost(&aggregate::summarize(&done.run), &whole, &case);

        // Killed after any event, some of which were under way, and resumed; twice.
        let mut events = done.events.clone();
        for _ in 0..2 {
            let kept = 1 + random.below(events.len() as u64) as usize;
            events.truncate(kept);
            // What the journal of a killed run tells is its account too.
            let killed = replay(&events);
            let open = aggregate::summarize(&killed);
            assert_eq!(
                open.totals.cost_usd.unwrap_or_default(),
                plan::used(&killed, &PriceConfig::default()).1,
                "{}",
                case.more
            );
            let session = Session::resumed(&mut random);
            done = case.run(session, Some(killed), CancellationToken::new()).await;
            events.push(done.events[0].clone());
            let before = Books::of(&events).seconds();
            events.extend(done.events[1..].iter().cloned());
            check(&done, &events, &case);
            if let Some(budget) = session.budget {
                let used = Books::of(&events).seconds();
                assert!(
                    used <= before.max(budget as f64) + 0.1,
                    "{used} of {budget}\n{}",
                    case.more
                );
            }
            same_where_nothing_was_lost(&aggregate::summarize(&done.run), &whole, &case);
        }
        // Once nothing breaks any more, nothing is missing any more.
        let healed = case
            .run(
                Session::default(),
                Some(replay(&events)),
                CancellationToken::new(),
            )
            .await;
        events.extend(healed.events.iter().cloned());
        check(&healed, &events, &case);
        let summary = aggregate::summarize(&healed.run);
        let open = |summary: &Summary| {
            summary
                .pairs
                .iter()
                .filter(|pair| pair.verdict == Verdict::Error)
                .count()
        };
        assert_eq!(open(&summary), 0, "{}", case.more);
        assert!(summary.run.complete, "{}", case.more);
    }
}
