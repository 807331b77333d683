//! `run --resume`: what is kept, what runs again, and what is refused.

use rustix::process::Signal;

use super::Place;
use crate::support::{Suite, evalwave, git, stderr, stdout};

/// Errs as long as the file `broken` is there; else passes.
const BREAKS: &str =
    "[ -e \"$BROKEN\" ] && [ $EVALWAVE_EVAL = two ] && exit 1\necho '{\"passed\": true}' > result.json";

/// Two pairs, one of which gives no result as long as `broken` is there.
fn breaks(more: &str) -> Suite {
    breaking("result.json", more, BREAKS)
}

/// The same with another result.
fn breaking(result: &str, more: &str, script: &str) -> Suite {
    let suite = Suite::scripted(
        "a/one a/two",
        &format!("result: {result}\nenv: {{ BROKEN: PLACE/broken }}"),
        &format!("retry: {{ tries: 2 }}\n{more}"),
        script,
    );
    let config = suite.read("evalwave.yml").replace("PLACE", suite.path().as_str());
    suite.write("evalwave.yml", &config);
    suite.write("broken", "");
    suite
}

#[test]
fn what_has_a_result_is_kept_and_what_errored_runs_again() {
    let suite = breaks("runs: 2\nstrategy: parallel");
    let (run, summary) = suite.run("");
    run.code(3);
    assert_eq!(summary["totals"]["errored"], 1);
    let one = suite.read("out/attempts/a__one/1/attempt.json");
    fs_err::remove_file(suite.path().join("broken")).unwrap();
    let (run, summary) = suite.run("--resume");
    let told = stderr(&run.code(0));
    assert!(told.contains("3/4 passed") && !told.contains("a × one"), "{told}");
    assert_eq!(summary["totals"]["passed"], 2);
    assert_eq!(suite.read("out/attempts/a__one/1/attempt.json"), one);
    let two = &summary["pairs"][1]["attempts"][0];
    assert_eq!(
        (&two["tries"], &two["error"]),
        (&3.into(), &serde_json::Value::Null)
    );
    // Every try is kept, those of the first session too, each with its own record.
    for number in [1, 2] {
        let earlier = suite.read_json(&format!("out/attempts/a__two/1/tries/{number}/attempt.json"));
        assert_eq!(earlier["attempt"]["tries"], number);
        assert_eq!(earlier["attempt"]["outcome"], "errored");
    }
    assert!(suite.path().join("out/raw-results-a__two/two.json").is_file());
    let notices = summary["notices"].to_string();
    assert!(
        notices.contains("with 2 of 4 attempts: those were kept"),
        "{notices}"
    );
}

#[test]
fn another_plan_is_refused_with_the_difference() {
    let suite = breaks("");
    suite.run("");
    for (arguments, difference) in [
        ("--runs 2", "its `runs` is `1`, not `2`"),
        ("--eval one", "it has the pair `a × two` besides"),
        ("--timeout 3m", "(`config_hash`)"),
    ] {
        let refused = suite.ev(&format!("run -o out --resume {arguments}"));
        let told = stderr(&refused.code(2));
        assert!(
            told.contains("cannot resume") && told.contains(difference),
            "{told}"
        );
    }
    let empty = stderr(&suite.ev("run -o nowhere --resume").code(2));
    assert!(empty.contains("holds no run"), "{empty}");
    let both = stderr(&suite.ev("run -o out --resume --overwrite").code(2));
    assert!(both.contains("cannot be used with"), "{both}");
}

#[test]
fn another_commit_is_refused() {
    let place = Place::new(breaks(""));
    place.suite.run("");
    crate::support::git(
        place.suite.path(),
        &["commit", "-q", "--allow-empty", "-m", "second"],
    );
    let told = stderr(&place.suite.ev("run -o out --resume").code(2));
    assert!(told.contains("its commit is"), "{told}");
}

#[test]
fn a_run_that_is_told_nothing_goes_on_with_the_newest() {
    let suite = breaks("");
    suite.ev("run").code(3);
    fs_err::remove_file(suite.path().join("broken")).unwrap();
    suite.ev("run --resume").code(0);
    let runs = suite.path().join("evalwave-out").read_dir_utf8().unwrap();
    assert_eq!(
        runs.count(),
        3,
        "one run, the link to it, and what keeps git from both"
    );
    assert_eq!(
        suite.read_json("evalwave-out/latest/summary.json")["totals"]["passed"],
        2
    );
}

#[test]
fn a_decided_pair_stays_as_it_is() {
    let script = "[ $EVALWAVE_ATTEMPT = 1 ] && exit 1\necho '{\"passed\": true}' > result.json";
    let suite = Suite::scripted(
        "a/one",
        "result: result.json",
        "runs: 3\nretry: { tries: 1 }",
        script,
    );
    let (run, before) = suite.run("");
    run.code(0);
    let (run, after) = suite.run("--resume");
    run.code(0);
    assert_eq!(before["pairs"], after["pairs"]);
    assert_eq!(after["pairs"][0]["attempts"][0]["outcome"], "errored");
}

#[test]
fn an_attempt_that_was_stopped_because_it_was_not_needed_keeps_what_is_known_of_it() {
    let state = tempfile::TempDir::new().unwrap();
    let attempt = format!(
        "result: result.json\nenv: {{ STATE: '{}' }}",
        state.path().display()
    );
    let script = "[ $EVALWAVE_EVAL = two ] && exit 1
[ $EVALWAVE_ATTEMPT = 2 ] && touch \"$STATE/started\" && exec sleep 1000
until [ -e \"$STATE/started\" ]; do sleep 0.01; done
echo '{\"passed\": true}' > result.json";
    let more =
        "runs: 2\nstrategy: parallel\non-pass: cancel\nretry: { tries: 1 }\nsandbox: { landlock: off }";
    let suite = Suite::scripted("a/one a/two", &attempt, more, script);
    let (run, before) = suite.run("");
    run.code(3);
    let stopped = &before["pairs"][0]["attempts"][1];
    assert_eq!(
        (&stopped["outcome"], &stopped["tries"]),
        (&"cancelled".into(), &1.into())
    );
    let (run, after) = suite.run("--resume");
    run.code(3);
    assert_eq!(before["pairs"][0], after["pairs"][0]);
}

#[test]
fn a_line_that_cannot_be_read_is_named_by_the_run_that_goes_on() {
    let suite = breaks("");
    suite.run("").0.code(3);
    let journal = suite.read("out/journal.jsonl");
    let is_lost = |line: &str| line.contains("attempt_ended") && line.contains("\"one\"");
    let number = journal.lines().position(is_lost).unwrap() + 1;
    let lines = journal
        .lines()
        .map(|line| if is_lost(line) { "\u{0}" } else { line });
    let damaged: Vec<&str> = lines.collect();
    suite.write("out/journal.jsonl", &(damaged.join("\n") + "\n"));
    fs_err::remove_file(suite.path().join("broken")).unwrap();
    let (run, summary) = suite.run("--resume");
    run.code(0);
    let notices = summary["notices"].to_string();
    let said = format!("1 line of its journal cannot be read, the first is line {number}");
    assert!(notices.contains(&said), "{notices}");
}

#[test]
fn everything_can_be_made_again_from_the_journal_alone() {
    let suite = breaks("");
    suite.write(
        "before.json",
        "[{\"experiment\": \"a\", \"eval\": \"one\", \"passed\": false}]",
    );
    let (run, _) = suite.run("--baseline before.json --fail-on incomplete");
    run.code(3);
    let (summary, report) = (suite.read("out/summary.json"), suite.read("out/report.md"));
    let journal = suite.read("out/journal.jsonl");
    fs_err::remove_dir_all(suite.path().join("out")).unwrap();
    suite.write("out/journal.jsonl", &journal);
    let again = suite.ev("report out --format json").code(0);
    assert_eq!((stdout(&again), stderr(&again).as_str()), (summary, ""));
    assert_eq!(stdout(&suite.ev("report out --format markdown")), report);
    // What was told after a broken line counts all the same, and the line is named.
    let lines: Vec<&str> = journal.lines().collect();
    suite.write(
        "out/journal.jsonl",
        &format!("{}\n\u{0}\u{0}\n{}\n", lines[0], lines[1..].join("\n")),
    );
    let told = stderr(&suite.ev("report out").code(0));
    assert!(
        told.contains("1 line of its journal cannot be read, the first is line 2"),
        "{told}"
    );
}

/// Of the run only its journal is kept, and nothing breaks any more.
fn lose_files(suite: &Suite) {
    let journal = suite.read("out/journal.jsonl");
    fs_err::remove_dir_all(suite.path().join("out")).unwrap();
    fs_err::remove_file(suite.path().join("broken")).unwrap();
    suite.write("out/journal.jsonl", &journal);
}

#[test]
fn a_run_of_a_harness_whose_files_are_gone_ends_as_it_would_have_with_them() {
    let script = "[ -e \"$BROKEN\" ] && [ $EVALWAVE_EVAL = two ] && exit 1\necho '<testsuite><testcase name=\"t\"/></testsuite>' > result.xml";
    let suite = breaking("result.xml", "", script);
    suite.run("").0.code(3);
    let one = suite.read("out/raw-results-a__one/one.json");
    lose_files(&suite);
    let (run, summary) = suite.run("--resume");
    run.code(0);
    assert_eq!(summary["totals"]["passed"], 2);
    assert_eq!(suite.read("out/raw-results-a__one/one.json"), one);
    let has_file = |pair: &str| {
        suite
            .path()
            .join(format!("out/raw-results-a__{pair}.harness.xml"))
            .exists()
    };
    assert_eq!([has_file("one/one"), has_file("two/two")], [false, true]);
    let (_, again) = suite.run("--resume");
    for summary in [summary, again] {
        let notices = summary["notices"].to_string();
        assert!(
            notices.contains("the files of 1 attempt with a result are not here"),
            "{notices}"
        );
    }
}

#[test]
fn a_run_whose_files_are_gone_goes_on_from_its_journal() {
    let suite = breaks("runs: 2\nstrategy: parallel");
    suite.run("").0.code(3);
    lose_files(&suite);
    let (run, summary) = suite.run("--resume");
    run.code(0);
    assert_eq!(summary["totals"]["passed"], 2);
    assert_eq!(suite.read_json("out/raw-results-a__one/one.json")["passed"], true);
}

#[test]
fn the_budget_counts_what_was_spent_before() {
    let script = "sleep 0.4\nexit 1";
    let more = "retry: { tries: 1 }\nbudget: { sandbox-minutes: 0.01, allow-unknown: true }";
    let suite = Suite::scripted(
        "a/one a/two a/three",
        "result: result.json",
        &format!("{more}\nconcurrency: 1"),
        script,
    );
    suite.run("").0.code(4);
    let started = suite.read("out/journal.jsonl").matches("attempt_started").count();
    let (run, summary) = suite.run("--resume");
    run.code(4);
    assert_eq!(summary["run"]["reason"], "budget");
    let again = suite.read("out/journal.jsonl").matches("attempt_started").count();
    assert!(again - started <= 1, "{started} and then {again}");
}

#[test]
fn what_a_failed_try_has_used_counts() {
    let state = tempfile::TempDir::new().unwrap();
    let attempt = format!(
        "result: result.json\ninfra: {{ error: ['rate limit'] }}\nenv: {{ STATE: '{}' }}",
        state.path().display()
    );
    let script = r#"if [ -e "$STATE/seen" ]; then
    echo '{"passed": true, "usage": {"costUsd": 1}}' > result.json
else
    touch "$STATE/seen"
    echo '{"passed": false, "error": "rate limit", "usage": {"costUsd": 2}}' > result.json
fi"#;
    let suite = Suite::scripted("a/one", &attempt, "sandbox: { landlock: off }", script);
    let (run, summary) = suite.run("");
    run.code(0);
    let tries = &summary["pairs"][0]["attempts"][0];
    assert_eq!(tries["earlier"][0]["usage"]["cost_usd"], 2.0);
    assert_eq!(
        (&tries["usage"]["cost_usd"], &summary["totals"]["cost_usd"]),
        (&1.0.into(), &3.0.into())
    );
}

/// A run that measures its base revision too, one attempt at a time, and was killed before the base began.
async fn killed_before_its_base() -> Place {
    let more = "concurrency: 1\nbaseline: measure";
    let suite = Suite::scripted(
        "a/one a/two",
        "result: result.json\nenv: { BROKEN: PLACE/broken }",
        more,
        "[ -e \"$BROKEN\" ] && [ $EVALWAVE_EVAL = two ] && sleep 1000\necho '{\"passed\": true}' > result.json",
    );
    let config = suite.read("evalwave.yml").replace("PLACE", suite.path().as_str());
    suite.write("evalwave.yml", &config);
    suite.write(".gitignore", "broken\n");
    let place = Place::new(suite);
    place.suite.write("broken", "");
    git(
        place.suite.path(),
        &["update-ref", "refs/remotes/origin/main", "HEAD"],
    );
    let mut begun = place.begin("run -o out");
    let under_way = || place.told("out", "attempt_started") == 2;
    assert!(begun.until(under_way).await, "{}", place.said());
    assert_eq!(place.length("out/baseline"), 0);
    begun.signal(Signal::KILL);
    begun.child.wait().await.unwrap();
    place.quiet().await;
    place
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_killed_run_and_its_base_is_left_wherever_one_cleans_up() {
    let place = killed_before_its_base().await;
    assert_eq!(place.left().len(), 2, "sandboxes and the checkout");
    let elsewhere = tempfile::tempdir().unwrap();
    let mut cleanup = evalwave(elsewhere.path().try_into().unwrap());
    cleanup.arg("cleanup").arg(place.path("out"));
    let cleanup = cleanup.env("TMPDIR", place.temporary()).assert().code(0);
    assert_eq!(place.left(), Vec::<String>::new(), "{}", stderr(&cleanup));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_base_revision_had_not_begun_goes_on() {
    let place = killed_before_its_base().await;
    fs_err::remove_file(place.path("broken")).unwrap();
    assert_eq!(place.run("run -o out --resume").await, 0, "{}", place.said());
    let summary = place.summary("out");
    assert_eq!(
        (&summary["totals"]["passed"], &summary["comparison"]["compared"]),
        (&2.into(), &2.into())
    );
    assert_eq!(
        place.told("out", "attempt_ended"),
        2,
        "what had a result was kept"
    );
    assert_eq!(place.left(), Vec::<String>::new());
}
