//! SIGKILL at any moment, and the run that goes on afterwards.

use std::collections::HashSet;

use rustix::process::Signal;
use serde_json::Value;

use super::{MIXED, Place, graded, pairs, timeless};
use crate::support::Suite;

/// How many runs are killed; `.ci/run` asks for as many as the promise is about.
const KILLS: &str = "EVALWAVE_TEST_KILLS";

/// A generator whose numbers are the same in every run of the test.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_killed_again_and_again_comes_to_what_it_would_have_come_to() {
    let asked = std::env::var(KILLS)
        .ok()
        .map(|kills| kills.parse::<usize>().unwrap());
    let (kills, count) = match asked {
        Some(kills) => (kills, 100),
        None => {
            eprintln!("2 runs of 24 attempts are killed: `{KILLS}` asks for more, of 200 attempts");
            (2, 12)
        }
    };
    let more = "runs: 2\nstrategy: parallel\nconcurrency: 16\nretry: { tries: 9, budget: 100% }";
    // Earlier runs are no part of what attempts work on.
    let attempt = "result: result.json\nupload: { exclude: ['whole/**', 'out*/**'] }";
    // Every fifth eval needs a second try.
    let script =
        format!("[ $(expr \"${{EVALWAVE_EVAL#e}}\" % 5) = 4 ] && [ $EVALWAVE_TRY = 1 ] && exit 1\n{MIXED}");
    let place = Place::new(Suite::scripted(&pairs(count), attempt, more, &script));
    assert_eq!(place.run("run -o whole").await, 0, "{}", place.said());
    let whole = timeless(&place.summary("whole"));
    let length = place.length("whole");

    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for kill in 0..kills {
        let out = format!("out{kill}");
        // Killed two times on its way, the second time while it goes on.
        let mut arguments = format!("run -o {out}");
        for _ in 0..2 {
            let moment = place.length(&out) + random.below(length / 2);
            let mut begun = place.begin(&arguments);
            if begun.until(|| place.length(&out) >= moment).await {
                // It may have ended by itself in the meantime.
                let _ = begun.child.start_kill();
            }
            begun.child.wait().await.unwrap();
            if place.path(&out).join("journal.jsonl").is_file() && place.told(&out, "run_started") == 1 {
                arguments = format!("run -o {out} --resume");
            } else {
                arguments = format!("run -o {out} --overwrite");
            }
        }
        let code = place.run(&arguments).await;
        assert_eq!(code, 0, "{}", place.said());
        let again = timeless(&place.summary(&out));
        let expected = whole["pairs"].as_array().unwrap();
        for (pair, expected) in again["pairs"].as_array().unwrap().iter().zip(expected) {
            assert_eq!(pair, expected, "kill {kill}: {}", place.said());
        }
        assert_eq!(again, whole, "kill {kill}");

        let journal = place.suite.read(&format!("{out}/journal.jsonl"));
        let graded = graded(&journal);
        assert_eq!(graded.len(), 2 * count);
        assert_eq!(
            graded.iter().collect::<HashSet<_>>().len(),
            2 * count,
            "graded twice"
        );
        for (attempt, number) in failed_tries(&journal) {
            let kept = format!("{out}/attempts/{attempt}/tries/{number}/attempt.json");
            let kept = place.suite.read_json(&kept);
            assert_eq!(kept["attempt"]["tries"], number, "{attempt}");
            assert_eq!(kept["attempt"]["outcome"], "errored", "{attempt}");
        }
        for pair in whole["pairs"].as_array().unwrap() {
            let name = |at: usize| pair[at].as_str().unwrap();
            let published = format!("{out}/raw-results-{}__{}/{}.json", name(0), name(1), name(1));
            let published = place.suite.read_json(&published);
            assert_eq!(published["passed"], pair[3] == "pass", "{published}");
            assert_eq!(published["attempts"], 2);
        }
        place.quiet().await;
        assert_eq!(place.left(), Vec::<String>::new(), "kill {kill}");
        fs_err::remove_dir_all(place.path(&out)).unwrap();
    }
}

/// The tries that a journal tells as failed, with the directories of their attempts.
fn failed_tries(journal: &str) -> Vec<(String, u64)> {
    let events = journal
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let failed = events.filter_map(|event| event.get("try_failed").cloned());
    let place = |failed: Value| {
        let (pair, index) = (&failed["attempt"]["pair"], &failed["attempt"]["index"]);
        let name = |id: &str| pair[id].as_str().unwrap().to_owned();
        let directory = format!("{}__{}/{index}", name("experiment"), name("eval"));
        (directory, failed["try_number"].as_u64().unwrap())
    };
    failed.map(place).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_from_every_line_of_its_journal_and_from_every_torn_one() {
    let more = "runs: 2\nstrategy: parallel";
    let place = Place::new(Suite::scripted(&pairs(2), "result: result.json", more, MIXED));
    assert_eq!(place.run("run -o whole").await, 0);
    let whole = timeless(&place.summary("whole"));
    let journal = place.suite.read("whole/journal.jsonl");
    let mut ends: Vec<usize> = journal.match_indices('\n').map(|(at, _)| at + 1).collect();
    // A line is cut off in its middle, and right before its end.
    let torn = ends
        .windows(2)
        .flat_map(|ends| [(ends[0] + ends[1]) / 2, ends[1] - 1]);
    let torn: Vec<usize> = torn.step_by(6).collect();
    ends.extend(torn);
    for end in ends {
        let out = place.path("out");
        copy(&place.path("whole"), &out);
        fs_err::write(out.join("journal.jsonl"), &journal[..end]).unwrap();
        fs_err::remove_file(out.join("summary.json")).unwrap();
        assert_eq!(
            place.run("run -o out --resume").await,
            0,
            "at {end}: {}",
            place.said()
        );
        assert_eq!(timeless(&place.summary("out")), whole, "at {end}");
        let again = place.suite.read("out/journal.jsonl");
        assert_eq!(graded(&again).len(), 4, "at {end}");
        assert!(
            again
                .lines()
                .all(|line| serde_json::from_str::<Value>(line).is_ok())
        );
        fs_err::remove_dir_all(out).unwrap();
    }
    place.quiet().await;
    assert_eq!(place.left(), Vec::<String>::new());
}

fn copy(from: &camino::Utf8Path, to: &camino::Utf8Path) {
    fs_err::create_dir_all(to).unwrap();
    for entry in from.read_dir_utf8().unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(entry.path(), &to),
            false => {
                fs_err::copy(entry.path(), &to).unwrap();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_attempt_started_dies_with_the_run() {
    let script = "setsid sleep 1000 &\nsleep 1000 &\nsleep 1000";
    let place = Place::new(Suite::scripted(
        &pairs(4),
        "result: result.json",
        "runs: 2\nstrategy: parallel",
        script,
    ));
    let mut begun = place.begin("run -o out");
    assert!(
        begun.until(|| place.processes().len() >= 8 * 3).await,
        "{}",
        place.said()
    );
    begun.signal(Signal::KILL);
    begun.child.wait().await.unwrap();
    place.quiet().await;
    assert_eq!(place.told("out", "attempt_started"), 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_try_that_failed_before_the_kill_keeps_its_record_beside_its_output() {
    // What is throttled waits before its next try: the run is killed in the meantime.
    let script = "echo $EVALWAVE_TRY >> \"$SEEN\"
        [ $EVALWAVE_TRY = 1 ] && { echo 429 too many requests; exit 1; }
        echo '{\"passed\": true}' > result.json";
    for (produces, count) in [("attempt", 1), ("pair", 2)] {
        let attempt = "result: PATTERN\nproduces: PRODUCES\nenv: { SEEN: PLACE/seen }";
        let pattern = if count == 1 {
            "result.json"
        } else {
            "'result*.json'"
        };
        let attempt = attempt.replace("PATTERN", pattern).replace("PRODUCES", produces);
        let suite = Suite::scripted(
            "a/one",
            &attempt,
            &format!("runs: {count}\nretry: {{ tries: 2 }}"),
            script,
        );
        let config = suite.read("evalwave.yml").replace("PLACE", suite.path().as_str());
        suite.write("evalwave.yml", &config);
        suite.write("seen", "");
        let place = Place::new(suite);
        let mut begun = place.begin("run -o out");
        assert!(
            begun.until(|| place.told("out", "try_failed") == count).await,
            "{}",
            place.said()
        );
        begun.signal(Signal::KILL);
        begun.child.wait().await.unwrap();
        place.run("run -o out --resume").await;
        assert_eq!(place.suite.read("seen"), "1\n2\n", "{}", place.said());
        for index in 1..=count {
            let directory = format!("out/attempts/a__one/{index}");
            for (path, number) in [(format!("{directory}/tries/1"), 1), (directory.clone(), 2)] {
                let kept = place.suite.read_json(&format!("{path}/attempt.json"));
                assert_eq!(kept["attempt"]["tries"], number, "{path}");
                let failed = kept["attempt"]["error"]["class"] == "throttled";
                assert_eq!(failed, number == 1, "{path}");
            }
        }
        let output = place.suite.read("out/attempts/a__one/1/tries/1/output.log");
        assert!(output.contains("429"), "{output}");
    }
}
