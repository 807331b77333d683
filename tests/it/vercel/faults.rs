//! Runs while everything goes wrong that can: throttling, lost answers, connections that drop.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use evalwave::model::ErrorClass;
use evalwave::sandbox::{Exit, SandboxError};
use tempfile::NamedTempFile;
use tokio::sync::mpsc;

use super::{Bench, texts};
use crate::support::engine_of_vercel::{backend, config};
use crate::support::sandbox::{run as exec, sh, shell, start};
use crate::support::stderr;
use crate::support::vercel::{Fault, Light, LightRule, Limits, Machines, Route, Rule, TOKEN, Times};

const SUITE: &str = "SANDBOX
  source: upload
  limits: FAST
  warm: { files: [] }
suite: { name: storm, pairs: [PAIRS] }
runs: 4
retry: { tries: 3, budget: 100% }
attempt:
  setup: echo set up
  boot: echo booted
  command: sh attempt.sh
  result: results/{eval}.json
  keep: { path: out }
";

/// Each start of it leaves a line where all sandboxes of the fake, and this test, can see it.
const ATTEMPT: &str = r#"
echo "$EVALWAVE_EVAL $EVALWAVE_ATTEMPT" >>"$STARTS"
echo "first line of $EVALWAVE_EVAL $EVALWAVE_ATTEMPT"; sleep 0.3; echo last line
mkdir -p results out; echo kept >out/file
echo '{"passed": true}' >"results/$EVALWAVE_EVAL.json"
"#;

/// The suite, and where its agents tell that they were started.
struct Agents {
    bench: Bench,
    starts: NamedTempFile,
}

/// Runs the suite under these faults. Returns how often each attempt's agent was started.
fn run(faults: Vec<Rule>, pairs: usize) -> Option<(Bench, BTreeMap<String, usize>)> {
    let agents = agents(faults, pairs)?;
    let started = agents.run();
    Some((agents.bench, started))
}

fn agents(faults: Vec<Rule>, pairs: usize) -> Option<Agents> {
    let pairs: Vec<String> = (0..pairs)
        .map(|number| format!("{{ experiment: agent, eval: e{number} }}"))
        .collect();
    let config = SUITE.replace("PAIRS", &pairs.join(", "));
    let starts = NamedTempFile::new_in("/dev/shm").unwrap();
    let config = format!("{config}  env: {{ STARTS: {} }}\n", starts.path().display());
    let bench = Bench::real(faults, &config)?;
    bench.suite.write("attempt.sh", ATTEMPT);
    Some(Agents { bench, starts })
}

impl Agents {
    fn run(&self) -> BTreeMap<String, usize> {
        let done = self.bench.ev("run -o out");
        assert!(!stderr(&done).contains(TOKEN));
        done.success();
        let mut started = BTreeMap::new();
        for line in fs_err::read_to_string(self.starts.path()).unwrap().lines() {
            *started.entry(line.to_owned()).or_insert(0) += 1;
        }
        started
    }
}

#[test]
fn an_attempt_with_every_phase_takes_at_most_twelve_requests() {
    let Some((bench, started)) = run(Vec::new(), 1) else {
        return;
    };
    assert_eq!(started.len(), 4);
    let state = bench.vercel.state();
    // One looks for the snapshot.
    assert!(state.counts.all() <= 4 * 12 + 1, "{:#}", state.counts.json());
    assert_eq!(
        bench.suite.read("out/attempts/agent__e0/1/output.log"),
        "set up\nbooted\nfirst line of e0 1\nlast line\n"
    );
}

#[test]
fn in_a_storm_every_attempt_is_graded_once_its_agent_run_once_and_nothing_is_left() {
    let Some(agents) = agents(Vec::new(), 6) else {
        return;
    };
    agents.bench.ev("snapshot build").success();
    let mut storm = Rule::storm(0.05);
    // However few creations there are, snapshots are among what fails.
    for rule in &mut storm {
        if rule.fault == Fault::SnapshotGone {
            rule.at = vec![3, 9, 17];
        }
    }
    agents.bench.vercel.state().faults.replace(storm);
    let started = agents.run();
    let bench = agents.bench;
    let summary = bench.summary();
    assert_eq!(summary["totals"]["attempts"]["graded"], 24, "{summary:#}");
    assert_eq!(summary["totals"]["attempts"]["passed"], 24);
    assert_eq!(started.len(), 24);
    let again: Vec<_> = started.iter().filter(|(_, times)| **times > 1).collect();
    assert!(again.is_empty(), "no agent is run again: {again:?}");
    let ended = bench.suite.read("out/journal.jsonl");
    let ended = ended
        .lines()
        .filter(|line| line.contains("attempt_ended"))
        .count();
    assert_eq!(ended, 24, "none is graded twice");
    assert_eq!(bench.left(), Vec::<String>::new());
    let shown = bench.vercel.state().faults.shown.clone();
    let kinds: Vec<&str> = shown.keys().map(String::as_str).collect();
    assert_eq!(
        kinds,
        [
            "BadGateway",
            "EarlyEof",
            "LostPoll",
            "Reset",
            "SnapshotGone",
            "TooMany"
        ]
    );
    for (path, text) in texts(&bench.suite.path().join("out")) {
        assert!(!text.contains(TOKEN), "{path}");
    }
}

#[test]
fn output_is_whole_however_often_its_stream_breaks_off() {
    let faults = [
        Fault::EarlyEof,
        Fault::LostPoll(50),
        Fault::ErrorLine,
        Fault::BadGateway,
        Fault::Reset,
    ];
    for fault in faults {
        let what = format!("{fault:?}");
        let Some((bench, started)) = run(vec![Rule::first(Route::Logs, 3, fault)], 1) else {
            return;
        };
        assert!(started.values().all(|times| *times == 1), "{what}: {started:?}");
        for attempt in 1..=4 {
            let log = bench
                .suite
                .read(&format!("out/attempts/agent__e0/{attempt}/output.log"));
            let expected = format!("set up\nbooted\nfirst line of e0 {attempt}\nlast line\n");
            assert_eq!(log, expected, "{what}");
        }
    }
}

#[test]
fn an_answer_that_is_lost_starts_neither_a_second_machine_nor_a_second_agent() {
    for route in [
        Route::Create,
        Route::Run,
        Route::RunAndWait,
        Route::Write,
        Route::Delete,
    ] {
        for fault in [Fault::BadGateway, Fault::Lost] {
            let what = format!("{route:?} {fault:?}");
            let Some((bench, started)) = run(vec![Rule::first(route, 2, fault)], 1) else {
                return;
            };
            assert_eq!(started.len(), 4, "{what}");
            assert!(started.values().all(|times| *times == 1), "{what}: {started:?}");
            assert_eq!(bench.summary()["totals"]["attempts"]["retried"], 0, "{what}");
            assert_eq!(bench.sandboxes(), 0, "{what}");
            assert_eq!(bench.vercel.state().counts.peak_live(), 4, "{what}");
        }
    }
}

#[test]
fn a_download_that_fails_is_tried_again_and_its_agent_is_not() {
    let broken = Rule {
        on: vec![Route::RunAndWait],
        fault: Fault::EarlyEof,
        at: Vec::new(),
        probability: 0.4,
    };
    let Some((bench, started)) = run(vec![broken], 3) else {
        return;
    };
    assert_eq!(bench.summary()["totals"]["attempts"]["passed"], 12);
    assert!(started.values().all(|times| *times == 1), "{started:?}");
}

#[test]
fn a_machine_that_is_not_there_while_it_starts_is_lost_and_not_refused() {
    let not_found = || Fault::Refused(404, "not_found".to_owned());
    let cases = [
        vec![Rule::first(Route::GetSession, 1, not_found())],
        vec![
            Rule::first(Route::Create, 1, Fault::Lost),
            Rule::first(Route::Get, 1, not_found()),
        ],
    ];
    for faults in cases {
        let what = format!("{faults:?}");
        let Some(agents) = agents(faults, 1) else { return };
        agents.bench.vercel.state().take(Times {
            create_ms: 50,
            answers_pending: true,
            ..Times::default()
        });
        agents.run();
        let summary = agents.bench.summary();
        assert_eq!(summary["totals"]["attempts"]["passed"], 4, "{what}");
        assert_eq!(summary["totals"]["attempts"]["retried"], 1, "{what}");
        assert_eq!(agents.bench.sandboxes(), 0, "{what}");
    }
}

#[tokio::test]
async fn whoever_follows_a_command_and_is_throttled_waits_as_told_and_asks_nothing_else() {
    let throttled = Rule::first(Route::Logs, 1, Fault::TooMany(1));
    let bench = Bench::light(vec![throttled], "SANDBOX\n");
    let engine = backend(&config(&bench.vercel.base_url()));
    let mut sandbox = start(&engine, "throttled").await;
    let begun = Instant::now();
    sh(&mut *sandbox, "agent").await;
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(bench.vercel.state().counts.of(Route::GetCommand), 0);
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn output_is_read_once_where_only_the_answer_about_its_command_is_late() {
    let late = Rule::first(Route::Wait, 1, Fault::Slow(1_200));
    let bench = Bench::light(vec![late], "SANDBOX\n");
    let engine = backend(&config(&bench.vercel.base_url()));
    let mut sandbox = start(&engine, "late").await;
    sh(&mut *sandbox, "agent takes-0.05s").await;
    assert_eq!(bench.vercel.state().counts.of(Route::Wait), 1);
    assert_eq!(bench.vercel.state().counts.of(Route::Logs), 1);
    sandbox.stop().await.unwrap();
}

fn always(route: Route, fault: Fault) -> Rule {
    Rule {
        on: vec![route],
        fault,
        at: Vec::new(),
        probability: 1.0,
    }
}

#[tokio::test]
async fn output_that_is_not_to_be_had_takes_no_command_its_exit() {
    for refused in [400, 404, 413] {
        let refused = always(Route::Logs, Fault::Refused(refused, "no".to_owned()));
        let bench = Bench::light(vec![refused], "SANDBOX\n");
        let engine = backend(&config(&bench.vercel.base_url()));
        let mut sandbox = start(&engine, "unread").await;
        let (exit, said) = exec(&mut *sandbox, &shell("agent takes-0.05s")).await;
        assert_eq!(exit.unwrap(), Exit::Code(0));
        assert!(
            said.contains("[evalwave: the rest of the output is not to be had: "),
            "{said}"
        );
        assert_eq!(bench.vercel.state().counts.of(Route::Run), 1);
        sandbox.stop().await.unwrap();
    }
}

/// What a command of so many seconds came to within 600 ms under these faults, and what it said.
async fn within_limit(faults: Vec<Rule>, seconds: f64) -> (Result<Option<Exit>, SandboxError>, String) {
    let agent = LightRule {
        contains: "agent".to_owned(),
        seconds,
        exit: 0,
        stdout: "all of it\n".to_owned(),
    };
    let light = Light {
        scale: 1.0,
        rules: vec![agent],
        ..Light::default()
    };
    let bench = Bench::with(Machines::light(light), Limits::none(), faults, "SANDBOX\n");
    let engine = backend(&config(&bench.vercel.base_url()));
    let mut sandbox = start(&engine, "limited").await;
    let (output, mut said) = mpsc::channel(100);
    let limit = Duration::from_millis(600);
    let exit = sandbox.exec_within(limit, &shell("agent"), &output).await;
    sandbox.stop().await.unwrap();
    drop(output);
    let mut text = Vec::new();
    while let Some(chunk) = said.recv().await {
        text.extend(chunk);
    }
    (exit, String::from_utf8(text).unwrap())
}

#[tokio::test]
async fn the_time_of_a_command_is_its_own_and_not_the_services() {
    let late = |route, time| Rule::first(route, 1, Fault::Slow(time));
    let in_time = [
        Vec::new(),
        // Its start waits, or is answered late.
        vec![Rule::first(Route::Run, 1, Fault::TooMany(1))],
        vec![late(Route::Run, 900)],
        // The news of its end is late; or first none can be had, and then it is late.
        vec![late(Route::Logs, 2_000)],
        vec![
            late(Route::Logs, 2_000),
            Rule::first(Route::GetCommand, 1, Fault::Reset),
        ],
    ];
    for faults in in_time {
        let what = format!("{faults:?}");
        let (exit, said) = within_limit(faults, 0.05).await;
        assert_eq!(exit.unwrap(), Some(Exit::Code(0)), "{what}");
        assert_eq!(said, "all of it\n", "{what}");
    }
    let too_long = [
        Vec::new(),
        vec![late(Route::Logs, 2_000)],
        vec![
            late(Route::Logs, 2_000),
            Rule::first(Route::GetCommand, 1, Fault::Reset),
        ],
        vec![Rule::first(Route::Run, 1, Fault::Lost)],
    ];
    for faults in too_long {
        let what = format!("{faults:?}");
        assert_eq!(within_limit(faults, 5.0).await.0.unwrap(), None, "{what}");
    }
    let unknown = always(Route::GetCommand, Fault::Refused(404, "not_found".to_owned()));
    let (exit, _) = within_limit(vec![late(Route::Logs, 2_000), unknown], 0.05).await;
    exit.unwrap_err();
}

#[tokio::test]
async fn a_command_that_cannot_be_started_is_no_exit_code_of_it() {
    let Some(bench) = Bench::real(Vec::new(), "SANDBOX\n") else {
        return;
    };
    let engine = backend(&config(&bench.vercel.base_url()));
    let mut sandbox = start(&engine, "unstarted").await;
    for code in [97, 98] {
        let (exit, _) = exec(&mut *sandbox, &shell(&format!("exit {code}"))).await;
        assert_eq!(exit.unwrap(), Exit::Code(code));
    }
    sh(&mut *sandbox, "rm -rf /tmp/.evalwave; touch /tmp/.evalwave").await;
    let (exit, _) = exec(&mut *sandbox, &shell("true")).await;
    let error = exit.unwrap_err();
    assert_eq!(error.to_string(), "cannot start the command in the sandbox");
    assert_eq!(error.class, None);
    sandbox.stop().await.unwrap();
}

/// Mounts small disks where commands write.
const SMALL_DISKS: &str =
    "mount -t tmpfs -o size=1m none /tmp && mount -t tmpfs -o size=1m none /vercel/sandbox";

#[test]
fn on_a_full_disk_a_pass_is_a_pass_and_anything_else_is_no_failure_of_the_agent() {
    let config = format!(
        "SANDBOX
  source: upload
  limits: FAST
suite: {{ name: full, pairs: [{{ experiment: a, eval: 'true' }}, {{ experiment: a, eval: 'false' }}] }}
retry: {{ tries: 1 }}
attempt:
  boot: cp attempt.sh ~ && {SMALL_DISKS}
  command: sh ~/attempt.sh
  result: result.json
"
    );
    let Some(bench) = Bench::real(Vec::new(), &config) else {
        return;
    };
    let attempt =
        r#"echo "{\"passed\": $EVALWAVE_EVAL}" >result.json; cat /dev/zero >/tmp/fill; cat /dev/zero >fill"#;
    bench.suite.write("attempt.sh", attempt);
    bench.ev("run -o out");
    let pairs = bench.summary()["pairs"].clone();
    let attempts: Vec<_> = pairs
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| &pair["attempts"][0])
        .collect();
    let of = |eval: &str| {
        attempts
            .iter()
            .find(|attempt| attempt["path"].as_str().unwrap().contains(eval))
            .unwrap()
    };
    assert_eq!(of("true")["outcome"], "passed", "{pairs:#}");
    assert_eq!(of("false")["outcome"], "errored", "{pairs:#}");
    assert_eq!(of("false")["error"]["class"], "out_of_disk");
}

#[tokio::test]
async fn what_cannot_be_started_on_a_full_disk_is_out_of_disk() {
    let Some(bench) = Bench::real(Vec::new(), "SANDBOX\n") else {
        return;
    };
    let engine = backend(&config(&bench.vercel.base_url()));
    let mut sandbox = start(&engine, "full").await;
    sh(&mut *sandbox, "mount -t tmpfs -o size=1m,nr_inodes=12 none /tmp").await;
    let fill = "cat /dev/zero >/tmp/fill; while touch /tmp/$((file += 1)); do :; done; true";
    sh(&mut *sandbox, fill).await;
    let (exit, _) = exec(&mut *sandbox, &shell("true")).await;
    let error = exit.unwrap_err();
    assert_eq!(error.class, Some(ErrorClass::OutOfDisk));
    assert_eq!(
        error.to_string(),
        "cannot start the command in the sandbox: no space left on the disk of the sandbox (0 KB)"
    );
    sandbox.stop().await.unwrap();
}
