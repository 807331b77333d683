//! The local engine, with the real binary as the supervisor.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

mod processes;
mod workspaces;

use camino::{Utf8Path, Utf8PathBuf};
use evalwave::config::{HomeMode, LandlockMode, LocalConfig, NetworkMode, WorkspaceMode};
use evalwave::sandbox::Workspace;
use evalwave::sandbox::local::{LocalBackend, LocalOptions};

use crate::support::sandbox::PATIENCE;

/// A source directory, a directory for temporary files, and an engine between them.
struct Bench {
    _temporary: tempfile::TempDir,
    source: Utf8PathBuf,
    temporary: Utf8PathBuf,
    config: LocalConfig,
}

impl Bench {
    fn new() -> Self {
        // In the build directory rather than in /tmp, which a confined command may write to.
        let temporary = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let base = Utf8PathBuf::from_path_buf(temporary.path().canonicalize().unwrap()).unwrap();
        for directory in ["source", "temporary", "home"] {
            fs_err::create_dir(base.join(directory)).unwrap();
        }
        Self {
            _temporary: temporary,
            source: base.join("source"),
            temporary: base.join("temporary"),
            config: LocalConfig {
                workspace: WorkspaceMode::Copy,
                link: Vec::new(),
                home: HomeMode::Private,
                landlock: LandlockMode::Auto,
                network: NetworkMode::Inherit,
                memory_per_attempt: 256_000_000,
            },
        }
    }

    fn options(&self) -> LocalOptions {
        LocalOptions {
            run_id: "r1".to_owned(),
            temporary: self.temporary.clone(),
            program: env!("CARGO_BIN_EXE_evalwave").into(),
            path: Some("/usr/bin:/bin".to_owned()),
            home: Some(self.temporary.with_file_name("home")),
            lang: None,
            system: Vec::new(),
        }
    }

    fn backend(&self) -> LocalBackend {
        LocalBackend::new(&self.config, self.options(), &self.source).unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.source.join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    fn workspace(&self, files: &[&str]) -> Workspace {
        Workspace {
            root: self.source.clone(),
            files: files.iter().map(Utf8PathBuf::from).collect(),
        }
    }

    /// What is left below the directory for temporary files.
    fn left(&self) -> usize {
        fs_err::read_dir(&self.temporary).unwrap().count()
    }
}

/// Processes with this variable in their environment.
fn marked(mark: &str) -> Vec<i32> {
    let variable = format!("MARK={mark}");
    let processes = fs_err::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| {
            let pid = process.file_name().to_str()?.parse().ok()?;
            let environment = fs_err::read(process.path().join("environ")).ok()?;
            let found = environment
                .split(|&byte| byte == 0)
                .any(|it| it == variable.as_bytes());
            found.then_some(pid)
        })
        .collect()
}

/// Waits until a process has ended, which need not be a child.
fn wait_for_end(pid: i32) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let Ok(process) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else {
        return;
    };
    let patience = Timespec::try_from(PATIENCE).unwrap();
    let ended = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&patience)).unwrap();
    assert_eq!(ended, 1, "process {pid} lives on");
}

fn read(path: &Utf8Path) -> String {
    fs_err::read_to_string(path).unwrap()
}

fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}
