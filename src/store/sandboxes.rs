//! The names of a run's sandboxes, read back once the run is over.

use std::collections::BTreeMap;
use std::io::Write as _;

use camino::Utf8Path;
use fs_err as fs;

use super::journal::whole_lines;
use super::{SANDBOXES_FILE, StoreError};
use crate::model::{Event, LeftSandbox, Whereabouts};

/// What a run wrote down of its sandboxes. While this is held, no run and no other cleanup writes there.
#[derive(Debug)]
pub struct Sandboxes {
    file: fs::File,
    run_id: String,
    whereabouts: Whereabouts,
    open: BTreeMap<String, Option<String>>,
}

impl Sandboxes {
    /// Reads it; `None` where a run has written nothing. A last line that was cut off in the middle is removed: its
    /// sandbox was never created.
    ///
    /// # Errors
    /// [`StoreError::Running`] while the run goes on, lines that are none of ours, disk errors.
    pub fn open(directory: &Utf8Path) -> Result<Option<Self>, StoreError> {
        let path = directory.join(SANDBOXES_FILE);
        let mut file = match fs::OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if let Err(std::fs::TryLockError::WouldBlock) = file.file().try_lock() {
            return Err(StoreError::Running(directory.to_owned()));
        }
        let bytes = whole_lines(&mut file)?;
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let (mut at, mut open) = (None, BTreeMap::new());
        for line in lines {
            match serde_json::from_slice(line) {
                Ok(Event::SandboxesAt { run_id, whereabouts }) => at = Some((run_id, whereabouts)),
                Ok(Event::SandboxNamed { name, .. }) => drop(open.insert(name, None)),
                Ok(Event::SandboxCreated { name, id }) => drop(open.insert(name, Some(id))),
                Ok(Event::SandboxGone { name }) => drop(open.remove(&name)),
                Ok(_) => {}
                Err(source) => return Err(StoreError::Broken { path, source }),
            }
        }
        Ok(at.map(|(run_id, whereabouts)| Self {
            file,
            run_id,
            whereabouts,
            open,
        }))
    }

    /// The run that owns them.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Where they are.
    pub fn whereabouts(&self) -> &Whereabouts {
        &self.whereabouts
    }

    /// Those that may still be there.
    pub fn left(&self) -> Vec<LeftSandbox> {
        let left = self.open.iter().map(|(name, id)| LeftSandbox {
            name: name.clone(),
            id: id.clone(),
        });
        left.collect()
    }

    /// Notes that none of them is there any more.
    ///
    /// # Errors
    /// Disk errors.
    pub fn all_gone(&mut self) -> Result<(), StoreError> {
        for name in std::mem::take(&mut self.open).into_keys() {
            let line = serde_json::to_string(&Event::SandboxGone { name }).map_err(std::io::Error::from)?;
            self.file.write_all(format!("{line}\n").as_bytes())?;
        }
        Ok(())
    }
}
