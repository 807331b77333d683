//! A download as an archive, no larger than it may be: a small one in memory, any other on disk. What is in it is not
//! redacted yet, so its file has no name: it goes with its last use, however the try or the process ends.

use std::io::{BufReader, Read, Seek as _, Write as _};
use std::path::Component;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tokio::fs::File;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use crate::aggregate::Failure;
use crate::model::with_causes;
use crate::model::{ErrorClass, Phase};
use crate::runner::failure::failure;
use crate::sandbox::{Sandbox, SandboxError};

/// Archives have headers and padding besides the files in them.
const OVERHEAD: u64 = 1 << 20;
/// The largest archive that needs no file: most results are far smaller, and thousands may be on their way at once.
const IN_MEMORY: usize = 16 << 10;
/// How long is waited before each further try of a download. After the last the result counts as lost: the agent is not
/// run again for what is over in a moment.
const PAUSES: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(9),
];

/// A tar.
pub(super) enum Archive {
    Small(Vec<u8>),
    Large(std::fs::File),
}

impl Archive {
    /// Downloads `from`, a large one to the disk of `directory`, more than once where that fails; `None` where there is no
    /// such path.
    pub(super) async fn download(
        sandbox: &mut dyn Sandbox,
        from: &Utf8Path,
        directory: &Utf8Path,
        most_bytes: u64,
    ) -> Result<Option<Self>, Failure> {
        let mut pauses = PAUSES.iter();
        loop {
            let cap = most_bytes.saturating_add(OVERHEAD);
            let mut capped = Capped {
                kept: Kept::Small(Vec::new()),
                directory,
                cap,
                left: cap,
            };
            let downloaded = sandbox.download(from, &mut capped).await;
            let flushed = capped.flush().await;
            match downloaded {
                Ok(found) => {
                    flushed.map_err(not_stored)?;
                    let archive = match capped.kept {
                        Kept::Small(bytes) => Self::Small(bytes),
                        Kept::Large(file) => Self::Large(file.into_std().await),
                    };
                    return Ok(found.map(|()| archive));
                }
                Err(error) => match pauses.next() {
                    Some(pause) if capped.left > 0 && !is_lasting(&error) => tokio::time::sleep(*pause).await,
                    _ => return Err(lost(error.class.unwrap_or(ErrorClass::Collect), &error)),
                },
            }
        }
    }

    /// Its entries, to be read in their order.
    pub(super) fn open(&self) -> std::io::Result<tar::Archive<Box<dyn Read + '_>>> {
        Ok(tar::Archive::new(match self {
            Self::Small(bytes) => Box::new(&bytes[..]),
            Self::Large(file) => {
                let mut file = file;
                file.rewind()?;
                Box::new(BufReader::new(file))
            }
        }))
    }
}

/// Whether a download would fail however often it is tried. A sandbox that seems lost may only be out of reach for now.
fn is_lasting(error: &SandboxError) -> bool {
    use ErrorClass::{OutOfDisk, OutOfMemory, Refused};
    matches!(error.class, Some(OutOfDisk | OutOfMemory | Refused))
}

/// An entry's path where it is UTF-8 and stays below its root.
pub(super) fn safe_path<R: std::io::Read>(entry: &tar::Entry<'_, R>) -> Option<Utf8PathBuf> {
    let path = entry.path().ok()?;
    let mut safe = Utf8PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => safe.push(name.to_str()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    (!safe.as_str().is_empty()).then_some(safe)
}

pub(super) fn lost(class: ErrorClass, error: &dyn std::error::Error) -> Failure {
    failure(Phase::Collect, class, with_causes(error))
}

pub(super) fn not_stored(error: std::io::Error) -> Failure {
    lost(ErrorClass::Store, &error)
}

/// What takes only so many bytes.
struct Capped<'a> {
    kept: Kept,
    /// Where its file goes.
    directory: &'a Utf8Path,
    cap: u64,
    left: u64,
}

enum Kept {
    Small(Vec<u8>),
    Large(File),
}

impl AsyncWrite for Capped<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        if bytes.len() as u64 > self.left {
            self.left = 0;
            let why = format!("it is larger than {} bytes", self.cap);
            return Poll::Ready(Err(std::io::Error::other(why)));
        }
        if let Kept::Small(kept) = &self.kept
            && kept.len() + bytes.len() > IN_MEMORY
        {
            let mut file = tempfile::tempfile_in(self.directory)?;
            file.write_all(kept)?;
            self.kept = Kept::Large(File::from_std(file));
        }
        let written = match &mut self.kept {
            Kept::Small(kept) => {
                kept.extend_from_slice(bytes);
                Poll::Ready(Ok(bytes.len()))
            }
            Kept::Large(file) => Pin::new(file).poll_write(cx, bytes),
        };
        if let Poll::Ready(Ok(written)) = written {
            self.left -= written as u64;
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match &mut self.kept {
            Kept::Small(_) => Poll::Ready(Ok(())),
            Kept::Large(file) => Pin::new(file).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.poll_flush(cx)
    }
}
