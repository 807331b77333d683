//! What a run asks for, what it leaves, and what it says.

use std::time::Duration;

use evalwave::sandbox::{Backend as _, SandboxSpec};

use super::{Bench, interrupt, texts};
use crate::support::engine_of_vercel::{backend, config};
use crate::support::sandbox::{Remembered, spec};
use crate::support::vercel::{Fault, Light, Limits, Machines, Route, Rule, TOKEN};
use crate::support::{stderr, stdout};

/// Pairs whose attempts take some time and pass or fail by their exit code alone.
fn timed(pairs: usize, seconds: &str, sandbox: &str) -> String {
    let pairs: Vec<String> = (0..pairs)
        .map(|number| format!("{{ experiment: agent, eval: e{number} }}"))
        .collect();
    format!(
        "SANDBOX\n  source: upload\n  {sandbox}\nsuite: {{ name: wave, pairs: [{}] }}\nruns: 2\nattempt:\n  command: agent takes-{seconds}s\n  \
         format: exit-code\n  boot: start-daemons\n",
        pairs.join(", ")
    )
}

#[test]
fn a_wave_is_graded_with_few_requests_within_the_quota_and_leaves_nothing() {
    let limits = Limits {
        vcpus_per_minute: [300, 60, 6_000],
        ..Limits::default()
    };
    let config = timed(60, "0.2", "limits: { vcpus-per-minute: [300, 60, 6000] }");
    let light = Light {
        scale: 1.0,
        ..Light::default()
    };
    let bench = Bench::with(
        Machines::light(light),
        limits,
        Vec::new(),
        &config.replace("runs: 2", "runs: 1"),
    );
    bench.ev("run -o out").success();
    let summary = bench.summary();
    assert_eq!(summary["totals"]["attempts"]["graded"], 60);
    assert_eq!(summary["run"]["sandbox"], "vercel");
    let state = bench.vercel.state();
    assert!(state.counts.all() <= 12 * 60, "{}", state.counts.json());
    assert_eq!(state.counts.with(Route::Create, 200), 60);
    assert_eq!(
        state.counts.with(Route::Create, 429),
        0,
        "no more is asked for than is allowed"
    );
    assert_eq!(state.counts.with(Route::Delete, 200), 60);
    assert!(state.sandboxes.is_empty());
}

#[test]
fn without_credentials_nothing_is_planned_and_they_are_named() {
    let bench = Bench::light(Vec::new(), &timed(1, "0", "limits: FAST"));
    for command in ["plan", "run -o out", "snapshot check"] {
        let mut command = bench.command(command);
        let done = command
            .env_remove("VERCEL_TOKEN")
            .env("VERCEL_TEAM_ID", " ")
            .assert()
            .code(2);
        assert_eq!(
            stderr(&done),
            "error: missing in the environment: `VERCEL_TOKEN`, `VERCEL_TEAM_ID` (`sandbox.kind: vercel`)\n\
             set it; nothing is planned without it\n"
        );
    }
    assert_eq!(bench.vercel.state().counts.all(), 0);
}

#[test]
fn an_address_that_no_token_is_sent_to_is_said_before_anything_is_planned() {
    let bench = Bench::light(Vec::new(), &timed(1, "0", "limits: FAST"));
    let text = bench.suite.read("evalwave.yml");
    let here = bench.vercel.base_url();
    for address in [
        "http://vercel.example/api",
        "htps://vercel.com/api",
        "vercel.com/api",
    ] {
        bench.suite.write("evalwave.yml", &text.replace(&here, address));
        for command in ["plan", "run -o out", "snapshot check"] {
            let done = bench.ev(command).code(2);
            assert_eq!(
                stderr(&done),
                format!(
                    "error: cannot connect to Vercel Sandbox: `{address}` is no address of the API (`sandbox.base-url`)\n\
                     expected one like `https://vercel.com/api`; without `https` only an address of this machine\n"
                )
            );
        }
    }
    assert!(!bench.suite.path().join("out").exists());
}

#[test]
fn the_example_that_checks_an_account_passes_cold_and_warm() {
    let Some(bench) = Bench::real(Vec::new(), "SANDBOX\n  limits: FAST\n") else {
        return;
    };
    let ours = bench.suite.read("evalwave.yml");
    let (_, sandbox) = ours.split_once("kind: vercel\n").unwrap();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/vercel/check.yml");
    let example = fs_err::read_to_string(example).unwrap();
    let text = example.replace("kind: vercel\n", &format!("kind: vercel\n{sandbox}"));
    assert_ne!(text, example);
    bench.suite.write("check.yml", &text);
    let cold = bench.ev("run -c check.yml -o out").success();
    assert!(
        stdout(&cold).contains("every sandbox is set up from nothing"),
        "{}",
        stdout(&cold)
    );
    bench.ev("snapshot build -c check.yml").success();
    let warm = bench.ev("run -c check.yml -o warm").success();
    assert!(stdout(&warm).contains("4/4 warm"), "{}", stdout(&warm));
    assert_eq!(bench.left(), Vec::<String>::new());
}

#[test]
fn the_whole_example_can_be_planned() {
    let mut plan = crate::support::evalwave(camino::Utf8Path::new(env!("CARGO_MANIFEST_DIR")));
    plan.args(["plan", "-c", "examples/vercel/evalwave.yml"]).envs([
        ("VERCEL_TOKEN", TOKEN),
        ("VERCEL_TEAM_ID", "t"),
        ("VERCEL_PROJECT_ID", "p"),
    ]);
    let missing = plan.assert().code(2);
    assert!(
        stderr(&missing).contains("`ANTHROPIC_API_KEY`"),
        "{}",
        stderr(&missing)
    );
    let planned = plan.env("ANTHROPIC_API_KEY", "k").assert().success();
    assert!(stdout(&planned).contains("4 attempts"), "{}", stdout(&planned));
}

#[test]
fn credentials_that_are_refused_end_the_run_after_its_first_ten_tries_and_say_so() {
    let bench = Bench::light(Vec::new(), &timed(30, "600", "limits: FAST"));
    let done = bench
        .command("run -o out --concurrency 16")
        .env("VERCEL_TOKEN", "wrong-token-of-mine")
        .assert()
        .code(4);
    let shown = stdout(&done) + &stderr(&done);
    assert!(!shown.contains("wrong-token-of-mine"));
    assert!(
        shown.contains("the first 10 tries all ended with the error `refused`"),
        "{shown}"
    );
    let summary = bench.summary();
    let pairs = summary["pairs"].as_array().unwrap().iter();
    let attempts = pairs.flat_map(|pair| pair["attempts"].as_array().unwrap());
    // Those that were not answered yet are cancelled.
    let errors: Vec<_> = attempts
        .map(|attempt| &attempt["error"])
        .filter(|error| !error.is_null())
        .collect();
    assert!(errors.len() >= 10, "{errors:?}");
    for error in errors {
        assert_eq!(error["class"], "refused");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("`VERCEL_TOKEN`"), "{message}");
    }
    // Of 60 attempts those that were started before ten had ended, each of them asked for once.
    let refused = bench.vercel.state().counts.of(Route::Create);
    assert!(refused < 10 + 16, "{refused}");
}

#[test]
fn a_run_that_is_killed_in_mid_wave_leaves_nothing_once_it_is_cleaned_up() {
    let bench = Bench::light(Vec::new(), &timed(20, "600", "limits: FAST"));
    let mut run = bench.start("run -o out");
    bench.wait_for(&mut run, |state| state.counts.with(Route::Run, 200) >= 30);
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(bench.sandboxes() >= 30);
    let done = bench.ev("cleanup out").success();
    assert!(stderr(&done).contains("sandboxes of"), "{}", stderr(&done));
    assert_eq!(bench.sandboxes(), 0);
    assert_eq!(bench.vercel.state().counts.live, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_comes_to_be_when_nobody_waits_for_it_any_more_is_deleted_all_the_same() {
    let held = |times| vec![Rule::first(Route::Create, times, Fault::Held)];
    let bench = Bench::light(held(1), "SANDBOX\n");
    let is_asked = || bench.vercel.state().counts.open(Route::Create) == 1;
    // While it comes to be, a deletion would end it unanswered.
    let was_not_there = || bench.vercel.state().counts.with(Route::Delete, 404) == 1;
    let engine = backend(&config(&bench.vercel.base_url()));
    {
        let spec = spec("a");
        let ledger = Remembered::default();
        let mut starting = engine.start(&spec, &ledger);
        while !is_asked() {
            assert!(futures::poll!(&mut starting).is_pending());
            // The fake's own turn at its state.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let deleted = async {
        while !was_not_there() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let deleted = tokio::time::timeout(Duration::from_secs(60), deleted).await;
    assert!(deleted.is_ok(), "what was given up is deleted at once");
    bench.vercel.let_go();
    engine.reaper().reap("another run", &[]).await.unwrap();
    assert_eq!(bench.vercel.state().counts.with(Route::Create, 200), 1);
    assert_eq!(bench.sandboxes(), 0);

    let bench = Bench::light(held(2), &timed(1, "600", "limits: FAST"));
    let mut run = bench.start("run -o out");
    bench.wait_for(&mut run, |state| state.counts.open(Route::Create) == 2);
    interrupt(&run);
    // Both attempts have ended, and nobody waits for their sandboxes any more.
    let ended = |journal: String| journal.matches("attempt_ended").count();
    while ended(bench.suite.read("out/journal.jsonl")) < 2 {
        assert!(
            run.try_wait().unwrap().is_none(),
            "it waits for what is under way"
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    bench.vercel.let_go();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert_eq!(bench.vercel.state().counts.open(Route::Create), 0);
    assert_eq!(bench.sandboxes(), 0);
}

#[test]
fn what_is_known_by_name_is_deleted_where_there_is_no_list_and_more_is_not_claimed() {
    let bench = Bench::light(Vec::new(), &timed(2, "600", "limits: FAST"));
    let mut run = bench.start("run -o out");
    bench.wait_for(&mut run, |state| state.counts.with(Route::Run, 200) >= 4);
    run.kill().unwrap();
    run.wait().unwrap();
    let unlisted = Rule {
        on: vec![Route::List],
        fault: Fault::Refused(400, "bad_request".to_owned()),
        at: Vec::new(),
        probability: 1.0,
    };
    bench.vercel.state().faults.replace(vec![unlisted]);
    let unknown = bench.ev("cleanup out").code(3);
    let said = stderr(&unknown);
    assert!(
        said.contains("4 of 4 known by name deleted, and whether there are more is not known"),
        "{said}"
    );
    assert_eq!(bench.sandboxes(), 0);
    bench.vercel.state().faults.replace(Vec::new());
    bench.ev("cleanup out").success();
}

#[tokio::test]
async fn what_a_run_has_left_is_found_by_its_label_page_after_page() {
    let bench = Bench::light(Vec::new(), "SANDBOX\n");
    let engine = backend(&config(&bench.vercel.base_url()));
    for number in 0..180 {
        let spec = SandboxSpec {
            run_id: if number % 3 == 0 { "theirs" } else { "ours" }.to_owned(),
            ..spec(&format!("left-{number}"))
        };
        // As if this process had died.
        std::mem::forget(engine.start(&spec, &Remembered::default()).await.unwrap());
    }
    engine.reaper().reap("ours", &[]).await.unwrap();
    assert_eq!(bench.sandboxes(), 60);
    engine.reaper().reap("theirs", &[]).await.unwrap();
    assert_eq!(bench.sandboxes(), 0);
}

#[test]
fn a_session_that_is_gone_is_an_infrastructure_failure_and_is_never_resumed() {
    let gone = Rule::first(Route::Logs, 2, Fault::SessionOver);
    let bench = Bench::light(vec![gone], &timed(3, "0.1", "limits: FAST"));
    bench.ev("run -o out").success();
    let summary = bench.summary();
    assert_eq!(summary["totals"]["attempts"]["graded"], 6);
    assert_eq!(summary["totals"]["attempts"]["retried"], 2);
    let state = bench.vercel.state();
    assert_eq!(
        state.counts.with(Route::Create, 200),
        8,
        "each in a fresh sandbox"
    );
    assert_eq!(state.counts.of(Route::Get), 0);
    assert!(state.sandboxes.is_empty());
}

#[test]
fn every_sandbox_is_labelled_limited_and_not_persistent() {
    let policy = "network-policy: { allow: { api.example: [{ transform: [{ headers: { x-key: '${PROVIDER_KEY}' } }] }] } }";
    let config = timed(1, "600", &format!("limits: FAST\n  {policy}"));
    let bench = Bench::light(Vec::new(), &config);
    let mut command = bench.command("run -o out");
    command.env("PROVIDER_KEY", "sk-provider-key-1");
    let mut run = bench.started(&command);
    bench.wait_for(&mut run, |state| state.counts.with(Route::Run, 200) == 2);
    let seen = bench.vercel.state().sandboxes.values().next().cloned().unwrap();
    interrupt(&run);
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert!(!seen.persistent);
    assert_eq!(seen.tags["evalwave-attempt"].len(), 3);
    assert!(seen.name.starts_with(&seen.tags["evalwave-run"]));
    assert!(seen.tags.contains_key("evalwave-expires"));
    assert!(seen.timeout > 600_000 && seen.timeout < 24 * 3_600_000);
    // The service tells which headers it injects, and never what is in them.
    let policy = seen.policy.unwrap().to_string();
    assert!(
        policy.contains("x-key") && policy.contains("api.example"),
        "{policy}"
    );
    for (path, text) in texts(&bench.suite.path().join("out")) {
        assert!(
            !text.contains("sk-provider-key-1") && !text.contains(TOKEN),
            "{path}"
        );
    }
}
