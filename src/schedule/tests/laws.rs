//! Laws that hold for every spec, every outcome and every order of finishing.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::{collection, option, prop_assert, prop_assert_eq};

use super::{
    ADAPTIVE, Action, AttemptRef, Budget, CANCEL, CONTINUE, CancelReason, Ended, Ending, ErrorClass, Outcome,
    Pace, PairSpec, Policy, SEQUENTIAL, Scheduler, Spec, Used, at, graded, s, simulate,
};
use crate::aggregate::{Grade, verdict};
use crate::model::Verdict;

/// How each try of each attempt ends: by pair, attempt and try, each list used in a circle.
type Courses = Vec<Vec<Ending>>;

fn ending(courses: &Courses, attempt: AttemptRef, try_number: u32) -> Ending {
    let tries = &courses[(attempt.pair * 5 + attempt.index as usize) % courses.len()];
    tries[try_number as usize % tries.len()]
}

/// What a run came to, as a runner would record it.
#[derive(Debug, Default)]
struct Record {
    grades: BTreeMap<AttemptRef, Grade>,
    starts: Vec<AttemptRef>,
    retries: usize,
    /// Tries that errored.
    died: usize,
}

impl Record {
    fn finish(
        &mut self,
        attempt: AttemptRef,
        outcome: Outcome,
        reason: Option<CancelReason>,
        score: Option<f64>,
    ) {
        let grade = Grade {
            outcome,
            reason,
            score,
        };
        let before = self.grades.insert(attempt, grade);
        assert_eq!(before, None, "{attempt} ended twice");
    }

    fn verdicts(&self, spec: &Spec) -> Vec<Verdict> {
        (0..spec.pairs.len())
            .map(|pair| {
                let range = at(pair, 0)..=at(pair, u32::MAX);
                let grades: Vec<Grade> = self.grades.range(range).map(|(_, grade)| *grade).collect();
                verdict(spec.policy, spec.runs, &grades)
            })
            .collect()
    }
}

/// Drives a run to its end, its tries finishing in an order drawn from `dice`, and checks every step. The run is
/// cancelled after `cancel_after` ends.
fn run(spec: &Spec, courses: &Courses, dice: &[u8], cancel_after: Option<usize>) -> Record {
    let mut scheduler = Scheduler::new(spec.clone());
    let mut running: Vec<(AttemptRef, u32)> = Vec::new();
    let mut told: BTreeMap<AttemptRef, CancelReason> = BTreeMap::new();
    let mut just_graded: Option<AttemptRef> = None;
    let mut record = Record::default();
    let mut now = Duration::ZERO;
    for step in 0.. {
        assert!(step < 10_000, "the run does not end");
        if cancel_after == Some(step) {
            scheduler.cancel();
        }
        for action in scheduler.next(now) {
            match action {
                Action::Start {
                    attempt,
                    try_number,
                    kept,
                } => {
                    assert!(!told.contains_key(&attempt) && !record.grades.contains_key(&attempt));
                    let same_pair = |other: &(AttemptRef, u32)| other.0.pair == attempt.pair;
                    if spec.pace == Pace::Sequential {
                        assert!(!running.iter().any(same_pair), "two attempts of a pair at once");
                    }
                    assert!(!running.iter().any(|other| other.0 == attempt));
                    assert!(try_number <= spec.tries);
                    if kept {
                        assert_eq!(just_graded, Some(at(attempt.pair, attempt.index - 1)));
                    }
                    record.starts.push(attempt);
                    running.push((attempt, try_number));
                    scheduler.hold(attempt, now);
                }
                Action::Cancel { attempt, reason } => {
                    assert!(running.iter().any(|other| other.0 == attempt));
                    assert_eq!(told.insert(attempt, reason), None, "told to stop twice");
                }
                Action::Skip { attempt, reason } => {
                    assert!(!running.iter().any(|other| other.0 == attempt));
                    record.finish(attempt, Outcome::Cancelled, Some(reason), None);
                }
                Action::GiveUp { attempt } => {
                    assert!(record.starts.contains(&attempt));
                    record.finish(attempt, Outcome::Errored, None, None);
                }
            }
        }
        assert!(running.len() <= spec.concurrency, "more at once than may be");
        for (limit, most) in spec.limits.iter().enumerate() {
            let counts = |(attempt, _): &&(AttemptRef, u32)| spec.pairs[attempt.pair].limits.contains(&limit);
            let at_once = running.iter().filter(counts).count();
            assert!(at_once <= *most, "more of a label at once than may be");
        }
        just_graded = None;
        let wake = scheduler.wake_at();
        assert!(
            wake.is_none_or(|time| time > now),
            "a time in the past is no time to wait for"
        );
        if running.is_empty() {
            match wake {
                Some(time) => {
                    now = time;
                    continue;
                }
                None => break,
            }
        }
        let die = usize::from(dice[step % dice.len()]);
        let (attempt, try_number) = running.swap_remove(die % running.len());
        now += s(1);
        if let Some(reason) = told.get(&attempt)
            // Now and then a try ends by itself before the word to stop reaches it.
            && die % 4 != 0
        {
            assert_eq!(scheduler.end(attempt, Ending::Cancelled, now), Ended::Final);
            record.finish(attempt, Outcome::Cancelled, Some(*reason), None);
            continue;
        }
        let ending = ending(courses, attempt, try_number);
        record.died += usize::from(matches!(ending, Ending::Errored { .. }));
        match (scheduler.end(attempt, ending, now), ending) {
            (Ended::Retry, ending) => {
                assert!(matches!(ending, Ending::Errored { retry: true, .. }));
                assert!(!told.contains_key(&attempt));
                record.retries += 1;
            }
            (_, Ending::Graded { outcome, score, .. }) => {
                record.finish(attempt, outcome, None, score);
                if matches!(outcome, Outcome::Passed | Outcome::Failed) {
                    just_graded = Some(attempt);
                }
            }
            (_, Ending::Errored { .. }) => record.finish(attempt, Outcome::Errored, None, None),
            (_, Ending::Cancelled) => record.finish(attempt, Outcome::Cancelled, None, None),
        }
    }
    assert!(
        scheduler.is_done(),
        "nothing runs or waits, yet the run is not done"
    );
    record
}

fn any_ending() -> impl Strategy<Value = Ending> {
    let outcome = prop_oneof![
        2 => Just(Outcome::Passed),
        2 => Just(Outcome::Failed),
        1 => Just(Outcome::TimedOut)
    ];
    let class = prop_oneof![
        4 => Just(ErrorClass::NoResult),
        1 => Just(ErrorClass::Throttled)
    ];
    let score = option::weighted(0.3, 0.0..=1.0);
    prop_oneof![
        3 => (outcome, score).prop_map(|(outcome, score)| Ending::Graded { outcome, score, command: None }),
        2 => (class, any::<bool>(), 0..5_u64).prop_map(|(class, retry, delay)| Ending::Errored {
            class,
            retry,
            delay: s(delay),
        }),
    ]
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let mean =
        (0.0..=1.0, any::<bool>()).prop_map(|(threshold, complete)| Policy::Mean { threshold, complete });
    prop_oneof![Just(Policy::Any), Just(Policy::All), Just(Policy::Majority), mean]
}

fn any_spec() -> impl Strategy<Value = Spec> {
    let pair = (option::of(0..4_u64), collection::vec(0..2_usize, 0..3));
    let pair = pair.prop_map(|(seconds, limits)| PairSpec {
        predicted: seconds.map(s),
        limits,
        done: Vec::new(),
    });
    let pace = prop_oneof![Just(SEQUENTIAL), Just(CONTINUE), Just(CANCEL), Just(ADAPTIVE)];
    (
        collection::vec(pair, 0..6),
        1..5_u32,
        pace,
        any_policy(),
        1..8_usize,
        1..4_u32,
        0..6_usize,
        (option::of(0..4_u64), collection::vec(1..6_usize, 0..3)),
    )
        .prop_map(
            |(pairs, runs, pace, policy, concurrency, tries, retries, (overhead, limits))| Spec {
                pairs,
                runs,
                pace,
                policy,
                concurrency,
                tries,
                retries,
                overhead: overhead.map(s),
                limits,
                budget: Budget::default(),
                used: Used::default(),
            },
        )
}

fn any_courses() -> impl Strategy<Value = Courses> {
    collection::vec(collection::vec(any_ending(), 1..4), 1..20)
}

fn any_dice() -> impl Strategy<Value = Vec<u8>> {
    collection::vec(any::<u8>(), 1..40)
}

proptest! {
    #[test]
    fn every_planned_attempt_ends_exactly_once(
        spec in any_spec(),
        courses in any_courses(),
        dice in any_dice(),
        cancel_after in option::of(0..20_usize),
    ) {
        let record = run(&spec, &courses, &dice, cancel_after);
        let planned = (0..spec.pairs.len()).flat_map(|pair| (1..=spec.runs).map(move |index| at(pair, index)));
        let ended: Vec<AttemptRef> = record.grades.keys().copied().collect();
        prop_assert_eq!(ended, planned.collect::<Vec<_>>());
        prop_assert!(record.retries <= spec.retries);
    }

    #[test]
    fn a_dead_infrastructure_stops_every_run_within_its_first_tries(
        spec in any_spec(),
        dice in any_dice(),
        delay in 0..5_u64,
    ) {
        let dead = Ending::Errored { class: ErrorClass::Setup, retry: true, delay: s(delay) };
        let record = run(&spec, &vec![vec![dead]], &dice, None);
        prop_assert!(record.died < 10 + spec.concurrency);
        prop_assert!(record.verdicts(&spec).iter().all(|verdict| *verdict != Verdict::Pass));
    }

    #[test]
    fn strategies_and_orders_agree_on_verdicts(
        spec in any_spec(),
        courses in any_courses(),
        dice in collection::vec(any_dice(), 4),
        concurrency in collection::vec(1..8_usize, 4),
    ) {
        // Three pairs of three attempts and no retries: neither breaker nor budget, which look at the order, come in.
        let spec = Spec { pairs: spec.pairs.into_iter().take(3).collect(), runs: spec.runs.min(3), tries: 1, ..spec };
        let outcomes: Vec<Vec<Verdict>> = [SEQUENTIAL, CONTINUE, CANCEL, ADAPTIVE]
            .into_iter()
            .zip(dice.iter().zip(&concurrency))
            .map(|(pace, (dice, concurrency))| {
                let spec = Spec { pace, concurrency: *concurrency, ..spec.clone() };
                run(&spec, &courses, dice, None).verdicts(&spec)
            })
            .collect();
        prop_assert_eq!(&outcomes[0], &outcomes[1]);
        prop_assert_eq!(&outcomes[1], &outcomes[2]);
        prop_assert_eq!(&outcomes[2], &outcomes[3]);
    }

    #[test]
    fn a_simulated_run_is_no_shorter_than_its_work_allows(
        spec in any_spec(),
        seconds in collection::vec(0..50_u64, 1..20),
        overhead in 0..5_u64,
    ) {
        let spec = Spec { pace: CONTINUE, limits: Vec::new(), ..spec };
        let attempts = spec.pairs.len() * spec.runs as usize;
        let concurrency = spec.concurrency as u32;
        let course = |attempt: AttemptRef, _| {
            (s(seconds[(attempt.pair * 7 + attempt.index as usize) % seconds.len()]), graded(Outcome::Failed))
        };
        let timeline = simulate(spec, course, |_| s(overhead));
        prop_assert_eq!(timeline.spans.len(), attempts);
        let longest = timeline.spans.iter().map(|span| span.end - span.start).max().unwrap_or_default();
        prop_assert!(timeline.wall >= longest.max(timeline.sandbox_time / concurrency));
        prop_assert!(timeline.wall <= longest + timeline.sandbox_time / concurrency);
    }
}
