//! What a step leaves: outputs, summary, annotations, comment; and the same exit code whatever GitHub answers.

use serde_json::json;

use super::{Workflow, always, measured, pull_request, suite};
use crate::support::github::{Artifact, Fault, Run, State, artifact_of, sha, summary};

/// The outputs of 18 names, neither more nor less, besides the artifact's.
const OUTPUTS: [&str; 18] = [
    "baseline-pass-rate",
    "comment-url",
    "conclusion",
    "concurrency",
    "concurrency-reason",
    "delta",
    "fail-to-pass",
    "failed",
    "missing",
    "p-value",
    "pairs",
    "pass-rate",
    "pass-to-fail",
    "passed",
    "report-path",
    "results-dir",
    "summary-path",
    "verdict",
];

#[test]
fn a_pull_request_is_compared_with_its_base_and_says_so_everywhere() {
    let workflow = Workflow::new(suite("agent/task", "runs: 2", &always(false)), measured());
    let workflow = workflow.input("parallel-attempts", " TRUE ");
    let step = workflow.run();
    let comments = workflow.comments();
    assert_eq!(comments.len(), 1, "{comments:?}");
    let comment = &comments[0];
    assert_eq!(step.code, 0, "{}", step.log);
    let mut names: Vec<&str> = step.outputs.keys().map(String::as_str).collect();
    names.retain(|name| *name != "artifact");
    assert_eq!(names, OUTPUTS);
    for (name, value) in [
        ("conclusion", "success"),
        ("concurrency", "2"),
        ("pass-rate", "0"),
        ("passed", "0"),
        ("failed", "1"),
        ("pairs", "1"),
        ("missing", "0"),
        ("baseline-pass-rate", "1"),
        ("delta", "-1"),
        ("pass-to-fail", "1"),
        ("fail-to-pass", "0"),
        ("artifact", "evalwave-all"),
    ] {
        assert_eq!(step.output(name), value, "{name}");
    }
    assert!(comment.starts_with("<!-- evalwave suite=all -->\n"), "{comment}");
    for text in [comment.as_str(), step.summary.as_str()] {
        assert!(
            text.contains("### Evals: 0/1 passed (0.0 %), −100.0 pp against"),
            "{text}"
        );
        assert!(
            text.contains("[run](<https://github.com/octo/evals/actions/runs/900>)"),
            "{text}"
        );
    }
    assert_eq!(
        step.annotations("error"),
        ["::error title=PASS→FAIL%3A agent × task::passed 2/2 before, 0/2 now"]
    );
    assert!(
        step.log
            .contains("::group::1/1 FAIL agent × task (0/2 attempts passed)\n"),
        "{}",
        step.log
    );
    let results = camino::Utf8Path::new(step.output("results-dir"));
    for document in ["summary.json", "report.md", "report.html"] {
        assert!(results.join(document).is_file(), "{document}");
    }
    assert!(
        !results.join("comment.json").exists(),
        "nothing is left to clean up"
    );
}

/// The same, and the run before that one, in which the pair failed.
pub(super) fn flaky() -> State {
    let mut state = measured();
    let mut earlier = summary("all", Some(&sha("a")));
    earlier["pairs"][0]["verdict"] = "fail".into();
    earlier["run"]["started_at"] = "2026-03-01T10:00:00Z".into();
    let created_at = state.runs[0].created_at.clone();
    state.runs.push(Run {
        created_at,
        ..Run::pushed(1, "a")
    });
    state.artifacts.push(artifact_of(1, "evalwave-all", &earlier));
    state
}

#[test]
fn a_flip_of_a_pair_that_earlier_runs_know_as_flaky_is_shown_as_that_and_fails_no_gate() {
    let config = |more: &str| {
        suite(
            "agent/task",
            &format!("runs: 2\nfail-on: [regression]\n{more}"),
            &always(false),
        )
    };
    let workflow = Workflow::new(config(""), flaky());
    let step = workflow.run();
    assert_eq!(step.code, 0, "{}", step.log);
    let comment = workflow.comments().remove(0);
    assert!(comment.contains("1 PASS→FAIL (1 known flaky)"), "{comment}");
    assert!(
        comment.contains("1 earlier run: noise alone predicts"),
        "{comment}"
    );
    assert!(step.annotations("error").is_empty(), "{}", step.log);

    let unaware = Workflow::new(config("history: 0"), measured());
    let step = unaware.run();
    assert_eq!(step.code, 1, "{}", step.log);
    assert!(!unaware.comments()[0].contains("known flaky"));
}

#[test]
fn a_second_run_writes_the_same_comment_anew() {
    let workflow = Workflow::new(suite("agent/task", "", &always(true)), measured());
    workflow.run();
    let workflow = workflow.set("GITHUB_RUN_ATTEMPT", "2");
    let step = workflow.run();
    let comments = workflow.comments();
    assert_eq!(comments.len(), 1);
    assert!(
        comments[0].contains("/actions/runs/900/attempts/2>)"),
        "{}",
        comments[0]
    );
    assert!(
        step.output("comment-url").contains("#issuecomment-"),
        "{:?}",
        step.outputs
    );
}

#[test]
fn whatever_github_answers_the_run_is_the_same_with_one_warning() {
    type Trouble = fn(&mut State);
    let troubles: [(&str, &str, Trouble); 4] = [
        ("a wrong token", "ghs_not-the-token-of-this-workflow", |_| {}),
        ("no token", "", |_| {}),
        ("a rate limit for an hour", super::TOKEN, |state| {
            state.trouble("", 60, || {
                Fault::Status(429, vec![("retry-after", "3600".to_owned())])
            });
        }),
        ("broken connections", super::TOKEN, |state| {
            state.trouble("", 60, || Fault::Drop)
        }),
    ];
    for (name, token, trouble) in troubles {
        let workflow = Workflow::new(
            suite("agent/task", "fail-on: ['below:50%']", &always(false)),
            measured(),
        );
        trouble(&mut workflow.github.state());
        let step = workflow.input("github-token", token).run();
        assert_eq!(step.code, 1, "{name}: {}", step.log);
        assert_eq!(step.output("conclusion"), "failure", "{name}");
        assert!(
            step.summary.contains("### Evals: 0/1 passed"),
            "{name}: {}",
            step.summary
        );
        let warnings = step.annotations("warning");
        assert_eq!(warnings.len(), 1, "{name}: {}", step.log);
        for not_done in ["the baseline was not looked up", "the comment was not written"] {
            assert!(warnings[0].contains(not_done), "{name}: {}", warnings[0]);
        }
    }
}

#[test]
fn a_look_up_that_fails_is_no_regression_and_is_no_baseline_either() {
    for (gates, code) in [("regression", 0), ("regression, no-baseline", 1)] {
        let config = format!("runs: 2\nfail-on: [{gates}]");
        let workflow = Workflow::new(suite("agent/task", &config, &always(false)), measured());
        workflow
            .github
            .state()
            .trouble("/actions/", 9, || Fault::Status(502, Vec::new()));
        let step = workflow.run();
        assert_eq!(step.code, code, "{gates}: {}", step.log);
        let warnings = step.annotations("warning");
        assert!(
            warnings[0].contains("the baseline was not looked up"),
            "{gates}: {}",
            warnings[0]
        );
    }
}

#[test]
fn a_history_that_is_shorter_than_was_asked_for_says_why() {
    let mut state = measured();
    let created_at = state.runs[0].created_at.clone();
    state.runs.extend((100..130).map(|id| Run {
        created_at: created_at.clone(),
        ..Run::pushed(id, "a")
    }));
    let workflow = Workflow::new(suite("agent/task", "history: 2", &always(true)), state);
    let step = workflow.run();
    assert_eq!(step.code, 0, "{}", step.log);
    let why =
        "the history has 0 of the 2 runs that were asked for: 22 runs were looked through, and no more are";
    assert!(step.notices().contains(why), "{}", step.notices());
}

#[test]
fn nobody_at_the_other_end_costs_a_warning_and_no_result() {
    let workflow = Workflow::new(suite("agent/task", "", &always(true)), measured());
    let step = workflow.set("GITHUB_API_URL", "http://127.0.0.1:9").run();
    assert_eq!((step.code, step.output("conclusion")), (0, "success"));
    assert_eq!(step.annotations("warning").len(), 1, "{}", step.log);
}

#[test]
fn a_token_that_may_not_comment_is_normal() {
    let workflow = Workflow::new(suite("agent/task", "", &always(true)), measured());
    workflow.github.state().forbidden.push("pull-requests: write");
    let step = workflow.run();
    assert_eq!(step.code, 0);
    assert!(step.annotations("warning").is_empty(), "{}", step.log);
    assert_eq!(step.annotations("notice").len(), 1, "{}", step.log);
    assert!(
        step.annotations("notice")[0].contains("pull-requests: write"),
        "{}",
        step.log
    );
}

#[test]
fn pushes_schedules_and_queues_are_measured_without_a_comment() {
    let push = json!({ "before": sha("b"), "repository": { "id": 1 } });
    let queue = json!({ "merge_group": { "base_sha": sha("b"), "base_ref": "refs/heads/main" } });
    for (event, reference, payload) in [
        ("push", "refs/heads/main", push),
        ("schedule", "refs/heads/main", json!({})),
        ("workflow_dispatch", "refs/heads/main", json!({ "inputs": null })),
        ("merge_group", "refs/heads/gh-readonly-queue/main/pr-1", queue),
    ] {
        let workflow = Workflow::new(suite("agent/task", "", &always(true)), measured());
        let workflow = workflow.event(event, reference, payload);
        let step = workflow.run();
        assert_eq!(step.code, 0, "{event}: {}", step.log);
        assert_eq!(step.output("baseline-pass-rate"), "1", "{event}: {}", step.log);
        assert!(workflow.comments().is_empty(), "{event}");
        assert!(step.annotations("warning").is_empty(), "{event}: {}", step.log);
    }
}

#[test]
fn no_baseline_yet_is_a_normal_state() {
    let workflow = Workflow::new(
        suite("agent/task", "", &always(true)),
        State::with_history(&["a", "b"]),
    );
    let step = workflow.run();
    assert_eq!(
        (step.code, step.output("delta"), step.output("verdict")),
        (0, "", "")
    );
    assert!(step.summary.contains("· no baseline"), "{}", step.summary);
    assert!(step.annotations("warning").is_empty(), "{}", step.log);
}

#[test]
fn a_shard_has_an_artifact_of_its_own_and_no_comment() {
    let workflow = Workflow::new(suite("agent/task agent/other", "", &always(true)), measured());
    let workflow = workflow.input("shard", "2/2");
    let step = workflow.run();
    assert_eq!(step.output("artifact"), "evalwave-all-2-of-2");
    assert_eq!(step.output("pairs"), "1");
    assert!(workflow.comments().is_empty());
}

#[test]
fn a_comment_for_changes_only_appears_with_one_and_is_renewed_when_it_is_gone() {
    let config = "report: { comment: changes }";
    let workflow = Workflow::new(suite("agent/task", config, &always(true)), measured());
    workflow.run();
    assert!(workflow.comments().is_empty(), "nothing has changed");
    workflow.suite.write("attempt.sh", &always(false));
    workflow.run();
    assert!(workflow.comments()[0].contains("1 PASS→FAIL"));
    workflow.suite.write("attempt.sh", &always(true));
    let workflow = workflow.set("GITHUB_RUN_ID", "901");
    workflow.run();
    let comments = workflow.comments();
    assert_eq!(comments.len(), 1);
    assert!(comments[0].contains("0 PASS→FAIL"), "{}", comments[0]);
}

#[test]
fn what_changed_alone_is_run_and_nothing_changed_is_a_skip() {
    let config = "suite:\n  name: all\n  pairs: [{ experiment: agent, eval: task }]\n  changed: { evals: 'evals/{eval}/**' }\n";
    let suite = suite("agent/task", "", &always(true));
    let text = suite.read("evalwave.yml");
    let rest = text.split_once("attempt:").unwrap().1;
    suite.write("evalwave.yml", &format!("version: 1\n{config}attempt:{rest}"));
    let workflow = Workflow::new(suite, measured());
    // What changed since the checkout itself: nothing.
    let mut payload = pull_request(1, "octo/evals");
    payload["pull_request"]["base"]["sha"] = json!(workflow.head);
    let workflow = workflow.event("pull_request", "refs/pull/12/merge", payload);
    let step = workflow.input("changed-only", "true").run();
    assert_eq!(
        (step.code, step.output("conclusion")),
        (0, "skipped"),
        "{}",
        step.log
    );
}

#[test]
fn a_baseline_can_be_named_by_artifact_and_by_run() {
    for source in ["artifact:evalwave-all", "run:3", "before.json"] {
        let workflow = Workflow::new(suite("agent/task", "", &always(true)), measured());
        let before = r#"[{"experiment": "agent", "eval": "task", "passed": true}]"#;
        workflow.suite.write("before.json", before);
        let step = workflow.input("baseline", source).run();
        assert_eq!(step.output("baseline-pass-rate"), "1", "{source}: {}", step.log);
    }
    let workflow = Workflow::new(suite("agent/task", "", &always(true)), measured());
    let step = workflow.input("baseline", "missing.json").run();
    assert_eq!(
        step.code, 2,
        "a baseline that is named and is not there is a mistake: {}",
        step.log
    );
}

#[test]
fn a_baseline_is_looked_for_by_the_name_that_the_results_are_kept_as() {
    let mut state = measured();
    let mut nightly = summary("all", Some(&sha("b")));
    nightly["pairs"][0]["verdict"] = "fail".into();
    let nightly = artifact_of(3, "nightly", &nightly);
    state.artifacts.push(Artifact { id: 31, ..nightly });
    let mut workflow = Workflow::new(suite("agent/task agent/two", "runs: 2", &always(true)), state);
    workflow = workflow.input("artifact", "nightly");
    let step = workflow.run();
    assert_eq!(
        (step.output("artifact"), step.output("baseline-pass-rate")),
        ("nightly", "0"),
        "{}",
        step.log
    );
    // A shard's own name ends in its number, and the whole's does not.
    for (shard, own, looked_for) in [
        ("1/2", "nightly-1-of-2", "nightly"),
        ("1/2", "first", "evalwave-all"),
        ("2/2", "", "evalwave-all"),
    ] {
        workflow.github.state().exchanges.clear();
        workflow = workflow.input("shard", shard).input("artifact", own);
        let step = workflow.run();
        assert_eq!(step.code, 0, "{}", step.log);
        let state = workflow.github.state();
        let asked = state.exchanges.iter();
        let names: Vec<&str> = asked
            .filter(|exchange| exchange.path.ends_with("/artifacts"))
            .filter_map(|exchange| exchange.query.split('&').next())
            .collect();
        assert_eq!(names, [format!("name={looked_for}")], "{own}");
    }
}

#[test]
fn two_sets_of_results_are_compared_without_a_run() {
    let workflow = Workflow::new(suite("agent/task", "", &always(true)), measured());
    workflow.suite.write(
        "before.json",
        r#"[{"experiment": "a", "eval": "b", "passed": true}]"#,
    );
    workflow.suite.write(
        "now.json",
        r#"[{"experiment": "a", "eval": "b", "passed": false}]"#,
    );
    let workflow = workflow
        .input("command", "compare")
        .input("baseline", "before.json")
        .input("output-dir", "now.json")
        .input("fail-on", "regression");
    let step = workflow.run();
    assert_eq!((step.code, step.output("pass-to-fail")), (1, "1"), "{}", step.log);
    assert!(step.summary.contains("1 PASS→FAIL"), "{}", step.summary);

    // A configuration that is named says what fails, where no input does.
    let own = workflow.suite.read("evalwave.yml")
        + "
fail-on: [regression]
";
    workflow.suite.write("own.yml", &own);
    let workflow = workflow.input("fail-on", "").input("config", "own.yml");
    let step = workflow.run();
    assert_eq!(step.code, 1, "{}", step.log);
    assert!(step.log.contains("gate `regression` failed"), "{}", step.log);

    // One that is not named is looked for, and its paths start where it lies.
    workflow
        .suite
        .write(".github/evalwave.yml", &(own + "baseline: results/before.json\n"));
    workflow
        .suite
        .write("results/before.json", &workflow.suite.read("before.json"));
    for path in ["evalwave.yml", "before.json"] {
        fs_err::remove_file(workflow.suite.path().join(path)).unwrap();
    }
    let workflow = workflow.input("config", "").input("baseline", "");
    let step = workflow.run();
    assert!(step.log.contains("gate `regression` failed"), "{}", step.log);
    let moved = workflow
        .suite
        .read(".github/evalwave.yml")
        .replace("results/", "");
    workflow.suite.write("results/evalwave.yml", &moved);
    let workflow = workflow.input("config", "results/evalwave.yml");
    let step = workflow.run();
    assert!(step.log.contains("gate `regression` failed"), "{}", step.log);
    // An input starts where the step does.
    let step = workflow.input("baseline", "results/before.json").run();
    assert!(step.log.contains("gate `regression` failed"), "{}", step.log);
}

#[test]
fn a_server_that_only_a_proxy_reaches_is_reached_through_it() {
    let workflow = Workflow::new(suite("agent/task", "", &always(true)), measured());
    let proxy = workflow.github.api_url();
    // A name that no resolver knows: whatever arrives has come through the proxy.
    let workflow = workflow
        .set("GITHUB_API_URL", "http://github.invalid")
        .set("HTTP_PROXY", &proxy)
        .set("http_proxy", &proxy);
    let step = workflow.run();
    assert_eq!(step.code, 0, "{}", step.log);
    assert!(step.annotations("warning").is_empty(), "{}", step.log);
    assert_eq!(workflow.comments().len(), 1);
    assert_eq!(step.output("baseline-pass-rate"), "1", "{}", step.log);
}

#[test]
fn an_installed_evalwave_is_found_by_the_steps_that_follow() {
    let workflow = Workflow::new(suite("agent/task", "", &always(true)), State::default());
    let workflow = workflow.input("command", "install");
    let refused = workflow.run();
    assert_eq!(refused.code, 2);
    let why = refused.annotations("error");
    assert!(why[0].contains("`GITHUB_PATH` is not set"), "{why:?}");

    let directory = workflow.runner().to_owned();
    let workflow = workflow.set("GITHUB_PATH", directory.as_str());
    let why = workflow.run().log;
    assert!(why.contains("to the PATH of the steps that follow"), "{why}");

    let file = workflow.runner().join("path");
    let workflow = workflow.set("GITHUB_PATH", file.as_str());
    let step = workflow.run();
    assert_eq!(step.code, 0, "{}", step.log);
    let path = fs_err::read_to_string(&file).unwrap();
    let program = camino::Utf8Path::new(path.trim_end()).join("evalwave");
    assert_eq!(program, camino::Utf8Path::new(env!("CARGO_BIN_EXE_evalwave")));
}

#[test]
fn outside_a_workflow_the_action_says_where_it_belongs() {
    let suite = suite("agent/task", "", &always(true));
    let run = suite.ev("action").code(2);
    let log = crate::support::stdout(&run);
    assert!(
        log.contains("this runs inside GitHub Actions: `GITHUB_EVENT_NAME` is not set"),
        "{log}"
    );
    assert!(log.contains("evalwave run"), "{log}");
}

#[test]
fn more_findings_than_github_keeps_are_counted() {
    let pairs: Vec<String> = (0..14).map(|at| format!("agent/eval-{at:02}")).collect();
    let workflow = Workflow::new(
        suite(&pairs.join(" "), "retry: { tries: 1 }", "exit 9"),
        measured(),
    );
    let step = workflow.run();
    let errors = step.annotations("error");
    assert_eq!(errors.len(), 10, "{}", step.log);
    assert!(
        errors[9].ends_with("more findings are in the summary"),
        "{}",
        errors[9]
    );
}

#[test]
fn debug_logging_shows_every_start() {
    let workflow = Workflow::new(suite("agent/task", "", &always(true)), measured());
    let quiet = workflow.run();
    assert!(!quiet.log.contains("::debug::"), "{}", quiet.log);
    let workflow = workflow.set("RUNNER_DEBUG", "1");
    let step = workflow.run();
    assert!(
        step.log.contains("::debug::started agent × task #1, try 1"),
        "{}",
        step.log
    );
}

#[test]
fn a_baseline_of_another_branch_called_main_is_not_taken() {
    let mut state = State::with_history(&["a", "b"]);
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    state.measured(Run {
        created_at: now,
        head_repository: Some(2),
        ..Run::pushed(3, "b")
    });
    let workflow = Workflow::new(suite("agent/task", "", &always(true)), state);
    assert_eq!(workflow.run().output("baseline-pass-rate"), "");
}

#[test]
fn a_flip_is_tried_again_and_the_comment_says_whether_it_is_there_again() {
    // The first attempt of the run fails, the fresh one passes.
    let script = "[ -e \"$FLAG\" ] && passed=true || passed=false\ntouch \"$FLAG\"\nprintf '{\"passed\": %s}' $passed > result.json";
    let suite = suite("agent/task", "confirm: 1", script);
    let config = suite.read("evalwave.yml");
    suite.write(
        "evalwave.yml",
        &config.replace("  command:", "  env-from: [FLAG]\n  command:"),
    );
    let workflow = Workflow::new(suite, measured());
    let flag = workflow.runner().join("flag");
    let workflow = workflow.set("FLAG", flag.as_str());
    let step = workflow.run();
    assert_eq!(step.output("pass-to-fail"), "1", "{}", step.log);
    assert!(
        workflow.comments()[0].contains("1 of 1 PASS→FAIL did not reproduce"),
        "{}",
        workflow.comments()[0]
    );
    assert!(
        step.log.contains("::group::confirm 1/1 PASS agent × task"),
        "{}",
        step.log
    );
}

#[test]
fn what_is_wrong_with_a_configuration_is_said_before_github_is_asked_anything() {
    for (more, said) in [
        ("sandbox: { kind: vercel }", "missing in the environment: "),
        (
            "limits: [{ label: 'provider=nobody', concurrency: 2 }]",
            "provider=nobody",
        ),
    ] {
        let workflow = Workflow::new(suite("agent/task", more, &always(true)), measured());
        let step = workflow.run();
        assert_eq!(step.code, 2, "{more}: {}", step.log);
        let errors = step.annotations("error");
        assert!(errors.iter().any(|error| error.contains(said)), "{errors:?}");
        assert_eq!(workflow.github.asked(), Vec::<String>::new(), "{more}");
    }
}
