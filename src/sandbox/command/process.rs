//! A command of the user's own that runs on this machine. It and what it started die when they are given up.

use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::Utf8Path;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::config::CommandLine;

/// Most bytes in a piece of output.
const CHUNK: usize = 16 * 1024;
/// How much of standard error is remembered.
const SAID: usize = 4096;
/// How long output is read on after the process itself has ended.
const LINGER: Duration = Duration::from_secs(2);
/// How long a process may take to end once nothing more is expected of it.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running process.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// Taken by whoever writes to it; `None` where it has none.
    pub(super) stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    said: Arc<Mutex<Vec<u8>>>,
    remembering: JoinHandle<()>,
    exited: Option<(ExitStatus, Instant)>,
}

/// How a process ended.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    /// Its exit code; `None` when a signal ended it, or when it had to be killed.
    pub(super) code: Option<i32>,
    /// The same, in words that follow "it".
    pub(super) how: String,
    /// The last of what it wrote on standard error.
    pub(super) said: String,
}

impl Process {
    /// Starts a command. Without `stdin` it has none to read from.
    pub(super) fn start(
        line: &CommandLine,
        directory: &Utf8Path,
        environment: &[(String, String)],
        stdin: Stdio,
    ) -> std::io::Result<Self> {
        let mut command = command(line);
        command
            .current_dir(directory)
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn()?;
        let piped = || std::io::Error::other("a stream is missing");
        let stdout = child.stdout.take().ok_or_else(piped)?;
        let stderr = child.stderr.take().ok_or_else(piped)?;
        let said = Arc::new(Mutex::new(Vec::new()));
        let remembering = tokio::spawn(remember(stderr, Arc::clone(&said)));
        Ok(Self {
            stdin: child.stdin.take(),
            child,
            stdout,
            said,
            remembering,
            exited: None,
        })
    }

    /// The next piece of standard output; `None` at its end, or a bounded time after the process has ended.
    pub(super) async fn chunk(&mut self) -> Option<Vec<u8>> {
        let mut chunk = Vec::with_capacity(CHUNK);
        loop {
            let lingered = self.exited.map(|(_, at)| at + LINGER);
            tokio::select! {
                biased;
                read = self.stdout.read_buf(&mut chunk) => {
                    return matches!(read, Ok(1..)).then_some(chunk);
                }
                status = self.child.wait(), if self.exited.is_none() => {
                    self.exited = Some((status.ok()?, Instant::now()));
                }
                () = tokio::time::sleep_until(lingered.unwrap_or_else(Instant::now)), if lingered.is_some() => return None,
            }
        }
    }

    /// Waits for its end; one that does not come to it is killed.
    pub(super) async fn end(mut self) -> Ended {
        drop(self.stdin.take());
        if self.exited.is_none()
            && let Ok(Ok(status)) = tokio::time::timeout(PATIENCE, self.child.wait()).await
        {
            self.exited = Some((status, Instant::now()));
        }
        let code = self.exited.and_then(|(status, _)| status.code());
        let how = match (self.exited, code) {
            (None, _) => "did not end".to_owned(),
            (Some(_), Some(code)) => format!("ended with exit code {code}"),
            (Some((status, _)), None) => format!("was ended by {status}"),
        };
        // What it wrote last may still be on its way; who else writes there is not waited for.
        let _ = tokio::time::timeout(LINGER, &mut self.remembering).await;
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ended {
            code,
            how,
            said: String::from_utf8_lossy(&said).into_owned(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        #[cfg(unix)]
        if self.exited.is_none()
            && let Some(id) = self.child.id()
            && let Some(group) = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw)
        {
            // It may have ended meanwhile, which is as good.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "running the user's commands is what this engine is for"
)]
fn command(line: &CommandLine) -> tokio::process::Command {
    match line {
        CommandLine::Shell(text) => {
            let mut command = tokio::process::Command::new("sh");
            command.args(["-c", text]);
            command
        }
        CommandLine::Argv(words) => {
            let mut words = words.iter();
            let mut command = tokio::process::Command::new(words.next().map_or("", String::as_str));
            command.args(words);
            command
        }
    }
}

/// Reads a stream to its end and keeps its last bytes.
async fn remember(mut from: impl AsyncRead + Unpin, said: Arc<Mutex<Vec<u8>>>) {
    let mut chunk = [0; SAID];
    while let Ok(read @ 1..) = from.read(&mut chunk).await {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend_from_slice(&chunk[..read]);
        let surplus = said.len().saturating_sub(SAID);
        said.drain(..surplus);
    }
}
