//! What a run meets that nobody meant: hostile ids, full disks, runs that share a directory, results that are none.

use crate::support::{Suite, evalwave, stderr, stdout};

/// A suite of one pair, whose command is `command`.
fn suite(command: &str, more: &str) -> Suite {
    Suite::new(&format!(
        "version: 1\nsuite: {{ pairs: [{{ experiment: a, eval: one }}] }}\nretry: {{ tries: 1 }}\nattempt:\n  command: {command}\n{more}\n"
    ))
}

#[test]
fn an_id_that_leads_out_of_the_workspace_is_refused_before_the_run() {
    for (key, path) in [
        ("result", "'r/{eval}/x.json'"),
        ("keep", "{ path: '{eval}' }"),
        ("result", "'{tier}.json'"),
    ] {
        let suite = Suite::new(&format!(
            "version: 1\nsuite: {{ pairs: [{{ experiment: a, eval: '..', tier: /x }}] }}\nattempt: {{ command: 'true', {key}: {path} }}\n"
        ));
        let refused = suite.ev("run").code(2);
        assert!(
            stderr(&refused).contains("it leads out of the workspace"),
            "{key}: {path}: {}",
            stderr(&refused)
        );
    }
    let published = Suite::new(
        "version: 1\nsuite: { pairs: [{ experiment: a, eval: '..' }] }\nattempt: { command: 'true', publish: { as: '{eval}/{eval}.json' } }\n",
    );
    published.run("");
    assert!(
        published
            .path()
            .join("out/raw-results-a__%2E%2E/%2E%2E/%2E%2E.json")
            .is_file()
    );
}

#[test]
fn an_id_that_no_quotes_keep_as_it_is_is_refused_before_the_run() {
    let id = "x$(touch harm)";
    let created = "{ kind: command, create: \"cat <<'X'\\n{eval}\\nX\", exec: 'sh # {sandbox}', delete: 'true # {sandbox}' }";
    for (key, command, sandbox) in [
        ("attempt.command", "echo `echo {eval}`", "{ kind: local }"),
        ("attempt.command", "echo $(( {tier} ))", "{ kind: local }"),
        ("sandbox.create", "true", created),
    ] {
        let suite = Suite::new(&format!(
            "version: 1\nsuite: {{ pairs: [{{ experiment: a, eval: '{id}', tier: '{id}' }}] }}\nsandbox: {sandbox}\nattempt: {{ command: '{command}' }}\n"
        ));
        let refused = suite.ev("run").code(2);
        let told = stderr(&refused);
        let expected = format!("cannot use `{key}` for the pair `a × {id}`: cannot quote `{id}` for the `{{");
        assert!(told.contains(&expected), "{command}: {told}");
        assert!(!suite.path().join("harm").exists());
    }
}

#[test]
fn names_in_what_is_printed_command_no_runner_of_a_workflow() {
    let suite = Suite::new(
        "version: 1\nsuite: { name: t, pairs: [{ experiment: '::error::a', eval: 'b ##[error]c' }] }\nattempt:\n  command: exit 1\n  format: exit-code\n",
    );
    suite.write(
        "before.json",
        r#"[{ "experiment": "::error::a", "eval": "b ##[error]c", "passed": true }]"#,
    );
    for command in [
        "plan",
        "run -o out",
        "report out",
        "merge out -o merged",
        "compare --baseline before.json --current out",
    ] {
        let printed = stdout(&suite.ev(command).code(0));
        assert!(printed.contains("b ## [error]c"), "{command}: {printed}");
        let obeyed = |line: &str| line.contains("##[") || line.trim_start().starts_with("::");
        assert!(!printed.lines().any(obeyed), "{command}: {printed}");
    }
    let document = crate::support::json(&suite.ev("report out --format json").code(0));
    assert_eq!(
        document["pairs"][0]["eval"], "b ##[error]c",
        "a program reads the name itself"
    );
}

#[test]
fn a_path_of_results_that_is_no_glob_is_refused_before_the_run() {
    let refused = suite("'true'", "  result: 'r/[{eval}.json'").ev("run").code(2);
    assert!(
        stderr(&refused).contains("`attempt.result`: expected a glob"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn what_lies_in_the_place_of_a_result_is_said() {
    let suite = suite("mkdir r.json", "  result: r.json");
    let (run, summary) = suite.run("");
    run.code(4);
    let error = summary["pairs"][0]["attempts"][0]["error"]["message"]
        .as_str()
        .unwrap();
    assert!(error.contains("`r.json`: it is a directory"), "{error}");
}

#[test]
fn files_that_are_not_kept_are_noted_and_nothing_passing_is_left() {
    let suite = suite(
        "mkdir k && head -c 3000 /dev/zero > k/big && echo s > k/small",
        "  keep: { path: k, max-size: 2KB }",
    );
    suite.run("").0.code(0);
    let attempt = suite.path().join("out/attempts/a__one/1");
    let details = &suite.read_json("out/attempts/a__one/1/attempt.json")["details"];
    assert_eq!(
        details["notes"],
        serde_json::json!(["1 kept paths were left out: `keep.max-size` is 2000 bytes"])
    );
    assert!(!details["confinement"].as_array().unwrap().is_empty());
    let mut names: Vec<String> = attempt
        .read_dir_utf8()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["attempt.json", "files", "output.log"]);
}

#[test]
fn a_missing_temporary_directory_is_said_before_anything_runs() {
    let suite = suite("'true'", "");
    let refused = evalwave(suite.path())
        .arg("run")
        .env("TMPDIR", suite.path().join("missing"))
        .assert()
        .code(2);
    assert!(stderr(&refused).contains("TMPDIR"), "{}", stderr(&refused));
    assert!(!suite.path().join("evalwave-out").exists());
    fs_err::create_dir(suite.path().join("here")).unwrap();
    evalwave(suite.path())
        .arg("run")
        .env("TMPDIR", "here")
        .assert()
        .code(0);
    assert_eq!(suite.path().join("here").read_dir_utf8().unwrap().count(), 0);
}

#[test]
fn an_empty_flag_is_not_set() {
    let suite = suite("'true'", "");
    let flags = [
        "-c",
        "--pairs",
        "--changed-since",
        "--shard",
        "--experiment",
        "--label",
        "--timeout",
    ];
    let mut plan = evalwave(suite.path());
    plan.arg("plan");
    for flag in flags {
        plan.args([flag, ""]);
    }
    assert!(stdout(&plan.assert().code(0)).contains("1 pair x 1 run"));
}

#[test]
fn a_suite_without_pairs_says_where_to_look() {
    let suite = Suite::new(
        "version: 1\nsuite: { evals: { glob: 'evals/*/PROMPT.md' } }\nattempt: { command: 'true' }\n",
    );
    for command in ["plan", "run"] {
        let empty = suite.ev(command).code(4);
        assert!(
            stderr(&empty).contains("no pairs: look at the glob `evals/*/PROMPT.md` of `suite.evals`"),
            "{}",
            stderr(&empty)
        );
    }
}

#[test]
fn files_of_nobody_are_never_replaced() {
    let suite = suite("'true'", "");
    suite.write("mine/report.md", "my own");
    for flags in ["", "--overwrite"] {
        let refused = suite.ev(&format!("run -o mine {flags}")).code(2);
        assert!(
            stderr(&refused).contains("`report.md`, which belongs to no run"),
            "{}",
            stderr(&refused)
        );
    }
    assert_eq!(suite.read("mine/report.md"), "my own");
}

#[cfg(unix)]
#[test]
fn a_run_that_goes_on_is_not_replaced_and_keeps_its_output_when_it_is_cancelled() {
    let suite = suite("echo said so; exec sleep 100", "");
    fs_err::create_dir(suite.path().join("tmp")).unwrap();
    let mut first = std::process::Command::new(env!("CARGO_BIN_EXE_evalwave"))
        .args(["run", "-o", "out"])
        .current_dir(suite.path())
        .env("TMPDIR", suite.path().join("tmp"))
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let log = suite.path().join("out/attempts/a__one/1/output.log.partial");
    while fs_err::metadata(&log).map_or(0, |log| log.len()) == 0 {
        assert!(first.try_wait().unwrap().is_none(), "the run ended early");
        std::thread::yield_now();
    }
    for flags in ["", "--overwrite"] {
        let refused = suite.ev(&format!("run -o out {flags}")).code(2);
        assert!(
            stderr(&refused).contains("a run is being written into"),
            "{}",
            stderr(&refused)
        );
    }
    let pid = rustix::process::Pid::from_child(&first);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(130));
    assert_eq!(suite.read("out/attempts/a__one/1/output.log"), "said so\n");
    suite.ev("run -o out --overwrite --pairs-json []").code(4);
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_whose_results_cannot_be_written_is_no_success() {
    let suite = suite("'true'", "");
    let full = fs_err::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_evalwave"))
        .args(["run", "-o", "out"])
        .current_dir(suite.path())
        .stdout(full.into_file())
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(3));
    let said = String::from_utf8(run.stderr).unwrap();
    assert!(said.contains("cannot write to standard output"), "{said}");
    assert!(said.contains("results in out"), "{said}");
    assert_eq!(suite.read_json("out/summary.json")["totals"]["passed"], 1);
    // A directory in the place of the summary stands for a disk that says no.
    let blocked = suite;
    fs_err::remove_file(blocked.path().join("evalwave.yml")).unwrap();
    blocked.write(
        "evalwave.yml",
        "version: 1\nsuite: { pairs: [{ experiment: a, eval: one }] }\nattempt:\n  command: mkdir -p \"$OUT/report.md\"\n  env-from: [OUT]\nsandbox: { landlock: off }\n",
    );
    let run = evalwave(blocked.path())
        .args(["run", "-o", "blocked"])
        .env("OUT", blocked.path().join("blocked"))
        .assert()
        .code(3);
    assert!(
        stderr(&run).contains("its directory is incomplete"),
        "{}",
        stderr(&run)
    );
    assert!(!blocked.path().join("blocked/.report.md.partial").exists());
}
