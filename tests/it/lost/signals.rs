//! Signals: what is under way is stopped, what is there is kept, and nothing is left.

use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{PATIENCE, Place, pairs};
use crate::support::{Suite, git};

/// The first eval passes; every other hangs, with a process of its own session.
const HANGS: &str = "[ $EVALWAVE_EVAL = e000 ] || { setsid sleep 1000 & sleep 1000; }\necho '{\"passed\": true}' > result.json";

fn hanging() -> Place {
    let more = "runs: 1\nstrategy: parallel\nconcurrency: 51";
    Place::new(Suite::scripted(&pairs(51), "result: result.json", more, HANGS))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_ends_fifty_attempts_in_five_seconds_and_leaves_nothing() {
    let place = hanging();
    let mut begun = place.begin("run -o out");
    let under_way = || place.processes().len() >= 50 * 3 && place.told("out", "attempt_ended") == 1;
    assert!(begun.until(under_way).await, "{}", place.said());
    let signalled = Instant::now();
    begun.signal(Signal::INT);
    let ended = tokio::time::timeout(PATIENCE, begun.child.wait())
        .await
        .unwrap()
        .unwrap();
    let took = signalled.elapsed();
    assert_eq!(ended.code(), Some(130));
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(place.processes(), Vec::<String>::new());
    assert_eq!(place.left(), Vec::<String>::new());
    let summary = place.summary("out");
    assert_eq!(summary["run"]["conclusion"], "cancelled");
    assert_eq!(
        (&summary["run"]["complete"], &summary["totals"]["passed"]),
        (&false.into(), &1.into())
    );
    let report = place.suite.read("out/report.md");
    assert!(report.contains("partial: 1 of 51 pairs"), "{report}");
    eprintln!("50 attempts were stopped in {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_interrupt_ends_a_run_at_once_whatever_holds_it_up() {
    let place = hanging();
    let mut begun = place.begin("run -o out");
    assert!(
        begun.until(|| place.processes().len() >= 50 * 3).await,
        "{}",
        place.said()
    );
    // Supervisors that do not answer hold up the end of their sandboxes.
    let held: Vec<Pid> = supervisors(begun.pid);
    for pid in &held {
        // One that was about to end may have.
        let _ = kill_process(*pid, Signal::STOP);
    }
    begun.signal(Signal::INT);
    assert!(begun.until(|| place.said().contains("cancelling")).await);
    assert!(begun.child.try_wait().unwrap().is_none(), "nothing held it up");
    begun.signal(Signal::INT);
    let ended = tokio::time::timeout(Duration::from_secs(5), begun.child.wait()).await;
    let ended = ended.expect("it waits").unwrap();
    assert_eq!(ended.code(), Some(130), "{}", place.said());
    for pid in held {
        // One that was stopped is there until it goes on.
        let _ = kill_process(pid, Signal::CONT);
    }
    place.quiet().await;
}

/// The children of a process.
fn supervisors(parent: Pid) -> Vec<Pid> {
    let parent = parent.as_raw_nonzero().to_string();
    let mut found = Vec::new();
    for entry in fs_err::read_dir("/proc").unwrap().flatten() {
        let stat = fs_err::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let after = stat.rsplit_once(") ").map_or("", |(_, after)| after);
        if after.split(' ').nth(1) == Some(&parent) {
            let name = entry.file_name();
            found.push(Pid::from_raw(name.to_str().unwrap().parse().unwrap()).unwrap());
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_in_the_first_moments_ends_a_run_as_one_later_does() {
    let more = "runs: 1\nstrategy: parallel";
    let place = Place::new(Suite::scripted(
        &pairs(9),
        "result: result.json",
        more,
        "sleep 1000",
    ));
    for moment in 0..20_u32 {
        let out = format!("out{moment}");
        let mut begun = place.begin(&format!("run -o {out}"));
        let spun = Instant::now();
        while spun.elapsed() < Duration::from_micros(500) * moment {
            std::hint::spin_loop();
        }
        // Not SIGINT, which a shell has its background jobs ignore until they watch it themselves.
        begun.signal(Signal::TERM);
        let ended = tokio::time::timeout(PATIENCE, begun.child.wait())
            .await
            .unwrap()
            .unwrap();
        // Before the program itself has begun, the system does what it does with every program.
        assert!(
            ended.code() == Some(130) || ended.signal() == Some(15),
            "at {moment}: {ended:?} {}",
            place.said()
        );
        place.quiet().await;
        assert_eq!(place.left(), Vec::<String>::new(), "at {moment}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_ends_the_command_that_prints_the_pairs_too() {
    for (command, signal) in [("run", Signal::INT), ("run", Signal::TERM), ("plan", Signal::INT)] {
        let suite = Suite::new(
            "version: 1\nsuite:\n  pairs: { command: 'sleep 1000 & echo $! > child; echo $$ > parent; wait' }\nattempt: { command: 'true' }\n",
        );
        let place = Place::new(suite);
        let number = |name: &str| -> Option<Pid> {
            let text = fs_err::read_to_string(place.path(name)).ok()?;
            Pid::from_raw(text.trim().parse().ok()?)
        };
        let mut begun = place.begin(command);
        assert!(
            begun.until(|| number("parent").is_some()).await,
            "{}",
            place.said()
        );
        begun.signal(signal);
        let ended = tokio::time::timeout(PATIENCE, begun.child.wait())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(ended.code(), Some(130), "{}", place.said());
        place.quiet().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_while_only_the_base_revision_still_runs_cancels_the_whole() {
    // One at a time: the base revision begins when the run itself has ended.
    let more = "concurrency: 1\nbaseline: measure\nfail-on: regression";
    let attempt = "result: result.json\nenv: { COUNT: PLACE/count }";
    let script =
        "echo x >>$COUNT; [ $(wc -l <$COUNT) -le 3 ] || sleep 1000\necho '{\"passed\": true}' > result.json";
    let suite = Suite::scripted("a/one a/two", attempt, more, script);
    let config = suite.read("evalwave.yml").replace("PLACE", suite.path().as_str());
    suite.write("evalwave.yml", &config);
    let place = Place::new(suite);
    git(
        place.suite.path(),
        &["update-ref", "refs/remotes/origin/main", "HEAD"],
    );
    let mut begun = place.begin("run -o out");
    let under_way = || place.told("out/baseline", "attempt_started") == 2;
    assert!(begun.until(under_way).await, "{}", place.said());
    assert_eq!(place.told("out", "run_ended"), 1);
    begun.signal(Signal::INT);
    let ended = begun.child.wait().await.unwrap();
    assert_eq!(ended.code(), Some(130), "{}", place.said());
    let summary = place.summary("out");
    assert_eq!(
        (&summary["run"]["conclusion"], &summary["run"]["complete"]),
        (&"cancelled".into(), &false.into())
    );
    let notices = summary["notices"].to_string();
    assert!(
        notices.contains("the base revision was stopped: it was cancelled"),
        "{notices}"
    );
    place.quiet().await;
}
