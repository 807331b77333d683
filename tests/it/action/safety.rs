//! Code of others and secrets of ours: what is refused, what is skipped, what an approved run is held to, and that no
//! secret is anywhere in what a run writes and sends.

use base64::Engine as _;
use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};

use super::{Workflow, always, measured, pull_request, suite};
use crate::support::Suite;
use crate::support::github::{Pull, TOKEN, sha};

fn with_secret(script: &str) -> Suite {
    let suite = suite("agent/task", "", script);
    let config = suite
        .read("evalwave.yml")
        .replace("  command:", "  secrets: [API_KEY]\n  command:");
    suite.write("evalwave.yml", &config);
    suite
}

/// A run of a fork's pull request that has ended.
fn workflow_run(id: u64, full_name: &str) -> Value {
    json!({
        "repository": { "id": 1, "full_name": "octo/evals", "default_branch": "main" },
        "workflow_run": {
            "id": 850, "run_attempt": 1, "event": "pull_request", "head_sha": sha("fork"), "head_branch": "faster",
            "head_repository": { "id": id, "full_name": full_name }, "pull_requests": [],
        },
    })
}

#[test]
fn another_repositorys_code_never_runs_beside_our_secrets_unless_that_is_accepted() {
    let started = "touch ../started; echo '{\"passed\": true}' > result.json";
    for (event, payload) in [
        ("pull_request_target", pull_request(2, "someone/evals")),
        ("workflow_run", workflow_run(2, "someone/evals")),
    ] {
        let workflow = Workflow::new(suite("agent/task", "", started), measured());
        let workflow = workflow.event(event, "refs/heads/main", payload);
        let step = workflow.run();
        assert_eq!(step.code, 2, "{event}: {}", step.log);
        let refusal = step.annotations("error")[0];
        assert!(
            refusal.contains("refused: under `") && refusal.contains(event),
            "{refusal}"
        );
        assert!(!step.outputs.contains_key("results-dir"), "nothing was run");
        let workflow = workflow.input("i-accept-that-this-runs-untrusted-code", "true");
        assert_eq!(workflow.run().code, 0, "{event}");
    }
    let own = Workflow::new(suite("agent/task", "", started), measured());
    let own = own.event(
        "pull_request_target",
        "refs/heads/main",
        pull_request(1, "octo/evals"),
    );
    assert_eq!(own.run().code, 0);
}

#[test]
fn a_fork_without_the_secrets_is_skipped_and_says_how_it_can_be_run() {
    let workflow = Workflow::new(with_secret(&always(true)), measured());
    let workflow = workflow.event(
        "pull_request",
        "refs/pull/12/merge",
        pull_request(2, "someone/evals"),
    );
    let step = workflow.run();
    assert_eq!(
        (step.code, step.output("conclusion")),
        (0, "skipped"),
        "{}",
        step.log
    );
    let how = format!(
        "gh workflow run evals.yml -f pull-request=12 -f head-sha={}",
        sha("head")
    );
    assert!(step.annotations("notice")[0].contains(&how), "{}", step.log);
    assert!(step.summary.contains("### Evals: skipped"), "{}", step.summary);
    assert_eq!(workflow.github.asked(), Vec::<String>::new());
    // Its shards have left nothing to merge, and that is as it should be.
    let merge = workflow
        .input("command", "merge")
        .input("output-dir", "shards")
        .run();
    assert_eq!(
        (merge.code, merge.output("conclusion")),
        (0, "skipped"),
        "{}",
        merge.log
    );
}

#[test]
fn dependabot_is_skipped_too_and_anybody_else_is_told_what_is_missing() {
    let workflow = Workflow::new(with_secret(&always(true)), measured());
    let workflow = workflow.set("GITHUB_ACTOR", "dependabot[bot]");
    let step = workflow.run();
    assert_eq!((step.code, step.output("conclusion")), (0, "skipped"));
    let workflow = workflow.set("GITHUB_ACTOR", "ada");
    let step = workflow.run();
    assert_eq!(step.code, 2);
    assert!(
        step.annotations("error")[0].contains("missing in the environment: `API_KEY`"),
        "{}",
        step.log
    );
}

#[test]
fn a_fork_whose_suite_needs_no_secrets_runs() {
    let workflow = Workflow::new(suite("agent/task", "", &always(true)), measured());
    let workflow = workflow.event(
        "pull_request",
        "refs/pull/12/merge",
        pull_request(2, "someone/evals"),
    );
    assert_eq!(workflow.run().output("conclusion"), "success");
}

/// A run that somebody has started by hand for a fork's pull request 14.
fn by_hand(head: impl Fn(&Workflow) -> String) -> Workflow {
    let workflow = Workflow::new(suite("agent/task", "", &always(true)), measured());
    let approved = head(&workflow);
    workflow.github.state().pulls.push(Pull {
        number: 14,
        state: "open",
        head_repository: Some("someone/evals"),
        head_branch: "faster",
        head_sha: approved.clone(),
        base_branch: "main",
    });
    workflow
        .event("workflow_dispatch", "refs/heads/main", json!({}))
        .input("pull-request", "14")
        .input("head-sha", &approved)
}

#[test]
fn an_approved_commit_is_run_and_commented_on() {
    let workflow = by_hand(|workflow| workflow.head.clone());
    let step = workflow.run();
    assert_eq!(step.code, 0, "{}", step.log);
    let state = workflow.github.state();
    let pulls: Vec<u64> = state.comments.iter().map(|comment| comment.pull).collect();
    assert_eq!(pulls, [14]);
}

#[test]
fn a_head_that_has_moved_since_it_was_read_is_refused() {
    let workflow = by_hand(|workflow| workflow.head.clone());
    workflow.github.state().pulls[1].head_sha = sha("newer");
    let step = workflow.run();
    assert_eq!(step.code, 2);
    assert!(
        step.annotations("error")[0].contains("the head of pull request 14 has moved"),
        "{}",
        step.log
    );
    assert!(!step.outputs.contains_key("results-dir"));
}

#[test]
fn another_commit_than_the_approved_one_is_not_run() {
    let workflow = by_hand(|_| sha("fork"));
    let step = workflow.run();
    assert_eq!(step.code, 2);
    assert!(
        step.annotations("error")[0].contains("is checked out"),
        "{}",
        step.log
    );
    let workflow = workflow.set("GITHUB_API_URL", "http://127.0.0.1:9");
    let step = workflow.run();
    assert_eq!(
        step.code, 2,
        "whether it is still the head cannot be told: {}",
        step.log
    );
}

/// A run directory as an artifact brings it.
fn artifact(workflow: &Workflow) -> Utf8PathBuf {
    let step = workflow.run();
    Utf8PathBuf::from(step.output("results-dir"))
}

fn second_workflow() -> (Workflow, Utf8PathBuf) {
    let workflow =
        Workflow::new(suite("agent/task", "", &always(true)), measured()).input("comment", "never");
    let results = artifact(&workflow);
    workflow.github.state().pulls.push(Pull {
        number: 14,
        state: "open",
        head_repository: Some("someone/evals"),
        head_branch: "faster",
        head_sha: sha("fork"),
        base_branch: "main",
    });
    let workflow = workflow
        .event(
            "workflow_run",
            "refs/heads/main",
            workflow_run(2, "someone/evals"),
        )
        .input("comment", "always");
    (workflow, results)
}

#[test]
fn the_second_workflow_comments_on_the_forks_pull_request() {
    let (workflow, results) = second_workflow();
    let step = workflow.call(&["comment", results.as_str()]);
    assert_eq!(step.code, 0, "{}", step.log);
    let state = workflow.github.state();
    assert_eq!(state.comments.len(), 1);
    assert_eq!(state.comments[0].pull, 14);
    let body = &state.comments[0].body;
    assert!(
        body.contains("[run](<https://github.com/octo/evals/actions/runs/850>)"),
        "{body}"
    );
    drop(state);
    let workflow = workflow
        .input("command", "comment")
        .input("output-dir", results.as_str());
    assert_eq!(workflow.run().code, 0, "the same as a command of the action");
    assert_eq!(workflow.comments().len(), 1);
}

#[test]
fn the_second_workflow_comments_on_what_is_wanted_alone() {
    let (workflow, results) = second_workflow();
    let workflow = workflow.input("comment", "failures");
    let step = workflow.call(&["comment", results.as_str()]);
    assert_eq!((step.code, workflow.comments().len()), (0, 0), "{}", step.log);

    let path = results.join("summary.json");
    let mut failed: Value = serde_json::from_slice(&fs_err::read(&path).unwrap()).unwrap();
    failed["run"]["conclusion"] = json!("failure");
    fs_err::write(&path, failed.to_string()).unwrap();
    workflow.call(&["comment", results.as_str()]);
    assert_eq!(workflow.comments().len(), 1);

    // One that is there is kept true.
    failed["run"]["conclusion"] = json!("success");
    failed["notices"] = json!(["all is well again"]);
    fs_err::write(&path, failed.to_string()).unwrap();
    workflow.call(&["comment", results.as_str()]);
    let comments = workflow.comments();
    assert!(
        comments.len() == 1 && comments[0].contains("well&#32;again"),
        "{comments:?}"
    );
}

#[test]
fn an_artifact_is_data_and_leads_nobody_astray() {
    let (workflow, results) = second_workflow();
    let path_of_summary = results.join("summary.json");
    let mut summary: Value = serde_json::from_slice(&fs_err::read(&path_of_summary).unwrap()).unwrap();
    summary["run"]["url"] = json!("https://example.com/phish");
    summary["comparison"]["baseline"]["run_url"] = json!("https://example.com/phish");
    summary["notices"] = json!(["<img src=x> @everyone [here](https://example.com)"]);
    fs_err::write(&path_of_summary, summary.to_string()).unwrap();
    workflow.call(&["comment", results.as_str()]);
    let body = workflow.comments().remove(0);
    assert!(!body.contains("example.com/phish"), "{body}");
    let repository = "https://github.com/octo/evals";
    for (path, is_shown) in [
        ("/actions/runs/7", true),
        ("/actions/runs/7/attempts/2", true),
        ("/../../someone/page", false),
        ("/actions/runs/%2e%2e/%2e%2e/page", false),
        ("/actions/runs/7/attempts/../../../page", false),
    ] {
        let url = format!("{repository}{path}");
        summary["comparison"]["baseline"]["run_url"] = json!(url);
        fs_err::write(&path_of_summary, summary.to_string()).unwrap();
        workflow.call(&["comment", results.as_str()]);
        let body = workflow.comments().remove(0);
        assert_eq!(body.contains(&url), is_shown, "{body}");
    }
    assert!(!body.contains("<img") && !body.contains("@everyone"), "{body}");

    for (key, value) in [("suite", json!("x --> <b>")), ("started_at", json!("yesterday"))] {
        let mut broken = summary.clone();
        broken["run"][key] = value;
        fs_err::write(&path_of_summary, broken.to_string()).unwrap();
        let step = workflow.call(&["comment", results.as_str()]);
        assert_eq!(step.code, 2, "{key}: {}", step.log);
    }
    fs_err::write(&path_of_summary, b"\xff\x00").unwrap();
    assert_eq!(workflow.call(&["comment", results.as_str()]).code, 2);
    assert_eq!(workflow.comments().len(), 1);
}

#[test]
fn a_pull_request_that_has_moved_on_gets_no_comment() {
    let (workflow, results) = second_workflow();
    workflow.github.state().pulls[1].head_sha = sha("newer");
    let step = workflow.call(&["comment", results.as_str()]);
    assert_eq!((step.code, workflow.comments().len()), (0, 0), "{}", step.log);
    assert!(
        step.annotations("notice")[0].contains("has moved on"),
        "{}",
        step.log
    );
}

/// Every file below a directory.
fn files(directory: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut found = Vec::new();
    for entry in directory.read_dir_utf8().unwrap() {
        let path = entry.unwrap().into_path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// The forms in which a secret would be recognised.
fn forms(secret: &str) -> Vec<String> {
    let encoded = |keep: fn(char) -> bool, form: fn(u32) -> String| {
        secret
            .chars()
            .map(|character| {
                if keep(character) {
                    character.to_string()
                } else {
                    form(character as u32)
                }
            })
            .collect::<String>()
    };
    let json = serde_json::to_string(secret).unwrap();
    vec![
        secret.to_owned(),
        base64::engine::general_purpose::STANDARD.encode(secret),
        encoded(
            |character| character.is_ascii_alphanumeric(),
            |code| format!("%{code:02X}"),
        ),
        encoded(
            |character| character.is_ascii_alphanumeric(),
            |code| format!("&#{code};"),
        ),
        json.trim_matches('"').to_owned(),
    ]
}

#[test]
fn no_secret_is_in_anything_that_a_run_writes_or_sends() {
    let secret = "canary/\"7f3a\"+91c2=";
    let script = r#"
        printf '%s\n' "$API_KEY"; printf '%s' "$API_KEY" | base64; env
        printf '::error::%s\n' "$API_KEY" >&2
        escaped=$(printf '%s' "$API_KEY" | sed 's/"/\\"/g')
        printf '{"passed": false, "error": "key %s was refused", "checks": [{"name": "with %s", "passed": false}]}' "$escaped" "$escaped" > result.json
    "#;
    let workflow = Workflow::new(with_secret(script), measured());
    let workflow = workflow.set("API_KEY", secret).set("RUNNER_DEBUG", "1");
    let step = workflow.run();
    assert_eq!(step.code, 0, "{}", step.log);
    assert!(
        step.summary.contains("&#42;&#42;&#42;"),
        "the check's name is shown without it: {}",
        step.summary
    );

    let mut written = vec![("the summary".to_owned(), step.summary.clone())];
    // The runner has to be told what to mask, and takes that line out of the log.
    let log = step.log.lines().filter(|line| !line.starts_with("::add-mask::"));
    written.push(("the log".to_owned(), log.collect::<Vec<_>>().join("\n")));
    for path in files(&workflow.runner()) {
        let text = String::from_utf8_lossy(&fs_err::read(&path).unwrap()).into_owned();
        written.push((path.into_string(), text));
    }
    for exchange in &workflow.github.state().exchanges {
        written.push((exchange.path.clone(), exchange.body.to_string() + &exchange.query));
    }
    assert!(written.len() > 10, "{}", written.len());
    for (name, text) in &written {
        for hidden in [secret, TOKEN] {
            for form in forms(hidden) {
                assert!(!text.contains(&form), "{name} holds {form}:\n{text}");
            }
        }
    }
    assert!(
        step.log.contains(&format!("::add-mask::{secret}\n")),
        "{}",
        step.log
    );
}

#[test]
fn an_attempt_sees_neither_the_token_nor_anything_of_the_runner() {
    let script =
        "env; cat /proc/$PPID/environ 2>/dev/null | tr '\\0' '\\n'; echo '{\"passed\": true}' > result.json";
    let workflow = Workflow::new(suite("agent/task", "", script), measured())
        .set("GITHUB_TOKEN", "ghs_canary-of-the-job")
        .set("ACTIONS_RUNTIME_TOKEN", "canary-runtime")
        .set("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "canary-oidc")
        .set("ACTIONS_ID_TOKEN_REQUEST_URL", "https://example.com/canary")
        .set("SOME_OTHER_SECRET", "canary-other");
    let step = workflow.run();
    assert_eq!(step.code, 0);
    let output = Utf8Path::new(step.output("results-dir")).join("attempts/agent__task/1/output.log");
    let seen = fs_err::read_to_string(output).unwrap();
    assert!(seen.contains("EVALWAVE_EVAL=task"), "{seen}");
    for name in ["GITHUB_", "ACTIONS_", "RUNNER_", "EVALWAVE_INPUT_", "canary"] {
        assert!(!seen.contains(name), "{name}: {seen}");
    }
}
