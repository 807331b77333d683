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
    let said = stderr(&cleanup);
    assert!(said.contains("deleted 1 sandbox of"), "{said}");
    assert!(!said.contains("nothing to clean up"), "{said}");
    cleanup.code(0);
    assert_eq!(fs_err::read_dir(&temporary).unwrap().count(), 0);
    let again = suite.ev("cleanup");
    assert_eq!(stderr(&again), "nothing to clean up\n");
    again.code(0);
}

#[test]
fn what_was_there_what_was_gone_and_what_is_left_are_told_apart() {
    let suite = with_sandboxes(&["gone", "kept", "stuck", "there"]);
    fs_err::remove_dir_all(suite.path().join("boxes/gone")).unwrap();
    let cleanup = suite.ev("cleanup out");
    let said = stderr(&cleanup);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("deleted 2 sandboxes of "), "{said}");
    assert!(lines[1].starts_with("gone already: 1 sandbox of "), "{said}");
    assert!(
        lines[2].starts_with("error: still there: 1 sandbox of "),
        "{said}"
    );
    assert!(said.contains("cannot delete the sandbox `stuck`"), "{said}");
    assert!(!said.contains("nothing to clean up"), "{said}");
    cleanup.code(3);
    fs_err::remove_dir_all(suite.path().join("boxes/stuck")).unwrap();
    let again = suite.ev("cleanup out");
    assert!(
        stderr(&again).starts_with("gone already: 4 sandboxes of "),
        "{}",
        stderr(&again)
    );
    again.code(0);
    let done = suite.ev("cleanup out");
    assert_eq!(stderr(&done), "nothing to clean up\n");
    done.code(0);
}

/// A run directory of which some sandboxes are there still; the one called `stuck` cannot be deleted as long as it is.
fn with_sandboxes(names: &[&str]) -> Suite {
    let delete = "test {sandbox} != stuck && rm -r boxes/{sandbox}";
    let config = format!(
        "version: 1\nsuite: {{ pairs: [{{ experiment: a, eval: one }}] }}\nattempt: {{ command: 'true' }}\nsandbox:\n  \
         kind: command\n  create: 'false'\n  exec: 'false {{sandbox}}'\n  delete: '{delete}'\n  list: ls boxes\n"
    );
    let suite = Suite::new(&config);
    fs_err::create_dir(suite.path().join("boxes")).unwrap();
    suite.run("").0.code(4);
    let at = serde_json::json!({ "sandboxes_at": { "run_id": "r1", "whereabouts": "command" } });
    let mut ledger = format!("{at}\n");
    for name in names {
        let named = serde_json::json!({ "sandbox_named": { "name": name, "attempt": null } });
        let created = serde_json::json!({ "sandbox_created": { "name": name, "id": name } });
        ledger += &format!("{named}\n{created}\n");
        suite.write(&format!("boxes/{name}/file"), "x");
    }
    suite.write("out/sandboxes.jsonl", &ledger);
    suite
}

#[test]
fn a_run_is_not_replaced_while_it_is_all_that_is_known_of_its_sandboxes() {
    let suite = with_sandboxes(&["stuck", "there"]);
    let journal = suite.read("out/journal.jsonl");
    let refused = suite.ev("run -o out --overwrite");
    let said = stderr(&refused);
    assert!(said.contains("deleted 1 sandbox of"), "{said}");
    assert!(said.contains("cannot replace the run"), "{said}");
    refused.code(2);
    assert_eq!(suite.read("out/journal.jsonl"), journal);
    fs_err::remove_dir_all(suite.path().join("boxes/stuck")).unwrap();
    suite.ev("run -o out --overwrite").code(4);
    assert_ne!(suite.read("out/journal.jsonl"), journal);
}

#[test]
fn a_configuration_whose_pairs_are_given_cleans_up_all_the_same() {
    let suite = with_sandboxes(&["stuck", "there"]);
    let inline = "pairs: [{ experiment: a, eval: one }]";
    let config = suite.read("evalwave.yml");
    assert!(config.contains(inline));
    suite.write("evalwave.yml", &config.replace(inline, "name: evals"));
    let cleanup = suite.ev("cleanup out");
    assert!(
        stderr(&cleanup).starts_with("deleted 1 sandbox of "),
        "{}",
        stderr(&cleanup)
    );
    cleanup.code(3);
    fs_err::remove_dir_all(suite.path().join("boxes/stuck")).unwrap();
    suite.write("pairs.json", r#"[{ "experiment": "a", "eval": "one" }]"#);
    suite.ev("run -o out --overwrite --pairs pairs.json").code(4);
}

#[test]
fn a_torn_name_is_passed_over_however_often_one_cleans_up() {
    let suite = with_sandboxes(&["stuck"]);
    let ledger = suite.read("out/sandboxes.jsonl");
    suite.write("out/sandboxes.jsonl", &format!("{ledger}{{\"sandbox_na"));
    for _ in 0..2 {
        let cleanup = suite.ev("cleanup out");
        assert!(
            stderr(&cleanup).contains("still there: 1"),
            "{}",
            stderr(&cleanup)
        );
        cleanup.code(3);
    }
    fs_err::remove_dir_all(suite.path().join("boxes/stuck")).unwrap();
    suite.ev("cleanup out").code(0);
    assert_eq!(stderr(&suite.ev("cleanup out")), "nothing to clean up\n");
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
