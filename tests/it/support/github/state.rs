//! What the fake GitHub holds, with makers of what tests put into it. Knows no HTTP.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Barrier;

/// The token that it knows.
pub(crate) const TOKEN: &str = "ghs_the-token-of-this-workflow";

/// Everything that it knows.
pub(crate) struct State {
    /// Where it listens; set when it starts.
    pub(crate) host: String,
    /// What its paths begin with: `/api/v3` on a server of one's own.
    pub(crate) prefix: String,
    pub(crate) repository: String,
    pub(crate) default_branch: String,
    pub(crate) runs: Vec<Run>,
    pub(crate) artifacts: Vec<Artifact>,
    /// Each commit with its parents.
    pub(crate) commits: BTreeMap<String, Vec<String>>,
    pub(crate) branches: BTreeMap<String, String>,
    pub(crate) tags: BTreeMap<String, String>,
    /// Newest first.
    pub(crate) releases: Vec<Release>,
    pub(crate) pulls: Vec<Pull>,
    pub(crate) comments: Vec<Comment>,
    /// Whose the token is.
    pub(crate) login: String,
    /// What the token may not.
    pub(crate) forbidden: Vec<&'static str>,
    /// Most entries of a page, however many are asked for.
    pub(crate) page_size: usize,
    /// Most bytes of a comment.
    pub(crate) longest_comment: usize,
    pub(crate) troubles: Vec<Trouble>,
    /// What was asked and answered, in order.
    pub(crate) exchanges: Vec<Exchange>,
    /// What was said that GitHub's description does not allow.
    pub(crate) undescribed: Vec<String>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            host: String::new(),
            prefix: String::new(),
            repository: "octo/evals".to_owned(),
            default_branch: "main".to_owned(),
            runs: Vec::new(),
            artifacts: Vec::new(),
            commits: BTreeMap::new(),
            branches: BTreeMap::new(),
            tags: BTreeMap::new(),
            releases: Vec::new(),
            pulls: Vec::new(),
            comments: Vec::new(),
            login: "github-actions[bot]".to_owned(),
            forbidden: Vec::new(),
            page_size: 100,
            longest_comment: 65_536,
            troubles: Vec::new(),
            exchanges: Vec::new(),
            undescribed: Vec::new(),
        }
    }
}

impl State {
    /// A history of commits on `main`, oldest first.
    pub(crate) fn with_history(commits: &[&str]) -> Self {
        let mut state = Self::default();
        for (at, commit) in commits.iter().enumerate() {
            let parents = commits[..at].last().map(|parent| sha(parent));
            state.commits.insert(sha(commit), parents.into_iter().collect());
        }
        if let Some(tip) = commits.last() {
            state.branches.insert("main".to_owned(), sha(tip));
        }
        state
    }

    /// Adds a commit with these parents.
    pub(crate) fn commit(&mut self, commit: &str, parents: &[&str]) {
        self.commits
            .insert(sha(commit), parents.iter().map(|parent| sha(parent)).collect());
    }

    /// Adds a finished run with a complete result of the suite `all`.
    pub(crate) fn measured(&mut self, run: Run) {
        let summary = summary("all", run.head_sha.as_deref());
        self.artifacts.push(artifact_of(run.id, "evalwave-all", &summary));
        self.runs.push(run);
    }

    /// Makes the next so many questions fail whose line (`POST /path`) holds `about`.
    pub(crate) fn trouble(&mut self, about: &str, times: usize, fault: impl Fn() -> Fault) {
        self.troubles.extend((0..times).map(|_| Trouble {
            about: about.to_owned(),
            fault: fault(),
        }));
    }

    pub(super) fn fault(&mut self, exchange: &Exchange) -> Option<Fault> {
        let line = format!("{} {}", exchange.method, exchange.path);
        let at = self
            .troubles
            .iter()
            .position(|trouble| line.contains(&trouble.about))?;
        Some(self.troubles.remove(at).fault)
    }
}

/// A commit's full name, from a short one.
pub(crate) fn sha(short: &str) -> String {
    short
        .bytes()
        .flat_map(|byte| format!("{byte:02x}").into_bytes())
        .map(char::from)
        .chain(std::iter::repeat('0'))
        .take(40)
        .collect()
}

/// A time on one of the days before 10 March 2026.
pub(crate) fn day(day: u32) -> String {
    format!("2026-03-{day:02}T10:00:00Z")
}

/// A workflow run.
#[derive(Clone)]
pub(crate) struct Run {
    pub(crate) id: u64,
    pub(crate) event: &'static str,
    pub(crate) head_branch: Option<String>,
    pub(crate) head_sha: Option<String>,
    pub(crate) status: &'static str,
    /// The number of the repository that its head is in; `None` where that has been deleted.
    pub(crate) head_repository: Option<u64>,
    pub(crate) workflow: &'static str,
    pub(crate) created_at: String,
}

impl Run {
    /// A finished run of a push to `main`; the higher its number, the newer.
    pub(crate) fn pushed(id: u64, commit: &str) -> Self {
        Self {
            id,
            event: "push",
            head_branch: Some("main".to_owned()),
            head_sha: Some(sha(commit)),
            status: "completed",
            head_repository: Some(1),
            workflow: "evals.yml",
            created_at: format!(
                "2026-03-0{}T{:02}:{:02}:00Z",
                1 + id / 1440,
                id / 60 % 24,
                id % 60
            ),
        }
    }

    /// The same on another branch.
    pub(crate) fn on(self, branch: &str) -> Self {
        Self {
            head_branch: Some(branch.to_owned()),
            ..self
        }
    }

    /// The same of another event.
    pub(crate) fn by(self, event: &'static str) -> Self {
        Self { event, ..self }
    }
}

/// An artifact of a run.
#[derive(Clone)]
pub(crate) struct Artifact {
    pub(crate) id: u64,
    pub(crate) run: u64,
    pub(crate) name: String,
    pub(crate) expired: bool,
    pub(crate) created_at: Option<String>,
    pub(crate) digest: Option<String>,
    /// The archive; `None` where it is listed and gone.
    pub(crate) bytes: Option<Vec<u8>>,
}

/// An artifact with a summary in it.
pub(crate) fn artifact_of(run: u64, name: &str, summary: &Value) -> Artifact {
    let bytes = archive(&[
        ("journal.jsonl", b"{}"),
        ("summary.json", summary.to_string().as_bytes()),
    ]);
    Artifact {
        id: run * 10,
        run,
        name: name.to_owned(),
        expired: false,
        created_at: Some(day(2)),
        digest: None,
        bytes: Some(bytes),
    }
}

/// A zip archive of these files.
pub(crate) fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in files {
        zip.start_file(*name, zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// The summary of a complete run of one pair, which passed.
pub(crate) fn summary(suite: &str, commit: Option<&str>) -> Value {
    json!({
        "schema": "evalwave.summary/1",
        "tool": { "name": "evalwave", "version": "0.1.0" },
        "run": {
            "id": "20260302-100000-00000001", "started_at": day(2), "wall_seconds": 60.0, "complete": true,
            "conclusion": "success", "strategy": "parallel", "runs": 2, "concurrency": 2, "policy": "any",
            "sandbox": "local", "suite": suite, "commit": commit, "config_hash": "0", "concurrency_reason": "",
            "selection": { "kind": "all", "selected": 1, "of": 1 },
        },
        "totals": {
            "pairs": 1, "passed": 1, "failed": 0, "errored": 0, "not_run": 0, "pass_rate": 1.0,
            "attempts": {
                "planned": 2, "graded": 2, "passed": 2, "failed": 0, "timed_out": 0, "errored": 0, "cancelled": 0,
                "retried": 0,
            },
            "attempt_pass_rate": 1.0, "all_pass_rate": 1.0, "distribution": { "2/2": 1 }, "sandbox_seconds": 1.0,
            "cost_usd": null, "tokens": null,
        },
        "pairs": [{
            "experiment": "agent", "eval": "task", "verdict": "pass", "passed_attempts": 2, "graded_attempts": 2,
            "planned_attempts": 2, "representative": 1, "seconds": 1.0, "firm": true, "attempts": [],
        }],
    })
}

/// A release.
pub(crate) struct Release {
    pub(crate) tag: &'static str,
    pub(crate) draft: bool,
    pub(crate) prerelease: bool,
}

/// A pull request.
pub(crate) struct Pull {
    pub(crate) number: u64,
    pub(crate) state: &'static str,
    /// `owner/name`; `None` where it has been deleted.
    pub(crate) head_repository: Option<&'static str>,
    pub(crate) head_branch: &'static str,
    pub(crate) head_sha: String,
    pub(crate) base_branch: &'static str,
}

/// A comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) id: u64,
    pub(crate) pull: u64,
    /// `None` where the account has been deleted.
    pub(crate) author: Option<String>,
    pub(crate) body: String,
}

/// Something that goes wrong once.
pub(crate) struct Trouble {
    about: String,
    fault: Fault,
}

/// What goes wrong.
pub(crate) enum Fault {
    /// The connection closes, and nothing is done.
    Drop,
    /// It is done, and the connection closes without an answer.
    Lost,
    /// The answer is this status, with these headers.
    Status(u16, Vec<(&'static str, String)>),
    /// It is done, and then somebody else does this before the answer arrives.
    After(Box<dyn FnOnce(&mut State) + Send>),
    /// The answer is what it was when these were the comments.
    Late(Vec<Comment>),
    /// It is done, and the answer waits until others have come as far.
    Meet(Arc<Barrier>),
}

/// A question and its answer.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) authorization: Option<String>,
    pub(crate) body: Value,
    /// 0 where there was no answer.
    pub(crate) status: u16,
}
