//! `evalwave merge`: shards come to what the whole would have come to, and what is missing is said.

use serde_json::{Value, json};

use super::{MIXED, Place, pairs, timeless};
use crate::support::{Suite, stderr, stdout};

/// Nine pairs, run as a whole and in three shards.
fn sharded() -> Place {
    let more = "runs: 2\nstrategy: parallel";
    let place = Place::new(Suite::scripted(&pairs(9), "result: result.json", more, MIXED));
    place.suite.run("").0.code(0);
    for shard in 1..=3 {
        place
            .suite
            .ev(&format!("run -o s{shard} --shard {shard}/3"))
            .code(0);
    }
    place
}

#[test]
fn shards_come_to_what_the_whole_comes_to() {
    let place = sharded();
    place.suite.ev("merge s1 s2 s3 -o all").code(0);
    assert_eq!(timeless(&place.summary("all")), timeless(&place.summary("out")));
    assert_eq!(place.summary("all")["run"]["selection"]["kind"], "all");
    for pair in place.summary("out")["pairs"].as_array().unwrap() {
        let name = |key: &str| pair[key].as_str().unwrap();
        let file = format!(
            "raw-results-{}__{}/{}.json",
            name("experiment"),
            name("eval"),
            name("eval")
        );
        assert_eq!(
            place.suite.read(&format!("all/{file}")),
            place.suite.read(&format!("out/{file}"))
        );
        let log = format!("attempts/{}__{}/2/output.log", name("experiment"), name("eval"));
        assert!(place.path("all").join(log).is_file());
    }
    // The merged directory is a run directory like any other.
    fs_err::remove_file(place.path("all/summary.json")).unwrap();
    assert_eq!(stderr(&place.suite.ev("report all").code(0)), "");
    place.suite.ev("compare --baseline out --current s1").code(0);
    place.suite.ev("merge s1 s2 s3 -o all").code(2);
}

#[test]
fn shards_are_found_in_a_directory_with_their_files_beside_them() {
    let place = sharded();
    for shard in 1..=3 {
        let (here, there) = (format!("s{shard}"), format!("down/evalwave-test-{shard}-of-3"));
        let files = place.path(&format!("{there}-files"));
        fs_err::create_dir_all(place.path(&there)).unwrap();
        fs_err::create_dir_all(&files).unwrap();
        for name in ["summary.json", "journal.jsonl"] {
            fs_err::copy(place.path(&here).join(name), place.path(&there).join(name)).unwrap();
        }
        fs_err::rename(place.path(&here).join("attempts"), files.join("attempts")).unwrap();
    }
    place.suite.ev("merge down -o all").code(0);
    let file = "raw-results-even__e004/e004.json";
    assert_eq!(
        place.suite.read(&format!("all/{file}")),
        place.suite.read(&format!("out/{file}"))
    );
    // Without their files the results count, and what cannot be published is said.
    for shard in 1..=3 {
        fs_err::remove_dir_all(place.path(&format!("down/evalwave-test-{shard}-of-3-files"))).unwrap();
    }
    place.suite.ev("merge down -o bare").code(0);
    assert_eq!(timeless(&place.summary("bare")), timeless(&place.summary("out")));
    let notices = place.summary("bare")["notices"].to_string();
    assert!(notices.contains("the files of 9 pairs are not here"), "{notices}");
}

#[test]
fn what_is_missing_is_said_and_the_merge_is_incomplete() {
    let place = sharded();
    let (run, _) = (place.suite.ev("merge s1 s3 -o all").code(3), ());
    let notices = place.summary("all")["notices"].to_string();
    assert!(
        notices.contains("6 of 18 planned attempts are missing; no part is of shard 2/3: odd × e001 #1"),
        "{notices}\n{}",
        stderr(&run)
    );
    assert_eq!(place.summary("all")["totals"]["not_run"], 3);
    // A shard that died: its journal ends in the middle of a line.
    let journal = place.suite.read("s2/journal.jsonl");
    let end = journal.match_indices("{\"attempt_ended\"").nth(4).unwrap().0;
    place.suite.write("s2/journal.jsonl", &journal[..end + 40]);
    place.suite.ev("merge s1 s2 s3 -o torn").code(3);
    let notices = place.summary("torn")["notices"].to_string();
    assert!(
        notices.contains("s2: it was cancelled or died: what it had is taken"),
        "{notices}"
    );
    assert!(
        notices.contains("2 of 18 planned attempts are missing: "),
        "{notices}"
    );
    for pair in place.summary("torn")["pairs"].as_array().unwrap() {
        for attempt in pair["attempts"].as_array().unwrap() {
            if let Some(path) = attempt["path"].as_str() {
                assert!(place.path("torn").join(path).is_dir(), "{path}");
            }
        }
    }
    // The same shard again, whole: the latest try counts, and the overlap is named.
    place.suite.ev("run -o again --shard 2/3").code(0);
    place.suite.ev("merge s1 s2 s3 again -o whole").code(0);
    assert_eq!(
        timeless(&place.summary("whole"))["pairs"],
        timeless(&place.summary("out"))["pairs"]
    );
    let notices = place.summary("whole")["notices"].to_string();
    assert!(
        notices.contains("4 attempts are in both s2 and again"),
        "{notices}"
    );
    place.suite.ev("merge s1 s3 -o never --fail-on never").code(0);
}

#[test]
fn a_result_stands_though_its_shard_was_made_again_and_failed_there() {
    let place = sharded();
    place.suite.ev("run -o again --shard 2/3").code(0);
    let journal = place.suite.read("again/journal.jsonl");
    // Killed when each of its attempts had a try that failed and waited for another one.
    let lines = journal.lines().filter_map(|line| {
        let event: Value = serde_json::from_str(line).unwrap();
        if event.get("pair_ended").is_some() || event.get("run_ended").is_some() {
            return None;
        }
        let Some(ended) = event.get("attempt_ended") else {
            return Some(line.to_owned());
        };
        let error = json!({ "class": "setup", "phase": "setup", "message": "no network",
                            "exit_code": 1, "signal": null });
        let failed = json!({ "try_failed": {
            "attempt": { "pair": ended["pair"], "index": ended["record"]["index"] },
            "try_number": 1, "error": error, "seconds": 1.0,
        } });
        Some(failed.to_string())
    });
    let lines: Vec<String> = lines.collect();
    assert!(lines.iter().any(|line| line.contains("try_failed")));
    place
        .suite
        .write("again/journal.jsonl", &(lines.join("\n") + "\n"));
    place.suite.ev("merge s1 s2 s3 again -o all").code(0);
    assert_eq!(
        timeless(&place.summary("all"))["pairs"],
        timeless(&place.summary("out"))["pairs"]
    );
}

#[test]
fn what_does_not_belong_is_named() {
    let place = sharded();
    let refused = |arguments: &str| stderr(&place.suite.ev(&format!("merge {arguments} -o all")).code(2));
    place.suite.ev("run -o other --shard 2/3 --runs 1").code(0);
    let told = refused("s1 other");
    assert!(
        told.contains("cannot join `other` with `s1`: its `runs` is `1`, not `2`"),
        "{told}"
    );
    place.suite.ev("run -o halves --shard 2/2").code(0);
    let told = refused("s1 halves");
    assert!(told.contains("it is one of 2 shards, not one of 3"), "{told}");
    let told = refused("s1 nowhere");
    assert!(told.contains("nowhere` holds no run"), "{told}");
    let journal = place.suite.read("s2/journal.jsonl");
    place.suite.write(
        "s2/journal.jsonl",
        &journal.replace("evalwave.journal/1", "evalwave.journal/0"),
    );
    let told = refused("s1 s2");
    assert!(
        told.contains("its version is `evalwave.journal/0`, expected `evalwave.journal/1`"),
        "{told}"
    );
    assert!(!place.path("all").exists());
}

#[test]
fn a_merge_takes_a_history_as_a_run_does() {
    let place = sharded();
    let rows = |fails: &[&str]| {
        let pairs = pairs(9);
        let rows = pairs.split(' ').map(|pair| {
            let (experiment, eval) = pair.split_once('/').unwrap();
            serde_json::json!({ "experiment": experiment, "eval": eval, "passed": !fails.contains(&eval) })
        });
        serde_json::Value::from(rows.collect::<Vec<_>>()).to_string()
    };
    place.suite.write("before.json", &rows(&[]));
    place.suite.write("older.json", &rows(&["e000", "e007"]));
    let gate = "--baseline before.json --fail-on regression";
    let unaware = stdout(&place.suite.ev(&format!("merge s1 s2 s3 -o one {gate}")).code(1));
    assert!(unaware.contains("2 PASS→FAIL"), "{unaware}");
    let history = "--history older.json before.json";
    let aware = stdout(
        &place
            .suite
            .ev(&format!("merge s1 s2 s3 -o two {gate} {history}"))
            .code(0),
    );
    assert!(aware.contains("2 PASS→FAIL (2 known flaky)"), "{aware}");
}

#[test]
fn a_merge_that_lacks_an_attempt_is_not_whole_though_its_pairs_are_decided() {
    let more = "runs: 2\nstrategy: parallel\nconcurrency: 1";
    let place = Place::new(Suite::scripted(
        "a/one a/two",
        "result: result.json",
        more,
        "echo '{\"passed\": true}' > result.json",
    ));
    for shard in 1..=2 {
        place
            .suite
            .ev(&format!("run -o s{shard} --shard {shard}/2"))
            .code(0);
    }
    let journal = place.suite.read("s2/journal.jsonl");
    let end = journal.rfind("{\"attempt_ended\"").unwrap();
    place.suite.write("s2/journal.jsonl", &journal[..end]);
    place.suite.ev("merge s1 s2 -o all --fail-on regression").code(3);
    let summary = place.summary("all");
    assert_eq!(summary["totals"]["passed"], 2);
    assert_eq!(
        (&summary["run"]["conclusion"], &summary["run"]["complete"]),
        (&"incomplete".into(), &false.into())
    );
}

#[test]
fn shards_in_which_nothing_had_changed_are_a_merge_in_which_nothing_had() {
    let place = Place::new(Suite::new(
        "version: 1\nsuite:\n  pairs: [{ experiment: a, eval: one }, { experiment: a, eval: two }]\n  \
         changed: { evals: 'evals/{eval}/**' }\nattempt: { command: 'exit 1', format: exit-code }\n",
    ));
    for shard in 1..=2 {
        place
            .suite
            .ev(&format!("run -o s{shard} --shard {shard}/2 --changed-since HEAD"))
            .code(0);
    }
    place.suite.ev("merge s1 s2 -o all").code(0);
    assert_eq!(place.summary("all")["run"]["conclusion"], "skipped");

    // One has changed, and the shard that has it has left nothing.
    place.suite.write("evals/one/PROMPT.md", "x");
    for shard in 1..=2 {
        let out = format!("t{shard} --shard {shard}/2 --changed-since HEAD");
        place.suite.ev(&format!("run -o {out}"));
    }
    let has_none = |part: &&str| place.summary(part)["pairs"].as_array().unwrap().is_empty();
    let empty = ["t1", "t2"].into_iter().find(has_none).unwrap();
    place
        .suite
        .ev(&format!("merge {empty} -o rest --fail-on never"))
        .code(4);
    assert_eq!(place.summary("rest")["run"]["conclusion"], "empty");
}

#[test]
fn a_journal_that_claims_more_attempts_than_any_run_has_is_refused() {
    let place = sharded();
    let journal = place.suite.read("s2/journal.jsonl");
    let claims = journal.replacen("\"runs\":2", "\"runs\":4294967295", 1);
    assert_ne!(claims, journal);
    place.suite.write("s2/journal.jsonl", &claims);
    let told = stderr(&place.suite.ev("merge s1 s2 -o all").code(2));
    assert!(
        told.contains("4294967295 attempts of each pair, expected 1 to 1000"),
        "{told}"
    );
}
