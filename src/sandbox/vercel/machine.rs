//! A sandbox as the runner has it: one machine, its commands one after another, its files in and out.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use flate2::write::GzDecoder;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{SetOnce, mpsc};
use tokio::time::Instant;

use super::checkout::check_out;
use super::error::VercelError;
use super::printed::Printed;
use super::script::{self, Script};
use super::session::{Output, Session, Start};
use super::{Engine, Started};
use crate::glob::{is_pattern, path_glob};
use crate::model::{Boot, ErrorClass};
use crate::sandbox::disk::full;
use crate::sandbox::limit::Admission;
use crate::sandbox::path::inside;
use crate::sandbox::{Command, Exit, Sandbox, SandboxError, Workspace};

/// What of an archive is unpacked at once: it may grow a thousandfold.
const PIECE: usize = 4 * 1024;

/// What every command's environment begins with; PATH and HOME are the machine's own.
const ENVIRONMENT: [(&str, &str); 2] = [("LANG", "C.UTF-8"), ("TMPDIR", "/tmp")];

/// A machine.
pub(super) struct Machine {
    engine: Arc<Engine>,
    name: String,
    session: Session,
    /// The snapshot that it started from, or why from none.
    snapshot: Result<String, Option<String>>,
    /// Commands that were started.
    commands: u32,
    /// A command that nobody waits for any more: killed before anything else is done.
    abandoned: Option<Abandoned>,
    /// Paths that are deleted before anything else is done: together with it, for a request is dear.
    to_remove: Vec<String>,
    /// What was left of the disk after the last command, as it was told, where it was.
    left: Option<String>,
    _place: Arc<Admission>,
}

/// A command that was started, perhaps.
struct Abandoned {
    /// Our id of it.
    ours: String,
    /// The API's, once that has answered.
    theirs: Option<String>,
    /// Paths that it deletes before it begins.
    removes: Vec<String>,
}

impl Machine {
    pub(super) fn new(engine: Arc<Engine>, name: String, started: Started, place: Arc<Admission>) -> Self {
        Self {
            engine,
            name,
            session: started.session,
            snapshot: started.snapshot,
            commands: 0,
            abandoned: None,
            to_remove: Vec::new(),
            left: None,
            _place: place,
        }
    }

    /// Kills the command that was abandoned, with all that it has started.
    async fn settle(&mut self) -> Result<(), SandboxError> {
        let Some(abandoned) = &self.abandoned else {
            return Ok(());
        };
        let client = &self.engine.account.client;
        if let Some(theirs) = &abandoned.theirs {
            // It may have ended meanwhile; what is left of it is found by its mark.
            let _ = self.session.kill(client, theirs).await;
        }
        let sweep = Script::sweep(&abandoned.ours);
        let what = "kill what a command has left";
        let swept = self.session.script(client, what, &sweep, &[], true).await;
        let swept = swept.map_err(VercelError::in_sandbox)?;
        let has_run = swept.stdout.trim() == script::HAS_RUN;
        let removes = self.abandoned.take().map(|abandoned| abandoned.removes);
        if !has_run {
            self.to_remove.splice(0..0, removes.unwrap_or_default());
        }
        Ok(())
    }

    /// Runs a command to its end, and says when it has begun: once the service has answered that it has.
    async fn run(
        &mut self,
        command: &Command,
        output: &mut Output<'_>,
        begun: &SetOnce<Instant>,
    ) -> Result<Exit, SandboxError> {
        self.settle().await?;
        self.commands += 1;
        self.left = None;
        let id = format!("{}-{}", self.name, self.commands);
        let mut env: Vec<(String, String)> = ENVIRONMENT
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        env.extend(command.env.iter().cloned());
        let removes = std::mem::take(&mut self.to_remove);
        let start = Start {
            id: &id,
            script: Script::run(&id, command.keeps_daemons, &removes, &command.line),
            env,
        };
        // Whoever drops this leaves a command behind, whether its start was answered or not.
        let abandoned = self.abandoned.insert(Abandoned {
            ours: id.clone(),
            theirs: None,
            removes,
        });
        let mut started = |theirs: &str| {
            abandoned.theirs = Some(theirs.to_owned());
            // Of a command that is followed again it is known already.
            let _ = begun.set(Instant::now());
        };
        let client = &self.engine.account.client;
        let code = match command.keeps_daemons {
            true => {
                self.session
                    .run_attached(client, start, output, &mut started)
                    .await
            }
            false => self.session.run(client, start, output, &mut started).await,
        };
        let mut code = code.map_err(VercelError::in_sandbox)?;
        if code == script::STARTED_BEFORE
            && let Some(first) = self
                .session
                .first_of(client, &id, output, started)
                .await
                .map_err(VercelError::in_sandbox)?
        {
            code = first;
        }
        self.exit(&id, code).await
    }

    /// The exit of a command that ended with this code.
    async fn exit(&mut self, id: &str, code: i32) -> Result<Exit, SandboxError> {
        let unable_to = match code {
            script::STARTED_BEFORE => Some("start the command in the sandbox"),
            script::NOT_REMOVED => Some("delete an old result from the sandbox"),
            _ => None,
        };
        if let Some(what) = unable_to
            && !self.has_run(id).await?
        {
            return Err(self.unable_to(what).await);
        }
        self.abandoned = None;
        Ok(Exit::Code(code))
    }

    /// The exit of the command that its limit has overtaken, where it ended in time and only the news of that is late.
    async fn late_exit(
        &mut self,
        limit: Duration,
        output: &mut Output<'_>,
    ) -> Result<Option<Exit>, SandboxError> {
        let Some(Abandoned {
            ours,
            theirs: Some(theirs),
            ..
        }) = &self.abandoned
        else {
            return Ok(None);
        };
        let (ours, theirs) = (ours.clone(), theirs.clone());
        let engine = Arc::clone(&self.engine);
        let client = &engine.account.client;
        let found = match self.session.look_at(client, &theirs).await {
            Ok(found) => found,
            // Nobody says, and its time is over: it is killed, and then asked after once more.
            Err(_) => {
                self.settle().await?;
                let found = self.session.look_at(client, &theirs).await;
                found.map_err(VercelError::in_sandbox)?
            }
        };
        let was_killed = self.abandoned.is_none();
        let in_time = match found.took() {
            Some(took) => took <= limit,
            None => !was_killed,
        };
        match found.exit_code {
            Some(code) if in_time && code != script::STARTED_BEFORE => {
                self.session.rest(client, &theirs, output).await;
                self.exit(&ours, code).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    async fn script(&self, what: &str, script: &Script) -> Result<Printed, SandboxError> {
        let client = &self.engine.account.client;
        let printed = self.session.script(client, what, script, &[], false).await;
        printed.map_err(VercelError::in_sandbox)
    }

    /// The failure of a script of ours, which a full disk explains.
    async fn unable_to(&mut self, what: &str) -> SandboxError {
        let full = self.full_disk().await;
        let why = full.as_ref().map_or(String::new(), |full| format!(": {full}"));
        SandboxError {
            class: full.map(|_| ErrorClass::OutOfDisk),
            ..SandboxError::new(format!("cannot {what}{why}"))
        }
    }

    /// Whether a command was really started: what a script of ours ends with, a command may end with too.
    async fn has_run(&self, id: &str) -> Result<bool, SandboxError> {
        let path = format!("{}/{id}/ran", script::DIRECTORY);
        let found = self.session.read(&self.engine.account.client, &path).await;
        Ok(found.map_err(VercelError::in_sandbox)?.is_some())
    }
}

#[async_trait]
impl Sandbox for Machine {
    fn name(&self) -> &str {
        &self.name
    }

    fn boot(&self) -> Boot {
        match self.snapshot {
            Ok(_) => Boot::Warm,
            Err(_) => Boot::Cold,
        }
    }

    fn notes(&self) -> Vec<String> {
        match &self.snapshot {
            Ok(id) => vec![format!("warm boot: from snapshot `{id}`")],
            Err(Some(why)) => vec![format!("cold boot: {why}")],
            Err(None) => Vec::new(),
        }
    }

    fn confinement(&self) -> Vec<String> {
        let vcpus = self.engine.config.vcpus;
        vec![format!("a machine of its own at Vercel, {vcpus} vCPUs")]
    }

    async fn upload(&mut self, workspace: &Workspace) -> Result<(), SandboxError> {
        let engine = &self.engine;
        if let Some(repository) = engine.fetched() {
            return check_out(
                &engine.account.client,
                &self.session,
                repository,
                self.snapshot.is_ok(),
                engine.config.submodules,
            )
            .await;
        }
        if workspace.files.is_empty() {
            return Ok(());
        }
        let archive = engine.archives.of(workspace, &self.session.cwd).await?;
        let written = self.session.write(&engine.account.client, archive, "/").await;
        written.map_err(VercelError::in_sandbox)
    }

    async fn remove(&mut self, pattern: &str) -> Result<(), SandboxError> {
        let relative = inside(Utf8Path::new(pattern))?;
        if relative.as_str().is_empty() {
            return Ok(());
        }
        self.to_remove.push(relative.to_string());
        let fixed: Utf8PathBuf = relative
            .components()
            .take_while(|part| !is_pattern(part.as_str()))
            .collect();
        if fixed == relative {
            return Ok(());
        }
        self.settle().await?;
        let failed =
            |why: String| SandboxError::new(format!("cannot delete `{pattern}` from the sandbox: {why}"));
        let glob = path_glob(relative.as_str()).map_err(|error| failed(error.to_string()))?;
        let glob = glob.compile_matcher();
        let listed = self
            .script("list the sandbox's files", &Script::list(&fixed))
            .await?;
        match listed.code {
            0 => {}
            script::ABSENT => return Ok(()),
            _ => return Err(failed(listed.why())),
        }
        let paths = listed.decoded(0).map_err(|error| failed(error.to_string()))?;
        let paths = paths
            .split(|byte| *byte == 0)
            .filter_map(|path| std::str::from_utf8(path).ok());
        for path in paths {
            // A path that is not plain was not printed by our script.
            if let Ok(path) = inside(Utf8Path::new(path))
                && glob.is_match(&path)
            {
                self.to_remove.push(path.into_string());
            }
        }
        Ok(())
    }

    async fn exec(
        &mut self,
        command: &Command,
        output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<Exit, SandboxError> {
        self.run(command, &mut Output::new(output), &SetOnce::new()).await
    }

    async fn exec_within(
        &mut self,
        limit: Duration,
        command: &Command,
        output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<Option<Exit>, SandboxError> {
        let (begun, mut output) = (SetOnce::new(), Output::new(output));
        let over = async { tokio::time::sleep_until(*begun.wait().await + limit).await };
        tokio::select! {
            biased;
            exit = self.run(command, &mut output, &begun) => return exit.map(Some),
            () = over => {}
        }
        self.late_exit(limit, &mut output).await
    }

    async fn download(
        &mut self,
        from: &Utf8Path,
        into: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<Option<()>, SandboxError> {
        let relative = inside(from)?;
        self.settle().await?;
        let failed =
            |why: String| SandboxError::new(format!("cannot bring `{from}` out of the sandbox: {why}"));
        let packing = Script::pack(&relative, &self.to_remove);
        let packed = self.script("pack files of the sandbox", &packing).await?;
        let mut lines = packed.stdout.lines();
        self.left = lines.next().map(str::to_owned);
        match packed.code {
            0 => {}
            script::ABSENT => return Ok(None),
            script::OUTSIDE => return Err(failed("it leads out of the workspace".to_owned())),
            _ => return Err(failed(packed.why())),
        }
        self.to_remove.clear();
        let size = lines.next().map_or("", str::trim);
        let mut unpacked = Unpacked::new(into);
        if size == script::FOLLOWS {
            let bytes = packed.decoded(2).map_err(|error| failed(error.to_string()))?;
            unpacked
                .take(&bytes)
                .await
                .map_err(|error| not_stored(from, error))?;
        } else {
            let unknown = |_| failed("the archive's size is not known".to_owned());
            let size: u64 = size.parse().map_err(unknown)?;
            let path = format!("{}/packed", script::DIRECTORY);
            let file = self.session.read(&self.engine.account.client, &path).await;
            let file = file.map_err(VercelError::in_sandbox)?;
            let mut file = file.ok_or_else(|| failed("the archive is gone".to_owned()))?;
            let mut seen = 0;
            while let Some(bytes) = file.next().await.map_err(VercelError::in_sandbox)? {
                seen += bytes.len() as u64;
                unpacked
                    .take(&bytes)
                    .await
                    .map_err(|error| not_stored(from, error))?;
            }
            if seen != size {
                return Err(failed("the archive is not whole".to_owned()));
            }
        }
        unpacked.finish().await.map_err(|error| not_stored(from, error))?;
        Ok(Some(()))
    }

    async fn full_disk(&mut self) -> Option<String> {
        if self.left.is_none() {
            // What cannot be looked at says nothing.
            self.settle().await.ok()?;
            let looked = self.script("look at the sandbox's disk", &Script::left()).await;
            self.left = Some(looked.ok()?.stdout);
        }
        full(self.left.as_ref()?)
    }

    async fn stop(self: Box<Self>) -> Result<(), SandboxError> {
        let deleted = self
            .engine
            .account
            .reaper
            .delete(&self.name, Some(&self.session))
            .await;
        deleted.map(drop).map_err(VercelError::in_sandbox)
    }
}

fn not_stored(from: &Utf8Path, error: std::io::Error) -> SandboxError {
    SandboxError::io(format!("cannot store what `{from}` holds"), error)
}

/// Unpacks a compressed archive as it comes, piece by piece.
struct Unpacked<'a> {
    decoder: GzDecoder<Vec<u8>>,
    into: &'a mut (dyn AsyncWrite + Send + Unpin),
}

impl<'a> Unpacked<'a> {
    fn new(into: &'a mut (dyn AsyncWrite + Send + Unpin)) -> Self {
        Self {
            decoder: GzDecoder::new(Vec::new()),
            into,
        }
    }

    async fn take(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        for piece in bytes.chunks(PIECE) {
            self.decoder.write_all(piece)?;
            self.pass().await?;
        }
        Ok(())
    }

    async fn finish(mut self) -> std::io::Result<()> {
        self.decoder.try_finish()?;
        self.pass().await?;
        self.into.flush().await
    }

    async fn pass(&mut self) -> std::io::Result<()> {
        let unpacked = std::mem::take(self.decoder.get_mut());
        self.into.write_all(&unpacked).await
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::Unpacked;

    async fn unpacked(archive: &[u8]) -> std::io::Result<Vec<u8>> {
        let mut into = Vec::new();
        let mut unpacked = Unpacked::new(&mut into);
        unpacked.take(archive).await?;
        unpacked.finish().await?;
        Ok(into)
    }

    #[tokio::test]
    async fn an_archive_that_is_not_whole_is_none() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(b"what a tar holds").unwrap();
        let archive = encoder.finish().unwrap();
        assert_eq!(unpacked(&archive).await.unwrap(), b"what a tar holds");
        for length in 0..archive.len() {
            assert!(unpacked(&archive[..length]).await.is_err(), "{length}");
        }
    }
}
