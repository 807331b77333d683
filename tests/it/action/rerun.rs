//! A job that is run again takes over what its earlier attempt has left; a merge tells what the whole run would have.

use camino::{Utf8Path, Utf8PathBuf};

use super::outcome::flaky;
use super::{Workflow, always, measured, suite};
use crate::support::github::{Artifact, archive, day};

/// Two pairs, one of which gives no result as long as `broken` is there. Each result is told of in `broken.ran`.
fn breaks() -> Workflow {
    let script = "[ -e \"$BROKEN\" ] && [ $EVALWAVE_EVAL = two ] && exit 1\necho \"$EVALWAVE_EVAL\" >> \"$BROKEN.ran\"\necho '{\"passed\": true}' > result.json";
    let suite = suite("agent/task agent/two", "retry: { tries: 1 }", script);
    let config = suite
        .read("evalwave.yml")
        .replace("  command:", "  env-from: [BROKEN]\n  command:");
    suite.write("evalwave.yml", &config);
    let workflow = Workflow::new(suite, measured());
    let broken = workflow.runner().join("broken");
    fs_err::write(&broken, "").unwrap();
    workflow.set("BROKEN", broken.as_str())
}

/// The files below a directory, with their paths from there.
fn files(root: &Utf8Path, directory: &Utf8Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in directory.read_dir_utf8().unwrap() {
        let entry = entry.unwrap();
        match entry.path().is_dir() {
            true => files(root, entry.path(), found),
            false => {
                let name = entry.path().strip_prefix(root).unwrap().to_string();
                found.push((name, fs_err::read(entry.path()).unwrap()));
            }
        }
    }
}

/// Keeps a run directory as the step after it does: the small artifact, and its files.
pub(super) fn keep(workflow: &Workflow, results: &Utf8Path, with_files: bool) {
    let mut all = Vec::new();
    files(results, results, &mut all);
    let is_file_of_attempt = |name: &str| name.starts_with("attempts/") || name.starts_with("raw-results-");
    let is_small = |name: &str| {
        let of_run = name.strip_prefix("baseline/").unwrap_or(name);
        ["summary.json", "journal.jsonl"].contains(&of_run) || name.starts_with("report.")
    };
    let (of_attempts, mut small): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(name, _)| is_file_of_attempt(name));
    small.retain(|(name, _)| is_small(name));
    let artifact = |id: u64, name: &str, files: &[(String, Vec<u8>)]| {
        let files: Vec<(&str, &[u8])> = files
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
            .collect();
        Artifact {
            id,
            run: 900,
            name: name.to_owned(),
            expired: false,
            created_at: Some(day(3)),
            digest: None,
            bytes: Some(archive(&files)),
        }
    };
    let mut state = workflow.github.state();
    state.artifacts.push(artifact(9001, "evalwave-all", &small));
    if with_files {
        state
            .artifacts
            .push(artifact(9002, "evalwave-all-files", &of_attempts));
    }
}

fn first_attempt(with_files: bool) -> Workflow {
    run_again(breaks(), with_files)
}

/// What is left once a first attempt lacks a result, for the second.
fn run_again(workflow: Workflow, with_files: bool) -> Workflow {
    let step = workflow.run();
    assert_eq!(step.code, 3, "{}", step.log);
    let results = Utf8PathBuf::from(step.output("results-dir"));
    keep(&workflow, &results, with_files);
    fs_err::remove_dir_all(results).unwrap();
    fs_err::remove_file(workflow.runner().join("broken")).unwrap();
    workflow.set("GITHUB_RUN_ATTEMPT", "2")
}

#[test]
fn a_job_that_is_run_again_fills_in_only_what_is_missing() {
    let workflow = first_attempt(true);
    let step = workflow.run();
    assert_eq!(step.code, 0, "{}", step.log);
    assert_eq!((step.output("passed"), step.output("missing")), ("2", "0"));
    let ran = fs_err::read_to_string(workflow.runner().join("broken.ran")).unwrap();
    assert_eq!(ran, "task\ntwo\n", "each has given its result once");
    let results = Utf8Path::new(step.output("results-dir"));
    assert!(results.join("attempts/agent__task/1/output.log").is_file());
    assert!(results.join("raw-results-agent__task/task.json").is_file());
    assert!(results.join("raw-results-agent__two/two.json").is_file());
    assert!(
        workflow.comments()[0].contains("2/2 passed"),
        "{}",
        workflow.comments()[0]
    );
}

#[test]
fn without_the_files_of_the_earlier_attempt_its_results_count_all_the_same() {
    let workflow = first_attempt(false);
    let step = workflow.run();
    assert_eq!((step.code, step.output("passed")), (0, "2"), "{}", step.log);
    assert!(
        step.notices()
            .contains("are not here: there is no artifact `evalwave-all-files`"),
        "{}",
        step.notices()
    );
    let ran = fs_err::read_to_string(workflow.runner().join("broken.ran")).unwrap();
    assert_eq!(ran, "task\ntwo\n");
}

#[test]
fn what_measured_something_else_or_is_not_there_is_not_taken_over() {
    let workflow = first_attempt(true);
    let config = workflow
        .suite
        .read("evalwave.yml")
        .replace("retry:", "runs: 2\nretry:");
    workflow.suite.write("evalwave.yml", &config);
    let step = workflow.run();
    assert_eq!((step.code, step.output("passed")), (0, "2"), "{}", step.log);
    assert!(
        step.notices()
            .contains("nothing is taken over from an earlier one: its `runs` is `1`, not `2`"),
        "{}",
        step.notices()
    );

    let workflow =
        Workflow::new(suite("agent/task", "", &always(true)), measured()).set("GITHUB_RUN_ATTEMPT", "3");
    let step = workflow.run();
    assert_eq!((step.code, step.output("passed")), (0, "1"), "{}", step.log);
    assert!(
        step.notices().contains("there is no artifact `evalwave-all`"),
        "{}",
        step.notices()
    );
}

#[test]
fn a_base_that_is_measured_beside_it_is_taken_over_too() {
    let again = || run_again(breaks().input("baseline", "measure:HEAD"), true);
    let ran = |workflow: &Workflow| {
        let ran = fs_err::read_to_string(workflow.runner().join("broken.ran")).unwrap();
        let mut ran: Vec<String> = ran.lines().map(str::to_owned).collect();
        ran.sort_unstable();
        ran
    };
    let workflow = again();
    let step = workflow.run();
    assert_eq!(step.code, 0, "{}", step.log);
    assert_eq!(
        (step.output("passed"), step.output("baseline-pass-rate")),
        ("2", "1")
    );
    assert_eq!(
        ran(&workflow),
        ["task", "task", "two", "two"],
        "each revision has given each result once"
    );
    assert!(!step.notices().contains("taken over"), "{}", step.notices());

    // The base is another commit by now.
    let workflow = again();
    let git = |arguments: &[&str]| crate::support::git(workflow.suite.path(), arguments);
    git(&["branch", "before"]);
    git(&["switch", "--quiet", "before"]);
    git(&["commit", "--quiet", "--allow-empty", "--message", "another base"]);
    git(&["switch", "--quiet", "--detach", "before~1"]);
    let workflow = workflow.input("baseline", "measure:before");
    let step = workflow.run();
    assert_eq!((step.code, step.output("passed")), (0, "2"), "{}", step.log);
    assert_eq!(ran(&workflow), ["task", "task", "task", "two", "two"]);
    assert!(
        step.notices()
            .contains("nothing of the base revision is taken over from an earlier one: its commit is "),
        "{}",
        step.notices()
    );
}

#[test]
fn a_regression_is_one_again_however_often_the_job_is_run() {
    let suite = suite("agent/task", "fail-on: [regression]", &always(false));
    let workflow = Workflow::new(suite, measured()).input("baseline", "artifact:evalwave-all");
    let step = workflow.run();
    assert_eq!((step.code, step.output("pass-to-fail")), (1, "1"), "{}", step.log);
    let results = Utf8PathBuf::from(step.output("results-dir"));
    keep(&workflow, &results, true);
    fs_err::remove_dir_all(results).unwrap();
    let step = workflow.set("GITHUB_RUN_ATTEMPT", "2").run();
    assert_eq!((step.code, step.output("pass-to-fail")), (1, "1"), "{}", step.log);
}

/// Runs a suite in two shards into directories beside each other; gives the workflow that is to merge them.
fn in_two_shards(mut workflow: Workflow) -> Workflow {
    let shards = workflow.runner().join("shards");
    for shard in 1..=2 {
        let out = shards.join(format!("evalwave-all-{shard}-of-2"));
        workflow = workflow
            .input("shard", &format!("{shard}/2"))
            .input("output-dir", out.as_str());
        let step = workflow.run();
        assert_eq!(
            (step.code, step.output("artifact")),
            (0, format!("evalwave-all-{shard}-of-2").as_str())
        );
    }
    assert!(workflow.comments().is_empty());
    workflow
        .input("shard", "")
        .input("command", "merge")
        .input("output-dir", shards.as_str())
}

#[test]
fn a_merge_knows_which_pairs_earlier_runs_had_both_ways() {
    let workflow = |config: &str| {
        let config = format!("runs: 2\nfail-on: [regression]\n{config}");
        let suite = suite("agent/task agent/two", &config, &always(false));
        in_two_shards(Workflow::new(suite, flaky()).input("fail-on", "never")).input("fail-on", "")
    };
    let aware = workflow("");
    let step = aware.run();
    assert_eq!(step.code, 0, "{}", step.log);
    let comment = aware.comments().remove(0);
    assert!(comment.contains("1 PASS→FAIL (1 known flaky)"), "{comment}");
    assert!(
        comment.contains("1 earlier run: noise alone predicts"),
        "{comment}"
    );
    assert!(step.annotations("error").is_empty(), "{}", step.log);
    let step = workflow("history: 0").run();
    assert_eq!(step.code, 1, "{}", step.log);
}

#[test]
fn shards_that_had_their_secrets_are_merged_by_a_job_that_has_none() {
    let workflow = Workflow::new(suite("agent/task agent/two", "", &always(true)), measured());
    let workflow = in_two_shards(workflow.set("GITHUB_ACTOR", "dependabot[bot]"));
    let config = workflow.suite.read("evalwave.yml");
    let config = config.replace("  command:", "  secrets: [API_KEY]\n  command:");
    workflow.suite.write("evalwave.yml", &config);
    let step = workflow.run();
    assert_eq!(
        (step.code, step.output("conclusion"), step.output("passed")),
        (0, "success", "2"),
        "{}",
        step.log
    );
}

#[test]
fn a_merge_tells_on_github_what_the_whole_run_would_have() {
    let workflow = Workflow::new(
        suite("agent/task agent/two agent/three", "", &always(true)),
        measured(),
    );
    let whole = workflow.run();
    assert_eq!(whole.code, 0, "{}", whole.log);
    let comment = workflow.comments().remove(0);
    workflow.github.state().comments.clear();
    let shards = workflow.runner().join("shards");
    let workflow = in_two_shards(workflow);
    let step = workflow.run();
    assert_eq!(step.code, 0, "{}", step.log);
    for name in [
        "conclusion",
        "pass-rate",
        "passed",
        "failed",
        "pairs",
        "missing",
        "baseline-pass-rate",
        "delta",
        "verdict",
        "artifact",
    ] {
        assert_eq!(step.output(name), whole.output(name), "{name}");
    }
    let merged = workflow.comments().remove(0);
    let headline = |comment: &str| {
        comment
            .lines()
            .find(|line| line.starts_with("### "))
            .unwrap()
            .to_owned()
    };
    assert_eq!(headline(&merged), headline(&comment));

    fs_err::remove_dir_all(shards.join("evalwave-all-2-of-2")).unwrap();
    let step = workflow.run();
    assert_eq!(step.code, 3, "{}", step.log);
    let errors = step.annotations("error");
    assert!(
        errors
            .iter()
            .any(|error| error.contains("no part is of shard 2/2")),
        "{errors:?}"
    );
}
