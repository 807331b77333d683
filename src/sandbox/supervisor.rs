//! The process between evalwave and one command in a local sandbox. It starts the command, outlives it, and sees to
//! it that nothing the command started does. It knows nothing of sandboxes, time limits or results, and has no
//! runtime: it is started once a command, so that every needless step costs each attempt.

#[cfg(target_os = "linux")]
mod confine;
#[cfg(any(not(target_os = "linux"), test))]
mod group;
mod invocation;
#[cfg(target_os = "linux")]
mod reaper;
#[cfg(target_os = "linux")]
mod tree;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};

use serde::{Deserialize, Serialize};

pub(super) use invocation::{Confinement, Invocation};
#[cfg(target_os = "linux")]
pub(super) use tree::kill_marked;

/// The first argument that turns evalwave into a supervisor.
const MARK: &str = "__attempt";

/// What the supervisor writes on its standard input, a socket, one JSON document a line.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Report {
    /// The command runs.
    Started {
        /// What confines it, in words.
        confinement: Vec<String>,
    },
    /// The command has ended.
    Ended(Ended),
    /// The command could not be started or looked after, for a reason that is not the command's.
    Refused {
        /// Why.
        message: String,
    },
}

/// How a command ended, and what it left behind.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Ended {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Processes that it left behind and that could not be killed: they belong to another user.
    pub survivors: usize,
    /// Whether it left daemons behind that were to be kept. Then the supervisor stays until the link is closed.
    pub kept: bool,
}

impl Ended {
    fn new(status: ExitStatus, survivors: usize) -> Self {
        Self {
            code: status.code(),
            signal: status.signal(),
            survivors,
            kept: false,
        }
    }
}

/// The supervisor's own arguments, where this process was started as one.
pub fn invoked(mut arguments: impl Iterator<Item = OsString>) -> Option<impl Iterator<Item = OsString>> {
    arguments.next();
    (arguments.next()? == MARK).then_some(arguments)
}

/// Runs the supervisor to its end. Its standard input is a socket to evalwave: reports go out on it, and its closing
/// is the order to kill everything. Standard output and error are the command's.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let supervised = Invocation::parse(arguments)
        .map_err(io::Error::other)
        .and_then(|invocation| {
            // A failure means that this process leads a session already, which is as good.
            let _ = rustix::process::setsid();
            supervise(&invocation)
        });
    match supervised {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            send(
                io::stdin().as_fd(),
                &Report::Refused {
                    message: error.to_string(),
                },
            );
            ExitCode::FAILURE
        }
    }
}

#[cfg(target_os = "linux")]
fn supervise(invocation: &Invocation) -> io::Result<()> {
    reaper::supervise(invocation)
}

#[cfg(not(target_os = "linux"))]
fn supervise(invocation: &Invocation) -> io::Result<()> {
    group::supervise(invocation, io::stdin().as_fd())
}

/// A command that was started, or that ended before it began because there is no such program.
enum Start {
    Running(Child),
    NoProgram { code: i32 },
}

/// Starts the command in a process group of its own, so that a script's `kill 0` does not reach the supervisor.
#[expect(
    clippy::disallowed_methods,
    reason = "starting the command is what a supervisor is for"
)]
fn start(argv: &[OsString]) -> io::Result<Start> {
    use std::os::unix::process::CommandExt as _;

    let (program, arguments) = argv
        .split_first()
        .ok_or_else(|| io::Error::other("no command was given"))?;
    let spawned = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .process_group(0)
        .spawn();
    let error = match spawned {
        Ok(child) => return Ok(Start::Running(child)),
        Err(error) => error,
    };
    // The codes and the channel of a shell: to the suite it is the command that failed.
    let code = match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        Some(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => 127,
        Some(rustix::io::Errno::ACCESS | rustix::io::Errno::NOEXEC | rustix::io::Errno::ISDIR) => 126,
        _ => return Err(error),
    };
    let _ = writeln!(io::stderr(), "cannot run `{}`: {error}", program.display());
    Ok(Start::NoProgram { code })
}

/// Whoever does not listen any more has closed the socket, which is handled where that is watched for.
fn send(link: impl AsFd, report: &Report) {
    if let Ok(mut line) = serde_json::to_vec(report) {
        line.push(b'\n');
        let _ = rustix::io::write(link, &line);
    }
}

/// Returns when the other end of the link is closed.
fn wait_for_close(link: impl AsFd) {
    loop {
        match rustix::io::read(&link, &mut [0; 16]) {
            Ok(0) => return,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Where output goes that nobody is to see.
fn nowhere() -> io::Result<fs_err::File> {
    fs_err::OpenOptions::new().write(true).open("/dev/null")
}

/// Lets go of the command's output, so that its reader sees the end once nobody else holds it.
fn release_output(nowhere: &fs_err::File) -> io::Result<()> {
    rustix::stdio::dup2_stdout(nowhere)?;
    rustix::stdio::dup2_stderr(nowhere)?;
    Ok(())
}

/// Limits that the command inherits: no core files unless it asks for them, and the number of descriptors that
/// evalwave itself was started with (it raises its own; programs that use `select` break beyond 1,024).
fn set_limits(open_files: Option<u64>) -> io::Result<()> {
    use rustix::process::{Resource, getrlimit, setrlimit};

    let mut core = getrlimit(Resource::Core);
    core.current = Some(0);
    setrlimit(Resource::Core, core)?;
    if open_files.is_some() {
        let mut files = getrlimit(Resource::Nofile);
        files.current = open_files;
        setrlimit(Resource::Nofile, files)?;
    }
    Ok(())
}
