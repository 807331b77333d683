//! Something that runs in a container under `run.sh`: its output, its end, and the link whose closing kills it.

use std::time::Duration;

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::ExecConfig;
use bollard::query_parameters::WaitContainerOptionsBuilder;
use futures::StreamExt as _;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use super::connection::failed;
use crate::model::ErrorClass;
use crate::sandbox::SandboxError;

/// What each command runs under.
const RUN: &str = include_str!("run.sh");

/// Its first report: the old results have gone.
const BEGUN: &[u8] = b"begun\n";

/// How long output is still read after the command itself has ended.
const OUTPUT_LINGER: Duration = Duration::from_secs(2);

/// How long a silence is then taken for its end.
const OUTPUT_SILENCE: Duration = Duration::from_millis(500);

/// How long a container may take to end after its commands did.
const ENDING_LINGER: Duration = Duration::from_secs(1);

/// Most bytes of what the engine says in place of a command.
const MOST_EXCUSE: usize = 2 * 1024;

/// From here on an exit code is a signal's.
const FIRST_SIGNAL: i32 = 129;

/// Largest piece of output.
const CHUNK: usize = 16 * 1024;

/// What to run.
#[derive(Debug, Default)]
pub(super) struct Exec<'a> {
    /// A program and its arguments.
    pub(super) words: Vec<String>,
    /// `NAME=value`.
    pub(super) env: Vec<String>,
    /// `None` is the container's own.
    pub(super) user: Option<&'a str>,
    /// Where.
    pub(super) directory: &'a str,
    pub(super) privileged: bool,
    /// Processes that live on, with whatever they started.
    pub(super) daemons: &'a str,
    /// Whether there are processes besides that are not to be killed.
    pub(super) spare: bool,
    /// Whether what it leaves behind lives on.
    pub(super) stay: bool,
}

/// How it ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// Its exit code.
    pub(super) code: i32,
    /// Whether something in the container was killed for memory meanwhile; `None` where that is not known.
    pub(super) short_of_memory: Option<bool>,
    /// What it left behind that is to live on.
    pub(super) daemons: String,
}

impl Exec<'_> {
    /// Runs it to its end. Dropping the future closes the link, at which everything is killed.
    ///
    /// Before it starts, `old` results go, relative paths with `./` before each; once they have, there are none left in it.
    pub(super) async fn run(
        self,
        docker: &Docker,
        container: &str,
        old: &mut Vec<String>,
        output: Option<&mpsc::Sender<Vec<u8>>>,
    ) -> Result<Ended, SandboxError> {
        let created = docker.create_exec(container, self.config(old)).await;
        let id = created
            .map_err(|error| failed("cannot run the command", error))?
            .id;
        let options = StartExecOptions {
            output_capacity: Some(64 * 1024),
            ..StartExecOptions::default()
        };
        let started = docker.start_exec(&id, Some(options)).await;
        let started = started.map_err(|error| failed("cannot run the command", error))?;
        let StartExecResults::Attached {
            output: mut streams,
            input: _link,
        } = started
        else {
            return Err(SandboxError::new(
                "cannot run the command: the engine did not attach to it",
            ));
        };
        let mut reports = Vec::new();
        // What the engine says in place of a command that it could not start.
        let mut excuse = Vec::new();
        let mut deadline: Option<Instant> = None;
        loop {
            let next = match deadline {
                None => streams.next().await,
                // A daemon may hold the command's output open.
                Some(deadline) => {
                    let silence = Instant::now() + OUTPUT_SILENCE;
                    let next = timeout_at(deadline.min(silence), streams.next()).await;
                    next.ok().flatten()
                }
            };
            match next {
                Some(Ok(LogOutput::StdErr { message })) => {
                    reports.extend_from_slice(&message);
                    if reports.starts_with(BEGUN) {
                        old.clear();
                    }
                    if deadline.is_none() && is_report(&reports) {
                        deadline = Some(Instant::now() + OUTPUT_LINGER);
                    }
                }
                Some(Ok(said)) => {
                    let said = said.into_bytes();
                    // Its report may come after what it prints.
                    old.clear();
                    if !reports.starts_with(BEGUN) && excuse.len() < MOST_EXCUSE {
                        excuse.extend_from_slice(&said);
                    }
                    if let Some(output) = output {
                        for piece in said.chunks(CHUNK) {
                            // Without a receiver it goes nowhere; the command must not notice.
                            let _ = output.send(piece.to_vec()).await;
                        }
                    }
                }
                Some(Err(error)) => return Err(failed("lost the connection to the command", error)),
                None => break,
            }
        }
        match read_report(&String::from_utf8_lossy(&reports))? {
            Some(ended) => Ok(ended),
            None => {
                let begun = reports.starts_with(BEGUN);
                let excuse = (!begun).then(|| String::from_utf8_lossy(&excuse).trim().to_owned());
                without_report(docker, container, &id, excuse).await
            }
        }
    }

    fn config(self, old: &[String]) -> ExecConfig {
        let word = |yes| if yes { "yes" } else { "no" };
        let count = old.len().to_string();
        let before = [
            "sh",
            "-c",
            RUN,
            "evalwave",
            self.daemons,
            word(self.spare),
            word(self.stay),
            &count,
        ];
        let before = before.map(str::to_owned).into_iter();
        ExecConfig {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(before.chain(old.iter().cloned()).chain(self.words).collect()),
            env: Some(self.env),
            user: self.user.map(str::to_owned),
            working_dir: Some(self.directory.to_owned()),
            privileged: Some(self.privileged),
            ..ExecConfig::default()
        }
    }
}

/// Whether a whole report has come.
fn is_report(reports: &[u8]) -> bool {
    let report = String::from_utf8_lossy(reports);
    report.ends_with('\n') && !matches!(read_report(&report), Ok(None))
}

/// What `run.sh` reports, which is the last word on the matter: a command may have written there too. `None` where it
/// was killed before it could.
fn read_report(report: &str) -> Result<Option<Ended>, SandboxError> {
    if let Some(ended) = report.lines().rev().find_map(read_ended) {
        return Ok(Some(ended));
    }
    match report.lines().find_map(|line| line.strip_prefix("refused ./")) {
        Some(path) => Err(SandboxError::new(format!(
            "cannot delete `{path}` from the sandbox"
        ))),
        None => Ok(None),
    }
}

fn read_ended(line: &str) -> Option<Ended> {
    let (code, rest) = line.strip_prefix("ended ")?.split_once(' ')?;
    let (memory, daemons) = rest.split_once(' ').unwrap_or((rest, ""));
    Some(Ended {
        code: code.parse().ok()?,
        short_of_memory: match memory {
            "short" => Some(true),
            "enough" => Some(false),
            "unknown" => None,
            _ => return None,
        },
        daemons: daemons.to_owned(),
    })
}

/// Something killed even what the command runs under: the command, or the end of the whole container. With an `excuse`,
/// empty or not, the command has never begun. Either way a code that is no signal's is not the command's own.
async fn without_report(
    docker: &Docker,
    container: &str,
    id: &str,
    excuse: Option<String>,
) -> Result<Ended, SandboxError> {
    let lost = || SandboxError {
        class: Some(ErrorClass::SandboxLost),
        message: "the container ended while the command ran".to_owned(),
        source: None,
    };
    let options = WaitContainerOptionsBuilder::default()
        .condition("not-running")
        .build();
    let mut ending = Box::pin(docker.wait_container(container, Some(options)));
    if timeout(ENDING_LINGER, ending.next()).await.is_ok() {
        return Err(lost());
    }
    let inspected = docker.inspect_exec(id).await;
    let inspected = inspected.map_err(|error| failed("lost the command", error))?;
    let code = inspected.exit_code.and_then(|code| i32::try_from(code).ok());
    let code = code.ok_or_else(lost)?;
    if excuse.is_some() || code < FIRST_SIGNAL {
        let why = excuse.filter(|said| !said.is_empty());
        let why = why.unwrap_or_else(|| format!("the shell around it ended with {code}"));
        return Err(SandboxError::new(format!(
            "cannot run the command in the container: {why}\nsee whether `sandbox.pids` leaves room for it, and how large `attempt.env` is"
        )));
    }
    Ok(Ended {
        code,
        short_of_memory: None,
        daemons: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::read_report;

    #[test]
    fn reports_are_read_and_whatever_else_a_command_wrote_there_is_none() {
        let ended = read_report("ended 137 short 12 15 22\n").unwrap().unwrap();
        assert_eq!((ended.code, ended.daemons.as_str()), (137, "12 15 22"));
        assert_eq!(ended.short_of_memory, Some(true));
        let ended = read_report("ended 0 enough\n").unwrap().unwrap();
        assert_eq!((ended.daemons.as_str(), ended.short_of_memory), ("", Some(false)));
        let stray = read_report("x\nended 0 enough\nmore\nended 1 unknown\nended y enough\n")
            .unwrap()
            .unwrap();
        assert_eq!((stray.code, stray.short_of_memory), (1, None));
        let refused = read_report("refused ./a b.json\n").unwrap_err();
        assert_eq!(refused.to_string(), "cannot delete `a b.json` from the sandbox");
        for forged in [
            "",
            "ended",
            "ended 1",
            "ended x enough",
            "ended 1 x",
            "ended 99999999999999 enough",
            "\u{0}",
        ] {
            assert!(read_report(forged).unwrap().is_none(), "{forged:?}");
        }
    }
}
