//! `evalwave action` by the real binary, in the surroundings that a runner makes, against a GitHub that holds state.

#[cfg(unix)]
mod act;
mod base;
#[cfg(unix)]
mod cancel;
mod files;
mod hostile;
#[cfg(target_os = "linux")]
mod install;
mod outcome;
#[cfg(unix)]
mod rerun;
#[cfg(target_os = "linux")]
mod revision;
mod safety;

use std::collections::BTreeMap;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::github::{Github, Pull, Run, State, TOKEN, artifact_of, sha, summary};
use crate::support::{Suite, evalwave};

/// A suite called `all` of these pairs, whose attempts run `script`.
pub(super) fn suite(pairs: &str, more: &str, script: &str) -> Suite {
    let suite = Suite::scripted(pairs, "result: result.json", more, script);
    suite.write(
        "evalwave.yml",
        &suite.read("evalwave.yml").replace("name: test", "name: all"),
    );
    suite
}

/// A script whose one attempt has this result.
pub(super) fn always(passed: bool) -> String {
    format!("echo '{{\"passed\": {passed}}}' > result.json")
}

/// A workflow's checkout, and what its runner tells a step.
pub(super) struct Workflow {
    pub(super) suite: Suite,
    pub(super) github: Github,
    pub(super) head: String,
    environment: BTreeMap<String, String>,
    runner: TempDir,
}

/// What a step has left.
pub(super) struct Step {
    pub(super) code: i32,
    pub(super) log: String,
    pub(super) outputs: BTreeMap<String, String>,
    pub(super) summary: String,
}

impl Workflow {
    /// A checkout of `suite`, whose commit follows `b` of the history on GitHub, in a run for pull request 12.
    pub(super) fn new(suite: Suite, mut state: State) -> Self {
        let head = commit_all(suite.path());
        state.commit("head", &["b"]);
        state.commit("fork", &["b"]);
        state.commits.insert(head.clone(), vec![sha("b"), sha("head")]);
        state.pulls.push(Pull {
            number: 12,
            state: "open",
            head_repository: Some("octo/evals"),
            head_branch: "faster",
            head_sha: sha("head"),
            base_branch: "main",
        });
        let github = Github::start(state);
        let runner = TempDir::new().unwrap();
        let file = |name: &str| runner.path().join(name).to_str().unwrap().to_owned();
        let environment = [
            ("GITHUB_ACTIONS", "true".to_owned()),
            ("GITHUB_API_URL", github.api_url()),
            ("GITHUB_SERVER_URL", "https://github.com".to_owned()),
            ("GITHUB_REPOSITORY", "octo/evals".to_owned()),
            ("GITHUB_REPOSITORY_ID", "1".to_owned()),
            ("GITHUB_RUN_ID", "900".to_owned()),
            ("GITHUB_RUN_NUMBER", "90".to_owned()),
            ("GITHUB_RUN_ATTEMPT", "1".to_owned()),
            ("GITHUB_SHA", head.clone()),
            ("GITHUB_ACTOR", "ada".to_owned()),
            ("GITHUB_EVENT_PATH", file("event.json")),
            ("GITHUB_OUTPUT", file("output")),
            ("GITHUB_STEP_SUMMARY", file("summary")),
            ("RUNNER_TEMP", file("temp")),
            ("EVALWAVE_INPUT_GITHUB_TOKEN", TOKEN.to_owned()),
        ];
        let environment = environment
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        fs_err::create_dir(runner.path().join("temp")).unwrap();
        let workflow = Self {
            suite,
            github,
            head,
            environment,
            runner,
        };
        workflow.event(
            "pull_request",
            "refs/pull/12/merge",
            pull_request(1, "octo/evals"),
        )
    }

    pub(super) fn event(self, name: &str, reference: &str, payload: Value) -> Self {
        fs_err::write(self.runner.path().join("event.json"), payload.to_string()).unwrap();
        let workflow = format!("octo/evals/.github/workflows/evals.yml@{reference}");
        self.set("GITHUB_EVENT_NAME", name)
            .set("GITHUB_REF", reference)
            .set("GITHUB_WORKFLOW_REF", &workflow)
    }

    pub(super) fn set(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(super) fn input(self, name: &str, value: &str) -> Self {
        let name = format!("EVALWAVE_INPUT_{}", name.to_uppercase().replace('-', "_"));
        self.set(&name, value)
    }

    /// Runs the step.
    pub(super) fn run(&self) -> Step {
        self.call(&["action"])
    }

    /// Runs the binary as a step.
    pub(super) fn call(&self, arguments: &[&str]) -> Step {
        for file in ["output", "summary"] {
            fs_err::write(self.runner.path().join(file), "").unwrap();
        }
        let output = evalwave(self.suite.path())
            .envs(&self.environment)
            .args(arguments)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Step {
            code: output.status.code().unwrap(),
            log: text(&output.stdout) + &text(&output.stderr),
            outputs: outputs(&self.read("output")),
            summary: self.read("summary"),
        }
    }

    pub(super) fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    pub(super) fn read(&self, file: &str) -> String {
        fs_err::read_to_string(self.runner.path().join(file)).unwrap()
    }

    /// Everything that the runner was left with.
    pub(super) fn runner(&self) -> Utf8PathBuf {
        Utf8PathBuf::from_path_buf(self.runner.path().to_owned()).unwrap()
    }

    /// The comments' bodies.
    pub(super) fn comments(&self) -> Vec<String> {
        let state = self.github.state();
        state
            .comments
            .iter()
            .map(|comment| comment.body.clone())
            .collect()
    }
}

impl Step {
    pub(super) fn output(&self, name: &str) -> &str {
        self.outputs
            .get(name)
            .unwrap_or_else(|| panic!("no output `{name}`: {:?}\n{}", self.outputs, self.log))
    }

    /// Its summary.json.
    pub(super) fn document(&self) -> Value {
        serde_json::from_slice(&fs_err::read(self.output("summary-path")).unwrap()).unwrap()
    }

    /// What the run says besides its results.
    pub(super) fn notices(&self) -> String {
        self.document()["notices"].to_string()
    }

    /// The log's annotations of one kind.
    pub(super) fn annotations(&self, kind: &str) -> Vec<&str> {
        let start = format!("::{kind} ");
        self.log.lines().filter(|line| line.starts_with(&start)).collect()
    }
}

/// The event of pull request 12, whose head is in this repository.
pub(super) fn pull_request(id: u64, full_name: &str) -> Value {
    json!({
        "repository": { "id": 1, "full_name": "octo/evals", "default_branch": "main" },
        "pull_request": {
            "number": 12,
            "user": { "login": "ada" },
            "head": { "sha": sha("head"), "ref": "faster", "repo": { "id": id, "full_name": full_name } },
            "base": { "sha": sha("b"), "ref": "main", "repo": { "id": 1, "full_name": "octo/evals" } },
        },
    })
}

/// A history `a`, `b` on `main`, of which `b` was measured yesterday: the pair agent × task passed.
pub(super) fn measured() -> State {
    let mut state = State::with_history(&["a", "b"]);
    let yesterday = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24);
    state.measured(Run {
        created_at: yesterday.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        ..Run::pushed(3, "b")
    });
    let mut summary = summary("all", Some(&sha("b")));
    let attempt = |index: u32| json!({ "index": index, "outcome": "passed", "seconds": 1.0, "tries": 1 });
    summary["pairs"][0]["attempts"] = json!([attempt(1), attempt(2)]);
    state.artifacts[0] = artifact_of(3, "evalwave-all", &summary);
    state
}

/// Makes a repository of a directory, with one commit; gives its name.
pub(super) fn commit_all(directory: &Utf8Path) -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args([
                "-c",
                "user.name=ada",
                "-c",
                "user.email=ada@example.com",
                "-c",
                "commit.gpgsign=false",
            ])
            .args(arguments)
            .current_dir(directory)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "first"]);
    git(&["rev-parse", "HEAD"])
}

/// `GITHUB_OUTPUT` as the runner reads it: the last value of a name counts.
pub(super) fn outputs(text: &str) -> BTreeMap<String, String> {
    let mut outputs = BTreeMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let (name, delimiter) = line
            .split_once("<<")
            .unwrap_or_else(|| panic!("{line:?} starts no output"));
        let value: Vec<&str> = lines.by_ref().take_while(|line| *line != delimiter).collect();
        outputs.insert(name.to_owned(), value.join("\n"));
    }
    outputs
}
