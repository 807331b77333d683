//! Runs that are killed, interrupted, cut into shards or starved: what they have is kept, and nothing of theirs is left.

mod harm;
mod kill;
mod merge;
mod resume;
mod signals;

use std::process::Stdio;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::support::{Suite, git};

/// A suite in a repository with one commit, and the directory for temporary files that its runs have to themselves.
pub(super) struct Place {
    pub(super) suite: Suite,
    temporary: TempDir,
}

impl Place {
    pub(super) fn new(suite: Suite) -> Self {
        git(suite.path(), &["init", "-q"]);
        git(suite.path(), &["add", "-A"]);
        git(suite.path(), &["commit", "-q", "-m", "first"]);
        Self {
            suite,
            temporary: TempDir::new().unwrap(),
        }
    }

    /// Where its sandboxes are.
    pub(super) fn temporary(&self) -> &Utf8Path {
        Utf8Path::from_path(self.temporary.path()).unwrap()
    }

    pub(super) fn path(&self, name: &str) -> Utf8PathBuf {
        self.suite.path().join(name)
    }

    /// Begins the binary there; what it says goes to the file `said`.
    pub(super) fn begin(&self, arguments: &str) -> Begun {
        let said = fs_err::File::create(self.path("said")).unwrap();
        let child = Command::new(assert_cmd::cargo::cargo_bin("evalwave"))
            .args(arguments.split_whitespace())
            .current_dir(self.suite.path())
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap())
            .env("TMPDIR", self.temporary())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said.into_parts().0)
            .spawn()
            .unwrap();
        let pid = Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap();
        Begun { child, pid }
    }

    /// Runs the binary there to its end; gives its exit code.
    pub(super) async fn run(&self, arguments: &str) -> i32 {
        let mut begun = self.begin(arguments);
        begun.child.wait().await.unwrap().code().unwrap()
    }

    pub(super) fn said(&self) -> String {
        self.suite.read("said")
    }

    /// How many lines of the journal in `directory` hold this.
    pub(super) fn told(&self, directory: &str, what: &str) -> usize {
        let journal = fs_err::read(self.path(directory).join("journal.jsonl")).unwrap_or_default();
        let journal = String::from_utf8_lossy(&journal);
        let whole = journal.rfind('\n').map_or("", |end| &journal[..end]);
        whole.lines().filter(|line| line.contains(what)).count()
    }

    /// How many bytes of the journal in `directory` there are.
    pub(super) fn length(&self, directory: &str) -> usize {
        let journal = fs_err::metadata(self.path(directory).join("journal.jsonl"));
        journal.map_or(0, |journal| usize::try_from(journal.len()).unwrap())
    }

    /// Processes whose environment names the directory for temporary files.
    pub(super) fn processes(&self) -> Vec<String> {
        let mark = self.temporary().as_str().as_bytes();
        let mut found = Vec::new();
        for entry in fs_err::read_dir("/proc").unwrap().flatten() {
            let environment = fs_err::read(entry.path().join("environ")).unwrap_or_default();
            if environment.windows(mark.len()).any(|window| window == mark) {
                let command = fs_err::read(entry.path().join("cmdline")).unwrap_or_default();
                found.push(String::from_utf8_lossy(&command).replace('\0', " "));
            }
        }
        found
    }

    /// Waits until nothing of its runs is there any more.
    pub(super) async fn quiet(&self) {
        let waiting = async {
            while !self.processes().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        assert!(waited.is_ok(), "left behind: {:?}", self.processes());
    }

    /// What lies in the directory for temporary files.
    pub(super) fn left(&self) -> Vec<String> {
        let entries = self.temporary().read_dir_utf8().unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().to_owned())
            .collect()
    }

    pub(super) fn summary(&self, directory: &str) -> Value {
        self.suite.read_json(&format!("{directory}/summary.json"))
    }
}

/// Long enough for anything here on any machine; only what is broken takes as long.
pub(super) const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// A run under way.
pub(super) struct Begun {
    pub(super) child: Child,
    pub(super) pid: Pid,
}

impl Begun {
    pub(super) fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).unwrap();
    }

    /// Waits until `come`, or its end; gives whether it came.
    pub(super) async fn until(&mut self, come: impl Fn() -> bool) -> bool {
        while !come() {
            if self.child.try_wait().unwrap().is_some() {
                return come();
            }
            tokio::task::yield_now().await;
        }
        true
    }
}

/// What a summary says that does not depend on when things happened.
pub(super) fn timeless(summary: &Value) -> Value {
    let pairs = summary["pairs"].as_array().unwrap().iter().map(|pair| {
        let attempts = pair["attempts"].as_array().unwrap().iter();
        let attempts = attempts.map(|attempt| {
            json!([
                attempt["index"],
                attempt["outcome"],
                attempt["reason"],
                attempt["checks_failed"],
                attempt["score"],
                attempt["path"],
            ])
        });
        json!([
            pair["experiment"],
            pair["eval"],
            pair["labels"],
            pair["verdict"],
            pair["passed_attempts"],
            pair["graded_attempts"],
            pair["representative"],
            pair["firm"],
            attempts.collect::<Vec<Value>>(),
        ])
    });
    let mut totals = summary["totals"].clone();
    totals.as_object_mut().unwrap().remove("sandbox_seconds");
    totals["attempts"].as_object_mut().unwrap().remove("retried");
    json!({
        "pairs": pairs.collect::<Vec<Value>>(),
        "totals": totals,
        "conclusion": summary["run"]["conclusion"],
        "complete": summary["run"]["complete"],
        "reason": summary["run"]["reason"],
        "gates": summary["gates"],
        "selection": summary["run"]["selection"],
    })
}

/// The attempts that a journal tells as graded, each as often as it does.
pub(super) fn graded(journal: &str) -> Vec<String> {
    let events = journal
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ended = events.filter_map(|event| event.get("attempt_ended").cloned());
    let graded = ended.filter(|ended| {
        ["passed", "failed", "timed_out"].contains(&ended["record"]["outcome"].as_str().unwrap())
    });
    graded
        .map(|ended| {
            let pair = &ended["pair"];
            format!(
                "{}/{} {}",
                pair["experiment"], pair["eval"], ended["record"]["index"]
            )
        })
        .collect()
}

/// So many pairs of two experiments.
pub(super) fn pairs(count: usize) -> String {
    let names = (0..count).map(|at| format!("{}/e{:03}", if at % 2 == 0 { "even" } else { "odd" }, at));
    names.collect::<Vec<String>>().join(" ")
}

/// Every third eval fails its first attempt, every seventh both; the result is half-written first.
pub(super) const MIXED: &str = r#"
number=$(expr "${EVALWAVE_EVAL#e}" + 0)
passed=true
[ $((number % 3)) = 0 ] && [ "$EVALWAVE_ATTEMPT" = 1 ] && passed=false
[ $((number % 7)) = 0 ] && passed=false
printf '{"passed": ' > result.json
printf '%s, "checks": [{"name": "%s", "passed": %s}]}' $passed "$EVALWAVE_EVAL" $passed >> result.json
"#;
