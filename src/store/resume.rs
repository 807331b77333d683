//! What it takes to go on with a run: that it is the same one, and that its directory holds what its journal knows of.

use std::collections::HashMap;

use camino::Utf8Path;

use super::journal::Events;
use super::{ATTEMPT_FILE, StoreError, attempt_text, earlier_try, write_atomically};
use crate::model::layout::{OUTPUT_FILE, RAW_RESULTS};
use crate::model::{AttemptId, Event, Produces, Run, RunPlan};
use fs_err as fs;

/// What makes the plan or the commit another one than the run's, in words.
pub(super) fn difference(run: &Run, plan: &RunPlan, commit: Option<&str>) -> Option<String> {
    let shown = |commit: Option<&str>| commit.map_or("unknown".to_owned(), |commit| format!("`{commit}`"));
    let committed = run.commit.as_deref();
    let of_commit =
        (committed != commit).then(|| format!("its commit is {}, not {}", shown(committed), shown(commit)));
    plan.difference(&run.plan).or(of_commit)
}

/// Writes the records of ended attempts again where they are missing, and has pairs published again whose results are.
/// What else an attempt had beside its record is gone with it, which the run is told as its only notice.
pub(super) fn restore(path: &Utf8Path, journal: &Utf8Path, run: &mut Run) -> Result<(), StoreError> {
    let mut lost = HashMap::new();
    let mut without_files = 0;
    for (planned, pair) in run.plan.pairs.iter().zip(&mut run.pairs) {
        let results = path.join(format!("{RAW_RESULTS}{}", planned.id.directory()));
        let gave_one = pair.records.iter().any(|record| record.outcome.is_graded());
        pair.published &= !gave_one || results.is_dir();
        for record in pair.records.iter().filter(|record| record.tries > 0) {
            let attempt = AttemptId {
                pair: planned.id.clone(),
                index: record.index,
            };
            let place_of = |attempt: &AttemptId| {
                let directory = path.join(attempt.path());
                match pair.tries(attempt.index) > record.tries {
                    true => earlier_try(&directory, record.tries),
                    false => directory,
                }
            };
            let place = place_of(&attempt);
            // Attempts that one command made share its output.
            let output = match run.plan.produces {
                Produces::Attempt => place.join(OUTPUT_FILE),
                Produces::Pair => place_of(&AttemptId {
                    index: 1,
                    ..attempt.clone()
                })
                .join(OUTPUT_FILE),
            };
            without_files += usize::from(record.outcome.is_graded() && !output.is_file());
            if !place.join(ATTEMPT_FILE).is_file() {
                lost.insert(attempt, (record.tries, place));
            }
        }
    }
    run.notices = notice(without_files).into_iter().collect();
    if lost.is_empty() {
        return Ok(());
    }
    for event in Events::open(journal)? {
        if let Event::AttemptEnded {
            pair,
            record,
            details,
        } = event?
            && let index = record.index
            && let Some((tries, place)) = lost.get(&AttemptId { pair, index })
            && *tries == record.tries
        {
            fs::create_dir_all(place)?;
            let text = attempt_text(&record, &details)?;
            write_atomically(&place.join(ATTEMPT_FILE), text.as_bytes())?;
        }
    }
    Ok(())
}

fn notice(without_files: usize) -> Option<String> {
    let attempts = match without_files {
        0 => return None,
        1 => "1 attempt with a result".to_owned(),
        many => format!("{many} attempts with results"),
    };
    Some(format!(
        "the files of {attempts} are not here: only what the journal tells of them is published"
    ))
}
