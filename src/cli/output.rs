//! Where a run is written.

use camino::{Utf8Path, Utf8PathBuf};

use super::context::Context;
use super::{Failure, tell};
use crate::model::layout::OUTPUT_ROOT;
use crate::model::with_causes;
use crate::store;

/// The directory of the runs that are not told where to go.
pub(super) fn root(context: &Context) -> Utf8PathBuf {
    context.current_dir.join(OUTPUT_ROOT)
}

/// The newest run that evalwave named itself.
pub(super) fn newest(context: &Context) -> Option<Utf8PathBuf> {
    let root = root(context);
    let latest = root.join("latest");
    if latest.is_dir() {
        return Some(latest);
    }
    // Without symbolic links: names begin with the time.
    let entries = root.read_dir_utf8().into_iter().flatten().flatten();
    entries
        .map(|entry| entry.into_path())
        .filter(|path| path.is_dir())
        .max()
}

/// Where the run is written.
pub(super) struct Output {
    /// Unique name of the run.
    pub(super) run_id: String,
    pub(super) directory: Utf8PathBuf,
    /// As the user would type it.
    pub(super) shown: Utf8PathBuf,
    /// Where earlier runs may be.
    root: Utf8PathBuf,
    /// The link to the newest run, where evalwave named the directory itself.
    latest: Option<Utf8PathBuf>,
}

impl Output {
    /// Where it was asked for, or in a directory of the run's own.
    pub(super) fn of(named: Option<&Utf8Path>, run_id: String, context: &Context) -> Self {
        match named {
            Some(named) => Self {
                run_id,
                directory: context.absolute(named),
                shown: named.to_owned(),
                root: root(context),
                latest: None,
            },
            None => {
                let shown = Utf8Path::new(OUTPUT_ROOT).join(&run_id);
                let root = root(context);
                Self {
                    run_id,
                    directory: context.absolute(&shown),
                    shown,
                    latest: Some(root.join("latest")),
                    root,
                }
            }
        }
    }

    /// Where an earlier run was written: where it is said to be, or where the newest is.
    pub(super) fn of_earlier(named: Option<&Utf8Path>, context: &Context) -> Result<Self, Failure> {
        let newest = Utf8Path::new(OUTPUT_ROOT).join("latest");
        let directory = context.absolute(named.unwrap_or(&newest));
        let run_id = store::run_id(&directory)?;
        // The newest has the run's own name, and that is where it lies.
        Ok(Self::of(named, run_id, context))
    }

    /// Points at the newest run, and keeps git from taking runs for something to commit.
    pub(super) fn point_latest(&self) {
        let Some(latest) = &self.latest else { return };
        if let Err(error) = store::point_latest(&self.directory, latest) {
            tell(&format!("notice: {}", with_causes(&error)));
        }
        let ignored = latest.with_file_name(".gitignore");
        if !ignored.exists()
            && let Err(error) = fs_err::write(&ignored, "*\n")
        {
            tell(&format!("notice: {error}"));
        }
    }

    /// What no sandbox receives.
    pub(super) fn roots(&self) -> Vec<Utf8PathBuf> {
        vec![self.directory.clone(), self.root.clone()]
    }
}
