//! What is said of a run in lines that stay. Knows neither where they go nor what time it is.

use std::time::Duration;

use super::left::{Left, left};
use super::standing::{Running, Standing};
use crate::model::{AttemptId, AttemptRecord, Event, Outcome};
use crate::report;
use crate::report::plain;

/// How much of what happens is told in lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Detail {
    /// Nothing.
    Nothing,
    /// What went wrong without being the agent's, and what is prepared before anything starts.
    Trouble,
    /// How each attempt ended too.
    Endings,
    /// How each try began too.
    Everything,
}

/// The line of an event, after it was taken in; `None` for one that is not told.
pub(super) fn line(standing: &Standing, event: &Event, detail: Detail) -> Option<String> {
    let width = 2 * standing.plan.attempts().to_string().len() + 1;
    let uncounted = |text: &str| format!("{}{:>width$} {}", standing.name, "", plain(text));
    match event {
        Event::AttemptStarted {
            attempt, try_number, ..
        } if detail >= Detail::Everything => {
            let text = match try_number {
                1 => format!("started   {attempt}"),
                number => format!("started   {attempt}, try {number}"),
            };
            Some(uncounted(&text))
        }
        Event::TryFailed {
            attempt,
            try_number,
            error,
            ..
        } if detail >= Detail::Trouble => {
            let message = first_line(&error.message);
            Some(uncounted(&format!(
                "try {try_number} of {attempt} {}: {message}; trying again",
                error.class
            )))
        }
        Event::Preparing { line } if detail >= Detail::Trouble => {
            Some(format!("{}{}", standing.name, plain(line)))
        }
        Event::AttemptEnded { pair, record, .. } => {
            let wanted = match record.outcome {
                Outcome::Errored => Detail::Trouble,
                _ => Detail::Endings,
            };
            // An attempt that was never needed is counted, not told.
            if record.tries == 0 || detail < wanted {
                return None;
            }
            let attempt = AttemptId {
                pair: pair.clone(),
                index: record.index,
            };
            let count = format!("{}/{}", standing.total().ended(), standing.plan.attempts());
            let text = plain(&ending(&attempt, record));
            Some(format!("{}{count:>width$} {text}", standing.name))
        }
        _ => None,
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

/// How far a run is that goes on, in one line. Where nothing has progressed for long, the oldest attempt is named.
pub(in crate::cli) fn heartbeat(standing: &Standing, now: Duration) -> String {
    let total = standing.total();
    let mut text = format!(
        "{}{} so far: {} of {} attempts have ended: {} passed, {} failed, {} errored; {} running",
        standing.name,
        time(standing.elapsed(now)),
        total.ended(),
        total.planned,
        total.passed,
        total.failed,
        total.errored,
        total.running
    );
    if total.retrying > 0 {
        text += &format!(", {} to be tried again", total.retrying);
    }
    text += &format!("; {}", left_in_words(left(standing, now)));
    if let Some(still) = standing.stuck(now) {
        text += &format!("; nothing has progressed for {}", time(still));
        if let Some((attempt, running)) = standing.oldest() {
            text += &format!(": the oldest is {}", oldest(&attempt, running, now));
        }
    }
    plain(&text)
}

/// An attempt that has not ended: which, and for how long.
pub(super) fn oldest(attempt: &AttemptId, running: Running, now: Duration) -> String {
    let for_long = time(now.saturating_sub(running.since));
    match running.try_number {
        1 => format!("{attempt}, running for {for_long}"),
        number => format!("{attempt}, try {number}, running for {for_long}"),
    }
}

/// How much longer it takes.
pub(super) fn left_in_words(left: Left) -> String {
    match left {
        Left::Unknown => "time left unknown".to_owned(),
        Left::About(left) => format!("about {} left", time(left)),
        Left::UpTo(left) => format!("up to {} left", time(left)),
        Left::Overdue => "longer than expected".to_owned(),
    }
}

/// Whole seconds, since a figure that is drawn again and again should not flicker.
pub(super) fn time(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..10 => format!("{seconds}s"),
        seconds => report::duration(seconds as f64),
    }
}
