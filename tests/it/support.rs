//! What the integration tests share: the repository, the real binary in a scrubbed environment, and suites to run.

#[cfg(target_os = "linux")]
pub(crate) mod docker;
#[cfg(target_os = "linux")]
pub(crate) mod engine_of_vercel;
pub(crate) mod github;
#[cfg(target_os = "linux")]
pub(crate) mod sandbox;
#[cfg(target_os = "linux")]
pub(crate) mod vercel;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;
use tempfile::TempDir;

/// The root of this repository.
pub(crate) fn repository() -> Utf8PathBuf {
    Utf8PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The binary with nothing in its environment but what a program needs to run.
pub(crate) fn evalwave(directory: &Utf8Path) -> Command {
    let mut command = Command::cargo_bin("evalwave").unwrap();
    command.current_dir(directory).env_clear();
    for name in ["PATH", "HOME", "TMPDIR", "SystemRoot", "TEMP", "USERPROFILE"] {
        if let Ok(value) = std::env::var(name) {
            command.env(name, value);
        }
    }
    command
}

/// Runs the binary with arguments written as in a shell, without quotes.
pub(crate) fn ev(directory: &Utf8Path, arguments: &str) -> Assert {
    evalwave(directory).args(arguments.split_whitespace()).assert()
}

/// Runs git, which has to succeed.
pub(crate) fn git(directory: &Utf8Path, arguments: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"])
        .args(arguments)
        .current_dir(directory)
        .assert();
    done.success();
}

/// A finished command's standard output.
pub(crate) fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

/// A finished command's standard error.
pub(crate) fn stderr(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

/// A finished command's standard output, as the one JSON document that it has to be.
pub(crate) fn json(assert: &Assert) -> Value {
    serde_json::from_slice(&assert.get_output().stdout).unwrap()
}

/// What a variable names that `.ci/run` starts; without it, says that the test is skipped.
#[cfg(target_os = "linux")]
pub(crate) fn only_in_ci(variable: &str) -> Option<String> {
    let value = std::env::var(variable).ok();
    if value.is_none() {
        eprintln!("skipped: {variable} is not set; `.ci/run` starts what it names");
    }
    value
}

/// A passing directory with a suite in it.
pub(crate) struct Suite {
    directory: TempDir,
}

impl Suite {
    /// A suite of this configuration.
    pub(crate) fn new(config: &str) -> Self {
        let suite = Self {
            directory: TempDir::new().unwrap(),
        };
        suite.write("evalwave.yml", config);
        suite
    }

    /// A suite of inline pairs `experiment/eval`, whose attempts run `script` as `attempt.sh`, `more` being keys of the
    /// top level.
    pub(crate) fn scripted(pairs: &str, attempt: &str, more: &str, script: &str) -> Self {
        let pairs: Vec<String> = pairs
            .split_whitespace()
            .map(|pair| {
                let (experiment, eval) = pair.split_once('/').unwrap();
                format!("{{ experiment: {experiment}, eval: {eval} }}")
            })
            .collect();
        let config = format!(
            "version: 1\nsuite: {{ name: test, pairs: [{}] }}\nattempt:\n  command: sh attempt.sh\n{}\n{}\n",
            pairs.join(", "),
            indented(attempt),
            more
        );
        let suite = Self::new(&config);
        suite.write("attempt.sh", script);
        suite
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.directory.path()).unwrap()
    }

    /// Adds a file.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    /// A file's text.
    pub(crate) fn read(&self, path: &str) -> String {
        fs_err::read_to_string(self.path().join(path)).unwrap()
    }

    /// A file's JSON.
    pub(crate) fn read_json(&self, path: &str) -> Value {
        serde_json::from_str(&self.read(path)).unwrap()
    }

    /// Runs the binary there.
    pub(crate) fn ev(&self, arguments: &str) -> Assert {
        ev(self.path(), arguments)
    }

    /// Runs the binary there with arguments that need no quotes because each is one already.
    pub(crate) fn ev_args(&self, arguments: &[&str]) -> Assert {
        evalwave(self.path()).args(arguments).assert()
    }

    /// `run -o out`, and its summary.
    pub(crate) fn run(&self, arguments: &str) -> (Assert, Value) {
        let assert = self.ev(&format!("run -o out {arguments}"));
        let summary = self.read_json("out/summary.json");
        (assert, summary)
    }
}

/// The first of these runs, each with more time than the one before, for which the machine was fast enough. What is
/// asserted of it does not depend on which one that is.
pub(crate) fn with_time_enough<T>(
    amounts: &[&str],
    run: impl FnMut(&&str) -> T,
    was_enough: impl Fn(&T) -> bool,
) -> T {
    let mut runs = amounts.iter().map(run);
    runs.find(was_enough)
        .expect("the machine was too slow, or it is not the time")
}

/// A run of the quickstart with its summary. Its one agent that hangs does so with any limit; the others need time.
pub(crate) fn quickstart() -> (Assert, Value) {
    let out = TempDir::new().unwrap();
    let run = |timeout: &&str| {
        let run = evalwave(&repository())
            .args(["run", "-c", "examples/quickstart/evalwave.yml", "--overwrite"])
            .args(["--timeout", timeout, "-o"])
            .arg(out.path().join("run"))
            .assert();
        let summary = fs_err::read(out.path().join("run/summary.json")).unwrap();
        (run, serde_json::from_slice::<Value>(&summary).unwrap())
    };
    with_time_enough(&["1s", "10s", "60s"], run, |(_, summary)| {
        summary["totals"]["attempts"]["timed_out"] == 2
    })
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}
