//! Whole runs against a scripted engine, in paused time: what a user would see of them.

mod collecting;
mod engine;
mod faults;
mod resuming;
mod scheduling;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::{Job, RecordError, Recorder, run};
use crate::config::settings::Given;
use crate::config::{Config, Source, load};
use crate::model::{
    AttemptDetails, AttemptId, AttemptRecord, CancelReason, ErrorClass, Event, Labels, Outcome, Pair, PairId,
    Produces, Run, Verdict,
};
use crate::plan::{Experience, Request, Select, build};
use crate::redact::Redactor;
use crate::sandbox::Workspace;
use crate::{aggregate, runner};
use engine::{Engine, FAIL, PASS, STARTING, Script};

/// Keeps files in a passing directory, and events in memory.
struct Memory {
    directory: TempDir,
    events: std::sync::Mutex<Vec<Event>>,
}

#[async_trait]
impl Recorder for Memory {
    async fn open_try(&self, attempt: &AttemptId, try_number: u32) -> Result<Utf8PathBuf, RecordError> {
        let root = Utf8Path::from_path(self.directory.path()).unwrap();
        let path = root.join(attempt.path()).join(try_number.to_string());
        fs_err::create_dir_all(&path).unwrap();
        Ok(path)
    }

    async fn close_try(&self, _: &AttemptRecord, _: &AttemptDetails) -> Result<(), RecordError> {
        Ok(())
    }

    async fn record(&self, event: &Event) -> Result<(), RecordError> {
        self.events.lock().unwrap().push(event.clone());
        Ok(())
    }
}

/// A configuration of one command and `more` keys of the top level.
fn config(more: &str) -> Config {
    let text = format!(
        "version: 1\nsuite: {{ name: t, pairs: [] }}\nattempt:\n  command: agent {{eval}}\n  result: result.json\n  timeout: 60s\n  grace: 5s\n{more}\n"
    );
    config_of(&text)
}

fn config_of(text: &str) -> Config {
    let source = Source {
        name: "evalwave.yml",
        bytes: text.as_bytes(),
    };
    load(Some(&source), &Given::default()).unwrap()
}

struct Done {
    run: Run,
    seconds: u64,
    engine: Arc<Engine>,
    events: Vec<Event>,
    memory: Arc<Memory>,
}

impl Done {
    fn outcomes(&self) -> Vec<Vec<Outcome>> {
        self.run
            .pairs
            .iter()
            .map(|pair| pair.records.iter().map(|record| record.outcome).collect())
            .collect()
    }

    /// What the try of an attempt printed, if its log is there under its final name.
    fn output(&self, eval: &str, index: u32, try_number: u32) -> Option<String> {
        let id = AttemptId {
            pair: PairId::new("x", eval).unwrap(),
            index,
        };
        let directory = self.memory.directory.path().join(id.path());
        fs_err::read_to_string(directory.join(try_number.to_string()).join("output.log")).ok()
    }

    fn verdicts(&self) -> Vec<Verdict> {
        aggregate::summarize(&self.run)
            .pairs
            .iter()
            .map(|pair| pair.verdict)
            .collect()
    }
}

/// Runs so many pairs `e1`, `e2`, … to their end.
async fn finish(config: &Config, pairs: usize, engine: Engine, cancel: CancellationToken) -> Done {
    let pairs: Vec<Pair> = (1..=pairs).map(pair).collect();
    finish_planned(config, &pairs, &Experience::default(), engine, cancel).await
}

/// The pair `e1`, `e2`, ….
fn pair(number: usize) -> Pair {
    Pair {
        id: PairId::new("x", &format!("e{number}")).unwrap(),
        labels: Labels::default(),
    }
}

/// Runs pairs of which something is known.
async fn finish_planned(
    config: &Config,
    pairs: &[Pair],
    experience: &Experience,
    engine: Engine,
    cancel: CancellationToken,
) -> Done {
    carry_out(job(config, pairs, experience), engine, cancel).await
}

/// A run that is about to begin.
fn job(config: &Config, pairs: &[Pair], experience: &Experience) -> Job {
    let select = Select::default();
    let plan = build(&Request {
        config,
        pairs,
        select: &select,
        capacity: None,
        experience,
        is_pinned: false,
    })
    .unwrap();
    Job {
        run_id: "run".to_owned(),
        started_at: "2026-01-01T00:00:00Z".parse().unwrap(),
        now: jiff::Timestamp::default,
        earlier: None,
        commit: None,
        plan,
        attempt: config.attempt.clone(),
        env: Vec::new(),
        secrets: Vec::new(),
        redactor: Redactor::default(),
        rules: runner::rules(config),
        price: config.price.clone(),
        retry: config.retry,
        workspace: Workspace {
            root: "/".into(),
            files: [].into(),
        },
    }
}

async fn carry_out(job: Job, engine: Engine, cancel: CancellationToken) -> Done {
    let engine = Arc::new(engine);
    let memory = Arc::new(Memory {
        directory: TempDir::new().unwrap(),
        events: std::sync::Mutex::new(Vec::new()),
    });
    let begun = tokio::time::Instant::now();
    let run = run(
        Arc::new(job),
        Arc::clone(&engine) as _,
        Arc::clone(&memory) as _,
        cancel,
    )
    .await;
    let events = memory.events.lock().unwrap().clone();
    Done {
        run,
        seconds: begun.elapsed().as_secs(),
        engine,
        events,
        memory,
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

#[tokio::test(start_paused = true)]
async fn one_wave_takes_as_long_as_its_slowest_attempt() {
    let engine = Engine::default().script("e2", 2, 1, Script::Result(40, PASS));
    let done = finish(
        &config("runs: 2\nstrategy: parallel"),
        3,
        engine,
        CancellationToken::new(),
    )
    .await;
    assert_eq!(done.seconds, 40);
    assert_eq!(done.engine.most_running.load(Ordering::SeqCst), 6);
    assert_eq!(done.verdicts(), [Verdict::Pass; 3]);
}

#[tokio::test(start_paused = true)]
async fn sequential_attempts_share_a_sandbox_until_the_pair_is_decided() {
    let engine = Engine::default().script("e1", 1, 1, Script::Result(10, FAIL));
    let done = finish(&config("runs: 3"), 1, engine, CancellationToken::new()).await;
    assert_eq!(
        done.outcomes(),
        [[Outcome::Failed, Outcome::Passed, Outcome::Cancelled]]
    );
    assert_eq!(done.run.pairs[0].records[2].reason, Some(CancelReason::Decided));
    assert_eq!(done.engine.started.load(Ordering::SeqCst), 1);
    assert_eq!(done.seconds, 20);
}

#[tokio::test(start_paused = true)]
async fn a_decided_pair_cancels_its_others_when_asked_to() {
    let engine = Engine::default().script("e1", 1, 1, Script::Result(50, PASS));
    let config = config("runs: 2\nstrategy: parallel\non-pass: cancel");
    let done = finish(&config, 1, engine, CancellationToken::new()).await;
    assert_eq!(done.outcomes(), [[Outcome::Cancelled, Outcome::Passed]]);
    assert_eq!(done.seconds, 10);
    assert_eq!(
        done.output("e1", 1, 1).as_deref(),
        Some("e1 1\n"),
        "what it printed until then is kept"
    );
}

#[tokio::test(start_paused = true)]
async fn what_confined_an_attempt_is_kept_with_it() {
    let done = finish(&config(""), 1, Engine::default(), CancellationToken::new()).await;
    let details = done.events.iter().find_map(|event| match event {
        Event::AttemptEnded { details, .. } => Some(details.confinement.clone()),
        _ => None,
    });
    assert_eq!(details, Some(vec!["by its script".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_pair_whose_one_command_fails_has_all_its_attempts() {
    let engine =
        Engine::default()
            .script("e1", 1, 1, Script::Nothing(10))
            .script("e1", 1, 2, Script::NoSandbox);
    let mut config = config("runs: 2\nretry: { tries: 2 }");
    config.attempt.produces = Produces::Pair;
    let done = finish(&config, 1, engine, CancellationToken::new()).await;
    assert_eq!(done.outcomes(), [[Outcome::Errored, Outcome::Errored]]);
    assert_eq!(done.verdicts(), [Verdict::Error]);
    assert_eq!(done.run.pairs[0].held_seconds, 10.0, "of both tries, once");
    let ended = |event: &&Event| matches!(event, Event::PairEnded { .. });
    assert_eq!(done.events.iter().filter(ended).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_keeps_every_sandbox_from_starting_is_said_once_for_each_attempt_and_not_tried_again() {
    let engine = Engine::default().unready("there is no such image");
    let done = finish(&config("runs: 2"), 2, engine, CancellationToken::new()).await;
    assert_eq!(done.outcomes(), [[Outcome::Errored; 2]; 2]);
    let records = done.run.pairs.iter().flat_map(|pair| &pair.records);
    for error in records.map(|record| record.error.as_ref().unwrap()) {
        assert_eq!(
            (error.class, error.message.as_str()),
            (ErrorClass::Provision, "there is no such image")
        );
    }
    assert_eq!(done.engine.started.load(Ordering::SeqCst), 0);
    let said = |event: &Event| matches!(event, Event::Preparing { line } if line == "looking");
    assert!(done.events.iter().any(said));
}

#[tokio::test(start_paused = true)]
async fn what_an_engine_says_is_told_without_the_secrets_that_it_was_given() {
    let secret = "s3cr3t-t0k3n";
    let mut engine = Engine::default();
    engine.undeletable = Some("no route to it with s3cr3t-t0k3n");
    engine.note = Some("cold boot: s3cr3t-t0k3n was refused");
    let unready = Engine::default().unready("s3cr3t-t0k3n is not known there");
    for (engine, said) in [
        (engine, "no route to it with ***"),
        (unready, "*** is not known there"),
    ] {
        let mut job = job(&config(""), &[pair(1)], &Experience::default());
        job.redactor = Redactor::new([secret]);
        let done = carry_out(job, engine, CancellationToken::new()).await;
        let told = format!("{:?} {:?}", done.run, done.events);
        assert!(told.contains(said) && !told.contains(secret), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn as_many_sandboxes_start_at_once_as_the_engine_takes_and_the_others_wait() {
    let mut engine = Engine::default();
    engine.takes = Duration::from_secs(1);
    let config = config("runs: 2\nstrategy: parallel");
    let done = finish(&config, 100, engine, CancellationToken::new()).await;
    assert_eq!(done.engine.most_starting.load(Ordering::SeqCst), STARTING);
    assert_eq!(done.engine.started.load(Ordering::SeqCst), 200);
    assert!(done.verdicts().iter().all(|verdict| *verdict == Verdict::Pass));
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_that_was_named_and_never_came_is_reaped_at_the_end() {
    let engine = Engine::default().script("e1", 1, 1, Script::NoSandbox);
    let done = finish(&config(""), 1, engine, CancellationToken::new()).await;
    assert_eq!(done.outcomes(), [[Outcome::Passed]]);
    assert_eq!(done.engine.reaped.load(Ordering::SeqCst), 1);
    let mut open = std::collections::BTreeSet::new();
    for event in &done.events {
        match event {
            Event::SandboxNamed { name, .. } => assert!(open.insert(name.clone())),
            Event::SandboxGone { name } => assert!(open.remove(name)),
            _ => {}
        }
    }
    assert!(open.is_empty(), "each of them is told to be gone");
}

#[tokio::test(start_paused = true)]
async fn an_errored_try_gets_a_fresh_sandbox_and_its_failures_are_told() {
    let engine =
        Engine::default()
            .script("e1", 1, 1, Script::NoSandbox)
            .script("e1", 1, 2, Script::Nothing(10));
    let done = finish(&config(""), 1, engine, CancellationToken::new()).await;
    assert_eq!(done.outcomes(), [[Outcome::Passed]]);
    assert_eq!(done.run.pairs[0].records[0].tries, 3);
    let failures: Vec<ErrorClass> = done
        .events
        .iter()
        .filter_map(|event| match event {
            Event::TryFailed { error, .. } => Some(error.class),
            _ => None,
        })
        .collect();
    assert_eq!(failures, [ErrorClass::Provision, ErrorClass::NoResult]);
}

#[tokio::test(start_paused = true)]
async fn a_result_lost_on_the_way_is_fetched_again_without_running_the_agent_again() {
    let engine = Engine::default().script("e1", 1, 1, Script::LostDownloads(3, PASS));
    let done = finish(&config(""), 1, engine, CancellationToken::new()).await;
    assert_eq!(done.outcomes(), [[Outcome::Passed]]);
    assert_eq!(done.run.pairs[0].records[0].tries, 1);
    // Ten seconds of the agent's, and an outage that is waited out longer and longer.
    assert_eq!(done.seconds, 10 + 1 + 3 + 9);
}

#[tokio::test(start_paused = true)]
async fn a_command_past_its_limit_is_killed_and_timed_out() {
    let engine = Engine::default().script("e1", 1, 1, Script::Result(1000, PASS));
    let done = finish(&config(""), 1, engine, CancellationToken::new()).await;
    assert_eq!(done.outcomes(), [[Outcome::TimedOut]]);
    assert_eq!(done.seconds, 65);
}

#[tokio::test(start_paused = true)]
async fn a_run_in_which_every_first_try_dies_alike_is_stopped() {
    let mut engine = Engine::default();
    for pair in 1..=30 {
        engine = engine.script(&format!("e{pair}"), 1, 1, Script::NoSandbox);
    }
    let done = finish(&config("concurrency: 10"), 30, engine, CancellationToken::new()).await;
    assert_eq!(
        done.verdicts()
            .iter()
            .filter(|verdict| **verdict == Verdict::Pass)
            .count(),
        0
    );
    assert!(
        done.run
            .notices
            .iter()
            .any(|notice| notice.contains("the first 10 tries")),
        "{:?}",
        done.run.notices
    );
    let cancelled = done
        .outcomes()
        .iter()
        .flatten()
        .filter(|outcome| **outcome == Outcome::Cancelled)
        .count();
    assert!(cancelled >= 20, "{cancelled}");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_ends_at_once_and_accounts_for_every_attempt() {
    let cancel = CancellationToken::new();
    let later = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(15)).await;
        later.cancel();
    });
    let done = finish(&config("runs: 2\nconcurrency: 2"), 4, Engine::default(), cancel).await;
    assert_eq!(done.seconds, 15);
    assert!(done.run.cancelled);
    let records: Vec<usize> = done.run.pairs.iter().map(|pair| pair.records.len()).collect();
    assert_eq!(records, [2, 2, 2, 2]);
    assert_eq!(
        done.verdicts(),
        [Verdict::Pass, Verdict::Pass, Verdict::NotRun, Verdict::NotRun]
    );
}

#[tokio::test(start_paused = true)]
async fn the_run_heard_live_is_the_run_read_back_from_its_events() {
    let engine = Engine::default().script("e1", 1, 1, Script::Nothing(10)).script(
        "e2",
        1,
        1,
        Script::Result(10, FAIL),
    );
    let done = finish(
        &config("runs: 2\nstrategy: parallel"),
        3,
        engine,
        CancellationToken::new(),
    )
    .await;
    let again = replay(&done.events);
    assert_eq!(aggregate::summarize(&again), aggregate::summarize(&done.run));
}
