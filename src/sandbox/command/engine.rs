//! The user's own commands as calls: placeholders filled in, run on this machine, and their exit code understood.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::process::{Ended, Process};
use crate::aggregate::with_last_lines;
use crate::config::template::{CommandTemplate, Values};
use crate::config::{CommandConfig, CommandLine};
use crate::sandbox::SandboxError;
use crate::sandbox::local::RunDirectory;
use crate::sandbox::under_way::UnderWay;

/// The exit code by which a user's command says that the engine could not do it now, and that it is to be tried again.
pub(super) const TRY_AGAIN: i32 = 75;
/// How long is waited before each further try.
const PAUSES: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];
/// Most bytes of standard output that are kept of a call.
const MOST_OUTPUT: usize = 4 << 20;

/// What the user's commands are, and how they are run.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) config: CommandConfig,
    /// Where they run.
    pub(super) root: Utf8PathBuf,
    /// Their whole environment.
    pub(super) environment: Vec<(String, String)>,
    /// The soft limit on open files that they get, where it is not this process's own.
    pub(super) open_files: Option<u64>,
    /// For files that are passed to them.
    pub(super) directory: RunDirectory,
    /// The ids of the sandboxes that are not deleted yet.
    pub(super) live: Mutex<BTreeSet<String>>,
    /// Every `create` that runs.
    pub(super) creating: UnderWay,
}

/// What failed, and whether it may be tried again as it is.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) again: bool,
    pub(super) error: SandboxError,
}

impl Failed {
    /// One that would be the same again.
    pub(super) fn for_good(error: SandboxError) -> Self {
        Self { again: false, error }
    }

    /// A command of the key `key` that ended as it should not have.
    pub(super) fn ended(key: &str, ended: &Ended, what: &str) -> Self {
        let sentence = format!("`sandbox.{key}` {}{what}", ended.how);
        Self {
            again: ended.code == Some(TRY_AGAIN),
            error: SandboxError::new(with_last_lines(&sentence, &printable(&ended.said))),
        }
    }
}

/// How often something was tried again.
#[derive(Debug, Default)]
pub(super) struct Tries(usize);

impl Tries {
    /// Waits before the next try.
    ///
    /// # Errors
    /// What failed, where it failed for good or has been tried often enough.
    pub(super) async fn again(&mut self, failed: Failed) -> Result<(), SandboxError> {
        let pause = PAUSES.get(self.0).filter(|_| failed.again);
        let Some(pause) = pause else {
            return Err(failed.error);
        };
        self.0 += 1;
        tokio::time::sleep(*pause).await;
        Ok(())
    }
}

impl Engine {
    /// The ids of the sandboxes that are not deleted yet.
    pub(super) fn live(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills in a template.
    pub(super) fn line(template: &CommandTemplate, values: &Values) -> Result<CommandLine, SandboxError> {
        template
            .render(values)
            .map_err(|error| SandboxError::new(error.to_string()))
    }

    /// Starts the command of the key `key`.
    pub(super) fn start(
        &self,
        key: &str,
        line: &CommandLine,
        stdin: impl Into<Stdio>,
    ) -> Result<Process, SandboxError> {
        let line = match self.open_files {
            Some(open_files) => &with_open_files(line, open_files),
            None => line,
        };
        Process::start(line, &self.root, &self.environment, stdin.into())
            .map_err(|error| SandboxError::io(format!("cannot run `sandbox.{key}`"), error))
    }

    /// Runs a command until it works, fails for good, or has been tried often enough. Returns what it printed.
    pub(super) async fn call(
        &self,
        key: &str,
        template: &CommandTemplate,
        values: &Values,
        stdin: Option<&Utf8Path>,
    ) -> Result<Vec<u8>, SandboxError> {
        let line = Self::line(template, values)?;
        let mut tries = Tries::default();
        loop {
            match self.call_once(key, &line, stdin).await {
                Ok(output) => return Ok(output),
                Err(failed) => tries.again(failed).await?,
            }
        }
    }

    async fn call_once(
        &self,
        key: &str,
        line: &CommandLine,
        stdin: Option<&Utf8Path>,
    ) -> Result<Vec<u8>, Failed> {
        let stdin = match stdin {
            Some(path) => fs_err::File::open(path)
                .map(|file| Stdio::from(file.into_file()))
                .map_err(|error| Failed::for_good(SandboxError::io("cannot read back the tar", error)))?,
            None => Stdio::null(),
        };
        let mut process = self.start(key, line, stdin).map_err(Failed::for_good)?;
        let mut output = Vec::new();
        while let Some(chunk) = process.chunk().await {
            let room = MOST_OUTPUT.saturating_sub(output.len());
            output.extend_from_slice(&chunk[..chunk.len().min(room)]);
        }
        match process.end().await {
            Ended { code: Some(0), .. } => Ok(output),
            mut ended => {
                // Some tools tell of their failure on standard output.
                if ended.said.trim().is_empty() {
                    ended.said = String::from_utf8_lossy(&output).into_owned();
                }
                Err(Failed::ended(key, &ended, ""))
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Files are deleted as they have been used; what is left is nobody's.
        let _ = self.directory.remove();
    }
}

/// The same command with this soft limit on open files: evalwave raises its own, which some tools hand on to where it is
/// not allowed, and others go through one by one.
fn with_open_files(line: &CommandLine, open_files: u64) -> CommandLine {
    let limit = format!("ulimit -S -n {open_files}");
    match line {
        CommandLine::Shell(text) => CommandLine::Shell(format!("{limit}; {text}")),
        CommandLine::Argv(words) => {
            let shell = ["sh", "-c", &format!("{limit}; exec \"$@\""), "sh"];
            CommandLine::Argv(
                shell
                    .map(str::to_owned)
                    .into_iter()
                    .chain(words.iter().cloned())
                    .collect(),
            )
        }
    }
}

/// Text without what would steer a terminal.
pub(super) fn printable(text: &str) -> String {
    text.replace(|c: char| c.is_control() && c != '\n', " ")
}
