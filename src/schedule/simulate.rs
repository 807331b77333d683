//! A run in simulated time, by the very state machine that drives a real one.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::{Action, AttemptRef, Ending, Scheduler, Spec};

/// One try in simulated time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Whose try it is.
    pub attempt: AttemptRef,
    /// From 1.
    pub try_number: u32,
    /// It ran in the sandbox that the attempt before left.
    pub kept: bool,
    /// When it started.
    pub start: Duration,
    /// When it ended, or was stopped.
    pub end: Duration,
    /// It was stopped before its end, so that what it would have given is not known.
    pub stopped: bool,
}

/// A simulated run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Every try, in the order of their starts.
    pub spans: Vec<Span>,
    /// When the last one ended.
    pub wall: Duration,
    /// How long sandboxes were held, all together.
    pub sandbox_time: Duration,
}

/// Runs `spec` in simulated time. `course` says how long the command of an attempt's try takes and how it ends;
/// `overhead` says, for each fresh sandbox in the order of their starts and by the time of its start, how long the time
/// around the command is. What is cancelled stops at once.
pub fn simulate(
    spec: Spec,
    mut course: impl FnMut(AttemptRef, u32) -> (Duration, Ending),
    mut overhead: impl FnMut(Duration) -> Duration,
) -> Timeline {
    let mut scheduler = Scheduler::new(spec);
    let mut running = Running::default();
    let mut spans: Vec<Span> = Vec::new();
    let mut now = Duration::ZERO;
    loop {
        let actions = scheduler.next(now);
        let is_settled = actions.is_empty();
        for action in actions {
            match action {
                Action::Start {
                    attempt,
                    try_number,
                    kept,
                } => {
                    scheduler.hold(attempt, now);
                    let (command, ending) = course(attempt, try_number);
                    let around = if kept { Duration::ZERO } else { overhead(now) };
                    let end = now.saturating_add(around).saturating_add(command);
                    running.add(attempt, end, spans.len(), ending);
                    spans.push(Span {
                        attempt,
                        try_number,
                        kept,
                        start: now,
                        end,
                        stopped: false,
                    });
                }
                Action::Cancel { attempt, .. } => {
                    if let Some(position) = running.remove(attempt) {
                        spans[position].end = now;
                        spans[position].stopped = true;
                        scheduler.end(attempt, Ending::Cancelled, now);
                    }
                }
                Action::Skip { .. } | Action::GiveUp { .. } => {}
            }
        }
        // A cancelled try has left its place, perhaps to another one.
        if is_settled {
            let times = [running.next_end(), scheduler.wake_at()];
            let Some(next) = times.into_iter().flatten().min() else {
                break;
            };
            now = next;
            if let Some((attempt, ending)) = running.pop(now) {
                scheduler.end(attempt, ending, now);
            }
        }
    }
    Timeline {
        wall: now,
        sandbox_time: spans.iter().fold(Duration::ZERO, |sum, span| {
            sum.saturating_add(span.end.saturating_sub(span.start))
        }),
        spans,
    }
}

/// Tries that run, by when they end.
#[derive(Default)]
struct Running {
    /// With the position of their spans, so that of two that end together the one that started first does so first.
    by_end: BTreeMap<(Duration, usize), (AttemptRef, Ending)>,
    keys: HashMap<AttemptRef, (Duration, usize)>,
}

impl Running {
    fn add(&mut self, attempt: AttemptRef, end: Duration, position: usize, ending: Ending) {
        self.by_end.insert((end, position), (attempt, ending));
        self.keys.insert(attempt, (end, position));
    }

    fn remove(&mut self, attempt: AttemptRef) -> Option<usize> {
        let key = self.keys.remove(&attempt)?;
        self.by_end.remove(&key);
        Some(key.1)
    }

    fn next_end(&self) -> Option<Duration> {
        self.by_end.first_key_value().map(|((end, _), _)| *end)
    }

    /// Takes the first that has ended at `now`.
    fn pop(&mut self, now: Duration) -> Option<(AttemptRef, Ending)> {
        let entry = self.by_end.first_entry().filter(|entry| entry.key().0 <= now)?;
        let (attempt, ending) = entry.remove();
        self.keys.remove(&attempt);
        Some((attempt, ending))
    }
}
