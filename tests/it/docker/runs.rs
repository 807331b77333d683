//! Whole runs of the real binary in containers.

use std::process::Stdio;

use super::{Bench, run_at};
use crate::support::docker::{IMAGE, containers, marked};
use crate::support::{Suite, stderr};

fn suite(pairs: &str, attempt: &str, more: &str, script: &str) -> Suite {
    let keys = format!(
        "sandbox: {{ kind: docker, network: none, image: '{IMAGE}', memory-per-attempt: 16MB }}\n{more}"
    );
    Suite::scripted(pairs, attempt, &keys, script)
}

/// The run in a directory, once it has started.
fn run_id(suite: &Suite) -> Option<String> {
    let sandboxes = fs_err::read_to_string(suite.path().join("out/sandboxes.jsonl")).ok()?;
    let first: serde_json::Value = serde_json::from_str(sandboxes.lines().next()?).ok()?;
    Some(first["sandboxes_at"]["run_id"].as_str()?.to_owned())
}

/// The engine's containers of that run.
async fn left(bench: &Bench, suite: &Suite) -> usize {
    containers(&bench.host, &run_id(suite).unwrap()).await.len()
}

/// The processes of that run in them.
async fn running(bench: &Bench, suite: &Suite, mark: &str) -> usize {
    match run_id(suite) {
        Some(run_id) => marked(&bench.host, &run_id, mark).await,
        None => 0,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_in_containers_is_graded_like_any_other_and_leaves_none() {
    let Some(bench) = Bench::new() else { return };
    let attempt = "result: results/{eval}.json\nkeep: { path: notes }\nsecrets: [TOKEN]\nboot: 'echo $TOKEN >/tmp/login'";
    let script = "mkdir -p results notes; cat /tmp/login
        grep -q hunter2 /tmp/login && test \"$EVALWAVE_EVAL\" = good && passed=true || passed=false
        echo \"{\\\"passed\\\": $passed}\" >\"results/$EVALWAVE_EVAL.json\"; echo kept >notes/n.txt";
    let suite = suite("a/good a/bad", attempt, "runs: 2\nstrategy: parallel", script);
    suite.write("results/good.json", "{\"passed\": false}");
    let assert = run_at(&bench.host, &suite).env("TOKEN", "hunter2-token").assert();
    let said = stderr(&assert);
    assert.code(0);
    let summary = suite.read_json("out/summary.json");
    assert_eq!(summary["run"]["sandbox"], "docker");
    assert_eq!(
        (&summary["totals"]["passed"], &summary["totals"]["failed"]),
        (&1.into(), &1.into()),
        "{said}"
    );
    assert_eq!(suite.read("out/attempts/a__good/1/files/n.txt"), "kept\n");
    let output = suite.read("out/attempts/a__good/1/output.log");
    assert!(!output.contains("hunter2-token"), "{output}");
    let sandboxes = suite.read("out/sandboxes.jsonl");
    assert_eq!(sandboxes.matches("sandbox_named").count(), 4);
    assert_eq!(sandboxes.matches("sandbox_gone").count(), 4);
    assert_eq!(left(&bench, &suite).await, 0);
    let again = suite.ev("cleanup out");
    again.code(0);
}

#[test]
fn a_result_whose_path_begins_with_a_pattern_is_found_and_no_other_is_taken_for_it() {
    let Some(bench) = Bench::new() else { return };
    let write = "write() { echo \"{\\\"passed\\\": $1}\" >\"$2\"; }; mkdir out deep; mkdir deep/out";
    for (result, script) in [
        ("'*.json'", "write true a.json; write false out/b.json"),
        (
            "'junit-*.json'",
            "write true junit-1.json; write false other.json",
        ),
        (
            "'*/result.json'",
            "write true out/result.json; write false result.json; write false deep/out/result.json",
        ),
    ] {
        let attempt = format!("result: {result}");
        let suite = suite("a/one", &attempt, "", &format!("{write}; {script}"));
        let assert = run_at(&bench.host, &suite).assert();
        let said = stderr(&assert);
        assert.code(0);
        let summary = suite.read_json("out/summary.json");
        assert_eq!(summary["totals"]["passed"], 1, "{result}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_lifecycles_at_once_all_end_well() {
    let Some(bench) = Bench::new() else { return };
    let pairs: String = (1..=64).map(|number| format!("a/e{number} ")).collect();
    let keys = "strategy: parallel\nconcurrency: 64";
    let suite = suite(
        &pairs,
        "format: exit-code",
        keys,
        "test \"$(ls)\" = \"$(printf 'attempt.sh\\nevalwave.yml')\"",
    );
    run_at(&bench.host, &suite).assert().code(0);
    let summary = suite.read_json("out/summary.json");
    assert_eq!(summary["totals"]["passed"], 64);
    assert_eq!(summary["totals"]["attempts"]["retried"], 0);
    assert_eq!(left(&bench, &suite).await, 0);
    // What they started from has gone with them.
    let image = format!("evalwave-workspace:{}", run_id(&suite).unwrap());
    assert!(bench.client().inspect_image(&image).await.is_err());
    let sandboxes = suite.read("out/sandboxes.jsonl");
    assert_eq!(sandboxes.matches("sandbox_named").count(), 65);
    assert_eq!(sandboxes.matches("sandbox_gone").count(), 65);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_evalwave_was_killed_its_commands_die_and_cleanup_leaves_no_container() {
    let Some(bench) = Bench::new() else { return };
    let mark = crate::support::docker::unique("killed");
    let attempt = format!("format: exit-code\nenv: {{ MARK: {mark} }}");
    let suite = suite(
        "a/one a/two a/three",
        &attempt,
        "strategy: parallel",
        "(setsid sleep 1000 &); sleep 1000",
    );
    let mut killed = std::process::Command::new(env!("CARGO_BIN_EXE_evalwave"))
        .args(["run", "-o", "out"])
        .current_dir(suite.path())
        .env("DOCKER_HOST", &bench.host)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while running(&bench, &suite, &mark).await < 9 {
        assert!(killed.try_wait().unwrap().is_none(), "the run ended early");
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(left(&bench, &suite).await, 3);
    // The link of each command is closed: no agent goes on at anybody's cost until somebody cleans up.
    while running(&bench, &suite, &mark).await > 0 {}
    let cleanup = suite.ev("cleanup out");
    let said = stderr(&cleanup);
    cleanup.code(0);
    assert!(said.contains("deleted 3 sandboxes"), "{said}");
    assert_eq!(left(&bench, &suite).await, 0);
    let again = suite.ev("cleanup out");
    assert!(!stderr(&again).contains("deleted"), "it is done once");
    again.code(0);
}

/// Each of six attempts has a process, a variable and files of its own name, and looks for those of the others while all
/// are there. They wait for each other in the one directory that they share.
const PRYING: &str = r#"
    fail() { echo "$1"; touch "/meet/$me.left"; exit 1; }
    all() { while [ "$(ls /meet | grep -c "$1")" -lt 6 ]; do sleep 0.05; done; }
    me=neighbour-$EVALWAVE_EVAL-$EVALWAVE_ATTEMPT
    mkdir "$me-file" "/tmp/$me-file" "/$me-file"
    MARK=$me-environment sh -c 'touch "/meet/$0.here"; sleep 1000; true' "$me-process" &
    all here
    ps -o args >/tmp/processes
    cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' >/tmp/environment
    find / -xdev >/tmp/files
    for what in processes environment files; do
        grep -q "$me-" "/tmp/$what" || fail "its own are not among the $what"
        grep neighbour- "/tmp/$what" | grep -v "$me-" && fail "another attempt is among the $what"
    done
    test -e "$HOST_FILE" && fail 'a file of the host'
    grep -q hunter2-of-the-host /tmp/environment && fail 'the environment of evalwave'
    grep docker.sock /tmp/files && fail 'the engine'
    touch "/meet/$me.left"
    all left
"#;

#[test]
fn an_attempt_in_a_container_sees_neither_the_host_nor_evalwave_nor_its_neighbour() {
    let Some(bench) = Bench::new() else { return };
    let attempt = "format: exit-code\nenv-from: [HOST_FILE]";
    let keys = format!(
        "runs: 3\nstrategy: parallel\nsandbox: {{ kind: docker, network: none, image: '{IMAGE}', memory-per-attempt: 16MB, \
         mounts: ['./meet:/meet'] }}"
    );
    let suite = Suite::scripted("a/one a/two", attempt, &keys, PRYING);
    suite.write("of-the-host.txt", "x");
    fs_err::create_dir(suite.path().join("meet")).unwrap();
    let assert = run_at(&bench.host, &suite)
        .env("HOST_FILE", suite.path().join("of-the-host.txt"))
        .env("OTHER_SECRET", "hunter2-of-the-host")
        .assert();
    for index in 1..=3 {
        for eval in ["one", "two"] {
            let output = suite.read(&format!("out/attempts/a__{eval}/{index}/output.log"));
            assert_eq!(output, "", "{}", stderr(&assert));
        }
    }
    assert.code(0);
    assert_eq!(
        suite.read_json("out/summary.json")["totals"]["attempts"]["passed"],
        6
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_base_that_is_measured_runs_in_containers_too_and_shows_what_the_change_broke() {
    let Some(bench) = Bench::new() else { return };
    let suite = suite(
        "a/kept a/broken",
        "format: exit-code",
        "runs: 2\nstrategy: parallel\nbaseline: measure\nfail-on: regression\nconfirm: 1",
        // Which revision an attempt sees, and that it sees no other.
        "test ! -e .git && test \"$(cat \"answers/$EVALWAVE_EVAL\")\" = right",
    );
    let git = |arguments: &[&str]| crate::support::git(suite.path(), arguments);
    suite.write(".gitignore", "out\n");
    suite.write("answers/kept", "right");
    suite.write("answers/broken", "right");
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "base"]);
    git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    suite.write("answers/broken", "wrong");
    git(&["commit", "-q", "-a", "-m", "change"]);
    let temporary = tempfile::tempdir().unwrap();
    let assert = run_at(&bench.host, &suite)
        .env("TMPDIR", temporary.path())
        .assert();
    let said = stderr(&assert);
    assert.code(1);

    let comparison = &suite.read_json("out/summary.json")["comparison"];
    assert_eq!(comparison["compared"], 2, "{said}");
    let flips = &comparison["flips"];
    assert_eq!(flips["pass_to_fail"].as_array().unwrap().len(), 1);
    let flip = &flips["pass_to_fail"][0];
    assert_eq!(
        (&flip["eval"], &flip["before"], &flip["now"], &flip["confirmed"]),
        (&"broken".into(), &"2/2".into(), &"0/2".into(), &true.into())
    );
    assert_eq!(flips["fail_to_pass"].as_array().unwrap().len(), 0);
    let started = |run: &str| suite.read_json(&format!("out/{run}summary.json"))["run"].clone();
    assert_eq!(started("baseline/")["sandbox"], "docker");
    assert_eq!(started("baseline/")["started_at"], started("")["started_at"]);

    for run in ["out", "out/baseline", "out/confirm", "out/confirm/baseline"] {
        let sandboxes = suite.read(&format!("{run}/sandboxes.jsonl"));
        let named = sandboxes.matches("sandbox_named").count();
        assert!(named > 0, "{run}");
        assert_eq!(sandboxes.matches("sandbox_gone").count(), named, "{run}");
        let first: serde_json::Value = serde_json::from_str(sandboxes.lines().next().unwrap()).unwrap();
        let run_id = first["sandboxes_at"]["run_id"].as_str().unwrap();
        assert_eq!(containers(&bench.host, run_id).await.len(), 0, "{run}");
    }
    assert_eq!(
        fs_err::read_dir(temporary.path()).unwrap().count(),
        0,
        "the checkout is gone"
    );
    git(&["diff", "--quiet", "HEAD"]);
    let worktrees = fs_err::read_dir(suite.path().join(".git/worktrees"));
    assert_eq!(worktrees.map_or(0, Iterator::count), 0);
}
