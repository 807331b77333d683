//! A download as an archive on disk, no larger than it may be. What is in it is not redacted yet, so its file has no
//! name: it goes with its last use, however the try or the process ends.

use std::io::Seek as _;
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
/// How long is waited before each further try of a download. After the last the result counts as lost: the agent is not
/// run again for what is over in a moment.
const PAUSES: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(9),
];

/// A tar on disk.
pub(super) struct Archive(std::fs::File);

impl Archive {
    /// Downloads `from` to the disk of `directory`, more than once where that fails; `None` where there is no such path.
    pub(super) async fn download(
        sandbox: &mut dyn Sandbox,
        from: &Utf8Path,
        directory: &Utf8Path,
        most_bytes: u64,
    ) -> Result<Option<Self>, Failure> {
        let mut pauses = PAUSES.iter();
        loop {
            let file = tempfile::tempfile_in(directory).map_err(not_stored)?;
            let file = File::from_std(file);
            let cap = most_bytes.saturating_add(OVERHEAD);
            let mut capped = Capped { file, cap, left: cap };
            let downloaded = sandbox.download(from, &mut capped).await;
            let flushed = capped.flush().await;
            match downloaded {
                Ok(found) => {
                    flushed.map_err(not_stored)?;
                    let file = capped.file.into_std().await;
                    return Ok(found.map(|()| Self(file)));
                }
                Err(error) => match pauses.next() {
                    Some(pause) if capped.left > 0 && !is_lasting(&error) => tokio::time::sleep(*pause).await,
                    _ => return Err(lost(error.class.unwrap_or(ErrorClass::Collect), &error)),
                },
            }
        }
    }

    /// Its entries, to be read in their order.
    pub(super) fn open(&self) -> std::io::Result<tar::Archive<impl std::io::Read>> {
        let mut file = &self.0;
        file.rewind()?;
        Ok(tar::Archive::new(std::io::BufReader::new(file)))
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

/// A file that takes only so many bytes.
struct Capped {
    file: File,
    cap: u64,
    left: u64,
}

impl AsyncWrite for Capped {
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
        let written = Pin::new(&mut self.file).poll_write(cx, bytes);
        if let Poll::Ready(Ok(written)) = written {
            self.left -= written as u64;
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.file).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.file).poll_shutdown(cx)
    }
}
