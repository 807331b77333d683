//! A cancelled run: the runner signals the one process that it has started, and kills it ten seconds later.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;
use tokio::process::{Child, Command};

use super::{Workflow, measured, outputs, suite};

/// From the first signal to the second, and from that to the end.
const TO_TERMINATE: Duration = Duration::from_millis(7500);
const TO_KILL: Duration = Duration::from_millis(2500);

/// A run whose first pair passes and whose second one hangs, begun by `bash` as a step is.
struct Begun {
    workflow: Workflow,
    child: Child,
    pid: Pid,
}

impl Begun {
    async fn begin() -> Self {
        let script = "[ $EVALWAVE_EVAL = task ] || { echo $$ > \"$HANGS\"; sleep 1000; }\necho '{\"passed\": true}' > result.json";
        let suite = suite("agent/task agent/hangs", "concurrency: 1", script);
        let config = suite
            .read("evalwave.yml")
            .replace("  command:", "  env-from: [HANGS]\n  command:");
        suite.write("evalwave.yml", &config);
        let workflow = Workflow::new(suite, measured());
        let hangs = workflow.runner().join("hangs");
        let workflow = workflow.set("HANGS", hangs.as_str());
        for file in ["output", "summary"] {
            fs_err::write(workflow.runner().join(file), "").unwrap();
        }
        let mut child = Command::new("bash")
            .args(["-e", "-c", "exec \"$0\" action"])
            .arg(assert_cmd::cargo::cargo_bin("evalwave"))
            .current_dir(workflow.suite.path())
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap())
            .envs(workflow.environment())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let pid = Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap();
        while number(&hangs).is_none() || !is_posted(&workflow) {
            assert!(child.try_wait().unwrap().is_none(), "the run ended early");
            tokio::task::yield_now().await;
        }
        Self { workflow, child, pid }
    }

    fn results(&self) -> String {
        outputs(&self.workflow.read("output"))["results-dir"].clone()
    }

    /// Whether the attempt that hangs is still there.
    fn hangs(&self) -> bool {
        let pid = number(&self.workflow.runner().join("hangs")).unwrap();
        test_kill_process(Pid::from_raw(pid).unwrap()).is_ok()
    }
}

fn number(path: &Utf8Path) -> Option<i32> {
    fs_err::read_to_string(path).ok()?.trim().parse().ok()
}

fn is_posted(workflow: &Workflow) -> bool {
    workflow
        .comments()
        .iter()
        .any(|body| body.contains("### Evals: running"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_ends_in_five_seconds_with_all_that_it_has() {
    let mut begun = Begun::begin().await;
    let signalled = Instant::now();
    kill_process(begun.pid, Signal::INT).unwrap();
    let ended = match tokio::time::timeout(TO_TERMINATE, begun.child.wait()).await {
        Ok(ended) => ended.unwrap(),
        Err(_) => {
            kill_process(begun.pid, Signal::TERM).unwrap();
            match tokio::time::timeout(TO_KILL, begun.child.wait()).await {
                Ok(ended) => ended.unwrap(),
                Err(_) => panic!("the runner would have killed it"),
            }
        }
    };
    assert_eq!((ended.code(), ended.signal()), (Some(130), None));
    assert!(
        signalled.elapsed() < Duration::from_secs(5),
        "{:?}",
        signalled.elapsed()
    );
    assert!(!begun.hangs(), "an attempt is left behind");
    let summary = fs_err::read(Utf8Path::new(&begun.results()).join("summary.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    assert_eq!(summary["run"]["conclusion"], "cancelled");
    assert_eq!(summary["totals"]["passed"], 1);
    let comments = begun.workflow.comments();
    assert!(comments[0].contains("partial: 1 of 2 pairs"), "{}", comments[0]);
    assert!(begun.workflow.read("summary").contains("partial: 1 of 2 pairs"));
    assert_eq!(outputs(&begun.workflow.read("output"))["conclusion"], "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_killed_gets_its_last_word_from_the_cleanup_step() {
    let mut begun = Begun::begin().await;
    kill_process(begun.pid, Signal::KILL).unwrap();
    begun.child.wait().await.unwrap();
    let results = begun.results();
    let step = begun.workflow.call(&["cleanup", &results]);
    assert_eq!(step.code, 0, "{}", step.log);
    let comments = begun.workflow.comments();
    assert_eq!(comments.len(), 1);
    assert!(comments[0].contains("partial: 1 of 2 pairs"), "{}", comments[0]);
    assert!(comments[0].contains("died"), "{}", comments[0]);
    let writes = begun.workflow.github.writes();
    let step = begun.workflow.call(&["cleanup", &results]);
    assert_eq!(step.code, 0);
    assert_eq!(
        begun.workflow.github.writes(),
        writes,
        "a second cleanup has nothing to do"
    );
    while begun.hangs() {
        tokio::task::yield_now().await;
    }
}
