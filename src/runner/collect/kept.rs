//! What `attempt.keep` brings back besides the result: files and directories, secrets taken out, within a size.

use std::io::{Read, Write as _};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use tokio_util::sync::CancellationToken;

use super::archive::{Archive, safe_path};
use super::still_wanted;
use crate::glob::PathGlobs;
use crate::model::layout::KEPT_DIR;
use crate::model::with_causes;
use crate::runner::Job;
use crate::sandbox::Sandbox;

/// Brings `keep` into the directory of kept files. Returns notes about what was left out.
///
/// # Errors
/// Why nothing was kept.
pub(super) async fn collect(
    sandbox: &mut dyn Sandbox,
    keep: &Utf8Path,
    job: &Arc<Job>,
    directory: &Utf8Path,
    given_up: &CancellationToken,
) -> Result<Vec<String>, String> {
    let Some(config) = &job.attempt.keep else {
        return Ok(Vec::new());
    };
    let excluded = PathGlobs::new(&config.exclude).map_err(|error| with_causes(&error))?;
    // What is excluded is in the archive too.
    let most_bytes = config.max_size.saturating_mul(2);
    let downloaded = Archive::download(sandbox, keep, directory, most_bytes)
        .await
        .map_err(|failure| failure.message)?;
    let Some(archive) = downloaded else {
        return Ok(Vec::new());
    };
    let extraction = Extraction {
        archive,
        into: directory.join(KEPT_DIR),
        keep: keep.to_owned(),
        excluded,
        max_size: config.max_size,
        job: Arc::clone(job),
        given_up: given_up.clone(),
    };
    tokio::task::spawn_blocking(move || extraction.run())
        .await
        .map_err(|error| error.to_string())?
        .map_err(|error| with_causes(&error))
}

struct Extraction {
    archive: Archive,
    into: Utf8PathBuf,
    keep: Utf8PathBuf,
    excluded: PathGlobs,
    max_size: u64,
    job: Arc<Job>,
    given_up: CancellationToken,
}

impl Extraction {
    fn run(&self) -> std::io::Result<Vec<String>> {
        still_wanted(&self.given_up)?;
        let partial = self.into.with_extension("partial");
        fs::create_dir_all(&partial)?;
        let parent = self.keep.parent().unwrap_or(Utf8Path::new(""));
        let (mut left_out, mut too_large, mut size) = (0_usize, 0_usize, 0_u64);
        for entry in self.archive.open()?.entries()? {
            still_wanted(&self.given_up)?;
            let mut entry = entry?;
            let Some(path) = safe_path(&entry) else {
                left_out += 1;
                continue;
            };
            let in_workspace = parent.join(&path);
            if self.excluded.match_within(in_workspace.as_std_path()) {
                continue;
            }
            // A kept directory is the root of the tree, a kept file stands in it.
            let inside = match in_workspace.strip_prefix(&self.keep) {
                Ok(inside) if !inside.as_str().is_empty() => inside.to_owned(),
                _ => Utf8PathBuf::from(self.keep.file_name().unwrap_or_default()),
            };
            let kind = entry.header().entry_type();
            if kind.is_dir() {
                if in_workspace != self.keep {
                    fs::create_dir_all(partial.join(inside))?;
                }
            } else if kind.is_file() {
                if size + entry.size() > self.max_size {
                    too_large += 1;
                    continue;
                }
                size += entry.size();
                self.write_file(&mut entry, &partial.join(inside))?;
            } else {
                left_out += 1;
            }
        }
        still_wanted(&self.given_up)?;
        fs::rename(&partial, &self.into)?;
        let notes = [
            (left_out, "links and special files are not kept".to_owned()),
            (too_large, format!("`keep.max-size` is {} bytes", self.max_size)),
        ];
        let notes = notes.into_iter().filter(|(count, _)| *count > 0);
        Ok(notes
            .map(|(count, why)| format!("{count} kept paths were left out: {why}"))
            .collect())
    }

    fn write_file(&self, from: &mut impl Read, to: &Utf8Path) -> std::io::Result<()> {
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut file = fs::File::create(to)?;
        let mut stream = self.job.redactor.stream();
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = from.read(&mut buffer)?;
            if read == 0 {
                return file.write_all(&stream.finish());
            }
            file.write_all(&stream.push(&buffer[..read]))?;
        }
    }
}
