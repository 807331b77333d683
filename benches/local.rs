//! What the local engine costs, beside `xargs` doing the same in the same run: a table, and no verdict.
//!
//! `cargo bench --bench local`. On `/dev/shm`, and once more in the build directory for comparison: a real file system
//! slows down with every file that is deleted.

use std::process::{Command as StdCommand, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use evalwave::config::{CommandLine, HomeMode, LandlockMode, LocalConfig, NetworkMode, WorkspaceMode};
use evalwave::sandbox::local::{LocalBackend, LocalOptions};
use evalwave::sandbox::{Backend as _, Command, SandboxError, SandboxSpec, Workspace};
use tokio::sync::{Semaphore, mpsc};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// As many commands, so many at once.
struct Load {
    command: &'static [&'static str],
    count: usize,
    at_once: usize,
}

const LOADS: [Load; 4] = [
    Load {
        command: &["/bin/true"],
        count: 200,
        at_once: 1,
    },
    Load {
        command: &["/bin/true"],
        count: 200,
        at_once: 50,
    },
    Load {
        command: &["/bin/sleep", "1"],
        count: 200,
        at_once: 50,
    },
    Load {
        command: &["/bin/sleep", "1"],
        count: 1000,
        at_once: 1000,
    },
];

#[expect(clippy::print_stdout, reason = "the table is what this is for")]
fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!(
        "{:<22}{:>8}{:>10}{:>10}{:>12}{:>12}",
        "", "at once", "xargs", "evalwave", "ms above", "ms no lock"
    );
    for (name, directory) in [("tmpfs", "/dev/shm"), ("disk", env!("CARGO_TARGET_TMPDIR"))] {
        for load in &LOADS {
            let xargs = fastest(|| with_xargs(load))?;
            let engine =
                fastest(|| runtime.block_on(with_engine(load, directory.into(), LandlockMode::Auto)))?;
            let open = fastest(|| runtime.block_on(with_engine(load, directory.into(), LandlockMode::Off)))?;
            println!(
                "{:<22}{:>8}{:>9.3}s{:>9.3}s{:>12.3}{:>12.3}",
                format!("{name}: {} x {}", load.count, load.command.join(" ")),
                load.at_once,
                xargs.as_secs_f64(),
                engine.as_secs_f64(),
                above(load, engine, xargs),
                above(load, open, xargs),
            );
        }
    }
    println!("most memory of this process: {} kB", memory()?);
    Ok(())
}

/// Milliseconds an attempt takes beyond the other.
fn above(load: &Load, engine: Duration, xargs: Duration) -> f64 {
    (engine.as_secs_f64() - xargs.as_secs_f64()) * 1000.0 / load.count as f64
}

fn fastest(mut run: impl FnMut() -> Result<Duration, Failure>) -> Result<Duration, Failure> {
    (0..3).try_fold(Duration::MAX, |best, _| Ok(best.min(run()?)))
}

/// The bare commands: no directories, no logs.
#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures time and starts what it measures against"
)]
fn with_xargs(load: &Load) -> Result<Duration, Failure> {
    let began = Instant::now();
    let mut xargs = StdCommand::new("xargs")
        .args(["-P", &load.at_once.to_string(), "-I{}"])
        .args(load.command)
        .stdin(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = xargs.stdin.take() {
        std::io::Write::write_all(&mut input, "x\n".repeat(load.count).as_bytes())?;
    }
    xargs.wait()?;
    Ok(began.elapsed())
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
async fn with_engine(load: &Load, directory: &Utf8Path, landlock: LandlockMode) -> Result<Duration, Failure> {
    let temporary = tempfile::tempdir_in(directory)?;
    let root = Utf8PathBuf::from_path_buf(temporary.path().to_owned()).map_err(|_| "a path is not UTF-8")?;
    let config = LocalConfig {
        workspace: WorkspaceMode::Copy,
        link: Vec::new(),
        home: HomeMode::Private,
        landlock,
        network: NetworkMode::Inherit,
        memory_per_attempt: 1,
    };
    let options = LocalOptions {
        run_id: "bench".to_owned(),
        temporary: root.clone(),
        program: env!("CARGO_BIN_EXE_evalwave").into(),
        path: None,
        home: None,
        lang: None,
        system: Vec::new(),
    };
    let backend = Arc::new(LocalBackend::new(&config, options, &root)?);
    let workspace = Arc::new(Workspace {
        root,
        files: Vec::new(),
    });
    let slots = Arc::new(Semaphore::new(load.at_once));
    let began = Instant::now();
    let mut attempts = tokio::task::JoinSet::new();
    for number in 0..load.count {
        let (backend, workspace, slots) = (Arc::clone(&backend), Arc::clone(&workspace), Arc::clone(&slots));
        let command = Command {
            line: CommandLine::Argv(load.command.iter().map(|&word| word.to_owned()).collect()),
            env: Vec::new(),
            keeps_daemons: false,
        };
        attempts.spawn(async move {
            let _slot = slots
                .acquire_owned()
                .await
                .map_err(|error| SandboxError::new(error.to_string()))?;
            let spec = SandboxSpec {
                name: format!("attempt-{number}"),
            };
            let mut sandbox = backend.start(&spec).await?;
            sandbox.upload(&workspace).await?;
            let (output, _receiver) = mpsc::channel(4);
            sandbox.exec(&command, &output).await?;
            sandbox.stop().await
        });
    }
    while let Some(attempt) = attempts.join_next().await {
        attempt??;
    }
    Ok(began.elapsed())
}

/// The most memory that this process has had, in kB, as the kernel tells it.
fn memory() -> Result<String, Failure> {
    let status = fs_err::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    Ok(line
        .ok_or("no VmHWM in /proc/self/status")?
        .trim()
        .trim_end_matches(" kB")
        .to_owned())
}
