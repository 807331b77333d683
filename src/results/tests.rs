use std::io::empty;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use proptest::prelude::*;

use super::{parse, read};
use crate::model::{Policy, ResultSet, Verdict};

/// A directory that is gone when the test ends.
struct Fixture {
    directory: tempfile::TempDir,
}

impl Fixture {
    fn new(files: &[(&str, &str)]) -> Self {
        let fixture = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        for (path, text) in files {
            let path = fixture.root().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }
        fixture
    }

    fn root(&self) -> &Utf8Path {
        Utf8Path::from_path(self.directory.path()).unwrap()
    }

    fn read(&self, source: &str) -> ResultSet {
        read(source, self.root(), None, &mut empty()).unwrap()
    }

    fn problem(&self, source: &str) -> String {
        let error = read(source, self.root(), None, &mut empty()).unwrap_err();
        error.to_string().replace(self.root().as_str(), "…")
    }

    #[expect(clippy::disallowed_methods, reason = "the fixture is a repository")]
    fn git(&self, arguments: &[&str]) {
        let output = Command::new("git")
            .arg("-C")
            .arg(self.root())
            .args([
                "-c",
                "user.name=n",
                "-c",
                "user.email=e",
                "-c",
                "init.defaultBranch=main",
            ])
            .args(["-c", "commit.gpgsign=false"])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
    }
}

/// One line a pair: what it is, and what was decided.
fn shown(set: &ResultSet) -> String {
    let lines = set.pairs.iter().map(|pair| {
        let firm = if pair.firm { "" } else { ", not firm" };
        let graded = pair
            .graded
            .map_or("unknown".to_owned(), |graded| graded.to_string());
        format!("{} {:?} of {graded}{firm}", pair.id, pair.verdict)
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn rows(text: &str) -> ResultSet {
    parse("rows.json", text.as_bytes(), None).unwrap()
}

fn problem(text: &str) -> String {
    parse("rows.json", text.as_bytes(), None).unwrap_err().to_string()
}

#[test]
fn rows_become_pairs_with_labels() {
    let set = rows(
        r#"[{"experiment": "a", "eval": "x", "passed": true, "attempts": 2, "product": ["auth", "db"], "suite": "s",
             "experimentDisplay": {"agent": "cli", "modelProvider": "p", "modelId": "m", "effort": "high"},
             "sourcePath": "a/x.json", "checks": [{"name": "n"}], "score": 0.5, "mixed": ["a", 1], "text": "one\ntwo"},
            {"experiment": "a", "eval_id": "y", "passed": false}]"#,
    );
    assert_eq!(shown(&set), "a × x Pass of 2\na × y Fail of unknown");
    insta::assert_snapshot!(serde_json::to_string(&set.pairs[0].labels).unwrap(), @r#"{"agent":["cli"],"model":["m"],"product":["auth","db"],"provider":["p"],"suite":["s"]}"#);
}

#[test]
fn rows_with_run_are_attempts_of_their_pair() {
    let text = r#"[{"experiment": "a", "eval": "x", "passed": false, "run": 1},
                   {"experiment": "a", "eval": "y", "passed": false, "run": 2},
                   {"experiment": "a", "eval": "x", "passed": true, "run": 2}]"#;
    let set = rows(text);
    // The other attempt of y is lost, and could have passed.
    assert_eq!(shown(&set), "a × x Pass of 2\na × y Fail of 1, not firm");
    assert_eq!((set.policy, set.runs), (Some(Policy::Any), Some(2)));
    let samples = set.pairs[0].samples.as_ref().unwrap();
    assert_eq!(
        samples.iter().map(|sample| sample.index).collect::<Vec<_>>(),
        [1, 2]
    );

    let all = parse("rows.json", text.as_bytes(), Some(Policy::All)).unwrap();
    assert_eq!(shown(&all), "a × x Fail of 2\na × y Fail of 1");
}

#[test]
fn attempts_counted_from_zero_are_attempts_all_the_same() {
    let set = rows(
        r#"[{"experiment": "a", "eval": "x", "passed": true, "run": 0},
            {"experiment": "a", "eval": "x", "passed": true, "run": 1}]"#,
    );
    let samples = set.pairs[0].samples.as_ref().unwrap();
    assert_eq!(
        samples.iter().map(|sample| sample.index).collect::<Vec<_>>(),
        [1, 2]
    );
}

#[test]
fn no_rows_are_no_pairs_and_no_attempts_are_no_verdict() {
    assert_eq!(rows("[]").pairs, []);
    let set = rows(r#"[{"experiment": "a", "eval": "x", "passed": false, "attempts": 0}]"#);
    assert_eq!(shown(&set), "a × x Error of 0, not firm");
}

#[test]
fn a_wrong_array_says_where_and_what_was_expected() {
    let messages = [
        "",
        "\u{feff} ",
        "hello",
        r#"{"a": 1}"#,
        r#"{"schema": "evalwave.summary/7"}"#,
        r#"{"schema": "evalwave.summary/1"}"#,
        r#"[{"experiment": "a", "eval": "x", "passed": true}, 3]"#,
        r#"[{"experiment": "a", "eval": "x"}]"#,
        r#"[{"experiment": "a", "eval": "x", "passed": "yes"}]"#,
        r#"[{"experiment": "a", "eval": "x", "passed": true, "attempts": -1}]"#,
        r#"[{"experiment": "a", "passed": true}]"#,
        r#"[{"experiment": " a", "eval": "x", "passed": true}]"#,
        r#"[{"experiment": "a", "eval": "x", "eval_id": "y", "passed": true}]"#,
        "[{\"experiment\": \"a\",\n\"eval\": \"x\", \"passed\": true, \"score\": NaN}]",
        r#"[{"experiment": "a", "eval": "x", "passed": true}, {"exp"#,
        r#"[] []"#,
    ]
    .map(problem);
    insta::assert_snapshot!(messages.join("\n").replace("cannot read results from `rows.json`: ", ""), @r#"
    it is empty: expected JSON
    it is empty: expected JSON
    expected a JSON array of rows or a `summary.json`, found `hello`
    it is a JSON object without `schema`: expected an array of rows, a `summary.json` of evalwave, an inspect_ai log, or promptfoo's output
    it is written as `evalwave.summary/7`, and this version of evalwave reads `evalwave.summary/1`
    line 1, column 32: missing field `tool`
    row 2: line 1, column 52: invalid type: integer `3`, expected an object with `experiment`, `eval` and `passed`
    row 1 has no `passed`
    row 1: line 1, column 49: `passed`: invalid type: string "yes", expected a boolean
    row 1: line 1, column 64: `attempts`: invalid value: integer `-1`, expected u32
    row 1 has no `eval`
    row 1: the id ` a` starts or ends with white space
    row 1 has `eval` `x` and `eval_id` `y`
    row 1: line 2, column 39 (byte 59): expected value, found `NaN}]`
    JSON has neither NaN nor Infinity: write null
    row 2: it ends at byte 56 in the middle of a value
    was it written to its end?
    line 1, column 4 (byte 3): trailing characters, found `[]`
    "#);
}

#[test]
fn a_pair_named_twice_is_an_error_that_names_both_rows() {
    let row = r#"{"experiment": "a", "eval": "x", "passed": true}"#;
    let run = r#"{"experiment": "a", "eval": "x", "passed": true, "run": 1}"#;
    let messages = [
        problem(&format!("[{row}, {row}]")),
        problem(&format!("[{run}, {run}]")),
        problem(&format!("[{run}, {row}]")),
    ];
    insta::assert_snapshot!(messages.join("\n"), @r"
    cannot read results from `rows.json`: row 1 and row 2 are both `a × x`
    attempts of one pair are told apart by `run`
    cannot read results from `rows.json`: row 1 and row 2 are both run 1 of `a × x`
    attempts of one pair are told apart by `run`
    cannot read results from `rows.json`: row 1 and row 2 are both `a × x`
    attempts of one pair are told apart by `run`
    ");
}

#[test]
fn other_encodings_are_named() {
    let utf16 = parse("r", b"\xff\xfe[\0]\0", None).unwrap_err().to_string();
    let latin1 = parse("r", b"[{\"experiment\": \"caf\xe9\"}]", None)
        .unwrap_err()
        .to_string();
    assert!(utf16.contains("UTF-16"), "{utf16}");
    assert!(latin1.contains("byte 20 is not UTF-8"), "{latin1}");
    assert_eq!(parse("r", b"\xef\xbb\xbf[]", None).unwrap().pairs, []);
}

#[test]
fn raw_result_files_are_read_in_every_layout() {
    let fixture = Fixture::new(&[
        (
            "plain/a/x.json",
            r#"{"passed": true, "attempts": 1, "suite": "s"}"#,
        ),
        ("plain/a/y.json", r#"{"experiment": "a", "eval": "y"}"#),
        ("plain/a/y.json.partial", "{"),
        ("plain/a/notes.txt", "no result"),
        (
            "ours/raw-results-a%2Fb__x__y/x__y.json",
            r#"{"passed": true, "attempts": 2}"#,
        ),
        ("ours/raw-results-a%2Fb__x__y/transcript.json", "[]"),
        ("ours/raw-results-a__z/transcript.json", "[]"),
        ("runs/a/x/run-1/result.json", r#"{"passed": false}"#),
        ("runs/a/x/run-2/result.json", r#"{"passed": true}"#),
        ("runs/a/x/run-2/other.json", "[]"),
    ]);
    assert_eq!(
        shown(&fixture.read("plain")),
        "a × x Pass of 1\na × y Fail of unknown"
    );
    assert_eq!(
        shown(&fixture.read("ours/")),
        "a/b × x__y Pass of 2\na × z Error of 0, not firm"
    );
    assert_eq!(shown(&fixture.read("runs")), "a × x Pass of 2");
}

/// A run of two pairs, one stopped when its first attempt passed, one that lost an attempt.
const SUMMARY: &str = r#"{
    "schema": "evalwave.summary/1", "tool": {"name": "evalwave", "version": "0.9.0"}, "a later field": [1],
    "run": {"id": "r", "started_at": "2026-01-01T00:00:00Z", "wall_seconds": 12.5, "complete": true,
            "conclusion": "success", "strategy": "sequential", "runs": 2, "concurrency": 2, "policy": "any",
            "sandbox": "local", "suite": "s", "commit": "abc", "config_hash": "00", "concurrency_reason": "",
            "selection": {"kind": "subset", "selected": 2, "of": 9}},
    "totals": {"pairs": 2, "passed": 1, "failed": 1, "errored": 0, "not_run": 0, "pass_rate": 0.5,
               "attempts": {"planned": 4, "graded": 2, "passed": 1, "failed": 1, "timed_out": 0, "errored": 1,
                            "cancelled": 1, "retried": 0},
               "attempt_pass_rate": null, "all_pass_rate": null, "distribution": {}, "sandbox_seconds": 3.0,
               "cost_usd": null, "tokens": null},
    "pairs": [
        {"experiment": "a", "eval": "x", "verdict": "pass", "passed_attempts": 1, "graded_attempts": 1,
         "planned_attempts": 2, "representative": 1, "seconds": 1.0, "firm": true,
         "attempts": [{"index": 1, "outcome": "passed", "seconds": 1.0, "tries": 1},
                      {"index": 2, "outcome": "cancelled", "reason": "decided", "seconds": 0.0, "tries": 0}]},
        {"experiment": "a", "eval": "y", "verdict": "fail", "passed_attempts": 0, "graded_attempts": 1,
         "planned_attempts": 2, "representative": 1, "seconds": 1.0, "firm": false,
         "attempts": [{"index": 1, "outcome": "failed", "seconds": 1.0, "tries": 1},
                      {"index": 2, "outcome": "errored", "seconds": 1.0, "tries": 3}]}]}"#;

#[test]
fn a_run_directory_and_its_summary_are_the_same_source() {
    let fixture = Fixture::new(&[("run/summary.json", SUMMARY), ("run/journal.jsonl", "")]);
    let directory = fixture.read("run");
    assert_eq!(shown(&directory), "a × x Pass of 1\na × y Fail of 1, not firm");
    assert_eq!(directory.commit.as_deref(), Some("abc"));
    assert!(directory.is_partial_selection());
    assert_eq!(directory.pairs, fixture.read("run/summary.json").pairs);
}

#[test]
fn another_policy_decides_the_attempts_of_a_run_anew() {
    let all = parse("s", SUMMARY.as_bytes(), Some(Policy::All)).unwrap();
    // The attempt that was stopped could have failed; y failed whatever its lost attempt had given.
    assert_eq!(shown(&all), "a × x Pass of 1, not firm\na × y Fail of 1");
    assert_eq!(all.policy, Some(Policy::All));
}

#[test]
fn a_summary_of_a_harness_is_not_taken_for_one_of_ours() {
    let fixture = Fixture::new(&[
        ("raw/summary.json", r#"{"passed": 1}"#),
        ("raw/a/x.json", r#"{"passed": true}"#),
    ]);
    assert_eq!(shown(&fixture.read("raw")), "a × x Pass of unknown");
}

#[test]
fn half_a_character_in_a_text_costs_no_source() {
    let row =
        r#"{"experiment": "a", "eval": "x", "passed": true, "error": "cut: \ud83d", "sample": "\udc80"}"#;
    let fixture = Fixture::new(&[
        ("rows.json", &format!("[{row}]")),
        ("raw/a/x.json", row),
        ("raw/a/y.json", r#"{"passed": false, "log": "\uDFFF"}"#),
        (
            "run/summary.json",
            &SUMMARY.replace("\"suite\": \"s\"", "\"suite\": \"\\ud83d\""),
        ),
    ]);
    assert_eq!(shown(&fixture.read("rows.json")), "a × x Pass of unknown");
    assert_eq!(
        shown(&fixture.read("raw")),
        "a × x Pass of unknown\na × y Fail of unknown"
    );
    assert_eq!(fixture.read("run").pairs.len(), 2);
    let wrong = problem(r#"[{"experiment": "\ud83d", "eval": "x", "passed": 1}]"#);
    assert!(wrong.contains("row 1: line 1, column 50: `passed`"), "{wrong}");
}

#[test]
fn a_throttled_result_in_a_directory_is_lost_as_it_is_in_a_run() {
    let fixture = Fixture::new(&[
        ("raw/a/x.json", r#"{"passed": false, "throttled": true}"#),
        ("raw/a/y.json", r#"{"passed": true, "throttled": true}"#),
        ("raw/a/z.json", r#"{"passed": false, "throttled": false}"#),
    ]);
    assert_eq!(
        shown(&fixture.read("raw")),
        "a × x Error of 0, not firm\na × y Pass of unknown\na × z Fail of unknown"
    );
}

#[test]
fn results_that_were_published_by_another_name_are_read() {
    let fixture = Fixture::new(&[
        (
            "raw/raw-results-a__x/final.json",
            r#"{"passed": true, "attempts": 2}"#,
        ),
        ("raw/raw-results-a__x/transcript.json", "[1]"),
        (
            "raw/raw-results-a__y/1/r.json",
            r#"{"passed": false, "attempts": 1, "run": 1}"#,
        ),
        (
            "raw/raw-results-a__y/2/r.json",
            r#"{"passed": true, "attempts": 1, "run": 2}"#,
        ),
        (
            "raw/raw-results-a__z__z/r.json",
            r#"{"experiment": "a", "eval": "z__z", "passed": false, "attempts": 1}"#,
        ),
        (
            "twice/raw-results-a__x/one.json",
            r#"{"passed": true, "attempts": 2}"#,
        ),
        (
            "twice/raw-results-a__x/other.json",
            r#"{"passed": true, "attempts": 2}"#,
        ),
    ]);
    assert_eq!(
        shown(&fixture.read("raw")),
        "a × x Pass of 2\na × y Pass of 2\na × z__z Fail of 1"
    );
    let twice = fixture.problem("twice");
    assert!(
        twice.contains("`raw-results-a__x/one.json` and `raw-results-a__x/other.json` are both `a × x`"),
        "{twice}"
    );
}

#[test]
fn a_document_says_its_pair_better_than_its_path() {
    let fixture = Fixture::new(&[(
        "raw/a/short.json",
        r#"{"experiment": "a/b", "eval": "long name", "passed": true}"#,
    )]);
    assert_eq!(shown(&fixture.read("raw")), "a/b × long name Pass of unknown");
}

#[test]
fn a_wrong_directory_says_which_file_and_why() {
    let fixture = Fixture::new(&[
        ("empty/readme.txt", ""),
        ("broken/a/x.json", "{\"passed\": tru}"),
        ("config/a/settings.json", r#"{"model": "m"}"#),
        ("split/raw-results-a__b__c/log.json", "[]"),
        ("twice/a/x.json", r#"{"passed": true}"#),
        ("twice/a/x/run-1/result.json", r#"{"passed": true}"#),
        ("unfinished/journal.jsonl", ""),
        ("newer/summary.json", r#"{"schema": "evalwave.summary/2"}"#),
    ]);
    let sources = [
        "nowhere",
        "empty",
        "broken",
        "config",
        "split",
        "twice",
        "unfinished",
        "newer",
    ];
    let messages = sources.map(|source| fixture.problem(source));
    insta::assert_snapshot!(messages.join("\n"), @r"
    cannot read results from `nowhere`: there is no such file or directory
    cannot read results from `empty`: there is no result in it
    expected `summary.json`, `<experiment>/<eval>.json`, `raw-results-<experiment>__<eval>/<eval>.json` or `<experiment>/<eval>/run-<n>/result.json`
    cannot read results from `broken/a/x.json`: line 1, column 15 (byte 14): expected ident, found `}`
    cannot read results from `config`: `a/settings.json` has no `passed`
    cannot read results from `split`: `raw-results-a__b__c` can be read as more than one pair, and no result in it says which
    expected a file named after its eval
    cannot read results from `twice`: `a/x.json` and `a/x/run-1/result.json` are both `a × x`
    attempts of one pair are told apart by `run`
    cannot read results from `unfinished`: the run in it did not end: there is a journal and no `summary.json`
    `evalwave report` shows what the journal holds
    cannot read results from `newer/summary.json`: it is written as `evalwave.summary/2`, and this version of evalwave reads `evalwave.summary/1`
    ");
}

#[test]
fn sources_that_are_not_ours_to_read_say_so() {
    let fixture = Fixture::new(&[]);
    for source in [
        "artifact:x",
        "run:1",
        "ref:v1",
        "latest-release",
        "auto",
        "measure",
    ] {
        assert!(
            fixture
                .problem(source)
                .ends_with("only the action, on GitHub, can reach it")
        );
    }
    assert!(fixture.problem("none").ends_with("it names no results"));
}

#[test]
fn standard_input_is_a_source() {
    let text = br#"[{"experiment": "a", "eval": "x", "passed": true}]"#;
    let set = read("-", Utf8Path::new("."), None, &mut text.as_slice()).unwrap();
    assert_eq!((set.source.as_str(), set.pairs.len()), ("standard input", 1));
}

#[test]
fn results_are_read_as_they_stand_in_a_commit() {
    let fixture = Fixture::new(&[
        (
            "results.json",
            r#"[{"experiment": "a", "eval": "x", "passed": true}]"#,
        ),
        ("raw/a/x.json", r#"{"passed": true}"#),
        ("raw/a/y/run-1/result.json", r#"{"passed": false}"#),
    ]);
    fixture.git(&["init", "--quiet"]);
    fixture.git(&["add", "."]);
    fixture.git(&["commit", "--quiet", "-m", "first"]);
    fs_err::write(fixture.root().join("results.json"), "[]").unwrap();

    let set = fixture.read("git:main:results.json");
    assert_eq!(shown(&set), "a × x Pass of unknown");
    assert_eq!(set.reference.as_deref(), Some("main"));
    assert_eq!(
        shown(&fixture.read("git:HEAD:raw/")),
        "a × x Pass of unknown\na × y Fail of 1"
    );

    for (source, expected) in [
        ("git:main", "expected `git:REF:PATH`"),
        ("git:--output=x:results.json", "expected `git:REF:PATH`"),
        ("git:main:nowhere.json", "has no `nowhere.json`"),
        (
            "git:v9:results.json",
            "there is no commit `v9` here, and it cannot be fetched from `origin`: fatal: ",
        ),
        ("git:main~5:results.json", "there is no commit `main~5`"),
    ] {
        let message = fixture.problem(source);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_reference_that_is_not_there_is_fetched() {
    let upstream = Fixture::new(&[(
        "results.json",
        r#"[{"experiment": "a", "eval": "x", "passed": true}]"#,
    )]);
    upstream.git(&["init", "--quiet"]);
    upstream.git(&["add", "."]);
    upstream.git(&["commit", "--quiet", "-m", "first"]);
    upstream.git(&["branch", "published"]);
    let clone = Fixture::new(&[]);
    let url = format!("file://{}", upstream.root());
    clone.git(&["clone", "--quiet", "--depth=1", "--branch=main", &url, "."]);
    upstream.git(&["commit", "--quiet", "--allow-empty", "-m", "second"]);

    assert_eq!(
        shown(&clone.read("git:origin/published:results.json")),
        "a × x Pass of unknown"
    );
    assert_eq!(
        shown(&clone.read("git:published:results.json")),
        "a × x Pass of unknown"
    );
}

#[test]
fn a_directory_outside_every_repository_says_so() {
    let fixture = Fixture::new(&[]);
    let message = fixture.problem("git:main:results.json");
    assert!(
        message.contains("is in no git repository that can be read"),
        "{message}"
    );
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that did not run must say so")]
fn the_published_results_of_a_real_suite_are_read() {
    let data = Utf8PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../shared/data/supabase-evals"
    ));
    if !data.exists() {
        eprintln!("skipped: {data} is not there");
        return;
    }
    let set = read("C-benchmark.json", &data, None, &mut empty()).unwrap();
    let passed = set
        .pairs
        .iter()
        .filter(|pair| pair.verdict == Verdict::Pass)
        .count();
    assert_eq!((set.pairs.len(), passed), (220, 194));
    assert!(
        set.pairs
            .iter()
            .all(|pair| pair.labels.values("provider").len() == 1)
    );
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse("bytes", &bytes, None);
    }

    #[test]
    fn no_text_that_is_nearly_an_array_panics(text in r#"[\[\]{}":,truefalsn0-9eE.\\ \né-]{0,60}"#) {
        let _ = parse("text", format!("[{text}]").as_bytes(), None);
        let _ = parse("text", format!(r#"[{{"experiment": "a", "eval": {text}"#).as_bytes(), None);
        let _ = parse("text", format!("{{{text}").as_bytes(), None);
    }
}
