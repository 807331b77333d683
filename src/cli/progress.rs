//! A line on standard error for each attempt that ends.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::recorder::Show;
use super::tell;
use crate::model::{AttemptId, AttemptRecord, Event, Outcome};
use crate::report::plain;

/// Shows how far a run has come.
#[derive(Debug)]
pub(super) struct Progress {
    /// What runs, before its count; empty for the run itself.
    name: &'static str,
    planned: usize,
    ended: AtomicUsize,
}

impl Progress {
    /// Progress towards so many attempts.
    pub(super) fn new(name: &'static str, planned: usize) -> Self {
        Self {
            name,
            planned,
            ended: AtomicUsize::new(0),
        }
    }

    fn width(&self) -> usize {
        2 * self.planned.to_string().len() + 1
    }
}

impl Show for Progress {
    fn show(&self, event: &Event) {
        match event {
            Event::TryFailed {
                attempt,
                try_number,
                error,
                ..
            } => {
                let line = first_line(&error.message);
                let text = format!(
                    "try {try_number} of {attempt} {}: {line}; trying again",
                    error.class
                );
                tell(&format!(
                    "{}{:>width$} {}",
                    self.name,
                    "",
                    plain(&text),
                    width = self.width()
                ));
            }
            Event::AttemptEnded { pair, record, .. } => {
                let ended = self.ended.fetch_add(1, Ordering::Relaxed) + 1;
                // An attempt that was never needed is counted, not told.
                if record.tries > 0 {
                    let attempt = AttemptId {
                        pair: pair.clone(),
                        index: record.index,
                    };
                    let count = format!("{ended}/{}", self.planned);
                    tell(&format!(
                        "{}{count:>width$} {}",
                        self.name,
                        plain(&ending(&attempt, record)),
                        width = self.width()
                    ));
                }
            }
            Event::Preparing { line } => tell(&format!("{}{}", self.name, plain(line))),
            _ => {}
        }
    }
}

fn ending(attempt: &AttemptId, record: &AttemptRecord) -> String {
    let word = match record.outcome {
        Outcome::Passed => "passed",
        Outcome::Failed => "failed",
        Outcome::TimedOut => "timed out",
        Outcome::Errored => "errored",
        Outcome::Cancelled => "cancelled",
    };
    let mut text = format!("{word:<9} {attempt} ({:.1} s", record.seconds);
    if record.tries > 1 {
        text.push_str(&format!(", try {}", record.tries));
    }
    text.push(')');
    if let Some(error) = &record.error {
        text.push_str(&format!(": {}", first_line(&error.message)));
    }
    text
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
