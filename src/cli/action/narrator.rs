//! Tells a run in the step's log: a group for each pair that has ended. What an attempt printed is shown a few lines
//! long, prefixed, and never as it is.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use tokio::time::Instant;

use super::step::Step;
use crate::aggregate;
use crate::cli::progress::{Standing, heartbeat};
use crate::cli::recorder::Show;
use crate::model::layout::OUTPUT_FILE;
use crate::model::{AttemptRecord, Event, Outcome, PairId, PairSummary, Run, Summary, Verdict};
use crate::runner::Job;

/// How much of an attempt's output is read for the log.
const TAIL_BYTES: u64 = 4 << 10;
/// How many lines of it are shown.
const TAIL_LINES: usize = 20;

/// Tells what happens in a run.
pub(super) struct Narrator {
    /// What the run is called; empty for the step's own.
    name: &'static str,
    directory: Utf8PathBuf,
    step: Step,
    debug: bool,
    begun: Instant,
    told: Mutex<Told>,
}

/// What has happened so far.
struct Told {
    run: Run,
    standing: Standing,
    pairs_ended: usize,
}

impl Narrator {
    pub(super) fn new(name: &'static str, job: &Job, directory: &Utf8Path, step: Step, debug: bool) -> Self {
        Self {
            name,
            directory: directory.to_owned(),
            step,
            debug,
            begun: Instant::now(),
            told: Mutex::new(Told {
                run: job.run(),
                standing: Standing::of(name, job),
                pairs_ended: 0,
            }),
        }
    }

    /// The run as far as it has come.
    pub(super) fn so_far(&self) -> Summary {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        aggregate::summarize(&told.run)
    }

    /// How far it has come, in one line.
    pub(super) fn heartbeat(&self) -> String {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        heartbeat(&told.standing, self.begun.elapsed())
    }

    fn details(&self, pair: &PairSummary) -> Vec<String> {
        let mut lines = Vec::new();
        for attempt in &pair.attempts {
            lines.push(ending(attempt));
            lines.extend(
                attempt
                    .checks_failed
                    .iter()
                    .take(TAIL_LINES)
                    .map(|check| format!("  failed: {check}")),
            );
            let unclear = !matches!(attempt.outcome, Outcome::Passed | Outcome::Cancelled);
            if let (true, Some(path)) = (unclear, &attempt.path) {
                lines.extend(tail(&self.directory.join(path).join(OUTPUT_FILE)));
            }
        }
        lines
    }
}

impl Show for Narrator {
    fn show(&self, event: &Event) {
        let ended = {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            told.run.apply(event);
            told.standing.apply(event, self.begun.elapsed());
            match event {
                Event::PairEnded { pair, .. } => told.ended(pair),
                _ => None,
            }
        };
        if let Some((title, pair)) = ended {
            let title = format!("{}{title}", self.name);
            return self.step.group(&title, &self.details(&pair));
        }
        match event {
            Event::AttemptStarted {
                attempt, try_number, ..
            } if self.debug => {
                self.step.debug(&format!("started {attempt}, try {try_number}"));
            }
            Event::Preparing { line } => self.step.say(line),
            Event::SandboxNamed { name, attempt } if self.debug => {
                let whose = attempt.as_ref().map(ToString::to_string);
                let whose = whose.as_deref().unwrap_or("all attempts");
                self.step.debug(&format!("sandbox {name} for {whose}"));
            }
            Event::TryFailed {
                attempt,
                try_number,
                error,
                ..
            } => {
                let line = error.message.lines().next().unwrap_or_default();
                let class = error.class;
                self.step.say(&format!(
                    "try {try_number} of {attempt} {class}: {line}; trying again"
                ));
            }
            _ => {}
        }
    }
}

impl Told {
    /// The title of a pair that has ended, and the pair.
    fn ended(&mut self, pair: &PairId) -> Option<(String, PairSummary)> {
        self.pairs_ended += 1;
        let (planned, attempts) = self.run.pair(pair)?;
        let summary = aggregate::summarize_pair(planned, &self.run.plan, attempts);
        let verdict = match summary.verdict {
            Verdict::Pass => "PASS",
            Verdict::Fail => "FAIL",
            Verdict::Error => "ERROR",
            Verdict::NotRun => "NOT RUN",
        };
        let title = format!(
            "{}/{} {verdict} {pair} ({}/{} attempts passed)",
            self.pairs_ended,
            self.run.plan.pairs.len(),
            summary.passed_attempts,
            summary.graded_attempts
        );
        Some((title, summary))
    }
}

fn ending(attempt: &AttemptRecord) -> String {
    let word = match attempt.outcome {
        Outcome::Passed => "passed",
        Outcome::Failed => "failed",
        Outcome::TimedOut => "timed out",
        Outcome::Errored => "errored",
        Outcome::Cancelled => "not run to its end",
    };
    let mut text = format!("attempt {}: {word} ({:.1} s)", attempt.index, attempt.seconds);
    if let Some(error) = &attempt.error {
        text += &format!(": {}", error.message.lines().next().unwrap_or_default());
    }
    text
}

/// The last lines of an attempt's output, each behind a bar.
fn tail(path: &Utf8Path) -> Vec<String> {
    let mut bytes = Vec::new();
    let read = fs_err::File::open(path).and_then(|mut file| {
        let length = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        file.take(TAIL_BYTES).read_to_end(&mut bytes)
    });
    if read.is_err() {
        // An attempt that never came to its command has printed nothing.
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(TAIL_LINES);
    lines[from..].iter().map(|line| format!("  | {line}")).collect()
}
