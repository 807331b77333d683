//! One sandbox that the user's commands have made: what runs in it and what goes in and out, by scripts.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use camino::{Utf8Path, Utf8PathBuf};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio_util::io::SyncIoBridge;

use super::engine::{Engine, Failed, Tries};
use super::script::{self, Preamble, Removal, Run};
use super::talk::{Input, Sink, Talked, mark};
use crate::config::template::Values;
use crate::glob::{is_pattern, path_glob};
use crate::model::Boot;
use crate::sandbox::bridge::bridged;
use crate::sandbox::disk::full;
use crate::sandbox::pack;
use crate::sandbox::path::inside;
use crate::sandbox::{Command, Exit, Sandbox, SandboxError, SandboxSpec, Workspace};

/// Bytes of a tar that are under way at once.
const TAR_BUFFER: usize = 256 * 1024;

/// A sandbox that the user's `create` has made.
pub(super) struct CommandSandbox {
    engine: Arc<Engine>,
    name: String,
    run_id: String,
    /// What the engine calls it.
    id: String,
    /// The placeholders that every call may use.
    values: Values,
    /// How many commands have run in it.
    commands: u32,
    /// The mark of the processes of a command that may still run.
    given_up: Option<String>,
    /// Whether a command has left processes that live until the end.
    daemons: bool,
    /// What is to be deleted before anything else is done.
    delete: Vec<Removal>,
}

impl CommandSandbox {
    /// One that was just created; `values` are those that every call may use.
    pub(super) fn new(engine: Arc<Engine>, spec: &SandboxSpec, id: String, values: Values) -> Self {
        Self {
            engine,
            name: spec.name.clone(),
            run_id: spec.run_id.clone(),
            id,
            values,
            commands: 0,
            given_up: None,
            daemons: false,
            delete: Vec::new(),
        }
    }
}

#[async_trait]
impl Sandbox for CommandSandbox {
    fn name(&self) -> &str {
        &self.name
    }

    fn boot(&self) -> Boot {
        Boot::Cold
    }

    fn confinement(&self) -> Vec<String> {
        Vec::new()
    }

    async fn upload(&mut self, workspace: &Workspace) -> Result<(), SandboxError> {
        if self.engine.config.upload.is_some() {
            return self.upload_by_command(workspace).await;
        }
        let enclosed = match self.engine.has_input() {
            true => None,
            false => {
                let mut tar = Vec::new();
                self.pack(workspace, &mut tar).await?;
                Some(BASE64_STANDARD.encode(tar))
            }
        };
        let mut tries = Tries::default();
        let talked = loop {
            match self.unpack(workspace, enclosed.as_deref()).await {
                Ok(talked) => break talked,
                Err(failed) => tries.again(failed).await?,
            }
        };
        self.settle();
        succeeded(&talked, "cannot unpack the workspace in the sandbox")
    }

    async fn remove(&mut self, pattern: &str) -> Result<(), SandboxError> {
        let path = inside(Utf8Path::new(pattern))?;
        if path.as_str().is_empty() {
            return Ok(());
        }
        let fixed: Utf8PathBuf = path
            .components()
            .take_while(|part| !is_pattern(part.as_str()))
            .collect();
        let mut paths = vec![script::parted(&path)];
        if fixed != path {
            let found = self.matching(&path, &fixed).await?;
            paths.extend(found.iter().map(|found| script::parted(found)));
        }
        // Each call costs a process of the engine's, so this goes with the next one.
        self.delete.push(Removal { mark: mark(), paths });
        Ok(())
    }

    async fn exec(
        &mut self,
        command: &Command,
        output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<Exit, SandboxError> {
        self.commands += 1;
        let processes = format!("{}/{}/", self.name, self.commands);
        let engine = Arc::clone(&self.engine);
        let earlier = self.given_up.replace(processes.clone());
        self.daemons |= command.keeps_daemons;
        let delete = self.delete.clone();
        let mut tries = Tries::default();
        let talked = loop {
            let mark = mark();
            let preamble = Preamble {
                mark: &mark,
                kill: earlier.as_deref(),
                delete: &delete,
            };
            let run = Run {
                processes: &processes,
                line: &command.line,
                env: &command.env,
                keeps_daemons: command.keeps_daemons,
                watched: engine.has_input(),
            };
            let script = script::run(&preamble, &run);
            let mut sink = Sink::Output(output);
            let talking = engine.talk(&self.values, &mark, &script, Input::Open, &mut sink);
            match talking.await {
                Ok(talked) => break talked,
                Err(failed) => tries.again(failed).await?,
            }
        };
        self.settle();
        Ok(Exit::Code(talked.status))
    }

    async fn download(
        &mut self,
        from: &Utf8Path,
        into: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<Option<()>, SandboxError> {
        let path = inside(from)?;
        let by_command = self.engine.config.download.is_some();
        let mut sink = Sink::Writer(into);
        let talked = self
            .tell(&mut sink, |preamble| {
                script::look_at(preamble, &path, !by_command)
            })
            .await?;
        let directory = match talked.word.split_once(' ') {
            Some(("file" | "dir", directory)) => directory,
            Some(("outside", _)) => {
                return Err(SandboxError::new(format!(
                    "cannot bring `{from}` out of the sandbox: it leads out of the workspace"
                )));
            }
            _ => return Ok(None),
        };
        succeeded(&talked, &format!("cannot bring `{from}` out of the sandbox"))?;
        if by_command {
            self.download_by_command(directory, &path, into).await?;
        }
        Ok(Some(()))
    }

    async fn full_disk(&mut self) -> Option<String> {
        let mut left = Vec::new();
        let mut sink = Sink::Memory(&mut left);
        // What cannot be looked at says nothing.
        self.tell(&mut sink, script::look_at_disk).await.ok()?;
        full(&String::from_utf8_lossy(&left))
    }

    async fn stop(self: Box<Self>) -> Result<(), SandboxError> {
        if self.daemons || self.given_up.is_some() {
            self.engine.halt(&self.values).await;
        }
        self.engine.delete(&self.run_id, &self.name, &self.id).await?;
        self.engine.live().remove(&self.id);
        Ok(())
    }
}

impl CommandSandbox {
    fn preamble<'a>(&'a self, mark: &'a str) -> Preamble<'a> {
        Preamble {
            mark,
            kill: self.given_up.as_deref(),
            delete: &self.delete,
        }
    }

    /// What was to be done first is done.
    fn settle(&mut self) {
        self.given_up = None;
        self.delete.clear();
    }

    /// Runs a script, again where the engine could not do it now.
    async fn tell(
        &mut self,
        sink: &mut Sink<'_>,
        script: impl Fn(&Preamble<'_>) -> String,
    ) -> Result<Talked, SandboxError> {
        let mut tries = Tries::default();
        loop {
            let mark = mark();
            let script = script(&self.preamble(&mark));
            let talking = self.engine.talk(&self.values, &mark, &script, Input::Open, sink);
            match talking.await {
                Ok(talked) => {
                    self.settle();
                    return Ok(talked);
                }
                Err(failed) => tries.again(failed).await?,
            }
        }
    }

    /// What there is in the sandbox that a pattern matches, all of it below `fixed`.
    async fn matching(
        &mut self,
        pattern: &Utf8Path,
        fixed: &Utf8Path,
    ) -> Result<Vec<Utf8PathBuf>, SandboxError> {
        let glob = path_glob(pattern.as_str())
            .map_err(|error| SandboxError::new(format!("cannot delete `{pattern}`: {error}")))?
            .compile_matcher();
        let mut found = Vec::new();
        let talked = self
            .tell(&mut Sink::Memory(&mut found), |preamble| {
                script::list(preamble, fixed)
            })
            .await?;
        succeeded(&talked, "cannot look through the sandbox")?;
        // A name that is not UTF-8 cannot be written in a pattern.
        let found = found
            .split(|byte| *byte == 0)
            .filter_map(|path| std::str::from_utf8(path).ok());
        Ok(found
            .map(|path| fixed.join(path.trim_start_matches("./")))
            .filter(|path| glob.is_match(path))
            .collect())
    }

    /// Where the workspace is in the sandbox.
    async fn workspace(&mut self) -> Result<String, SandboxError> {
        let mut nowhere = Vec::new();
        let mut sink = Sink::Memory(&mut nowhere);
        Ok(self.tell(&mut sink, script::look_around).await?.word)
    }

    /// Unpacks the workspace, once: as a stream, or as a part of the script.
    async fn unpack(&self, workspace: &Workspace, enclosed: Option<&str>) -> Result<Talked, Failed> {
        let mark = mark();
        let preamble = self.preamble(&mark);
        let mut nowhere = Vec::new();
        let mut sink = Sink::Memory(&mut nowhere);
        if let Some(enclosed) = enclosed {
            let script = script::unpack_enclosed(&preamble, enclosed);
            let talking = self
                .engine
                .talk(&self.values, &mark, &script, Input::Open, &mut sink);
            return talking.await;
        }
        let (sender, receiver) = tokio::io::duplex(TAR_BUFFER);
        let script = script::unpack(&preamble);
        let input = Input::Stream(receiver);
        let talking = self.engine.talk(&self.values, &mark, &script, input, &mut sink);
        match tokio::join!(pack(workspace, sender), talking) {
            // With nobody to take it, the rest of the tar is not made: the other side knows why.
            (Err(error), _) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(Failed::for_good(unpacked(error)))
            }
            (_, talked) => talked,
        }
    }

    async fn pack(&self, workspace: &Workspace, into: &mut Vec<u8>) -> Result<(), SandboxError> {
        let workspace = workspace.clone();
        let packing = move || pack::pack(&workspace, "".into(), pack::ROOT, Vec::new());
        *into = blocking(packing).await.map_err(unpacked)?;
        Ok(())
    }

    async fn upload_by_command(&mut self, workspace: &Workspace) -> Result<(), SandboxError> {
        let Some(template) = self.engine.config.upload.clone() else {
            return Ok(());
        };
        let directory = self.workspace().await?;
        let file = self.engine.private_file(&mark()).map_err(unpacked)?;
        let (workspace, into) = (workspace.clone(), file.create().map_err(unpacked)?);
        let into = std::io::BufWriter::new(into);
        blocking(move || pack::pack(&workspace, "".into(), pack::ROOT, into))
            .await
            .map_err(unpacked)?;
        let values = [("dir", directory.as_str()), ("file", file.path().as_str())];
        let values = Engine::with(&self.values, &values);
        let engine = &self.engine;
        engine
            .call("upload", &template, &values, Some(file.path()))
            .await?;
        Ok(())
    }

    async fn download_by_command(
        &mut self,
        directory: &str,
        path: &Utf8Path,
        into: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<(), SandboxError> {
        let Some(template) = self.engine.config.download.clone() else {
            return Ok(());
        };
        let stored = |error| SandboxError::io(format!("cannot store what `{path}` holds"), error);
        let file = self.engine.private_file(&mark()).map_err(stored)?;
        // Its entries are named from its last component on.
        let (_, name) = script::parted(path);
        let values = [
            ("dir", directory),
            ("file", file.path().as_str()),
            ("path", name.as_str()),
        ];
        let values = Engine::with(&self.values, &values);
        if template.uses("file") {
            let engine = &self.engine;
            engine.call("download", &template, &values, None).await?;
            let mut written = fs_err::tokio::File::open(file.path()).await.map_err(stored)?;
            tokio::io::copy(&mut written, into).await.map_err(stored)?;
            return Ok(());
        }
        let line = Engine::line(&template, &values)?;
        let mut process = self
            .engine
            .start("download", &line, std::process::Stdio::null())?;
        while let Some(chunk) = process.chunk().await {
            into.write_all(&chunk).await.map_err(stored)?;
        }
        let ended = process.end().await;
        match ended.code {
            Some(0) => Ok(()),
            _ => Err(Failed::ended("download", &ended, "").error),
        }
    }
}

/// Packs the workspace into a stream.
async fn pack(workspace: &Workspace, into: tokio::io::DuplexStream) -> std::io::Result<()> {
    let workspace = workspace.clone();
    let into = SyncIoBridge::new(into);
    bridged(move || pack::pack(&workspace, "".into(), pack::ROOT, into).map(drop)).await?
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(std::io::Error::other(error)))
}

fn unpacked(error: std::io::Error) -> SandboxError {
    SandboxError::io("cannot pack the workspace", error)
}

fn succeeded(talked: &Talked, what: &str) -> Result<(), SandboxError> {
    match talked.status {
        0 => Ok(()),
        _ => Err(SandboxError::new(crate::aggregate::with_last_lines(
            what,
            &talked.said,
        ))),
    }
}
