//! Whole runs under faults of every kind, in paused time: whatever breaks, the books balance.

use std::collections::{HashMap, HashSet};

use super::{
    AttemptId, Done, Duration, Engine, Event, Experience, FAIL, Ordering, Outcome, PASS, Pair, Run, Script,
    Verdict, carry_out, config, job, pair,
};
use crate::aggregate;
use crate::model::{CancelReason, Summary};
use crate::runner::{Earlier, Job};
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
                    _ => Script::Result(seconds, PASS),
                };
                truth.insert((format!("e{number}"), index), result);
                for try_number in 1..=9 {
                    if random.one_in(3) {
                        let fault = match random.below(4) {
                            0 => Script::Nothing(seconds),
                            1 => Script::NoSandbox,
                            2 => Script::LostDownloads(4, PASS),
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

    fn engine(&self, broken: bool) -> Engine {
        let mut engine = Engine::default();
        for ((eval, index), script) in &self.truth {
            for try_number in 1..=12 {
                engine = engine.script(eval, *index, try_number, *script);
            }
        }
        for (eval, index, try_number, script) in self.faults.iter().filter(|_| broken) {
            engine = engine.script(eval, *index, *try_number, *script);
        }
        engine
    }

    fn job(&self) -> Job {
        job(&config(&self.more), &self.pairs, &Experience::default())
    }

    async fn run(&self, broken: bool, earlier: Option<Run>, cancel: CancellationToken) -> Done {
        let mut job = self.job();
        // The clock was set in the meantime: back, or far ahead.
        let resumed_at = ["2025-12-31T23:00:00Z", "2036-01-01T00:00:00Z"][self.pairs.len() % 2];
        job.earlier = earlier.map(|run| Earlier {
            run,
            resumed_at: resumed_at.parse().unwrap(),
        });
        carry_out(job, self.engine(broken), cancel).await
    }
}

/// The run that a journal with these events tells.
fn replay(events: &[Event]) -> Run {
    let Event::RunStarted {
        run_id,
        started_at,
        commit,
        plan,
        ..
    } = &events[0]
    else {
        panic!("{:?}", events[0]);
    };
    let mut run = Run::new(run_id, *started_at, commit.clone(), plan.as_ref().clone());
    events[1..].iter().for_each(|event| run.apply(event));
    run
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
}

/// Where no result was lost, the verdict is the one of a run without faults.
fn same_where_nothing_was_lost(one: &Summary, other: &Summary, case: &Case) {
    for (pair, expected) in one.pairs.iter().zip(&other.pairs) {
        let is_lost = pair.attempts.iter().any(|attempt| {
            attempt.outcome == Outcome::Errored
                || matches!(attempt.reason, Some(CancelReason::Run | CancelReason::Breaker))
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
        let whole = case.run(false, None, CancellationToken::new()).await;
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
        let mut done = case.run(true, None, cancel).await;
        check(&done, &done.events, &case);
        same_where_nothing_was_lost(&aggregate::summarize(&done.run), &whole, &case);

        // Killed after any event, some of which were under way, and resumed; twice.
        let mut events = done.events.clone();
        for _ in 0..2 {
            let kept = 1 + random.below(events.len() as u64) as usize;
            events.truncate(kept);
            done = case
                .run(true, Some(replay(&events)), CancellationToken::new())
                .await;
            events.extend(done.events.iter().cloned());
            check(&done, &events, &case);
            same_where_nothing_was_lost(&aggregate::summarize(&done.run), &whole, &case);
        }
        // Once nothing breaks any more, nothing is missing any more.
        let healed = case
            .run(false, Some(replay(&events)), CancellationToken::new())
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
