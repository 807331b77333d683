//! One container: files go in and come out as archives, commands run as execs under `run.sh`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bollard::query_parameters::EventsOptionsBuilder;
use camino::{Utf8Path, Utf8PathBuf};
use futures::StreamExt as _;
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::exec::{Ended, Exec};
use super::image::Image;
use super::{Shared, archive, reaper};
use crate::config::{CommandLine, DockerConfig};
use crate::glob::is_pattern;
use crate::model::{Boot, ErrorClass};
use crate::sandbox::disk::{LEFT, full};
use crate::sandbox::path::inside;
use crate::sandbox::{Command, Exit, Sandbox, SandboxError, Workspace};

/// How long the engine may take to tell of used-up memory after something was killed.
const OOM_LINGER: Duration = Duration::from_secs(5);

/// The same where nothing says that anything was, or it has told of that already.
const OOM_MOMENT: Duration = Duration::from_millis(100);

/// Most old results that go in one exec.
const MOST_OLD: usize = 500;

/// How often it is tried to start something in a container in which a dropped command is being killed.
const MOST_SETTLING: usize = 20;

/// What is known of a container before it is created.
#[derive(Clone, Debug)]
pub(super) struct Place {
    boot: Boot,
    holds_workspace: bool,
    /// Absolute.
    pub(super) workspace: Utf8PathBuf,
    /// The user that commands run as, where it is not root.
    user: Option<String>,
    confinement: Vec<String>,
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
            holds_workspace: image.holds_workspace,
            workspace: image.workspace.clone(),
            user: user.filter(|user| !is_root(user)).cloned(),
            confinement,
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
    /// Processes that live until the end.
    daemons: String,
    /// Old results that go before the next command starts; known to be gone only where it has begun.
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
            daemons: String::new(),
            old: Vec::new(),
            unsettled: false,
            out_of_memory: 0,
        }
    }

    /// Gives what was copied in, as root, to the user that commands run as.
    async fn hand_over(&mut self) -> Result<(), SandboxError> {
        let Some(user) = self.place.user.clone() else {
            return Ok(());
        };
        let mut words = vec!["find", self.place.workspace.as_str()];
        // What is mounted there is somebody else's.
        for mount in &self.shared.config.mounts {
            words.extend(["-path", mount.target.trim_end_matches('/'), "-prune", "-o"]);
        }
        words.extend(["-exec", "chown", "-h", &user, "{}", "+"]);
        let (ended, said) = self.said(&words).await?;
        match ended.code {
            0 => Ok(()),
            _ => Err(SandboxError::new(format!(
                "cannot give the workspace to the user `{user}`: {}",
                String::from_utf8_lossy(&said).trim()
            ))),
        }
    }

    /// Kills what a dropped command may have left; as root, whoever the command ran as.
    async fn settle(&mut self) -> Result<(), SandboxError> {
        let mut tries = 0;
        while self.unsettled {
            tries += 1;
            // What kills the dropped command may take this one with it, even before it has begun; only one that ended well
            // has killed all of that.
            match self.as_root(&["true"], None).await {
                Ok(ended) => self.unsettled = ended.code != 0,
                Err(error) if error.class.is_none() && tries < MOST_SETTLING => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Runs something of our own.
    async fn as_root(
        &self,
        words: &[&str],
        output: Option<&mpsc::Sender<Vec<u8>>>,
    ) -> Result<Ended, SandboxError> {
        let exec = Exec {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            user: Some("0"),
            ..frame(&self.shared, &self.place, &self.daemons)
        };
        exec.run(&self.shared.docker, &self.id, &mut Vec::new(), output)
            .await
    }

    /// Runs something of our own; with what it prints.
    async fn said(&self, words: &[&str]) -> Result<(Ended, Vec<u8>), SandboxError> {
        let (sender, mut receiver) = mpsc::channel::<Vec<u8>>(16);
        let mut said = Vec::new();
        let running = async {
            let sender = sender;
            self.as_root(words, Some(&sender)).await
        };
        let (ended, ()) = tokio::join!(running, async {
            while let Some(chunk) = receiver.recv().await {
                said.extend(chunk);
            }
        });
        Ok((ended?, said))
    }

    /// Deletes the old results whose command may never have begun.
    async fn remove_old(&mut self) -> Result<(), SandboxError> {
        if self.old.is_empty() {
            return Ok(());
        }
        self.settle().await?;
        let exec = Exec {
            words: vec!["true".to_owned()],
            user: Some("0"),
            ..frame(&self.shared, &self.place, &self.daemons)
        };
        let ended = exec
            .run(&self.shared.docker, &self.id, &mut self.old, None)
            .await?;
        match ended.code {
            0 => Ok(()),
            code => Err(SandboxError::new(format!(
                "cannot delete old results from the sandbox: exit code {code}"
            ))),
        }
    }

    /// Whether something was killed for memory while a command ran.
    async fn was_short_of_memory(&mut self, ended: &Ended) -> bool {
        match ended.short_of_memory {
            Some(false) => false,
            Some(true) => {
                // So that what the engine tells of it is known already where it has to be asked the next time.
                self.ran_out_of_memory(OOM_MOMENT).await;
                true
            }
            // After each command, so that the next one is not blamed for it.
            None if ended.code == 137 => self.ran_out_of_memory(OOM_LINGER).await,
            None => self.ran_out_of_memory(OOM_MOMENT).await,
        }
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
                patience = OOM_MOMENT;
            }
        }
        let more = seen > self.out_of_memory;
        self.out_of_memory = seen;
        more
    }
}

/// What all that runs in the container has in common.
fn frame<'a>(shared: &Shared, place: &'a Place, daemons: &'a str) -> Exec<'a> {
    Exec {
        directory: place.workspace.as_str(),
        privileged: shared.config.privileged,
        daemons,
        spare: shared.config.init || !daemons.is_empty(),
        ..Exec::default()
    }
}

fn out_of_memory() -> SandboxError {
    SandboxError {
        class: Some(ErrorClass::OutOfMemory),
        message: "the container's memory was used up, and the engine killed for it\nraise `sandbox.memory`"
            .to_owned(),
        source: None,
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
        // It is the same one.
        if self.place.holds_workspace {
            return Ok(());
        }
        archive::upload(&self.shared.docker, &self.id, &self.place.workspace, workspace).await?;
        self.hand_over().await
    }

    async fn remove(&mut self, pattern: &str) -> Result<(), SandboxError> {
        let path = inside(Utf8Path::new(pattern))?;
        if is_pattern(path.as_str()) {
            self.settle().await?;
            let find = ["find", ".", "!", "-type", "d", "-print0"];
            let (ended, listed) = self.said(&find).await?;
            if ended.code != 0 {
                return Err(SandboxError::new(format!(
                    "cannot look for `{pattern}` in the sandbox"
                )));
            }
            for found in archive::matching(&listed, &path)? {
                self.old.push(found);
                // An exec takes only so many words.
                if self.old.len() == MOST_OLD {
                    self.remove_old().await?;
                }
            }
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
        self.settle().await?;
        self.unsettled = true;
        let exec = Exec {
            words: match &command.line {
                CommandLine::Shell(text) => vec!["sh".to_owned(), "-c".to_owned(), text.clone()],
                CommandLine::Argv(words) => words.clone(),
            },
            env: command
                .env
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
            stay: command.keeps_daemons,
            ..frame(&self.shared, &self.place, &self.daemons)
        };
        let limited = self.shared.config.memory.is_some();
        let running = exec.run(&self.shared.docker, &self.id, &mut self.old, Some(output));
        let ended = match running.await {
            Ok(ended) => ended,
            // What the engine kills for memory may be the container's first process.
            Err(_) if limited && self.ran_out_of_memory(OOM_LINGER).await => return Err(out_of_memory()),
            Err(error) => return Err(error),
        };
        // A user that is not root cannot kill what has become another's.
        self.unsettled = self.place.user.is_some() && !command.keeps_daemons;
        if command.keeps_daemons {
            self.daemons.clone_from(&ended.daemons);
        }
        if limited && self.was_short_of_memory(&ended).await && ended.code != 0 {
            return Err(out_of_memory());
        }
        Ok(Exit::Code(ended.code))
    }

    async fn download(
        &mut self,
        from: &Utf8Path,
        into: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<Option<()>, SandboxError> {
        self.remove_old().await?;
        archive::download(&self.shared.docker, &self.id, &self.place.workspace, from, into).await
    }

    async fn full_disk(&mut self) -> Option<String> {
        // What cannot be looked at says nothing.
        self.settle().await.ok()?;
        let (_, left) = self
            .said(&["sh", "-c", &format!("{LEFT}left . /tmp")])
            .await
            .ok()?;
        full(&String::from_utf8_lossy(&left))
    }

    async fn stop(self: Box<Self>) -> Result<(), SandboxError> {
        // Nobody ever closes the semaphore.
        let _deleting = self.shared.deleting.acquire().await;
        reaper::delete(&self.shared.docker, &self.id).await.map(drop)
    }
}
