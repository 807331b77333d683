//! `evalwave cleanup`: what a killed run left behind goes, and nothing else does.

use std::process::Stdio;

use crate::support::{Suite, evalwave, stderr};

#[test]
fn what_a_killed_run_left_is_deleted_once_it_is_over_and_only_once() {
    let attempt = "format: exit-code\nenv-from: [READY]";
    let suite = Suite::scripted("a/one", attempt, "", "touch \"$READY\"; exec sleep 1000");
    let (ready, temporary) = (suite.path().join("ready"), suite.path().join("tmp"));
    fs_err::create_dir(&temporary).unwrap();
    let mut killed = std::process::Command::new(env!("CARGO_BIN_EXE_evalwave"))
        .arg("run")
        .current_dir(suite.path())
        .env("READY", &ready)
        .env("TMPDIR", &temporary)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !ready.exists() {
        assert!(killed.try_wait().unwrap().is_none(), "the run ended early");
        std::thread::yield_now();
    }
    let early = suite.ev("cleanup");
    assert!(
        stderr(&early).contains("a run is being written into"),
        "{}",
        stderr(&early)
    );
    early.code(3);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(fs_err::read_dir(&temporary).unwrap().count(), 1);
    // Neither the directory nor TMPDIR is named: the run has written down where its sandboxes are.
    let cleanup = suite.ev("cleanup");
    assert!(
        stderr(&cleanup).contains("deleted 1 sandbox of"),
        "{}",
        stderr(&cleanup)
    );
    cleanup.code(0);
    assert_eq!(fs_err::read_dir(&temporary).unwrap().count(), 0);
    let again = suite.ev("cleanup");
    assert!(!stderr(&again).contains("deleted"), "{}", stderr(&again));
    again.code(0);
}

#[test]
fn a_run_that_has_ended_leaves_nothing_to_clean_up() {
    let suite = Suite::scripted("a/one", "format: exit-code", "", "exit 0");
    suite.run("").0.code(0);
    let cleanup = suite.ev("cleanup out");
    assert!(!stderr(&cleanup).contains("deleted"), "{}", stderr(&cleanup));
    cleanup.code(0);
}

#[test]
fn names_that_lead_elsewhere_delete_nothing() {
    let suite = Suite::new("");
    suite.write("victim/file", "x");
    for (run_id, name) in [
        ("..", "victim"),
        ("r1", "../victim"),
        ("r1/../..", "victim"),
        ("", "victim"),
        ("r1", ""),
    ] {
        let at = serde_json::json!({ "sandboxes_at": { "run_id": run_id,
            "whereabouts": { "local": { "temporary": suite.path() } } } });
        let named = serde_json::json!({ "sandbox_named": { "name": name, "attempt": null } });
        suite.write("out/sandboxes.jsonl", &format!("{at}\n{named}\n"));
        let cleanup = suite.ev("cleanup out");
        assert!(
            stderr(&cleanup).contains("it is none of ours"),
            "{}",
            stderr(&cleanup)
        );
        cleanup.code(3);
        assert!(suite.path().join("victim/file").exists());
    }
}

#[test]
fn what_cannot_be_read_is_said_and_nothing_is_deleted() {
    let suite = Suite::new("");
    for (text, expected) in [
        ("no JSON\n", "cannot read"),
        (
            "{\"sandboxes_at\": {\"run_id\": \"r\", \"whereabouts\": {\"moon\": {}}}}\n",
            "cannot read",
        ),
    ] {
        suite.write("out/sandboxes.jsonl", text);
        let cleanup = suite.ev("cleanup out");
        assert!(stderr(&cleanup).contains(expected), "{}", stderr(&cleanup));
        cleanup.code(3);
    }
    let mut nowhere = evalwave(suite.path());
    let nowhere = nowhere.args(["cleanup", "no/such"]).assert();
    assert!(
        stderr(&nowhere).contains("cannot find the run directory"),
        "{}",
        stderr(&nowhere)
    );
    nowhere.code(2);
    // A line that was cut off was of a sandbox that was never created.
    suite.write("out/sandboxes.jsonl", "{\"sandbox_na");
    suite.ev("cleanup out").code(0);
}
