//! The commands of one sandbox, each under its own supervisor.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::pin::pin;
use std::time::Duration;

use camino::Utf8Path;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::sync::mpsc;

use super::{CHUNK, OUTPUT_LINGER};
use crate::config::CommandLine;
use crate::model::ErrorClass;
use crate::sandbox::supervisor::{Confinement, Ended, Invocation, Report};
use crate::sandbox::{Exit, SandboxError};

/// How long a supervisor may take to kill what it looks after. Only a process that the kernel cannot kill (it waits
/// for a device or a network file system) takes longer than a moment.
const KILL_LIMIT: Duration = Duration::from_secs(20);

/// A command to start.
pub(super) struct Launch<'a> {
    /// evalwave itself.
    pub program: &'a Utf8Path,
    /// Where the command runs.
    pub workspace: &'a Utf8Path,
    /// The whole environment.
    pub environment: Vec<(&'a str, &'a str)>,
    /// What to run.
    pub line: &'a CommandLine,
    /// Whether what it leaves behind lives until the sandbox is stopped.
    pub keep: bool,
    /// Where it may write, if it is to be confined.
    pub writable: Option<Vec<&'a Utf8Path>>,
    /// Whether it is to have no network.
    pub no_network: bool,
    /// The soft limit on open files it gets.
    pub open_files: Option<u64>,
}

/// What runs in a sandbox.
#[derive(Debug, Default)]
pub(super) struct Processes {
    supervisors: Vec<Supervisor>,
    survivors: usize,
    confinement: Vec<String>,
}

/// A supervisor; without a link its command was given up, and it is killing what there is.
#[derive(Debug)]
struct Supervisor {
    child: Child,
    link: Option<Link>,
}

type Link = BufReader<UnixStream>;

impl Processes {
    /// What confines the commands, in words, once one has started.
    pub(super) fn confinement(&self) -> &[String] {
        &self.confinement
    }

    /// Runs a command to its end. Dropping the future closes the link, at which the supervisor kills everything.
    pub(super) async fn exec(
        &mut self,
        launch: Launch<'_>,
        directory: &Utf8Path,
        output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<Exit, SandboxError> {
        self.settle(directory).await?;
        // A command that stops a daemon of `attempt.boot` has to be able to signal it.
        let own_signals = self.supervisors.is_empty();
        let keep = launch.keep;
        let (child, link, reader) = spawn(&launch, own_signals)
            .map_err(|error| SandboxError::io("cannot start the command's supervisor", error))?;
        self.supervisors.push(Supervisor { child, link: None });

        let watched = watch(link, reader, keep, output, &mut self.confinement).await;
        let ended = match watched.report {
            Some(Report::Ended(ended)) => ended,
            Some(Report::Refused { message }) => {
                self.settle(directory).await?;
                return Err(SandboxError::new(format!("cannot start the command: {message}")));
            }
            Some(Report::Started { .. }) | None => {
                sweep(directory).await;
                self.settle(directory).await?;
                return Err(SandboxError {
                    class: Some(ErrorClass::SandboxLost),
                    message: "the command's supervisor was killed".to_owned(),
                    source: None,
                });
            }
        };
        self.survivors += ended.survivors;
        if ended.kept {
            if let Some(supervisor) = self.supervisors.last_mut() {
                supervisor.link = Some(watched.link);
            }
            if let Some(reader) = watched.reader {
                tokio::spawn(discard(reader));
            }
        } else {
            self.settle(directory).await?;
        }
        Ok(match ended {
            Ended {
                signal: Some(signal), ..
            } => Exit::Signal(signal),
            Ended { code, .. } => Exit::Code(code.unwrap_or_default()),
        })
    }

    /// Kills everything that runs, and waits until it is gone.
    pub(super) async fn stop(&mut self, directory: &Utf8Path) -> Result<(), SandboxError> {
        for supervisor in &mut self.supervisors {
            supervisor.link = None;
        }
        self.settle(directory).await?;
        match self.survivors {
            0 => Ok(()),
            survivors => Err(SandboxError::new(format!(
                "cannot kill {survivors} processes that the attempt started as another user"
            ))),
        }
    }

    /// Waits for the supervisors whose link is closed.
    async fn settle(&mut self, directory: &Utf8Path) -> Result<(), SandboxError> {
        let mut index = 0;
        while let Some(supervisor) = self.supervisors.get_mut(index) {
            if supervisor.link.is_some() {
                index += 1;
                continue;
            }
            let ended = tokio::time::timeout(KILL_LIMIT, supervisor.child.wait()).await;
            match ended {
                Ok(Ok(status)) if status.success() => {}
                // One that was itself killed, or went wrong, may have left its descendants to nobody.
                Ok(Ok(_)) => sweep(directory).await,
                Ok(Err(error)) => {
                    return Err(SandboxError::io(
                        "cannot wait for the command's supervisor",
                        error,
                    ));
                }
                Err(_) => {
                    return Err(SandboxError::new(
                        "cannot kill what the attempt started: it does not end",
                    ));
                }
            }
            self.supervisors.swap_remove(index);
        }
        Ok(())
    }
}

fn spawn(launch: &Launch<'_>, own_signals: bool) -> io::Result<(Child, Link, pipe::Receiver)> {
    let (ours, theirs) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    // One pipe for both streams keeps their order.
    let (reader, writer) = io::pipe()?;
    let invocation = Invocation {
        confinement: launch.writable.as_ref().map(|writable| Confinement {
            writable: writable
                .iter()
                .map(|path| path.as_std_path().to_owned())
                .collect(),
            own_signals,
            no_network: launch.no_network,
        }),
        keep: launch.keep,
        open_files: launch.open_files,
        argv: match launch.line {
            CommandLine::Shell(text) => vec!["sh".into(), "-c".into(), text.into()],
            CommandLine::Argv(argv) => argv.iter().map(Into::into).collect(),
        },
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "running commands is what this engine is for"
    )]
    let child = tokio::process::Command::new(launch.program)
        .args(invocation.to_arguments())
        .current_dir(launch.workspace)
        .env_clear()
        .envs(launch.environment.iter().copied())
        .stdin(OwnedFd::from(theirs))
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()?;
    let link = BufReader::with_capacity(512, UnixStream::from_std(ours)?);
    Ok((child, link, pipe::Receiver::from_owned_fd(reader.into())?))
}

struct Watched {
    /// The last one heard; `None` when the supervisor went without any.
    report: Option<Report>,
    link: Link,
    /// Unless the output has ended.
    reader: Option<pipe::Receiver>,
}

/// Passes output on until the command has ended and so has its output, or nearly so.
async fn watch(
    mut link: Link,
    reader: pipe::Receiver,
    keep: bool,
    output: &mpsc::Sender<Vec<u8>>,
    confinement: &mut Vec<String>,
) -> Watched {
    let mut report = None;
    let mut open = true;
    {
        let mut listening = pin!(listen(&mut link, confinement));
        let mut lingered = pin!(tokio::time::sleep(OUTPUT_LINGER));
        let mut ended = false;
        while open {
            tokio::select! {
                biased;
                () = &mut lingered, if ended => break,
                heard = &mut listening, if !ended => {
                    report = heard;
                    ended = true;
                    if keep {
                        // What the command itself wrote is there by now; what its daemons write is not waited for.
                        while let Passed::Chunk = pass(&reader, output).await {}
                        break;
                    }
                    lingered.as_mut().reset(tokio::time::Instant::now() + OUTPUT_LINGER);
                }
                _ = reader.readable() => open = !matches!(pass(&reader, output).await, Passed::End),
            }
        }
        if !ended {
            report = listening.await;
        }
    }
    Watched {
        report,
        link,
        reader: open.then_some(reader),
    }
}

/// Reads reports to the last one.
async fn listen(link: &mut Link, confinement: &mut Vec<String>) -> Option<Report> {
    let mut line = String::new();
    loop {
        line.clear();
        if link.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        match serde_json::from_str(&line).ok()? {
            Report::Started { confinement: words } => *confinement = words,
            last => return Some(last),
        }
    }
}

enum Passed {
    Chunk,
    Nothing,
    End,
}

/// Passes on what there is. The buffer lives no longer than that: a thousand quiet commands take no memory.
async fn pass(reader: &pipe::Receiver, output: &mpsc::Sender<Vec<u8>>) -> Passed {
    let mut chunk = Vec::with_capacity(CHUNK);
    match reader.try_read_buf(&mut chunk) {
        Ok(0) => Passed::End,
        Ok(_) => {
            chunk.shrink_to_fit();
            // Without a receiver the output goes nowhere; the command must not notice.
            let _ = output.send(chunk).await;
            Passed::Chunk
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Passed::Nothing,
        Err(_) => Passed::End,
    }
}

/// Reads what daemons still write: with nobody reading, a write would kill them.
async fn discard(mut reader: pipe::Receiver) {
    let mut buffer = vec![0; 4096];
    while reader.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
}

/// Kills what a supervisor left that was itself killed, by the sandbox's directory in its environment.
#[cfg(target_os = "linux")]
async fn sweep(directory: &Utf8Path) {
    let prefix = format!("{directory}/").into_bytes();
    let _ = tokio::task::spawn_blocking(move || crate::sandbox::supervisor::kill_marked(&prefix)).await;
}

/// Elsewhere a process cannot be found by its environment.
#[cfg(not(target_os = "linux"))]
async fn sweep(_directory: &Utf8Path) {}
