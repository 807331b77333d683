//! An attempt's `output.log`: secrets out, a bounded size with head and tail kept, and its last lines at hand.

use std::io::{self, Write as _};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use tokio::task::JoinHandle;

use crate::redact::{RedactedStream, Redactor};

/// Most bytes kept of the beginning.
const HEAD: u64 = 4 << 20;
/// At least so many bytes are kept of the end, at most twice as many.
const TAIL: u64 = 2 << 20;
/// Bytes at hand for messages.
const LAST: usize = 4096;

/// Writes the output of one try. Between two writes no file is open: of attempts there may be more than of those.
pub(super) struct OutputLog<'r> {
    path: Utf8PathBuf,
    stream: RedactedStream<'r>,
    head_bytes: u64,
    /// The end goes to two files in turn; the older one is emptied when the newer is full.
    tail: Tail,
    last: Vec<u8>,
    /// A write that nobody may have waited for.
    writing: Option<JoinHandle<io::Result<()>>>,
}

#[derive(Clone, Copy, Default)]
struct Tail {
    newer_bytes: u64,
    older_bytes: u64,
    left_out: u64,
}

impl<'r> OutputLog<'r> {
    /// The log of a try that has printed nothing yet; it has its final name once it is finished.
    pub(super) fn new(path: &Utf8Path, redactor: &'r Redactor) -> Self {
        Self {
            path: path.to_owned(),
            stream: redactor.stream(),
            head_bytes: 0,
            tail: Tail::default(),
            last: Vec::new(),
            writing: None,
        }
    }

    /// Adds output.
    pub(super) async fn push(&mut self, chunk: &[u8]) -> io::Result<()> {
        let clean = self.stream.push(chunk);
        self.write(&clean).await
    }

    /// Ends the log; gives a note where output was left out.
    pub(super) async fn finish(mut self, redactor: &'r Redactor) -> io::Result<Finished> {
        self.written().await?;
        let held = std::mem::replace(&mut self.stream, redactor.stream()).finish();
        self.write(&held).await?;
        let left_out = self.tail.left_out;
        let (path, head_bytes, tail) = (self.path.clone(), self.head_bytes, self.tail);
        self.writing = Some(tokio::task::spawn_blocking(move || join(&path, head_bytes, tail)));
        self.written().await?;
        Ok(Finished {
            last: String::from_utf8_lossy(&self.last).into_owned(),
            note: (left_out > 0).then(|| format!("{left_out} bytes of output were left out")),
        })
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.remember(bytes);
        let room = usize::try_from(HEAD - self.head_bytes).unwrap_or(usize::MAX);
        let (head, rest) = bytes.split_at(bytes.len().min(room));
        // Counted first: a write goes on where nobody waits for it any more.
        if !head.is_empty() {
            let before = self.head_bytes;
            self.head_bytes += head.len() as u64;
            self.append("partial", before, head).await?;
        }
        if !rest.is_empty() {
            let before = self.tail.newer_bytes;
            self.tail.newer_bytes += rest.len() as u64;
            self.append("newer", before, rest).await?;
            self.turn_tail()?;
        }
        Ok(())
    }

    /// Makes the newer end the older one, where it is full.
    fn turn_tail(&mut self) -> io::Result<()> {
        let tail = &mut self.tail;
        if tail.newer_bytes >= TAIL {
            tail.left_out += tail.older_bytes;
            tail.older_bytes = std::mem::take(&mut tail.newer_bytes);
            fs::rename(part(&self.path, "newer"), part(&self.path, "older"))?;
        }
        Ok(())
    }

    /// Adds bytes to a part of the log that has `before`.
    async fn append(&mut self, name: &str, before: u64, bytes: &[u8]) -> io::Result<()> {
        let (path, bytes) = (part(&self.path, name), bytes.to_vec());
        self.writing = Some(tokio::task::spawn_blocking(move || {
            open(&path, before)?.write_all(&bytes)
        }));
        self.written().await
    }

    /// Waits for the write that is under way, which goes on though nobody waits for it.
    async fn written(&mut self) -> io::Result<()> {
        let Some(writing) = &mut self.writing else {
            return Ok(());
        };
        let written = writing.await.map_err(io::Error::other).flatten();
        self.writing = None;
        written
    }

    fn remember(&mut self, bytes: &[u8]) {
        self.last
            .extend_from_slice(&bytes[bytes.len().saturating_sub(LAST)..]);
        let surplus = self.last.len().saturating_sub(LAST);
        self.last.drain(..surplus);
    }
}

/// Opens a part of the log for more than the bytes that are in it. Where those are none, a run that was killed may have
/// left others.
fn open(path: &Utf8Path, before: u64) -> io::Result<fs::File> {
    match before {
        0 => fs::File::create(path),
        _ => fs::OpenOptions::new().append(true).create(true).open(path),
    }
}

/// Puts the parts of a log together, under its name.
fn join(path: &Utf8Path, head_bytes: u64, tail: Tail) -> io::Result<()> {
    let head = part(path, "partial");
    let mut log = open(&head, head_bytes)?;
    if tail.left_out > 0 {
        write!(log, "\n[evalwave: {} bytes left out]\n", tail.left_out)?;
    }
    for (name, bytes) in [("older", tail.older_bytes), ("newer", tail.newer_bytes)] {
        if bytes > 0 {
            let end = part(path, name);
            io::copy(&mut fs::File::open(&end)?, &mut log)?;
            fs::remove_file(end)?;
        }
    }
    fs::rename(head, path)
}

fn part(path: &Utf8Path, name: &str) -> Utf8PathBuf {
    path.with_extension(format!("log.{name}"))
}

/// What is known of a finished log.
#[derive(Default)]
pub(super) struct Finished {
    /// Its last few thousand bytes, as text.
    pub(super) last: String,
    /// Said to a reader where the log is not whole.
    pub(super) note: Option<String>,
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::OutputLog;
    use crate::redact::Redactor;

    #[tokio::test]
    async fn a_write_that_is_not_waited_for_is_kept_and_what_a_killed_run_left_is_not() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = Utf8Path::from_path(directory.path()).unwrap().join("output.log");
        fs_err::write(path.with_extension("log.partial"), "of a killed run\n").unwrap();
        let redactor = Redactor::default();
        let mut log = OutputLog::new(&path, &redactor);
        let push = log.push(b"said\n");
        // It has begun; then it is dropped.
        let _ = futures::poll!(Box::pin(push));
        assert_eq!(log.finish(&redactor).await.unwrap().last, "said\n");
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "said\n");
        assert_eq!(fs_err::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn a_try_that_prints_nothing_has_an_empty_log() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = Utf8Path::from_path(directory.path()).unwrap().join("output.log");
        let redactor = Redactor::default();
        let log = OutputLog::new(&path, &redactor);
        assert_eq!(log.finish(&redactor).await.unwrap().note, None);
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "");
    }
}
