//! The example's workflow, run whole by `act`, a runner that is not ours: every step of `action.yml`, on a pull
//! request, against a GitHub that holds state.

use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{commit_all, pull_request};
use crate::support::github::{Github, State, TOKEN, sha};
use crate::support::repository;

/// Where `.ci/run` says that act is.
const ACT: &str = "EVALWAVE_TEST_ACT";

/// Keeps what it is given, in place of GitHub's storage.
const UPLOAD: &str = r#"
name: upload
inputs:
  name: { required: true }
  path: { required: true }
  if-no-files-found: { default: warn }
  overwrite: { default: 'false' }
  retention-days: { default: '0' }
runs:
  using: composite
  steps:
    - shell: bash
      env:
        NAME: ${{ inputs.name }}
        FILES: ${{ inputs.path }}
        KEPT: ${{ inputs.retention-days }} days, overwrite ${{ inputs.overwrite }}
      run: |
        mkdir -p "$UPLOADS/$NAME"
        printf '%s\n' "$KEPT" > "$UPLOADS/$NAME.txt"
        printf '%s\n' "$FILES" | while IFS= read -r pattern; do
          for file in $pattern; do if [ -e "$file" ]; then cp -r "$file" "$UPLOADS/$NAME/"; fi; done
        done
"#;

/// Brings back what the one above has kept.
const DOWNLOAD: &str = r#"
name: download
inputs:
  pattern: { required: true }
  path: { required: true }
runs:
  using: composite
  steps:
    - shell: bash
      env:
        PATTERN: ${{ inputs.pattern }}
        INTO: ${{ inputs.path }}
      run: |
        for kept in "$UPLOADS"/$PATTERN; do
          if [ -d "$kept" ]; then mkdir -p "$INTO"; cp -r "$kept" "$INTO/"; fi
        done
"#;

/// What the run of the workflow has left.
struct Ran {
    _place: TempDir,
    log: String,
    outputs: Value,
    uploads: Utf8PathBuf,
    github: Github,
}

fn copy(from: &Utf8Path, to: &Utf8Path) {
    fs_err::create_dir_all(to).unwrap();
    for entry in from.read_dir_utf8().unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(entry.path(), &target),
            false => {
                fs_err::copy(entry.path(), &target).unwrap();
            }
        }
    }
}

/// A workflow among the examples.
fn example(name: &str) -> String {
    fs_err::read_to_string(repository().join("examples/workflows").join(name)).unwrap()
}

/// The same without the commit that the checkout takes where one is approved: only without a reference of its own does act
/// take the checkout that is there for the one that is asked for.
fn example_here(name: &str) -> String {
    const APPROVED: &str =
        "          ref: ${{ inputs.head-sha }} # empty but for a commit that somebody has read\n";
    let text = example(name);
    assert!(text.contains(APPROVED), "the workflow has no longer {APPROVED:?}");
    text.replace(APPROVED, "")
}

/// A step that tells the outputs of the step `evals`.
fn telling(outputs: &Utf8Path) -> String {
    format!(
        "      - if: always()\n        env:\n          OUTPUTS: ${{{{ toJSON(steps.evals.outputs) }}}}\n        run: printf '%s' \"$OUTPUTS\" > {outputs}\n"
    )
}

/// The workflow with a matrix of shards, with the binary that was built, and a step that tells the outputs.
fn sharded(binary: &Utf8Path, outputs: &Utf8Path) -> String {
    let text = example_here("shards.yml");
    let built = format!("        with:\n          binary-path: {binary}\n");
    let mut changed = text;
    for key in ["          shard: ${{", "          command: merge"] {
        let from = format!("        with:\n{key}");
        assert!(changed.contains(&from), "the workflow has no longer {from:?}");
        changed = changed.replace(&from, &format!("{built}{key}"));
    }
    let merges = "      - uses: OWNER/evalwave@v1\n        with:\n          binary-path";
    assert!(changed.contains(merges), "{changed}");
    let named = "      - id: evals\n        uses: OWNER/evalwave@v1\n        with:\n          binary-path";
    changed.replace(merges, named) + &telling(outputs)
}

/// The workflow that the README shows, with what a test has to change: the binary that was built, no other secret, and
/// a step that tells the outputs.
fn workflow(binary: &Utf8Path, outputs: &Utf8Path) -> String {
    let text = example_here("evals.yml");
    let replace = |text: String, from: &str, to: &str| {
        assert!(text.contains(from), "the workflow has no longer {from:?}");
        text.replace(from, to)
    };
    let text = replace(
        text,
        "      - uses: OWNER/evalwave@v1",
        "      - id: evals\n        uses: OWNER/evalwave@v1",
    );
    let text = replace(
        text,
        "        with:\n          parallel-attempts:",
        &format!("        with:\n          binary-path: {binary}\n          parallel-attempts:"),
    );
    text + &telling(outputs)
}

/// Runs a workflow, with the repository's variable as given.
fn run(act: &str, workflow: fn(&Utf8Path, &Utf8Path) -> String, variable: Option<&str>) -> Ran {
    let place = TempDir::new().unwrap();
    let at = |name: &str| Utf8Path::from_path(place.path()).unwrap().join(name);
    let (checkout, action, uploads) = (at("checkout"), at("action"), at("uploads"));

    copy(&repository().join("examples/quickstart"), &checkout);
    let config = fs_err::read_to_string(checkout.join("evalwave.yml")).unwrap();
    // The variable is what turns it on here.
    fs_err::write(
        checkout.join("evalwave.yml"),
        config.replace("strategy: parallel\n", ""),
    )
    .unwrap();
    // act gives composite steps INPUT_ variables that GitHub's runner does not.
    let binary = at("evalwave.sh");
    let real = assert_cmd::cargo::cargo_bin("evalwave");
    let script = format!(
        "#!/bin/bash\nfor name in ${{!INPUT_@}}; do unset \"$name\"; done\nexec {} \"$@\"\n",
        real.display()
    );
    fs_err::write(&binary, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs_err::set_permissions(&binary, mode).unwrap();
    fs_err::create_dir_all(checkout.join(".github/workflows")).unwrap();
    fs_err::write(
        checkout.join(".github/workflows/evals.yml"),
        workflow(&binary, &at("outputs.json")),
    )
    .unwrap();
    let head = commit_all(&checkout);
    let remote = ["remote", "add", "origin", "https://github.com/octo/evals"];
    assert!(
        Command::new("git")
            .args(remote)
            .current_dir(&checkout)
            .status()
            .unwrap()
            .success()
    );

    for file in ["action.yml", "Cargo.toml"] {
        fs_err::create_dir_all(&action).unwrap();
        fs_err::copy(repository().join(file), action.join(file)).unwrap();
    }
    copy(&repository().join("scripts"), &action.join("scripts"));
    fs_err::create_dir_all(at("upload")).unwrap();
    fs_err::write(at("upload/action.yml"), UPLOAD).unwrap();
    fs_err::create_dir_all(at("download")).unwrap();
    fs_err::write(at("download/action.yml"), DOWNLOAD).unwrap();
    let event = at("event.json");
    fs_err::write(&event, pull_request(1, "octo/evals").to_string()).unwrap();

    let mut state = State::with_history(&["a", "b"]);
    state.commits.insert(head, vec![sha("b"), sha("head")]);
    let github = Github::start(state);
    let definition = fs_err::read_to_string(repository().join("action.yml")).unwrap();
    let pinned = definition
        .lines()
        .find_map(|line| line.trim().strip_prefix("uses: "))
        .unwrap();
    let pinned = pinned.split_whitespace().next().unwrap();

    let shards = example("shards.yml");
    let downloads = shards
        .split_whitespace()
        .find(|word| word.starts_with("actions/download-artifact@"));
    let downloads = downloads.unwrap();

    let mut command = Command::new(act);
    command
        .args([
            "pull_request",
            "-P",
            "ubuntu-24.04=-self-hosted",
            "--no-cache-server",
            "--action-offline-mode",
            "-e",
        ])
        .arg(&event)
        .args(["--local-repository", &format!("OWNER/evalwave@v1={action}")])
        .args(["--local-repository", &format!("{pinned}={}", at("upload"))])
        .args(["--local-repository", &format!("{downloads}={}", at("download"))])
        .args(["--env", &format!("GITHUB_API_URL={}", github.api_url())])
        .args(["--env", &format!("UPLOADS={uploads}")])
        .args(["-s", &format!("GITHUB_TOKEN={TOKEN}")])
        .current_dir(&checkout)
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .env("HOME", at("home"))
        .env("XDG_CACHE_HOME", at("cache"));
    if let Some(value) = variable {
        command.args(["--var", &format!("EVAL_PARALLEL_ATTEMPTS={value}")]);
    }
    let output = command.output().unwrap();
    let log = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    let outputs = fs_err::read(at("outputs.json")).unwrap_or_else(|error| panic!("{error}\n{log}"));
    Ran {
        outputs: serde_json::from_slice(&outputs).unwrap(),
        uploads,
        _place: place,
        log,
        github,
    }
}

#[test]
fn the_examples_workflow_works_in_another_runner_with_the_variable_and_without() {
    let Ok(act) = std::env::var(ACT) else {
        eprintln!("not run: `{ACT}` does not say where act is; .ci/run installs it and does");
        return;
    };
    for (variable, concurrency, reason) in [
        (Some("true"), "24", "24 = pairs x runs (12 x 2): one wave"),
        (None, "12", "12 = pairs"),
    ] {
        let ran = run(&act, workflow, variable);
        let outputs = &ran.outputs;
        assert_eq!(outputs["conclusion"], "success", "{}", ran.log);
        assert_eq!(outputs["concurrency"], concurrency, "{variable:?}: {}", ran.log);
        assert!(
            outputs["concurrency-reason"]
                .as_str()
                .unwrap()
                .starts_with(reason),
            "{outputs}"
        );
        assert_eq!(
            (&outputs["passed"], &outputs["failed"]),
            (&json!("9"), &json!("3"))
        );
        assert_eq!(
            (&outputs["pass-to-fail"], &outputs["fail-to-pass"]),
            (&json!("1"), &json!("1"))
        );
        assert_eq!(outputs["verdict"], "inconclusive");
        assert_eq!(outputs.as_object().unwrap().len(), 18, "{outputs}");

        let state = ran.github.state();
        assert_eq!(state.comments.len(), 1, "{}", ran.log);
        let comment = &state.comments[0];
        assert_eq!(comment.pull, 12);
        assert!(
            comment.body.starts_with("<!-- evalwave suite=quickstart -->"),
            "{}",
            comment.body
        );
        assert!(
            comment.body.contains("### Evals: 9/12 passed (75.0 %)"),
            "{}",
            comment.body
        );
        assert_eq!(
            outputs["comment-url"],
            format!(
                "https://github.com/octo/evals/pull/12#issuecomment-{}",
                comment.id
            )
        );
        assert!(
            ran.log.contains("PASS→FAIL: hasty × reverse-words")
                || ran.log.contains("passed 2/2 before, 0/2 now"),
            "{}",
            ran.log
        );

        let kept = ran.uploads.join("evalwave-quickstart");
        let summary: Value =
            serde_json::from_slice(&fs_err::read(kept.join("summary.json")).unwrap()).unwrap();
        assert_eq!(summary["totals"]["passed"], 9);
        assert!(kept.join("journal.jsonl").is_file() && kept.join("report.md").is_file());
        let files = ran.uploads.join("evalwave-quickstart-files");
        assert!(files.join("attempts/hasty__sort-lines/1/output.log").is_file());
        assert!(
            files
                .join("raw-results-hasty__sort-lines/sort-lines.json")
                .is_file()
        );
        let days = |name: &str| fs_err::read_to_string(ran.uploads.join(name)).unwrap();
        assert_eq!(days("evalwave-quickstart.txt"), "90 days, overwrite true\n");
        assert_eq!(days("evalwave-quickstart-files.txt"), "7 days, overwrite true\n");
        assert!(ran.log.contains("nothing to clean up"), "{}", ran.log);
    }
}

#[test]
fn four_shards_and_their_merge_work_in_another_runner() {
    let Ok(act) = std::env::var(ACT) else {
        eprintln!("not run: `{ACT}` does not say where act is; .ci/run installs it and does");
        return;
    };
    let ran = run(&act, sharded, None);
    let outputs = &ran.outputs;
    assert_eq!(outputs["conclusion"], "success", "{}", ran.log);
    assert_eq!(
        (&outputs["passed"], &outputs["failed"], &outputs["missing"]),
        (&json!("9"), &json!("3"), &json!("0"))
    );
    assert_eq!(
        (&outputs["pass-to-fail"], &outputs["fail-to-pass"]),
        (&json!("1"), &json!("1"))
    );
    let state = ran.github.state();
    assert_eq!(state.comments.len(), 1, "the shards have none\n{}", ran.log);
    let comment = &state.comments[0].body;
    assert!(comment.contains("### Evals: 9/12 passed (75.0 %)"), "{comment}");

    for shard in 1..=4 {
        let kept = ran.uploads.join(format!("evalwave-quickstart-{shard}-of-4"));
        assert!(kept.join("journal.jsonl").is_file(), "{kept}");
    }
    let kept = ran.uploads.join("evalwave-quickstart");
    let summary: Value = serde_json::from_slice(&fs_err::read(kept.join("summary.json")).unwrap()).unwrap();
    assert_eq!(summary["totals"]["passed"], 9);
    assert_eq!(
        (&summary["run"]["selection"]["kind"], &summary["run"]["complete"]),
        (&json!("all"), &json!(true))
    );
    let files = ran.uploads.join("evalwave-quickstart-files");
    assert!(files.join("attempts/hasty__sort-lines/1/output.log").is_file());
    assert!(
        files
            .join("raw-results-hasty__sort-lines/sort-lines.json")
            .is_file()
    );
}
