//! What a try brings out of its sandbox, and what of that nobody may find.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use async_trait::async_trait;
use camino::Utf8Path;
use tempfile::TempDir;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};

use super::engine::PASS;
use super::{Job, config, config_of, job, pair};
use crate::config::template::Values;
use crate::model::Boot;
use crate::plan::Experience;
use crate::runner::collect::{self, Paths};
use crate::sandbox::{Command, Exit, Sandbox, SandboxError, Workspace};

/// A sandbox in which every path is a file with a result.
#[derive(Default)]
struct Full {
    /// Looks into this directory while a download is under way; what was found there.
    watched: Option<(TempDir, Vec<String>)>,
    /// After a download nothing is done on the disk until somebody says so here; it is told when that begins.
    held_up: Option<(Receiver<()>, oneshot::Sender<()>)>,
}

fn names(directory: &TempDir) -> Vec<String> {
    let entries = fs_err::read_dir(directory.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[async_trait]
impl Sandbox for Full {
    fn name(&self) -> &str {
        "full"
    }

    fn boot(&self) -> Boot {
        Boot::Cold
    }

    fn confinement(&self) -> Vec<String> {
        Vec::new()
    }

    async fn upload(&mut self, _: &Workspace) -> Result<(), SandboxError> {
        Ok(())
    }

    async fn remove(&mut self, _: &str) -> Result<(), SandboxError> {
        Ok(())
    }

    async fn exec(&mut self, _: &Command, _: &mpsc::Sender<Vec<u8>>) -> Result<Exit, SandboxError> {
        Ok(Exit::Code(0))
    }

    async fn download(
        &mut self,
        from: &Utf8Path,
        into: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<Option<()>, SandboxError> {
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(PASS.len() as u64);
        header.set_mode(0o644);
        archive
            .append_data(&mut header, from.file_name().unwrap(), PASS.as_bytes())
            .unwrap();
        into.write_all(&archive.into_inner().unwrap()).await.unwrap();
        into.flush().await.unwrap();
        if let Some((directory, found)) = &mut self.watched {
            found.extend(names(directory));
        }
        if let Some((go_on, begun)) = self.held_up.take() {
            tokio::task::spawn_blocking(move || {
                begun.send(()).unwrap();
                go_on.recv().unwrap();
            });
        }
        Ok(Some(()))
    }

    async fn stop(self: Box<Self>) -> Result<(), SandboxError> {
        Ok(())
    }
}

/// An attempt that leaves a result, or else a file to be kept.
fn leaving(result: bool) -> (Arc<Job>, Paths) {
    let mut config = config("");
    let kept = "version: 1\nsuite: { pairs: [] }\nattempt: { command: agent, format: exit-code, keep: { path: notes.txt } }\n";
    if !result {
        config.attempt = config_of(kept).attempt;
    }
    let job = job(&config, &[pair(1)], &Experience::default());
    let paths = Paths::of(&job.attempt, &Values::default()).unwrap();
    (Arc::new(job), paths)
}

#[tokio::test]
async fn what_is_not_redacted_yet_is_never_a_file_that_could_stay() {
    for result in [true, false] {
        let (job, paths) = leaving(result);
        let directory = TempDir::new().unwrap();
        let path = Utf8Path::from_path(directory.path()).unwrap().to_owned();
        let mut sandbox = Full {
            watched: Some((directory, Vec::new())),
            ..Full::default()
        };
        assert!(collect::collect(&mut sandbox, &paths, &job, &path).await.is_ok());
        let (directory, found) = sandbox.watched.unwrap();
        assert_eq!(found, [""; 0]);
        assert_eq!(names(&directory), [if result { "result.json" } else { "files" }]);
    }
}

#[test]
fn a_try_that_is_over_writes_nothing_more() {
    for result in [true, false] {
        let (job, paths) = leaving(result);
        let directory = TempDir::new().unwrap();
        let path = Utf8Path::from_path(directory.path()).unwrap();
        // One thread for the disk: whatever is asked of it waits for what was asked before.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let (go_on, wait) = channel();
            let (begun, begins) = oneshot::channel();
            let mut sandbox = Full {
                held_up: Some((wait, begun)),
                ..Full::default()
            };
            tokio::select! {
                biased;
                _ = collect::collect(&mut sandbox, &paths, &job, path) => panic!("it waits for the disk"),
                begun = begins => begun.unwrap(),
            }
            go_on.send(()).unwrap();
            tokio::task::spawn_blocking(|| ()).await.unwrap();
        });
        assert_eq!(names(&directory), [""; 0]);
    }
}
