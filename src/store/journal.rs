//! The journal: one line an event, written by one thread that syncs many finished attempts at once.

use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::mpsc;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use tokio::sync::oneshot;

use super::StoreError;
use crate::model::event::JOURNAL_SCHEMA;
use crate::model::{Event, MOST_RUNS, Run};

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
        let journal = open(journal, true)?;
        let sandboxes = open(sandboxes, true)?;
        // Held while the run goes on; where the file system has no locks, nobody is kept out.
        let _ = sandboxes.file().try_lock();
        Self::write_to(Lines::new(journal, 0), Lines::new(sandboxes, 0))
    }

    /// Goes on with a journal behind its first `whole` bytes: what follows them is a line that was cut off.
    pub(super) fn go_on(journal: &Utf8Path, whole: u64, sandboxes: &Utf8Path) -> Result<Self, StoreError> {
        let mut sandboxes = open(sandboxes, false)?;
        if matches!(
            sandboxes.file().try_lock(),
            Err(std::fs::TryLockError::WouldBlock)
        ) {
            let directory = journal.parent().unwrap_or(journal);
            return Err(StoreError::Running(directory.to_owned()));
        }
        let names = whole_lines(&mut sandboxes)?.len() as u64;
        let mut journal = open(journal, false)?;
        cut(&mut journal, whole)?;
        Self::write_to(Lines::new(journal, whole), Lines::new(sandboxes, names))
    }

    fn write_to(journal: Lines, sandboxes: Lines) -> Result<Self, StoreError> {
        let (lines, incoming) = mpsc::channel();
        std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || write_lines(journal, sandboxes, &incoming))?;
        Ok(Self { lines })
    }

    /// Returns when the event is written, and synced where it is a result.
    pub(super) async fn write(&self, event: &Event) -> Result<(), StoreError> {
        let written = self.send(event)?;
        written.await.map_err(|_| StoreError::JournalClosed)?
    }

    /// The same for a caller that nothing else waits for.
    pub(super) fn write_now(&self, event: &Event) -> Result<(), StoreError> {
        let written = self.send(event)?;
        written.blocking_recv().map_err(|_| StoreError::JournalClosed)?
    }

    fn send(&self, event: &Event) -> Result<oneshot::Receiver<Result<(), StoreError>>, StoreError> {
        let (done, written) = oneshot::channel();
        let line = Line {
            text: line(event)?,
            sandbox: matches!(
                event,
                Event::SandboxesAt { .. }
                    | Event::SandboxNamed { .. }
                    | Event::SandboxCreated { .. }
                    | Event::SandboxGone { .. }
            ),
            sync: matches!(
                event,
                Event::AttemptEnded { .. } | Event::RunEnded { .. } | Event::RunConcluded { .. }
            ),
            done,
        };
        self.lines.send(line).map_err(|_| StoreError::JournalClosed)?;
        Ok(written)
    }
}

/// An event as the journal has it.
fn line(event: &Event) -> Result<String, StoreError> {
    let mut text =
        serde_json::to_string(event).map_err(|error| StoreError::Io(std::io::Error::other(error)))?;
    text.push('\n');
    Ok(text)
}

/// Whether a run still writes these names of sandboxes.
pub(super) fn is_being_written(sandboxes: &Utf8Path) -> bool {
    let open = fs::OpenOptions::new().append(true).open(sandboxes);
    open.is_ok_and(|file| matches!(file.file().try_lock(), Err(std::fs::TryLockError::WouldBlock)))
}

/// Not for appending alone, which on Windows would forbid to take anything back.
fn open(path: &Utf8Path, new: bool) -> Result<fs::File, StoreError> {
    let mut options = fs::OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    let opened = options.create_new(new).open(path);
    opened.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => StoreError::Occupied(path.parent().unwrap_or(path).to_owned()),
        _ => StoreError::Io(error),
    })
}

/// The whole lines of a file. One that was cut off is removed: what is added must not continue it.
pub(super) fn whole_lines(file: &mut fs::File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    bytes.truncate(end.map_or(0, |end| end + 1));
    cut(file, bytes.len() as u64)?;
    Ok(bytes)
}

/// Ends a file after so many bytes, where the next ones are written.
fn cut(file: &mut fs::File, bytes: u64) -> std::io::Result<()> {
    file.set_len(bytes)?;
    file.seek(SeekFrom::Start(bytes)).map(drop)
}

/// A file of whole lines. What could not be written is taken back, so that no line is torn in the middle of the file, and
/// tried again with the next one: a disk that was full for a while costs nothing.
struct Lines {
    file: fs::File,
    /// Bytes of whole lines.
    length: u64,
    unwritten: Vec<u8>,
}

impl Lines {
    fn new(file: fs::File, length: u64) -> Self {
        Self {
            file,
            length,
            unwritten: Vec::new(),
        }
    }

    fn append<'a>(&mut self, lines: impl Iterator<Item = &'a str>) -> std::io::Result<()> {
        for line in lines {
            self.unwritten.extend_from_slice(line.as_bytes());
        }
        if let Err(error) = self.file.write_all(&self.unwritten) {
            cut(&mut self.file, self.length)?;
            return Err(error);
        }
        self.length += self.unwritten.len() as u64;
        // The plan makes the first line far longer than all others.
        self.unwritten = Vec::new();
        Ok(())
    }
}

/// Writes whatever has gathered, syncs once, and answers all; so a wave that ends together costs one sync.
fn write_lines(mut journal: Lines, mut sandboxes: Lines, incoming: &mpsc::Receiver<Line>) {
    while let Ok(first) = incoming.recv() {
        let batch: Vec<Line> = std::iter::once(first).chain(incoming.try_iter()).collect();
        let lines_of = |sandbox: bool| {
            let lines = batch.iter().filter(move |line| line.sandbox == sandbox);
            lines.map(|line| line.text.as_str())
        };
        let named = sandboxes.append(lines_of(true));
        let written = journal.append(lines_of(false)).and(named).and_then(|()| {
            if batch.iter().any(|line| line.sync) {
                journal.file.sync_data()
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

/// A run as its journal tells it.
#[derive(Debug)]
pub struct Replayed {
    /// The run.
    pub run: Run,
    /// Lines that cannot be read, from 1: what they told is missing. The last one may be cut off.
    pub broken: Vec<usize>,
    /// Bytes of whole lines.
    pub(super) whole: u64,
}

impl Replayed {
    /// How much of the journal cannot be read, in words; `None` where all can.
    pub fn unreadable(&self) -> Option<String> {
        let first = self.broken.first()?;
        let lines = match self.broken.len() {
            1 => "1 line".to_owned(),
            many => format!("{many} lines"),
        };
        Some(format!(
            "{lines} of its journal cannot be read, the first is line {first}: what was told there is missing"
        ))
    }
}

/// Reads a run back from its journal. Lines that cannot be read are passed over and named.
///
/// # Errors
/// A journal whose first line does not start a run, or that is of another version; disk errors.
pub fn replay(path: &Utf8Path) -> Result<Replayed, StoreError> {
    let mut events = Events::open(path)?;
    let mut run = start(path, &mut events)?;
    for event in &mut events {
        run.apply(&event?);
    }
    Ok(Replayed {
        run,
        broken: events.broken,
        whole: events.whole,
    })
}

/// The name of the run that a journal is of.
pub(super) fn run_id(path: &Utf8Path) -> Result<String, StoreError> {
    Ok(start(path, &mut Events::open(path)?)?.id)
}

/// The run as the first line starts it.
fn start(path: &Utf8Path, events: &mut Events) -> Result<Run, StoreError> {
    let broken = |why: String| StoreError::Journal {
        path: Utf8PathBuf::from(path),
        why,
    };
    let other_version =
        |schema: &str| broken(format!("its version is `{schema}`, expected `{JOURNAL_SCHEMA}`"));
    match events.next().transpose()? {
        Some(Event::RunStarted { schema, .. }) if schema != JOURNAL_SCHEMA => Err(other_version(&schema)),
        Some(Event::RunStarted {
            run_id,
            started_at,
            commit,
            plan,
            ..
        }) if events.line == 1 => match plan.runs {
            1..=MOST_RUNS => Ok(Run::new(&run_id, started_at, commit, *plan)),
            runs => Err(broken(format!(
                "its plan has {runs} attempts of each pair, expected 1 to {MOST_RUNS}"
            ))),
        },
        None if events.line == 0 => Err(StoreError::Nothing(path.parent().unwrap_or(path).to_owned())),
        _ => Err(match first_schema(path)? {
            Some(schema) => other_version(&schema),
            None => broken("its first line does not start a run".to_owned()),
        }),
    }
}

/// The version that a first line claims which this version cannot read.
fn first_schema(path: &Utf8Path) -> Result<Option<String>, StoreError> {
    let mut line = String::new();
    // A line that is no text claims nothing.
    let _ = BufReader::new(fs::File::open(path)?).read_line(&mut line);
    let value: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
    let schema = value.pointer("/run_started/schema");
    let schema = schema.and_then(|schema| schema.as_str()).map(str::to_owned);
    Ok(schema.filter(|schema| schema != JOURNAL_SCHEMA))
}

/// The events of a journal, read line by line, so that its size takes no memory.
pub(super) struct Events {
    file: BufReader<fs::File>,
    buffer: Vec<u8>,
    /// Lines read so far.
    line: usize,
    broken: Vec<usize>,
    whole: u64,
}

impl Events {
    pub(super) fn open(path: &Utf8Path) -> Result<Self, StoreError> {
        Ok(Self {
            file: BufReader::with_capacity(1 << 18, fs::File::open(path)?),
            buffer: Vec::new(),
            line: 0,
            broken: Vec::new(),
            whole: 0,
        })
    }
}

impl Iterator for Events {
    type Item = Result<Event, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.buffer.clear();
            match self.file.read_until(b'\n', &mut self.buffer) {
                Err(error) => return Some(Err(error.into())),
                Ok(0) => return None,
                Ok(_) if self.buffer.last() != Some(&b'\n') => {
                    // Cut off: nothing was ever told that rests on it.
                    return None;
                }
                Ok(read) => {
                    self.line += 1;
                    self.whole += read as u64;
                }
            }
            match serde_json::from_slice(&self.buffer) {
                Ok(event) => return Some(Ok(event)),
                Err(_) => self.broken.push(self.line),
            }
        }
    }
}
