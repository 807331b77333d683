//! Sandboxes that fetch this repository themselves: at which revision, with which submodules, after which boot.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};

use super::Bench;
use crate::support::{git, stderr, stdout};

/// A repository of two commits that machines can fetch, and the suite in a directory of it.
struct Fetched {
    bench: Bench,
    repository: Utf8PathBuf,
    server: String,
}

impl Fetched {
    /// `config` is the suite's, as for [`Bench::real`].
    fn new(config: &str) -> Option<Self> {
        let bench = Bench::real(Vec::new(), config)?;
        let path = bench.suite.path();
        let server = serve(path);
        let part = committed(path, "part.git", &[("piece", "piece one\n")]);
        let repository = committed(path, "r.git", &[("version", "one\n"), ("old", "")]);
        let url = format!("{server}/o/part.git");
        git(&repository, &["submodule", "--quiet", "add", &url, "part"]);
        let suite = repository.join("suites/first");
        fs_err::create_dir_all(&suite).unwrap();
        fs_err::write(suite.join("evalwave.yml"), bench.suite.read("evalwave.yml")).unwrap();
        commit(&repository, "with a submodule");
        fs_err::write(part.join("piece"), "piece two\n").unwrap();
        commit(&part, "two");
        Some(Self {
            bench,
            repository,
            server,
        })
    }

    /// The second commit.
    fn go_on(&self) {
        git(&self.repository, &["submodule", "--quiet", "update", "--remote"]);
        fs_err::write(self.repository.join("version"), "two\n").unwrap();
        fs_err::remove_file(self.repository.join("old")).unwrap();
        commit(&self.repository, "two");
    }

    fn revision(&self, name: &str) -> String {
        let output = Command::new("git")
            .current_dir(&self.repository)
            .args(["rev-parse", name])
            .output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        text.trim().to_owned()
    }

    fn command(&self, arguments: &str) -> assert_cmd::Command {
        self.command_in("first", arguments)
    }

    /// With the suite in another directory of the repository.
    fn command_in(&self, suite: &str, arguments: &str) -> assert_cmd::Command {
        let config = format!("-c o/r.git/suites/{suite}/evalwave.yml");
        let mut command = self.bench.command(&format!("{arguments} {config}"));
        command
            .env("GITHUB_SERVER_URL", &self.server)
            .env("GITHUB_REPOSITORY", "o/r");
        command
    }
}

/// Serves the repositories below a directory as long as the tests run. Returns their server.
fn serve(directory: &Utf8Path) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("git://{}", listener.local_addr().unwrap());
    let base = format!("--base-path={directory}");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = OwnedFd::from(stream.unwrap());
            let answering = Command::new("git")
                .args(["daemon", "--inetd", "--export-all", &base])
                .stdin(Stdio::from(stream.try_clone().unwrap()))
                .stdout(Stdio::from(stream))
                .stderr(Stdio::null())
                .spawn();
            std::thread::spawn(move || answering.unwrap().wait());
        }
    });
    server
}

fn committed(path: &Utf8Path, name: &str, files: &[(&str, &str)]) -> Utf8PathBuf {
    let repository = path.join("o").join(name);
    fs_err::create_dir_all(&repository).unwrap();
    git(&repository, &["init", "--quiet", "--initial-branch=main"]);
    for (file, text) in files {
        fs_err::write(repository.join(file), text).unwrap();
    }
    commit(&repository, "one");
    repository
}

fn commit(repository: &Utf8Path, message: &str) {
    git(repository, &["add", "."]);
    git(repository, &["commit", "--quiet", "--message", message]);
}

#[test]
fn a_sandbox_has_the_revision_that_is_measured_and_the_suites_directory_of_it() {
    let config = "SANDBOX\n  limits: FAST\nsuite: { name: git, pairs: [{ experiment: a, eval: b }] }\n\
                  attempt: { command: cat ../../version evalwave.yml, format: exit-code }\n";
    let Some(fetched) = Fetched::new(config) else {
        return;
    };
    fetched.go_on();
    let text = fetched.bench.suite.read("evalwave.yml");
    let log = "out/attempts/a__b/1/output.log";
    // Without another revision, what is checked out.
    fetched.command("run -o out").assert().success();
    assert_eq!(fetched.bench.suite.read(log), format!("two\n{text}"));
    assert_eq!(fetched.bench.summary()["run"]["commit"], fetched.revision("HEAD"));
    let mut other = fetched.command("run -o out --overwrite");
    let first = fetched.revision("HEAD~1");
    other.env("EVAL_REVISION", &first).assert().success();
    assert_eq!(fetched.bench.suite.read(log), format!("one\n{text}"));
    assert_eq!(fetched.bench.summary()["run"]["commit"], first);
}

#[test]
fn a_warm_sandbox_fetches_the_revision_and_its_submodules_and_keeps_what_setup_has_done() {
    let config = "SANDBOX\n  submodules: true\n  warm: { files: [] }\n  limits: FAST\n\
                  suite: { name: git, pairs: [{ experiment: a, eval: b }] }\n\
                  attempt:\n  setup: cp ../../part/piece ../../installed\n  format: exit-code\n  \
                  command: cd ../.. && cat version part/piece installed && ls\n";
    let Some(fetched) = Fetched::new(config) else {
        return;
    };
    fetched.command("snapshot build").assert().success();
    fetched.go_on();
    let done = fetched.command("run -o out").assert().success();
    assert!(stdout(&done).contains("1/1 warm"), "{}", stdout(&done));
    let log = fetched.bench.suite.read("out/attempts/a__b/1/output.log");
    assert_eq!(
        log,
        "two\npiece two\npiece one\ninstalled\npart\nsuites\nversion\n"
    );
    assert_eq!(fetched.bench.left(), Vec::<String>::new());
}

#[test]
fn a_snapshot_is_of_one_repository_one_directory_of_it_and_one_way_to_have_its_files() {
    let config = "SANDBOX\n  warm: { files: [] }\n  limits: FAST\n\
                  suite: { name: git, pairs: [{ experiment: a, eval: b }] }\n\
                  attempt: { setup: touch installed, command: ls installed, format: exit-code }\n";
    let Some(fetched) = Fetched::new(config) else {
        return;
    };
    let id = stdout(&fetched.command("snapshot build").assert().success());
    // Another commit, and machines of another size, start from the same.
    fetched.go_on();
    let suites = fetched.repository.join("suites");
    let text = fetched.bench.suite.read("evalwave.yml");
    let suite = |name: &str, more: &str| {
        let text = text.replace("  warm", &format!("{more}  warm"));
        fs_err::create_dir_all(suites.join(name)).unwrap();
        fs_err::write(suites.join(name).join("evalwave.yml"), text).unwrap();
    };
    suite("first", "  vcpus: 4\n");
    let check = fetched.command("snapshot check").assert().success();
    assert_eq!(stdout(&check), id);

    let none = |mut command: assert_cmd::Command, what: &str| {
        let check = command.assert().code(3);
        let why = stderr(&check);
        assert!(why.contains("there is no snapshot for key"), "{what}: {why}");
    };
    let mut elsewhere = fetched.command("snapshot check");
    elsewhere.env("GITHUB_REPOSITORY", "o/other");
    none(elsewhere, "another repository");
    suite("second", "");
    none(
        fetched.command_in("second", "snapshot check"),
        "another directory",
    );
    suite("first", "  submodules: true\n");
    none(fetched.command("snapshot check"), "submodules");
    suite("first", "  source: upload\n");
    none(fetched.command("snapshot check"), "upload");
}

#[test]
fn a_measured_baseline_fetches_the_base_revision_whatever_revision_is_given() {
    let config = "SANDBOX\n  limits: FAST\nsuite: { name: git, pairs: [{ experiment: a, eval: b }] }\n\
                  attempt: { command: grep two ../../version, format: exit-code }\n";
    let Some(fetched) = Fetched::new(config) else {
        return;
    };
    fetched.go_on();
    let mut command = fetched.command("run -o out --baseline measure:HEAD~1");
    let done = command
        .env("EVAL_REVISION", fetched.revision("HEAD"))
        .assert()
        .success();
    let head = fetched.bench.summary();
    let source = &head["comparison"]["baseline"]["source"];
    assert_eq!(source, "measure:HEAD~1", "{}", stderr(&done));
    let base = fetched.bench.suite.read_json("out/baseline/summary.json");
    assert_eq!(base["totals"]["attempts"]["failed"], 1);
    assert_eq!(base["run"]["commit"], fetched.revision("HEAD~1"));
    assert_eq!(head["totals"]["attempts"]["passed"], 1);
    assert_eq!(head["run"]["commit"], fetched.revision("HEAD"));
    assert_eq!(fetched.bench.sandboxes(), 0);
}
