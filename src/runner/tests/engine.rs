//! An engine in which every try follows a script, in paused time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use camino::Utf8Path;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::config::CommandLine;
use crate::model::{Boot, LeftSandbox, Whereabouts};
use crate::sandbox::{
    Backend, Capacity, Command, Exit, Ledger, Reaped, Reaper, Sandbox, SandboxError, SandboxSpec, Setup,
    Warm, Workspace,
};

/// How many sandboxes may be starting at once.
pub(super) const STARTING: usize = 64;

/// What a try does in the scripted engine.
#[derive(Clone, Copy, Debug)]
pub(super) enum Script {
    /// Its command takes so many seconds and leaves this result.
    Result(u64, &'static str),
    /// Its command takes so many seconds and leaves nothing.
    Nothing(u64),
    /// No sandbox can be had.
    NoSandbox,
    /// The result is lost on the way so many times.
    LostDownloads(usize, &'static str),
}

pub(super) const PASS: &str = r#"{"passed": true}"#;
pub(super) const FAIL: &str = r#"{"passed": false}"#;

/// Scripts by eval, attempt and try; what is not named passes after ten seconds.
#[derive(Default)]
pub(super) struct Engine {
    scripts: HashMap<(String, u32, u32), Script>,
    running: Arc<AtomicUsize>,
    pub(super) most_running: Arc<AtomicUsize>,
    pub(super) started: Arc<AtomicUsize>,
    starting: AtomicUsize,
    pub(super) most_starting: AtomicUsize,
    /// How long a sandbox takes to start.
    pub(super) takes: Duration,
    /// When sandboxes were gone.
    pub(super) freed: Arc<Mutex<Vec<Instant>>>,
    pub(super) reaped: Arc<AtomicUsize>,
    /// Why nothing can be made ready.
    unready: Option<&'static str>,
    /// Why its sandboxes cannot be deleted.
    pub(super) undeletable: Option<&'static str>,
    /// What its sandboxes say of themselves.
    pub(super) note: Option<&'static str>,
}

impl Engine {
    /// Nothing can be made ready for its sandboxes.
    pub(super) fn unready(mut self, why: &'static str) -> Self {
        self.unready = Some(why);
        self
    }

    pub(super) fn script(mut self, eval: &str, attempt: u32, try_number: u32, script: Script) -> Self {
        self.scripts
            .insert((eval.to_owned(), attempt, try_number), script);
        self
    }
}

impl Engine {
    /// With the scripts of another one, which go before its own.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.scripts.extend(other.scripts);
        self
    }
}

struct Scripted {
    name: String,
    scripts: HashMap<(String, u32, u32), Script>,
    left: Option<Script>,
    lost: usize,
    running: Arc<AtomicUsize>,
    freed: Arc<Mutex<Vec<Instant>>>,
    undeletable: Option<&'static str>,
    note: Option<&'static str>,
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.running.fetch_sub(1, Ordering::SeqCst);
        self.freed.lock().unwrap().push(Instant::now());
    }
}

fn broken(message: &str) -> SandboxError {
    SandboxError {
        class: None,
        message: message.to_owned(),
        source: None,
    }
}

#[async_trait]
impl Backend for Engine {
    fn capacity(&self) -> Capacity {
        Capacity {
            running: None,
            starting: STARTING,
        }
    }

    async fn prepare(
        &self,
        _: &Setup,
        _: &dyn Ledger,
        output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<Warm, SandboxError> {
        output.send(b"looking\n".to_vec()).await.unwrap();
        match self.unready {
            Some(why) => Err(broken(why)),
            None => Ok(Warm::Cold(None)),
        }
    }

    async fn start(&self, spec: &SandboxSpec, _: &dyn Ledger) -> Result<Box<dyn Sandbox>, SandboxError> {
        // Names end in pair, attempt and try.
        let numbers: Vec<u32> = spec
            .name
            .rsplit('-')
            .take(3)
            .map(|part| part.parse().unwrap())
            .collect();
        let eval = format!("e{}", numbers[2]);
        if let Some(Script::NoSandbox) = self.scripts.get(&(eval, numbers[1], numbers[0])) {
            return Err(broken("the engine is full"));
        }
        let starting = self.starting.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_starting.fetch_max(starting, Ordering::SeqCst);
        if !self.takes.is_zero() {
            tokio::time::sleep(self.takes).await;
        }
        self.starting.fetch_sub(1, Ordering::SeqCst);
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_running.fetch_max(running, Ordering::SeqCst);
        self.started.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(Scripted {
            name: spec.name.clone(),
            scripts: self.scripts.clone(),
            left: None,
            lost: 0,
            running: Arc::clone(&self.running),
            freed: Arc::clone(&self.freed),
            undeletable: self.undeletable,
            note: self.note,
        }))
    }

    fn reaper(&self) -> &dyn Reaper {
        self
    }
}

#[async_trait]
impl Reaper for Engine {
    fn whereabouts(&self) -> Whereabouts {
        Whereabouts::Local {
            temporary: "/nowhere".into(),
        }
    }

    async fn reap(&self, _run_id: &str, left: &[LeftSandbox]) -> Result<Reaped, SandboxError> {
        self.reaped.fetch_add(left.len(), Ordering::SeqCst);
        Ok(Reaped {
            deleted: left.len(),
            failed: Vec::new(),
        })
    }
}

#[async_trait]
impl Sandbox for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    fn boot(&self) -> Boot {
        Boot::Cold
    }

    fn confinement(&self) -> Vec<String> {
        self.left
            .map(|_| "by its script".to_owned())
            .into_iter()
            .collect()
    }

    fn notes(&self) -> Vec<String> {
        self.note.map(str::to_owned).into_iter().collect()
    }

    async fn upload(&mut self, _workspace: &Workspace) -> Result<(), SandboxError> {
        Ok(())
    }

    async fn remove(&mut self, _pattern: &str) -> Result<(), SandboxError> {
        Ok(())
    }

    async fn exec(
        &mut self,
        command: &Command,
        output: &mpsc::Sender<Vec<u8>>,
    ) -> Result<Exit, SandboxError> {
        let variable = |name: &str| {
            command
                .env
                .iter()
                .rev()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.clone())
                .unwrap()
        };
        let key = (
            variable("EVALWAVE_EVAL"),
            variable("EVALWAVE_ATTEMPT").parse().unwrap(),
            variable("EVALWAVE_TRY").parse().unwrap(),
        );
        assert!(matches!(command.line, CommandLine::Shell(_)));
        output
            .send(format!("{} {}\n", key.0, key.1).into_bytes())
            .await
            .unwrap();
        let script = self
            .scripts
            .get(&key)
            .copied()
            .unwrap_or(Script::Result(10, PASS));
        let seconds = match script {
            Script::Result(seconds, _) | Script::Nothing(seconds) => seconds,
            Script::NoSandbox | Script::LostDownloads(..) => 10,
        };
        self.left = Some(Script::Nothing(0));
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        self.left = Some(script);
        Ok(Exit::Code(0))
    }

    async fn download(
        &mut self,
        from: &Utf8Path,
        into: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<Option<()>, SandboxError> {
        let result = match self.left {
            Some(Script::Result(_, result)) => result,
            Some(Script::LostDownloads(times, result)) => {
                self.lost += 1;
                if self.lost <= times {
                    return Err(broken("the connection was reset"));
                }
                result
            }
            _ => return Ok(None),
        };
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(result.len() as u64);
        header.set_mode(0o644);
        archive
            .append_data(&mut header, from.file_name().unwrap(), result.as_bytes())
            .unwrap();
        into.write_all(&archive.into_inner().unwrap()).await.unwrap();
        Ok(Some(()))
    }

    async fn stop(self: Box<Self>) -> Result<(), SandboxError> {
        self.undeletable.map_or(Ok(()), |why| Err(broken(why)))
    }
}
