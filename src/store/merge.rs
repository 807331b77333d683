//! Several run directories as one: the journals of a plan's parts, the files of their attempts. Decides nothing of what
//! belongs together.

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use super::journal::Events;
use super::publish::copy_tree;
use super::{Replayed, RunDir, StoreError, holds_run, replay};
use crate::aggregate::{self, Joined};
use crate::config::AttemptConfig;
use crate::model::event::JOURNAL_SCHEMA;
use crate::model::layout::{JOURNAL_FILE, SUMMARY_FILE};
use crate::model::{AttemptId, AttemptRecord, Event, Run};

/// Ends the name of a directory with the files of the run that lies in the directory beside it: what does not fit into a
/// small artifact.
const FILES: &str = "-files";

/// The run directory of a part.
#[derive(Debug)]
pub struct PartDir {
    /// Where it is.
    pub path: Utf8PathBuf,
    /// As a reader knows it.
    pub name: String,
    /// What its journal tells.
    pub replayed: Replayed,
}

/// The run directories that a path names: itself, or those that lie in it.
///
/// # Errors
/// None is there; a journal that cannot be replayed; disk errors.
pub fn find_parts(path: &Utf8Path, shown: &Utf8Path) -> Result<Vec<PartDir>, StoreError> {
    let part = |path: Utf8PathBuf, shown: &Utf8Path| {
        Ok::<_, StoreError>(PartDir {
            replayed: replay(&path.join(JOURNAL_FILE))?,
            name: shown.to_string(),
            path,
        })
    };
    if holds_run(path) {
        return Ok(vec![part(path.to_owned(), shown)?]);
    }
    let mut names = Vec::new();
    if path.is_dir() && !path.join(SUMMARY_FILE).exists() {
        for entry in path.read_dir_utf8()? {
            let entry = entry?;
            if holds_run(entry.path()) || entry.path().join(SUMMARY_FILE).exists() {
                names.push(entry.file_name().to_owned());
            }
        }
    }
    names.sort_unstable();
    if names.is_empty() {
        return Err(StoreError::NoRun(path.to_owned()));
    }
    let parts = names.iter().map(|name| match holds_run(&path.join(name)) {
        true => part(path.join(name), Utf8Path::new(name)),
        // A summary says too little of a run to be joined.
        false => Err(StoreError::NoJournal(path.join(name))),
    });
    parts.collect()
}

/// Writes the joined run into a directory of its own; gives the run, with what a reader should know of its files.
///
/// # Errors
/// [`StoreError::Occupied`] and the like; disk errors.
pub async fn merge(
    parts: &[PartDir],
    joined: &Joined,
    run_id: &str,
    to: &Utf8Path,
    attempt: &AttemptConfig,
) -> Result<(RunDir, Run), StoreError> {
    let directory = RunDir::create(to, false, &joined.plan, attempt)?;
    let mut merging = Merging {
        run: Run::new(
            run_id,
            joined.started_at,
            joined.commit.clone(),
            joined.plan.clone(),
        ),
        directory,
        without_files: 0,
    };
    let started = Event::RunStarted {
        schema: JOURNAL_SCHEMA.to_owned(),
        run_id: run_id.to_owned(),
        started_at: joined.started_at,
        commit: joined.commit.clone(),
        plan: Box::new(joined.plan.clone()),
    };
    merging.tell(started).await?;
    for &at in &joined.order {
        let part = &parts[at];
        for event in Events::open(&part.path.join(JOURNAL_FILE))? {
            if let Some(event) = taken(event?, at, joined) {
                merging.copy_files(&event, part)?;
                merging.tell(event).await?;
            }
        }
    }
    merging.copy_open(parts, joined)?;
    merging.publish(parts, joined).await?;
    let mut notices = joined.notices.clone();
    notices.extend(joined.missing.clone());
    if merging.without_files > 0 {
        notices.push(format!(
            "the files of {} pairs are not here: their `raw-results-…` could not be made",
            merging.without_files
        ));
    }
    let ended = Event::RunEnded {
        offset: aggregate::round_seconds(joined.wall_seconds),
        cancelled: false,
        notices,
    };
    merging.tell(ended).await?;
    Ok((merging.directory, merging.run))
}

/// What the whole takes over of what a part tells, in the whole's own time.
fn taken(event: Event, part: usize, joined: &Joined) -> Option<Event> {
    let shift = joined.shifts[part];
    let shifted = |mut record: Box<AttemptRecord>| {
        record.started_offset = record
            .started_offset
            .map(|offset| aggregate::round_seconds(offset + shift));
        record
    };
    // What a later part only took away again is left out; what an earlier one said was spent all the same.
    let counts = |attempt: &AttemptId| {
        let position = |part: usize| joined.order.iter().position(|at| *at == part);
        let last = joined.last_word.get(&(attempt.pair.clone(), attempt.index));
        last.is_none_or(|last| position(part) <= position(*last))
    };
    match event {
        Event::AttemptStarted {
            attempt,
            try_number,
            offset,
        } => Some(Event::AttemptStarted {
            attempt,
            try_number,
            offset: aggregate::round_seconds(offset + shift),
        }),
        Event::TryFailed { ref attempt, .. } => counts(attempt).then_some(event),
        Event::AttemptEnded {
            pair,
            record,
            details,
        } => {
            let attempt = AttemptId {
                pair: pair.clone(),
                index: record.index,
            };
            counts(&attempt).then(|| Event::AttemptEnded {
                pair,
                record: shifted(record),
                details,
            })
        }
        _ => None,
    }
}

struct Merging {
    directory: RunDir,
    run: Run,
    /// Pairs whose results could not be published.
    without_files: usize,
}

impl Merging {
    async fn tell(&mut self, event: Event) -> Result<(), StoreError> {
        self.run.apply(&event);
        self.directory.record(&event).await
    }

    /// Brings the files of an attempt that has ended, in the place of those of an earlier part.
    fn copy_files(&self, event: &Event, part: &PartDir) -> Result<(), StoreError> {
        if let Event::AttemptEnded { pair, record, .. } = event {
            let id = AttemptId {
                pair: pair.clone(),
                index: record.index,
            };
            self.copy(&id, part)?;
        }
        Ok(())
    }

    /// Brings the files of attempts that have begun and in no part ended.
    fn copy_open(&self, parts: &[PartDir], joined: &Joined) -> Result<(), StoreError> {
        let pairs = self.run.plan.pairs.iter().zip(&self.run.pairs);
        for (planned, pair) in pairs {
            let is_open = |index: &u32| pair.record(*index).is_none() && pair.tries(*index) > 0;
            for index in (1..=self.run.plan.runs).filter(is_open) {
                let id = AttemptId {
                    pair: planned.id.clone(),
                    index,
                };
                let mut latest_first = joined.order.iter().rev().map(|at| &parts[*at]);
                if let Some(part) = latest_first.find(|part| files_of(part, &id).is_some()) {
                    self.copy(&id, part)?;
                }
            }
        }
        Ok(())
    }

    fn copy(&self, id: &AttemptId, part: &PartDir) -> Result<(), StoreError> {
        let to = self.directory.path().join(id.path());
        if to.exists() {
            super::remove(&to)?;
        }
        match files_of(part, id) {
            Some(from) => copy_tree(&from, &to),
            None => Ok(()),
        }
    }

    async fn publish(&mut self, parts: &[PartDir], joined: &Joined) -> Result<(), StoreError> {
        for at in 0..self.run.plan.pairs.len() {
            let planned = self.run.plan.pairs[at].clone();
            let summary = aggregate::summarize_pair(&planned, &self.run.plan, &self.run.pairs[at]);
            let graded: Vec<u32> = summary
                .attempts
                .iter()
                .filter(|attempt| attempt.outcome.is_graded())
                .map(|attempt| attempt.index)
                .collect();
            let has_files = |index: &u32| {
                let id = AttemptId {
                    pair: planned.id.clone(),
                    index: *index,
                };
                let part = joined.last_word.get(&(planned.id.clone(), *index));
                part.is_some_and(|part| files_of(&parts[*part], &id).is_some())
            };
            if !graded.iter().all(has_files) {
                self.without_files += 1;
                continue;
            }
            let ended = Event::PairEnded {
                pair: planned.id.clone(),
                verdict: summary.verdict,
                representative: summary.representative,
                graded,
            };
            self.tell(ended).await?;
        }
        Ok(())
    }
}

/// Where the files of an attempt lie, where they are there.
fn files_of(part: &PartDir, attempt: &AttemptId) -> Option<Utf8PathBuf> {
    let beside = Utf8PathBuf::from(format!("{}{FILES}", part.path));
    let places = [&part.path, &beside].map(|place| place.join(attempt.path()));
    places
        .into_iter()
        .find(|place| fs::symlink_metadata(place).is_ok_and(|found| found.is_dir()))
}
