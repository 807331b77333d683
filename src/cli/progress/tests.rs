//! What is shown of a run, without a terminal and without waiting.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use console::measure_text_width;

use super::left::{Left, left};
use super::lines::{self, Detail, heartbeat};
use super::standing::Standing;
use super::view::{Canvas, view};
use super::{Manner, Progress};
use crate::model::{
    AttemptDetails, AttemptError, AttemptId, AttemptRecord, CancelReason, Event, OnPass, Outcome, PairId,
    RunPlan, Strategy,
};

const GRACE: Duration = Duration::from_secs(300);

/// A plan of experiments with two evals each, two attempts a pair.
fn plan(experiments: &[&str], strategy: Strategy, concurrency: usize, predicted: Option<f64>) -> RunPlan {
    let pairs: Vec<_> = experiments
        .iter()
        .flat_map(|experiment| ["one", "two"].map(|eval| (experiment, eval)))
        .map(|(experiment, eval)| {
            serde_json::json!({
                "id": { "experiment": experiment, "eval": eval },
                "labels": {},
                "predicted_seconds": predicted,
            })
        })
        .collect();
    let plan = serde_json::json!({
        "suite": "t",
        "selection": { "kind": "all", "selected": pairs.len(), "of": pairs.len() },
        "pairs": pairs,
        "runs": 2,
        "strategy": strategy,
        "on_pass": OnPass::Continue,
        "policy": "any",
        "produces": "attempt",
        "concurrency": { "value": concurrency, "reason": "as told", "bounded": false },
        "sandbox": "local",
        "config_hash": "",
    });
    serde_json::from_value(plan).unwrap()
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn pair(name: &str) -> PairId {
    let (experiment, eval) = name.split_once('/').unwrap();
    PairId::new(experiment, eval).unwrap()
}

fn attempt(name: &str, index: u32) -> AttemptId {
    AttemptId {
        pair: pair(name),
        index,
    }
}

fn run_started(plan: &RunPlan) -> Event {
    Event::RunStarted {
        schema: String::new(),
        run_id: "r".to_owned(),
        started_at: jiff::Timestamp::UNIX_EPOCH,
        commit: None,
        plan: Box::new(plan.clone()),
    }
}

fn started(name: &str, index: u32, try_number: u32) -> Event {
    Event::AttemptStarted {
        attempt: attempt(name, index),
        try_number,
        offset: 0.0,
    }
}

fn error() -> AttemptError {
    serde_json::from_value(serde_json::json!({
        "class": "sandbox_lost", "phase": "command", "message": "it \u{1b}[2Jwent away\nand more",
    }))
    .unwrap()
}

fn try_failed(name: &str, index: u32, try_number: u32) -> Event {
    Event::TryFailed {
        attempt: attempt(name, index),
        try_number,
        error: error(),
        seconds: 1.0,
        usage: None,
    }
}

fn ended(name: &str, index: u32, outcome: Outcome) -> Event {
    let record = AttemptRecord {
        outcome,
        reason: None,
        seconds: 60.0,
        tries: 1,
        error: (outcome == Outcome::Errored).then(error),
        ..AttemptRecord::not_started(index, CancelReason::Run)
    };
    Event::AttemptEnded {
        pair: pair(name),
        record: Box::new(record),
        details: Box::<AttemptDetails>::default(),
    }
}

fn not_needed(name: &str, index: u32) -> Event {
    Event::AttemptEnded {
        pair: pair(name),
        record: Box::new(AttemptRecord::not_started(index, CancelReason::Decided)),
        details: Box::<AttemptDetails>::default(),
    }
}

fn run_ended() -> Event {
    Event::RunEnded {
        offset: 0.0,
        cancelled: false,
        notices: Vec::new(),
    }
}

/// A run of this plan that began at 0, with these events at these seconds.
fn standing(plan: &RunPlan, events: Vec<(u64, Event)>) -> Standing {
    let mut standing = Standing::new("", plan, GRACE);
    standing.apply(&run_started(plan), at(0));
    for (second, event) in events {
        standing.apply(&event, at(second));
    }
    standing
}

/// A run in the middle of everything.
fn midway() -> Standing {
    let plan = plan(&["careful", "hasty"], Strategy::Parallel, 4, Some(60.0));
    standing(
        &plan,
        vec![
            (1, started("careful/one", 1, 1)),
            (1, started("careful/one", 2, 1)),
            (2, started("hasty/one", 1, 1)),
            (3, started("hasty/one", 2, 1)),
            (5, try_failed("careful/one", 2, 1)),
            (60, ended("careful/one", 1, Outcome::Passed)),
            (61, ended("hasty/one", 1, Outcome::TimedOut)),
            (61, started("careful/two", 1, 1)),
            (62, started("careful/two", 2, 1)),
            (63, ended("careful/two", 2, Outcome::Errored)),
        ],
    )
}

fn drawn(standings: &[Standing], second: u64, columns: usize, rows: usize) -> String {
    let canvas = Canvas {
        columns,
        rows,
        color: false,
        ellipsis: "…",
    };
    view(standings, at(second), canvas).join("\n")
}

#[test]
fn the_view_tells_what_runs_what_has_ended_how_long_it_takes_and_which_attempt_is_the_oldest() {
    let shown = drawn(&[midway()], 71, 120, 24);
    assert_eq!(
        shown,
        "\
3/8 attempts · 1 passed · 1 failed · 1 errored · 2 running · 1 to be tried again · 2 waiting · 1m11s so far
about 1m00s left
experiment  ended  passed  failed  errored  running  retrying
careful       2/4       1       -        1        1         1
hasty         1/4       -       1        -        1         -
oldest: hasty × one #2, running for 1m08s"
    );
}

#[test]
fn a_narrow_terminal_gets_fewer_columns_and_no_line_is_cut_off_by_its_edge() {
    let mut narrow = midway();
    narrow.name = "baseline ";
    assert_eq!(
        drawn(&[narrow], 71, 40, 24),
        "\
baseline 3/8 attempts · 1 passed
1 failed · 1 errored · 2 running
1 to be tried again · 2 waiting
1m11s so far · about 1m00s left
experiment  ended  passed  failed
careful       2/4       1       -
hasty         1/4       -       1
oldest: hasty × one #2, running for 1m…"
    );
    for columns in 0..130 {
        for rows in 0..12 {
            let standings = [midway(), midway()];
            let canvas = Canvas {
                columns,
                rows,
                color: true,
                ellipsis: "…",
            };
            let lines = view(&standings, at(71), canvas);
            assert!(
                lines.len() <= rows.saturating_sub(1),
                "{columns} x {rows}: {lines:?}"
            );
            let widest = lines.iter().map(|line| measure_text_width(line)).max();
            assert!(
                widest.unwrap_or_default() <= columns.saturating_sub(1).max(1),
                "{columns} x {rows}: {lines:?}"
            );
        }
    }
}

#[test]
fn a_low_terminal_shows_the_experiments_that_go_on_and_counts_the_others() {
    let names: Vec<String> = (0..30).map(|at| format!("experiment-{at:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let plan = plan(&names, Strategy::Parallel, 100, None);
    let standing = standing(&plan, vec![(1, started("experiment-25/one", 1, 1))]);
    let shown = drawn(&[standing], 1, 80, 9);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 8, "{shown}");
    assert!(
        lines.iter().any(|line| line.starts_with("experiment-25")),
        "{shown}"
    );
    assert!(lines.contains(&"… and 26 more experiments"), "{shown}");
}

#[test]
fn colour_is_on_top_of_the_same_words() {
    let canvas = |color| Canvas {
        columns: 120,
        rows: 24,
        color,
        ellipsis: "…",
    };
    let plain = view(&[midway()], at(71), canvas(false)).join("\n");
    let colored = view(&[midway()], at(71), canvas(true)).join("\n");
    assert!(!plain.contains('\u{1b}') && colored.contains("\u{1b}[31m1 failed"));
    assert_eq!(console::strip_ansi_codes(&colored), plain);
}

#[test]
fn a_run_that_has_not_begun_or_is_over_takes_no_place() {
    let plan = plan(&["a"], Strategy::Parallel, 4, None);
    assert_eq!(drawn(&[Standing::new("", &plan, GRACE)], 5, 80, 24), "");
    let over = standing(&plan, vec![(1, started("a/one", 1, 1)), (9, run_ended())]);
    assert_eq!(drawn(&[over], 9, 80, 24), "");
}

#[test]
fn names_from_outside_command_no_terminal() {
    let plan = plan(&["a\u{202e}b", "c"], Strategy::Parallel, 4, None);
    let standing = standing(&plan, vec![(1, started("a\u{202e}b/one", 1, 1))]);
    assert!(!drawn(&[standing], 1, 80, 24).contains('\u{202e}'));
    let told = lines::line(&midway(), &try_failed("careful/one", 1, 1), Detail::Trouble).unwrap();
    assert_eq!(
        told,
        "    try 1 of careful × one #1 sandbox_lost: it went away; trying again"
    );
}

#[test]
fn a_try_that_is_heard_to_begin_before_the_one_before_it_failed_runs() {
    let plan = plan(&["a"], Strategy::Parallel, 4, None);
    let standing = standing(
        &plan,
        vec![
            (1, started("a/one", 1, 1)),
            (2, started("a/one", 1, 2)),
            (2, try_failed("a/one", 1, 1)),
        ],
    );
    let total = standing.total();
    assert_eq!((total.running, total.retrying, total.waiting()), (1, 0, 3));
}

#[test]
fn a_command_that_makes_its_whole_pair_counts_as_all_attempts_of_it() {
    let mut plan = plan(&["a"], Strategy::Parallel, 4, None);
    plan.produces = crate::model::Produces::Pair;
    let mut standing = standing(&plan, vec![(1, started("a/one", 1, 1))]);
    assert_eq!((standing.total().running, standing.total().waiting()), (2, 2));
    standing.apply(&try_failed("a/one", 1, 1), at(2));
    standing.apply(&try_failed("a/one", 2, 1), at(2));
    assert_eq!((standing.total().running, standing.total().retrying), (0, 2));
    standing.apply(&started("a/one", 1, 2), at(3));
    standing.apply(&ended("a/one", 1, Outcome::Passed), at(4));
    standing.apply(&ended("a/one", 2, Outcome::Failed), at(4));
    let total = standing.total();
    assert_eq!((total.ended(), total.running, total.waiting()), (2, 0, 2));
}

#[test]
fn the_time_left_is_unknown_until_every_pair_has_a_prediction_or_an_attempt_that_has_ended() {
    let unknown = plan(&["a"], Strategy::Parallel, 4, None);
    let mut run = standing(
        &unknown,
        vec![
            (0, started("a/one", 1, 1)),
            (0, started("a/two", 1, 1)),
            (60, ended("a/one", 1, Outcome::Failed)),
        ],
    );
    assert_eq!(left(&run, at(60)), Left::Unknown);
    run.apply(&ended("a/two", 1, Outcome::Passed), at(90));
    assert_eq!(left(&run, at(90)), Left::About(at(60)));
}

#[test]
fn the_time_left_is_that_of_the_places_that_there_are() {
    // Eight attempts of a minute each in four places.
    let predicted = plan(&["a", "b"], Strategy::Parallel, 4, Some(60.0));
    assert_eq!(left(&standing(&predicted, vec![]), at(0)), Left::About(at(120)));
    let begun = ["a/one", "a/two", "b/one", "b/two"].map(|pair| (0, started(pair, 1, 1)));
    let run = standing(&predicted, begun.to_vec());
    assert_eq!(left(&run, at(20)), Left::About(at(100)));
    // In sequence each pair's two attempts have one place, and the second may turn out not to be needed.
    let predicted = plan(&["a"], Strategy::Sequential, 4, Some(60.0));
    let mut run = standing(&predicted, vec![(0, started("a/one", 1, 1))]);
    assert_eq!(left(&run, at(30)), Left::UpTo(at(120)));
    for event in [
        ended("a/one", 1, Outcome::Passed),
        not_needed("a/one", 2),
        started("a/two", 1, 1),
    ] {
        run.apply(&event, at(60));
    }
    assert_eq!(left(&run, at(90)), Left::UpTo(at(90)));
    run.apply(&not_needed("a/two", 2), at(90));
    assert_eq!(left(&run, at(500)), Left::Overdue);
}

#[test]
fn a_heartbeat_names_the_oldest_attempt_once_nothing_has_progressed_for_the_grace() {
    let run = midway();
    assert_eq!(
        heartbeat(&run, at(120)),
        "2m00s so far: 3 of 8 attempts have ended: 1 passed, 1 failed, 1 errored; 2 running, 1 to be tried again; about 1m00s left"
    );
    let late = heartbeat(&run, at(63 + 300));
    assert!(
        late.ends_with("nothing has progressed for 5m00s: the oldest is hasty × one #2, running for 6m00s"),
        "{late}"
    );
}

#[test]
fn a_line_says_how_an_attempt_ended_and_only_as_much_as_is_wanted() {
    let run = midway();
    let told = |event: &Event, detail| lines::line(&run, event, detail);
    let errored = ended("careful/two", 2, Outcome::Errored);
    assert_eq!(
        told(&errored, Detail::Trouble).unwrap(),
        "3/8 errored   careful × two #2 (60.0 s): it went away"
    );
    let passed = ended("careful/one", 1, Outcome::Passed);
    assert_eq!(
        told(&passed, Detail::Endings).unwrap(),
        "3/8 passed    careful × one #1 (60.0 s)"
    );
    assert_eq!(told(&passed, Detail::Trouble), None);
    assert_eq!(
        told(&not_needed("careful/one", 2), Detail::Everything),
        None,
        "an attempt that was never needed"
    );
    let second = started("hasty/one", 1, 2);
    assert_eq!(
        told(&second, Detail::Everything).unwrap(),
        "    started   hasty × one #1, try 2"
    );
    assert_eq!(told(&second, Detail::Endings), None);
    assert_eq!(told(&errored, Detail::Nothing), None);
    let line = "building\u{1b}[2J the image".to_owned();
    assert_eq!(
        told(&Event::Preparing { line }, Detail::Trouble).unwrap(),
        "building the image"
    );
}

#[tokio::test(start_paused = true)]
async fn the_heart_beats_once_a_minute_and_only_for_runs_that_go_on() {
    let progress = Arc::new(Progress {
        manner: Manner::Plain,
        detail: Detail::Endings,
        begun: tokio::time::Instant::now(),
        standings: Mutex::new(vec![midway()]),
        drawing: Mutex::default(),
    });
    let said = Mutex::new(Vec::new());
    let say = |line: &str| said.lock().unwrap().push(line.to_owned());
    let listen = |seconds| tokio::time::timeout(at(seconds), progress.beat(&say));
    assert!(listen(200).await.is_err());
    let minutes: Vec<String> = std::mem::take(&mut *said.lock().unwrap());
    let starts: Vec<&str> = minutes.iter().map(|line| &line[..5]).collect();
    assert_eq!(starts, ["1m00s", "2m00s", "3m00s"]);
    progress.with(|standings, now| standings[0].apply(&run_ended(), now));
    assert!(listen(200).await.is_err());
    assert_eq!(said.lock().unwrap().len(), 0);
}
