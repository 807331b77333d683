//! An attempt's `output.log`: secrets out, a bounded size with head and tail kept, and its last lines at hand.

use camino::{Utf8Path, Utf8PathBuf};
use fs_err::tokio as fs;
use tokio::io::AsyncWriteExt as _;

use crate::redact::{RedactedStream, Redactor};

/// Most bytes kept of the beginning.
const HEAD: u64 = 4 << 20;
/// At least so many bytes are kept of the end, at most twice as many.
const TAIL: u64 = 2 << 20;
/// Bytes at hand for messages.
const LAST: usize = 4096;

/// Writes the output of one try.
pub(super) struct OutputLog<'r> {
    path: Utf8PathBuf,
    stream: RedactedStream<'r>,
    head: fs::File,
    head_bytes: u64,
    /// The end goes to two files in turn; the older one is emptied when the newer is full.
    tail: Option<Tail>,
    last: Vec<u8>,
}

struct Tail {
    newer: fs::File,
    newer_bytes: u64,
    older_bytes: u64,
    left_out: u64,
}

impl<'r> OutputLog<'r> {
    /// Starts the log; it has its final name once it is finished.
    pub(super) async fn create(path: &Utf8Path, redactor: &'r Redactor) -> std::io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            stream: redactor.stream(),
            head: fs::File::create(path.with_extension("log.partial")).await?,
            head_bytes: 0,
            tail: None,
            last: Vec::new(),
        })
    }

    /// Adds output.
    pub(super) async fn push(&mut self, chunk: &[u8]) -> std::io::Result<()> {
        let clean = self.stream.push(chunk);
        self.write(&clean).await
    }

    /// Ends the log; gives a note where output was left out.
    pub(super) async fn finish(mut self, redactor: &'r Redactor) -> std::io::Result<Finished> {
        let held = std::mem::replace(&mut self.stream, redactor.stream()).finish();
        self.write(&held).await?;
        let mut left_out = 0;
        if let Some(mut tail) = self.tail.take() {
            tail.newer.flush().await?;
            left_out = tail.left_out;
            if left_out > 0 {
                let mark = format!("\n[evalwave: {left_out} bytes left out]\n");
                self.head.write_all(mark.as_bytes()).await?;
            }
            for (part, bytes) in [("older", tail.older_bytes), ("newer", tail.newer_bytes)] {
                let path = self.part(part);
                if bytes > 0 {
                    let mut from = fs::File::open(&path).await?;
                    tokio::io::copy(&mut from, &mut self.head).await?;
                }
                if path.exists() {
                    fs::remove_file(&path).await?;
                }
            }
        }
        self.head.flush().await?;
        fs::rename(self.path.with_extension("log.partial"), &self.path).await?;
        Ok(Finished {
            last: String::from_utf8_lossy(&self.last).into_owned(),
            note: (left_out > 0).then(|| format!("{left_out} bytes of output were left out")),
        })
    }

    async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.remember(bytes);
        let room = usize::try_from(HEAD - self.head_bytes).unwrap_or(usize::MAX);
        let (head, rest) = bytes.split_at(bytes.len().min(room));
        if !head.is_empty() {
            self.head.write_all(head).await?;
            self.head_bytes += head.len() as u64;
        }
        if rest.is_empty() {
            Ok(())
        } else {
            self.write_tail(rest).await
        }
    }

    async fn write_tail(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let (newer, older) = (self.part("newer"), self.part("older"));
        let tail = match &mut self.tail {
            Some(tail) => tail,
            None => self.tail.insert(Tail {
                newer: fs::File::create(&newer).await?,
                newer_bytes: 0,
                older_bytes: 0,
                left_out: 0,
            }),
        };
        tail.newer.write_all(bytes).await?;
        tail.newer_bytes += bytes.len() as u64;
        if tail.newer_bytes >= TAIL {
            tail.newer.flush().await?;
            fs::rename(&newer, &older).await?;
            tail.newer = fs::File::create(&newer).await?;
            tail.left_out += tail.older_bytes;
            tail.older_bytes = std::mem::take(&mut tail.newer_bytes);
        }
        Ok(())
    }

    fn remember(&mut self, bytes: &[u8]) {
        self.last
            .extend_from_slice(&bytes[bytes.len().saturating_sub(LAST)..]);
        let surplus = self.last.len().saturating_sub(LAST);
        self.last.drain(..surplus);
    }

    fn part(&self, name: &str) -> Utf8PathBuf {
        self.path.with_extension(format!("log.{name}"))
    }
}

/// What is known of a finished log.
#[derive(Default)]
pub(super) struct Finished {
    /// Its last few thousand bytes, as text.
    pub(super) last: String,
    /// Said to a reader where the log is not whole.
    pub(super) note: Option<String>,
}
