//! Warm boots: a snapshot is made, found, used, and done without where it fails.

use super::{Bench, interrupt};
use crate::action::{Workflow, pull_request};
use crate::support::github::State;
use crate::support::vercel::{Fault, Limits, PROJECT, Route, Rule, Status, TEAM, TOKEN, Times};
use crate::support::{stderr, stdout};

const SUITE: &str = "SANDBOX
  source: upload
  warm: { files: [deps.lock] }
  limits: FAST
suite: { name: warm, pairs: [{ experiment: a, eval: one }, { experiment: a, eval: two }] }
runs: 3
attempt:
  setup: mkdir -p deps && cp deps.lock deps/installed && echo installed
  command: cat deps/installed code.txt
  format: exit-code
";

fn bench(faults: Vec<Rule>) -> Option<Bench> {
    let bench = Bench::real(faults, SUITE)?;
    bench.suite.write("deps.lock", "v1\n");
    bench.suite.write("code.txt", "first\n");
    bench.suite.write("gone-later.txt", "x\n");
    Some(bench)
}

/// The same where nothing has to run.
fn light(faults: Vec<Rule>, config: &str) -> Bench {
    let bench = Bench::light(faults, config);
    bench.suite.write("deps.lock", "v1\n");
    bench
}

/// With every question of this route.
fn always(route: Route, status: u16, code: &str) -> Rule {
    Rule {
        on: vec![route],
        fault: Fault::Refused(status, code.to_owned()),
        at: Vec::new(),
        probability: 1.0,
    }
}

fn boots(bench: &Bench) -> Vec<String> {
    let summary = bench.summary();
    let pairs = summary["pairs"].as_array().unwrap().clone();
    let attempts = pairs.iter().flat_map(|pair| pair["attempts"].as_array().unwrap());
    attempts
        .map(|attempt| attempt["boot"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_snapshot_holds_setup_and_nothing_of_the_commit() {
    let Some(bench) = bench(Vec::new()) else { return };
    let none = bench.ev("snapshot check").code(3);
    assert!(
        stderr(&none).contains("there is no snapshot for key"),
        "{}",
        stderr(&none)
    );
    let built = bench.ev("snapshot build").success();
    let id = stdout(&built);
    assert!(
        stderr(&built).contains("\ninstalled\nmade: snapshot"),
        "{}",
        stderr(&built)
    );
    // Found again, by anybody, without a state of our own; and not made twice.
    assert_eq!(stdout(&bench.ev("snapshot build").success()), id);
    assert_eq!(stdout(&bench.ev("snapshot check").success()), id);
    assert_eq!(bench.vercel.state().counts.of(Route::Snapshot), 1);

    bench.suite.write("code.txt", "second\n");
    fs_err::remove_file(bench.suite.path().join("gone-later.txt")).unwrap();
    bench.suite.write("list.sh", "ls");
    let done = bench.ev("run -o out").success();
    assert!(stdout(&done).contains("6/6 warm"), "{}", stdout(&done));
    assert!(bench.suite.read("out/report.md").contains("6/6 warm"));
    assert_eq!(boots(&bench), ["warm"; 6]);
    // The files are this commit's; setup was not run again.
    assert_eq!(
        bench.suite.read("out/attempts/a__one/1/output.log"),
        "v1\nsecond\n"
    );
    let attempt = bench.suite.read("out/attempts/a__one/1/attempt.json");
    assert!(attempt.contains(&format!("warm boot: from snapshot `{}`", id.trim())));

    // Another lockfile, another key.
    bench.suite.write("deps.lock", "v2\n");
    bench.ev("snapshot check").code(3);
    bench.suite.write("deps.lock", "v1\n");
    bench.ev("snapshot delete").success();
    bench.ev("snapshot check").code(3);
    assert_eq!(bench.sandboxes(), 0);
}

#[test]
fn a_snapshot_that_is_gone_before_the_wave_means_a_cold_run_that_says_why() {
    let Some(bench) = bench(Vec::new()) else { return };
    let done = bench
        .command("run -o out")
        .env("EVAL_SNAPSHOT_ID", "snap_nowhere")
        .assert()
        .success();
    assert_eq!(boots(&bench), ["cold"; 6]);
    assert!(
        stdout(&done).contains("snapshot `snap_nowhere` is not there"),
        "{}",
        stdout(&done)
    );
    assert_eq!(
        bench.suite.read("out/attempts/a__one/1/output.log"),
        "installed\nv1\nfirst\n"
    );
    let attempt = bench.suite.read("out/attempts/a__two/3/attempt.json");
    assert!(
        attempt.contains("cold boot: snapshot `snap_nowhere` is not there"),
        "{attempt}"
    );
}

#[test]
fn a_snapshot_that_expires_before_an_attempt_can_end_is_not_started_from() {
    let Some(bench) = bench(Vec::new()) else { return };
    let id = stdout(&bench.ev("snapshot build").success());
    let soon = jiff::Timestamp::now().as_millisecond() as u64 + 60_000;
    let expire = |at: u64| bench.vercel.state().snapshots.get_mut(id.trim()).unwrap().expires = Some(at);
    expire(soon);
    let done = bench.ev("run -o out").success();
    assert_eq!(boots(&bench), ["cold"; 6]);
    let why = format!("snapshot `{}` expires before an attempt can end", id.trim());
    assert!(stdout(&done).contains(&why), "{}", stdout(&done));
    assert_eq!(bench.vercel.state().counts.with(Route::Create, 410), 0);
    // A build makes another one, from which a run starts.
    let again = stdout(&bench.ev("snapshot build").success());
    assert_ne!(again, id);
    let done = bench.ev("run -o out --overwrite").success();
    assert!(stdout(&done).contains("6/6 warm"), "{}", stdout(&done));
}

#[test]
fn a_snapshot_that_the_service_will_not_look_for_means_a_cold_run_unless_nothing_is_to_be_had_at_all() {
    let bench = light(Vec::new(), SUITE);
    for (route, named) in [(Route::ListSnapshots, ""), (Route::GetSnapshot, "snap_1")] {
        for status in [400, 409, 451] {
            let refused = always(route, status, "not_now");
            bench.vercel.state().faults.replace(vec![refused]);
            let ev = |arguments: &str| bench.command(arguments).env("EVAL_SNAPSHOT_ID", named).assert();
            let check = ev("snapshot check").code(3);
            let why = stderr(&check);
            assert!(why.starts_with("sandboxes start from nothing: "), "{why}");
            assert!(why.contains(&format!("the answer is {status} not_now")), "{why}");
            ev("run -o out --overwrite").success();
            assert_eq!(boots(&bench), ["cold"; 6], "{status}");
        }
    }
    for status in [401, 402, 403] {
        let refused = always(Route::ListSnapshots, status, "not_you");
        bench.vercel.state().faults.replace(vec![refused]);
        let before = bench.vercel.state().counts.of(Route::Create);
        let done = bench.ev("run -o out --overwrite").code(4);
        assert!(stdout(&done).contains("not_you"), "{}", stdout(&done));
        assert_eq!(bench.vercel.state().counts.of(Route::Create), before, "{status}");
    }
}

#[test]
fn a_run_that_asks_for_no_snapshot_is_not_said_to_start_from_the_one_that_is_there() {
    let config = SUITE.replace("  warm: { files: [deps.lock] }\n", "");
    let bench = light(Vec::new(), &config);
    let id = stdout(&bench.ev("snapshot build").success());
    let check = bench.ev("snapshot check").code(3);
    assert_eq!(
        stderr(&check),
        "sandboxes start from nothing: neither `sandbox.warm` nor `sandbox.snapshot-id` asks for a snapshot\n"
    );
    let mut named = bench.command("snapshot check");
    named.env("EVAL_SNAPSHOT_ID", id.trim()).assert().success();
}

#[test]
fn a_snapshot_that_fails_in_the_wave_is_done_without_and_after_three_failures_not_tried_again() {
    let expired = Rule {
        on: vec![Route::Create],
        fault: Fault::SnapshotGone,
        at: Vec::new(),
        probability: 1.0,
    };
    let Some(bench) = bench(Vec::new()) else { return };
    let id = stdout(&bench.ev("snapshot build").success());
    bench.vercel.state().faults.replace(vec![expired]);
    bench.ev("run -o out --concurrency 1").success();
    assert_eq!(boots(&bench), ["cold"; 6]);
    let refused = bench.vercel.state().counts.with(Route::Create, 410);
    assert_eq!(refused, 3);
    let attempt = |path: &str| bench.suite.read(&format!("out/attempts/{path}/attempt.json"));
    assert!(attempt("a__one/1").contains(&format!("cold boot: snapshot `{}` cannot be used", id.trim())));
    assert!(attempt("a__two/3").contains("3 sandboxes could not start from snapshot"));
}

#[test]
fn a_warm_machine_that_is_lost_while_it_starts_is_made_anew_under_another_name() {
    let Some(bench) = bench(Vec::new()) else { return };
    bench.ev("snapshot build").success();
    {
        let mut state = bench.vercel.state();
        state.take(Times {
            create_ms: 50,
            answers_pending: true,
            ..Times::default()
        });
        let stopped = Fault::Refused(410, "sandbox_stopped".to_owned());
        state
            .faults
            .replace(vec![Rule::first(Route::GetSession, 1, stopped)]);
    }
    bench.ev("run -o out").success();
    assert_eq!(boots(&bench), ["warm"; 6]);
    assert_eq!(bench.summary()["totals"]["attempts"]["retried"], 1);
    assert_eq!(bench.vercel.state().counts.with(Route::Create, 400), 0);
    assert_eq!(bench.left(), Vec::<String>::new());
}

#[test]
fn a_build_needs_no_key_of_the_network_policy() {
    let policy = "network-policy: { allow: { api.example: [{ transform: [{ headers: { x-key: '${PROVIDER_KEY}' } }] }] } }";
    let config = SUITE.replace("  limits", &format!("  {policy}\n  limits"));
    let Some(bench) = Bench::real(Vec::new(), &config) else {
        return;
    };
    bench.suite.write("deps.lock", "v1\n");
    bench.ev("snapshot build").success();
    let plan = bench.ev("plan").code(2);
    assert!(stderr(&plan).contains("`PROVIDER_KEY`"), "{}", stderr(&plan));
}

#[test]
fn a_lockfile_that_is_not_there_keys_no_snapshot() {
    let config = SUITE.replace("[deps.lock]", "[deps.lock, '*.lok']");
    let Some(bench) = Bench::real(Vec::new(), &config) else {
        return;
    };
    bench.suite.write("deps.lock", "v1\n");
    bench.suite.write("code.txt", "first\n");
    let why = "`sandbox.warm.files` names `*.lok`, and no file of `attempt.upload` is that";
    let build = bench.ev("snapshot build").code(3);
    assert!(stderr(&build).contains(why), "{}", stderr(&build));
    assert_eq!(bench.sandboxes(), 0);
    let cold = bench.ev("run -o out").success();
    let expected = format!("every sandbox is set up from nothing: {why}");
    assert!(stdout(&cold).contains(&expected), "{}", stdout(&cold));
}

#[test]
fn two_builds_of_one_key_make_one_snapshot() {
    let Some(bench) = bench(Vec::new()) else { return };
    let ids: Vec<String> = std::thread::scope(|scope| {
        let builds: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| stdout(&bench.ev("snapshot build").success())))
            .collect();
        builds.into_iter().map(|build| build.join().unwrap()).collect()
    });
    assert_eq!(ids[0], ids[1]);
    assert_eq!(bench.vercel.state().counts.with(Route::Snapshot, 200), 1);
}

#[test]
fn a_setup_that_fails_makes_no_snapshot_and_is_not_in_the_way_of_the_next_build() {
    let Some(bench) = bench(Vec::new()) else { return };
    let text = bench.suite.read("evalwave.yml");
    bench
        .suite
        .write("evalwave.yml", &text.replace("echo installed", "false"));
    let done = bench.ev("snapshot build").code(3);
    assert!(
        stderr(&done).contains("`attempt.setup` ended with exit code 1"),
        "{}",
        stderr(&done)
    );
    assert_eq!(bench.sandboxes(), 0);
}

#[test]
fn a_build_whose_snapshot_fails_asks_again_and_takes_no_older_one_for_it() {
    let bench = light(Vec::new(), SUITE);
    let mut last = stdout(&bench.ev("snapshot build").success());
    let refused = Fault::Refused(500, "internal_server_error".to_owned());
    for (fault, asked) in [(refused, 2), (Fault::Lost, 1), (Fault::BadGateway, 1)] {
        // It can be started from, but a build makes another.
        let soon = jiff::Timestamp::now().as_millisecond() as u64 + 3_600_000;
        let mut state = bench.vercel.state();
        state.snapshots.get_mut(last.trim()).unwrap().expires = Some(soon);
        state
            .faults
            .replace(vec![Rule::first(Route::Snapshot, 1, fault.clone())]);
        let before = state.counts.of(Route::Snapshot);
        drop(state);
        let built = bench.ev("snapshot build").success();
        assert!(stderr(&built).contains("made: snapshot"), "{}", stderr(&built));
        let id = stdout(&built);
        assert_ne!(id, last, "{fault:?}");
        let state = bench.vercel.state();
        assert_eq!(state.counts.of(Route::Snapshot) - before, asked, "{fault:?}");
        assert_eq!(state.snapshots.keys().last().unwrap(), id.trim(), "{fault:?}");
        drop(state);
        last = id;
    }
    assert_eq!(bench.vercel.state().counts.live, 0);
}

#[test]
fn a_builder_that_fails_while_it_starts_is_deleted() {
    let bench = light(Vec::new(), SUITE);
    bench.vercel.state().take(Times {
        create_ms: 3_600_000,
        answers_pending: true,
        ..Times::default()
    });
    let mut build = bench.start("snapshot build");
    bench.wait_for(&mut build, |state| state.counts.with(Route::GetSession, 200) > 0);
    let mut state = bench.vercel.state();
    let session = state.sessions.keys().next().unwrap().clone();
    state.end(&session, Status::Failed);
    drop(state);
    assert_eq!(build.wait().unwrap().code(), Some(3));
    assert_eq!(bench.sandboxes(), 0);
}

#[test]
fn a_builder_whose_creation_was_not_answered_is_found_again_or_deleted() {
    let lost = Rule::first(Route::Create, 1, Fault::Lost);
    let bench = light(vec![lost.clone()], SUITE);
    bench.ev("snapshot build").success();
    assert_eq!(bench.vercel.state().counts.peak_live(), 1);
    let refused = Rule {
        at: vec![2],
        ..Rule::first(Route::Create, 0, Fault::Refused(402, "pay_first".to_owned()))
    };
    let bench = light(vec![lost, refused], SUITE);
    let done = bench.ev("snapshot build").code(3);
    assert!(stderr(&done).contains("pay_first"), "{}", stderr(&done));
    assert_eq!(bench.vercel.state().counts.peak_live(), 1);
    assert_eq!(bench.sandboxes(), 0);
}

#[test]
fn a_builder_that_never_comes_to_run_is_given_up_and_deleted() {
    let bench = light(Vec::new(), &SUITE.replace("  limits", "  timeout: 1s\n  limits"));
    bench.vercel.state().take(Times {
        create_ms: 3_600_000,
        answers_pending: true,
        ..Times::default()
    });
    let done = bench.ev("snapshot build").code(3);
    let why = "the snapshot was not made within 1 s";
    assert!(stderr(&done).contains(why), "{}", stderr(&done));
    assert_eq!(bench.sandboxes(), 0);
}

#[test]
fn a_builder_has_no_more_time_than_the_plan_allows_where_that_is_set() {
    let bench = light(Vec::new(), &SUITE.replace("  limits", "  timeout: 40m\n  limits"));
    bench.vercel.state().limit(Limits {
        timeout_ms: 40 * 60_000,
        ..Limits::none()
    });
    bench.ev("snapshot build").success();
    let timeouts: Vec<u64> = bench
        .vercel
        .state()
        .sandboxes
        .values()
        .map(|one| one.timeout)
        .collect();
    assert_eq!(timeouts, [40 * 60_000]);
}

#[test]
fn a_builder_is_known_for_this_builds_though_no_answer_tells_its_labels() {
    let unlabelled = Rule {
        on: Vec::new(),
        fault: Fault::Unlabelled,
        at: Vec::new(),
        probability: 1.0,
    };
    let slow = SUITE.replace("echo installed", "takes-600s");
    let bench = light(vec![unlabelled.clone()], &slow);
    let mut build = bench.start("snapshot build");
    bench.wait_for(&mut build, |state| state.counts.with(Route::Run, 200) == 1);
    interrupt(&build);
    assert_eq!(build.wait().unwrap().code(), Some(130));
    assert_eq!(bench.sandboxes(), 0);
    let bench = light(vec![unlabelled], SUITE);
    bench.ev("snapshot build").success();
}

#[test]
fn setup_has_the_environment_in_a_builder_that_it_has_in_a_cold_sandbox() {
    let config = SUITE.replace("echo installed", "echo $LANG $TMPDIR");
    let Some(bench) = Bench::real(Vec::new(), &config) else {
        return;
    };
    bench.suite.write("deps.lock", "v1\n");
    bench.suite.write("code.txt", "first\n");
    bench.ev("run -o out").success();
    let cold = bench.suite.read("out/attempts/a__one/1/output.log");
    assert_eq!(cold, "C.UTF-8 /tmp\nv1\nfirst\n");
    let built = bench.ev("snapshot build").success();
    assert!(stderr(&built).contains("\nC.UTF-8 /tmp\n"), "{}", stderr(&built));
}

#[test]
fn every_snapshot_of_a_key_is_deleted_however_many_pages_they_fill() {
    let bench = light(Vec::new(), SUITE);
    let id = stdout(&bench.ev("snapshot build").success());
    let mut state = bench.vercel.state();
    let one = state.snapshots[id.trim()].clone();
    for number in 0..250 {
        let mut another = one.clone();
        another.id = format!("snap_of_before_{number}");
        state.snapshots.insert(another.id.clone(), another);
    }
    drop(state);
    let done = bench.ev("snapshot delete").success();
    assert_eq!(stderr(&done), "deleted 251 snapshots\n");
    let left = bench.vercel.state();
    assert!(left.snapshots.values().all(|snapshot| snapshot.deleted));
}

#[test]
fn what_the_service_says_of_a_snapshot_is_shown_without_the_token() {
    let bench = light(Vec::new(), SUITE);
    for (command, route, status) in [
        ("snapshot build", Route::Create, 400),
        ("snapshot build", Route::ListSnapshots, 403),
        ("snapshot check", Route::ListSnapshots, 403),
        ("snapshot check", Route::ListSnapshots, 400),
        ("snapshot delete", Route::ListSnapshots, 400),
    ] {
        let refused = always(route, status, &format!("no such token: {TOKEN}"));
        bench.vercel.state().faults.replace(vec![refused]);
        let done = bench.ev(command).code(3);
        let shown = stderr(&done) + &stdout(&done);
        assert!(shown.contains("no such token: ***"), "{shown}");
        assert!(!shown.contains(TOKEN), "{shown}");
    }
}

#[test]
fn a_build_that_is_interrupted_leaves_no_sandbox_that_the_next_one_would_wait_for() {
    let Some(bench) = bench(Vec::new()) else { return };
    let text = bench.suite.read("evalwave.yml");
    let slow = text.replace("echo installed", "sleep 600");
    bench.suite.write("evalwave.yml", &slow);
    let mut build = bench.start("snapshot build");
    bench.wait_for(&mut build, |state| state.counts.with(Route::Run, 200) == 1);
    interrupt(&build);
    assert_eq!(build.wait().unwrap().code(), Some(130));
    assert_eq!(bench.sandboxes(), 0);
    assert_eq!(bench.vercel.state().counts.live, 0);
}

#[test]
fn a_step_of_a_workflow_builds_the_snapshot() {
    let Some(bench) = bench(Vec::new()) else { return };
    let Bench { suite, vercel } = bench;
    let workflow = Workflow::new(suite, State::default()).input("command", "snapshot");
    let fork = pull_request(2, "stranger/evals");
    let workflow = workflow.event("pull_request", "refs/pull/12/merge", fork);
    let skipped = workflow.run();
    assert_eq!(
        (skipped.code, skipped.output("conclusion")),
        (0, "skipped"),
        "{}",
        skipped.log
    );
    assert!(skipped.annotations("notice")[0].contains("needs `VERCEL_TOKEN`"));
    assert_eq!(vercel.state().counts.of(Route::Snapshot), 0);

    let workflow = workflow
        .event("push", "refs/heads/main", serde_json::json!({}))
        .set("VERCEL_TOKEN", TOKEN)
        .set("VERCEL_TEAM_ID", TEAM)
        .set("VERCEL_PROJECT_ID", PROJECT);
    let step = workflow.run();
    assert_eq!(
        (step.code, step.output("conclusion")),
        (0, "success"),
        "{}",
        step.log
    );
    assert!(step.log.contains("installed\nmade: snapshot"), "{}", step.log);
    assert_eq!(vercel.state().counts.of(Route::Snapshot), 1);
}

#[test]
fn a_step_that_builds_a_snapshot_of_other_sandboxes_says_what_it_is_for() {
    let suite = crate::action::suite("agent/task", "", &crate::action::always(true));
    let step = Workflow::new(suite, State::default())
        .input("command", "snapshot")
        .run();
    let expected = "::error title=evalwave::snapshots are for `sandbox.kind: vercel`, found `local`";
    assert_eq!((step.code, step.annotations("error")), (2, vec![expected]));
}
