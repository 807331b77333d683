//! The journal: one line an event, written by one thread that syncs many finished attempts at once.

use std::io::Write as _;
use std::sync::mpsc;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use tokio::sync::oneshot;

use super::StoreError;
use crate::model::event::JOURNAL_SCHEMA;
use crate::model::{Event, Run};

/// Writes events; each caller waits until its own is safe.
#[derive(Debug)]
pub(super) struct Journal {
    lines: mpsc::Sender<Line>,
}

struct Line {
    text: String,
    /// What tells of sandboxes goes to its own file; a name does before the sandbox is created.
    sandbox: bool,
    /// It has to survive the machine's crash, not only ours.
    sync: bool,
    done: oneshot::Sender<Result<(), StoreError>>,
}

impl Journal {
    /// Creates both files; they must not be there yet.
    pub(super) fn create(journal: &Utf8Path, sandboxes: &Utf8Path) -> Result<Self, StoreError> {
        let journal = create_new(journal)?;
        let sandboxes = create_new(sandboxes)?;
        // Held while the run goes on; where the file system has no locks, nobody is kept out.
        let _ = sandboxes.file().try_lock();
        let (lines, incoming) = mpsc::channel();
        std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || write_lines(journal, sandboxes, &incoming))?;
        Ok(Self { lines })
    }

    /// Returns when the event is written, and synced where it is a result.
    pub(super) async fn write(&self, event: &Event) -> Result<(), StoreError> {
        let mut text =
            serde_json::to_string(event).map_err(|error| StoreError::Io(std::io::Error::other(error)))?;
        text.push('\n');
        let (done, written) = oneshot::channel();
        let line = Line {
            text,
            sandbox: matches!(
                event,
                Event::SandboxesAt { .. }
                    | Event::SandboxNamed { .. }
                    | Event::SandboxCreated { .. }
                    | Event::SandboxGone { .. }
            ),
            sync: matches!(event, Event::AttemptEnded { .. } | Event::RunEnded { .. }),
            done,
        };
        self.lines.send(line).map_err(|_| StoreError::JournalClosed)?;
        written.await.map_err(|_| StoreError::JournalClosed)?
    }
}

/// Whether a run still writes these names of sandboxes.
pub(super) fn is_being_written(sandboxes: &Utf8Path) -> bool {
    let open = fs::OpenOptions::new().append(true).open(sandboxes);
    open.is_ok_and(|file| matches!(file.file().try_lock(), Err(std::fs::TryLockError::WouldBlock)))
}

fn create_new(path: &Utf8Path) -> Result<fs::File, StoreError> {
    let opened = fs::OpenOptions::new().append(true).create_new(true).open(path);
    opened.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => StoreError::Occupied(path.parent().unwrap_or(path).to_owned()),
        _ => StoreError::Io(error),
    })
}

/// Writes whatever has gathered, syncs once, and answers all; so a wave that ends together costs one sync.
fn write_lines(mut journal: fs::File, mut sandboxes: fs::File, incoming: &mpsc::Receiver<Line>) {
    while let Ok(first) = incoming.recv() {
        let batch: Vec<Line> = std::iter::once(first).chain(incoming.try_iter()).collect();
        let text_of = |sandbox: bool| -> String {
            batch
                .iter()
                .filter(|line| line.sandbox == sandbox)
                .map(|line| line.text.as_str())
                .collect()
        };
        let written = sandboxes
            .write_all(text_of(true).as_bytes())
            .and_then(|()| journal.write_all(text_of(false).as_bytes()))
            .and_then(|()| {
                if batch.iter().any(|line| line.sync) {
                    journal.sync_data()
                } else {
                    Ok(())
                }
            });
        for line in batch {
            let answer = match &written {
                Ok(()) => Ok(()),
                Err(error) => Err(StoreError::Io(std::io::Error::new(
                    error.kind(),
                    error.to_string(),
                ))),
            };
            // A caller that was dropped does not wait for its answer.
            let _ = line.done.send(answer);
        }
    }
}

/// Reads a run back from its journal. A last line that was cut off in the middle is passed over.
///
/// # Errors
/// A journal that is empty, of another version, or broken before its last line; disk errors.
pub fn replay(path: &Utf8Path) -> Result<Run, StoreError> {
    let bytes = fs::read(path)?;
    let broken = |why: String| StoreError::Journal {
        path: Utf8PathBuf::from(path),
        why,
    };
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    // What follows the last newline is empty, or torn.
    let whole = &lines[..lines.len() - 1];
    let mut run: Option<Run> = None;
    for (at, line) in whole.iter().enumerate() {
        let event: Event = serde_json::from_slice(line)
            .map_err(|error| broken(format!("line {} is not an event ({error})", at + 1)))?;
        match (&mut run, event) {
            (
                None,
                Event::RunStarted {
                    schema,
                    run_id,
                    started_at,
                    commit,
                    plan,
                },
            ) => {
                if schema != JOURNAL_SCHEMA {
                    return Err(broken(format!(
                        "its version is `{schema}`, expected `{JOURNAL_SCHEMA}`"
                    )));
                }
                run = Some(Run::new(&run_id, started_at, commit, *plan));
            }
            (None, _) => return Err(broken("its first line does not start a run".to_owned())),
            (Some(run), event) => run.apply(&event),
        }
    }
    run.ok_or_else(|| broken("it is empty".to_owned()))
}
