//! One container: files go in and come out as archives, commands run as execs under `run.sh`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bollard::container::LogOutput;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::ExecConfig;
use bollard::query_parameters::{EventsOptionsBuilder, StartContainerOptions, WaitContainerOptionsBuilder};
use camino::{Utf8Path, Utf8PathBuf};
use futures::StreamExt as _;
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use super::connection::failed;
use super::image::Image;
use super::{Shared, archive, reaper};
use crate::config::{CommandLine, DockerConfig};
use crate::glob::is_pattern;
use crate::model::{Boot, ErrorClass};
use crate::sandbox::{Command, Exit, Sandbox, SandboxError, Workspace};

/// What each command runs under.
const RUN: &str = include_str!("run.sh");

/// How long `exec` goes on reading output after the command itself has ended.
const OUTPUT_LINGER: Duration = Duration::from_secs(2);

/// How long a silence is then taken for its end.
const OUTPUT_SILENCE: Duration = Duration::from_millis(500);

/// How long the engine may take to tell of used-up memory after it has killed for it.
const OOM_LINGER: Duration = Duration::from_secs(1);

/// How long a container may take to end after its commands did.
const ENDING_LINGER: Duration = Duration::from_secs(1);

/// Largest piece of output.
const CHUNK: usize = 16 * 1024;

/// What is known of a container before it is created.
#[derive(Clone, Debug)]
pub(super) struct Place {
    boot: Boot,
    /// Absolute.
    pub(super) workspace: Utf8PathBuf,
    /// The user that commands run as, where it is not root.
    user: Option<String>,
    confinement: Vec<String>,
    memory_is_limited: bool,
    init: bool,
}

impl Place {
    pub(super) fn of(image: &Image, config: &DockerConfig) -> Self {
        let user = config.user.as_ref().or(image.user.as_ref());
        let mut confinement = vec!["a container".to_owned()];
        if config.network == "none" {
            confinement.push("no network".to_owned());
        }
        if config.privileged {
            confinement.push("not confined: `privileged: true`".to_owned());
        }
        Self {
            boot: image.boot,
            workspace: image.workspace.clone(),
            user: user.filter(|user| !is_root(user)).cloned(),
            confinement,
            memory_is_limited: config.memory.is_some(),
            init: config.init,
        }
    }
}

fn is_root(user: &str) -> bool {
    matches!(user.split(':').next(), Some("" | "0" | "root"))
}

/// A container.
pub(super) struct DockerSandbox {
    shared: Arc<Shared>,
    name: String,
    pub(super) id: String,
    place: Place,
    started: bool,
    /// Processes that live until the end.
    daemons: String,
    /// Old results that go before the next command starts.
    old: Vec<String>,
    /// A command was dropped, and may still be dying.
    unsettled: bool,
    /// How often the engine has killed for memory.
    out_of_memory: usize,
}

impl DockerSandbox {
    pub(super) fn new(shared: Arc<Shared>, name: String, id: String, place: Place) -> Self {
        Self {
            shared,
            name,
            id,
            place,
            started: false,
            daemons: String::new(),
            old: Vec::new(),
            unsettled: false,
            out_of_memory: 0,
        }
    }

    async fn ensure_started(&mut self) -> Result<(), SandboxError> {
        if !self.started {
            let docker = &self.shared.docker;
            let started = docker
                .start_container(&self.id, None::<StartContainerOptions>)
                .await;
            started.map_err(|error| failed("cannot start the container", error))?;
            self.started = true;
        }
        Ok(())
    }

    /// Gives what was copied in, as root, to the user that commands run as.
    async fn hand_over(&mut self) -> Result<(), SandboxError> {
        let Some(user) = self.place.user.clone() else {
            return Ok(());
        };
        let workspace = self.place.workspace.clone();
        let chown = ["chown", "-R", &user, workspace.as_str()].map(str::to_owned);
        let ended = self.run(&Run::plain(chown.into(), "0"), None).await?;
        match ended.code {
            Some(0) => Ok(()),
            _ => Err(SandboxError::new(format!(
                "cannot give the workspace to the user `{user}`"
            ))),
        }
    }

    /// Kills what a dropped command may have left; as root, whoever the command ran as.
    async fn settle(&mut self) -> Result<(), SandboxError> {
        while self.unsettled {
            // What kills the dropped command may take this one with it; only one that ended well has killed all of that.
            let ended = self.run(&Run::plain(vec!["true".to_owned()], "0"), None).await?;
            self.unsettled = ended.code.ok_or_else(lost)? != 0;
        }
        Ok(())
    }

    /// Runs something under `run.sh`. Dropping the future closes the link, at which that kills everything.
    async fn run(
        &mut self,
        run: &Run,
        output: Option<&mpsc::Sender<Vec<u8>>>,
    ) -> Result<Ended, SandboxError> {
        let spare = self.place.init || !self.daemons.is_empty();
        let word = |yes| if yes { "yes" } else { "no" }.to_owned();
        let mut cmd = vec![
            "sh".to_owned(),
            "-c".to_owned(),
            RUN.to_owned(),
            "evalwave".to_owned(),
        ];
        cmd.extend([
            self.daemons.clone(),
            word(spare),
            word(run.stay),
            run.old.len().to_string(),
        ]);
        cmd.extend(run.old.iter().cloned());
        cmd.extend(run.words.iter().cloned());
        let config = ExecConfig {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(cmd),
            env: Some(run.env.clone()),
            user: run.user.clone(),
            working_dir: Some(self.place.workspace.to_string()),
            privileged: Some(self.shared.config.privileged),
            ..ExecConfig::default()
        };
        let docker = &self.shared.docker;
        let created = docker.create_exec(&self.id, config).await;
        let exec = created
            .map_err(|error| failed("cannot run the command", error))?
            .id;
        let options = StartExecOptions {
            output_capacity: Some(64 * 1024),
            ..StartExecOptions::default()
        };
        let started = docker.start_exec(&exec, Some(options)).await;
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
        let mut deadline: Option<Instant> = None;
        loop {
            let next = match deadline {
                None => streams.next().await,
                // A daemon may hold the command's output open.
                Some(deadline) => {
                    let silence = Instant::now() + OUTPUT_SILENCE;
                    timeout_at(deadline.min(silence), streams.next())
                        .await
                        .ok()
                        .flatten()
                }
            };
            match next {
                Some(Ok(LogOutput::StdErr { message })) => {
                    reports.extend_from_slice(&message);
                    if reports.ends_with(b"\n") && deadline.is_none() {
                        deadline = Some(Instant::now() + OUTPUT_LINGER);
                    }
                }
                Some(Ok(said)) => {
                    if let Some(output) = output {
                        for piece in said.into_bytes().chunks(CHUNK) {
                            // Without a receiver it goes nowhere; the command must not notice.
                            let _ = output.send(piece.to_vec()).await;
                        }
                    }
                }
                Some(Err(error)) => return Err(failed("lost the connection to the command", error)),
                None => break,
            }
        }
        let report = String::from_utf8_lossy(&reports).into_owned();
        if let Some(path) = report.strip_prefix("refused ") {
            let path = path.trim_end().trim_start_matches("./");
            return Err(SandboxError::new(format!(
                "cannot delete `{path}` from the sandbox"
            )));
        }
        if let Some(ended) = report.strip_prefix("ended ") {
            let (code, left) = ended.trim_end().split_once(' ').unwrap_or((ended.trim_end(), ""));
            return Ok(Ended {
                code: code.parse().ok(),
                daemons: left.to_owned(),
            });
        }
        // Something killed even what the command runs under: the command, or the end of the whole container.
        let options = WaitContainerOptionsBuilder::default()
            .condition("not-running")
            .build();
        let mut ending = Box::pin(docker.wait_container(&self.id, Some(options)));
        if timeout(ENDING_LINGER, ending.next()).await.is_ok() {
            return Ok(Ended::lost());
        }
        let inspected = docker.inspect_exec(&exec).await;
        let inspected = inspected.map_err(|error| failed("lost the command", error))?;
        Ok(Ended {
            code: inspected.exit_code.and_then(|code| i32::try_from(code).ok()),
            ..Ended::lost()
        })
    }

    /// Whether the engine has killed for memory since it was last asked.
    async fn ran_out_of_memory(&mut self, patience: Duration) -> bool {
        let options = EventsOptionsBuilder::default()
            .since("1")
            .filters(&std::collections::HashMap::from([
                ("type", vec!["container"]),
                ("event", vec!["oom"]),
                ("container", vec![self.id.as_str()]),
            ]))
            .build();
        let docker = self.shared.docker.clone();
        let mut events = Box::pin(docker.events(Some(options)));
        let (mut seen, mut patience) = (0, patience);
        while let Ok(Some(Ok(_))) = timeout(patience, events.next()).await {
            seen += 1;
            if seen > self.out_of_memory {
                // One command may be told of more than once, and the next is not to be blamed for it.
                patience = OOM_LINGER / 10;
            }
        }
        let more = seen > self.out_of_memory;
        self.out_of_memory = seen;
        more
    }
}

fn lost() -> SandboxError {
    SandboxError {
        class: Some(ErrorClass::SandboxLost),
        message: "the container ended while the command ran".to_owned(),
        source: None,
    }
}

/// Something to run.
struct Run {
    words: Vec<String>,
    env: Vec<String>,
    user: Option<String>,
    stay: bool,
    old: Vec<String>,
}

impl Run {
    fn plain(words: Vec<String>, user: &str) -> Self {
        Self {
            words,
            env: Vec::new(),
            user: Some(user.to_owned()),
            stay: false,
            old: Vec::new(),
        }
    }
}

struct Ended {
    /// `None` where nobody could tell.
    code: Option<i32>,
    daemons: String,
}

impl Ended {
    fn lost() -> Self {
        Self {
            code: None,
            daemons: String::new(),
        }
    }
}

#[async_trait]
impl Sandbox for DockerSandbox {
    fn name(&self) -> &str {
        &self.name
    }

    fn boot(&self) -> Boot {
        self.place.boot
    }

    fn confinement(&self) -> Vec<String> {
        self.place.confinement.clone()
    }

    async fn upload(&mut self, workspace: &Workspace) -> Result<(), SandboxError> {
        // What a warm image was made of is the same workspace.
        if self.place.boot == Boot::Cold {
            archive::upload(&self.shared.docker, &self.id, &self.place.workspace, workspace).await?;
        }
        self.ensure_started().await?;
        match self.place.boot {
            Boot::Cold => self.hand_over().await,
            _ => Ok(()),
        }
    }

    async fn remove(&mut self, pattern: &str) -> Result<(), SandboxError> {
        let path = archive::inside(Utf8Path::new(pattern))?;
        if is_pattern(path.as_str()) {
            self.ensure_started().await?;
            self.settle().await?;
            let (sender, mut receiver) = mpsc::channel(16);
            let mut listed = Vec::new();
            let find = Run::plain(
                ["find", ".", "!", "-type", "d", "-print0"]
                    .map(str::to_owned)
                    .into(),
                "0",
            );
            let running = async {
                let sender = sender;
                self.run(&find, Some(&sender)).await
            };
            let (ended, ()) = tokio::join!(running, async {
                while let Some(chunk) = receiver.recv().await {
                    listed.extend(chunk);
                }
            });
            if ended?.code != Some(0) {
                return Err(SandboxError::new(format!(
                    "cannot look for `{pattern}` in the sandbox"
                )));
            }
            self.old.extend(archive::matching(&listed, &path)?);
        }
        // It goes in the same exec that runs the next command: an exec of its own takes longer than `true` does.
        self.old.push(format!("./{path}"));
        Ok(())
    }

    async fn exec(
        &mut self,
        command: &Command,
        output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<Exit, SandboxError> {
        self.ensure_started().await?;
        self.settle().await?;
        let run = Run {
            words: match &command.line {
                CommandLine::Shell(text) => vec!["sh".to_owned(), "-c".to_owned(), text.clone()],
                CommandLine::Argv(words) => words.clone(),
            },
            env: command
                .env
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
            user: None,
            stay: command.keeps_daemons,
            old: std::mem::take(&mut self.old),
        };
        self.unsettled = true;
        let ended = self.run(&run, Some(output)).await?;
        // A user that is not root cannot kill what has become another's.
        self.unsettled = self.place.user.is_some() && !command.keeps_daemons;
        if command.keeps_daemons {
            self.daemons = ended.daemons;
        }
        let code = ended.code.ok_or_else(lost)?;
        if code != 0 && self.place.memory_is_limited {
            let killed = code == 137;
            let patience = if killed { OOM_LINGER } else { OOM_LINGER / 10 };
            if self.ran_out_of_memory(patience).await {
                return Err(SandboxError {
                    class: Some(ErrorClass::OutOfMemory),
                    message: "the container's memory was used up, and the engine killed for it\nraise `sandbox.memory`"
                        .to_owned(),
                    source: None,
                });
            }
        }
        Ok(Exit::Code(code))
    }

    async fn download(
        &mut self,
        from: &Utf8Path,
        into: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<Option<()>, SandboxError> {
        archive::download(&self.shared.docker, &self.id, &self.place.workspace, from, into).await
    }

    async fn stop(self: Box<Self>) -> Result<(), SandboxError> {
        // Nobody ever closes the semaphore.
        let _deleting = self.shared.deleting.acquire().await;
        reaper::delete(&self.shared.docker, &self.id).await
    }
}
