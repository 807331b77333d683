//! The commands of one sandbox on Windows, each in a job object, which Windows closes with all its processes when
//! evalwave lets go of it or dies. Weaker than the supervisor elsewhere: nothing is confined, and the two output
//! streams keep their order each, not together.

use std::process::Stdio;

use camino::Utf8Path;
use process_wrap::tokio::{ChildWrapper, CommandWrap, JobObject, KillOnDrop};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::mpsc;

use super::{CHUNK, OUTPUT_LINGER};
use crate::config::CommandLine;
use crate::sandbox::{Exit, SandboxError};

/// A command to start.
pub(super) struct Launch<'a> {
    /// Where the command runs.
    pub workspace: &'a Utf8Path,
    /// The whole environment.
    pub environment: Vec<(&'a str, &'a str)>,
    /// What to run.
    pub line: &'a CommandLine,
    /// Whether what it leaves behind lives until the sandbox is stopped.
    pub keep: bool,
}

/// What runs in a sandbox.
#[derive(Debug, Default)]
pub(super) struct Processes {
    kept: Vec<Box<dyn ChildWrapper>>,
    confinement: Vec<String>,
}

impl Processes {
    /// What confines the commands, in words, once one has started.
    pub(super) fn confinement(&self) -> &[String] {
        &self.confinement
    }

    /// Runs a command to its end. Dropping the future closes its job.
    pub(super) async fn exec(
        &mut self,
        launch: Launch<'_>,
        _directory: &Utf8Path,
        output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<Exit, SandboxError> {
        let (program, arguments) = match launch.line {
            CommandLine::Shell(text) => ("sh", vec!["-c", text.as_str()]),
            CommandLine::Argv(argv) => match argv.split_first() {
                Some((program, arguments)) => {
                    (program.as_str(), arguments.iter().map(String::as_str).collect())
                }
                None => return Err(SandboxError::new("cannot start the command: none was given")),
            },
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "running commands is what this engine is for"
        )]
        let mut command = tokio::process::Command::new(program);
        command
            .args(arguments)
            .current_dir(launch.workspace)
            .env_clear()
            .envs(launch.environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut wrapped = CommandWrap::from(command);
        wrapped.wrap(KillOnDrop).wrap(JobObject);
        let mut child = match wrapped.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let said = format!("cannot run `{program}`: {error}\n");
                let _ = output.send(said.into_bytes()).await;
                return Ok(Exit::Code(127));
            }
            Err(error) => return Err(SandboxError::io("cannot start the command", error)),
        };
        self.confinement = vec!["not confined: Windows offers nothing for it".to_owned()];

        let streams = (child.stdout().take(), child.stderr().take());
        let pumped = async { tokio::join!(pump(streams.0, output), pump(streams.1, output)) };
        let status = {
            let mut pumped = std::pin::pin!(pumped);
            // The process itself, where the job's own wait is for all of its processes.
            let mut waiting = std::pin::pin!(child.inner_mut().wait());
            tokio::select! {
                status = &mut waiting => {
                    let _ = tokio::time::timeout(OUTPUT_LINGER, &mut pumped).await;
                    status
                }
                _ = &mut pumped => waiting.await,
            }
        };
        let status = status.map_err(|error| SandboxError::io("cannot learn how the command ended", error))?;
        if launch.keep {
            self.kept.push(child);
        } else {
            close(child).await?;
        }
        Ok(Exit::Code(status.code().unwrap_or(-1)))
    }

    /// Kills everything that runs, and waits until it is gone.
    pub(super) async fn stop(&mut self, _directory: &Utf8Path) -> Result<(), SandboxError> {
        for child in self.kept.drain(..) {
            close(child).await?;
        }
        Ok(())
    }
}

/// Ends a job with all its processes.
async fn close(mut child: Box<dyn ChildWrapper>) -> Result<(), SandboxError> {
    let failed = |error| SandboxError::io("cannot kill what the command started", error);
    child.start_kill().map_err(failed)?;
    child.wait().await.map(|_| ()).map_err(failed)
}

/// Passes a stream on to its end.
async fn pump(stream: Option<impl AsyncRead + Unpin>, output: &mpsc::Sender<Vec<u8>>) {
    let Some(mut stream) = stream else { return };
    loop {
        let mut chunk = Vec::with_capacity(CHUNK);
        match stream.read_buf(&mut chunk).await {
            Ok(0) | Err(_) => return,
            // Without a receiver the output goes nowhere; the command must not notice.
            Ok(_) => drop(output.send(chunk).await),
        }
    }
}
