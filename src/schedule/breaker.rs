//! Tells a run that cannot work from one that has bad luck: its first tries all died in the same way.

use std::fmt;

use super::Ending;
use crate::model::ErrorClass;

/// How many tries have to die alike, where the run has that many.
const FIRST_TRIES: usize = 10;

/// Why a run was stopped before its plan was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// What all of its first tries died of.
    pub class: ErrorClass,
    /// How many those were.
    pub tries: usize,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { class, tries } = self;
        write!(
            f,
            "the first {tries} tries all ended with the error `{class}`, so nothing else was started"
        )
    }
}

/// Watches the first tries that finish. Cancelled ones say nothing, and are not counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Breaker {
    needed: usize,
    seen: usize,
    watching: Watching,
}

#[derive(Clone, Copy, Debug)]
enum Watching {
    Nothing,
    Class(ErrorClass),
    /// A try gave a result, or two died of different things.
    Disarmed,
}

impl Breaker {
    /// For a run that can have at most `tries` tries.
    pub(super) fn new(tries: usize) -> Self {
        Self {
            needed: tries.min(FIRST_TRIES),
            seen: 0,
            watching: Watching::Nothing,
        }
    }

    /// Takes note of a try's end.
    pub(super) fn note(&mut self, ending: &Ending) {
        if self.seen == self.needed || *ending == Ending::Cancelled {
            return;
        }
        self.seen += 1;
        self.watching = match (self.watching, ending) {
            (Watching::Nothing, Ending::Errored { class, .. }) => Watching::Class(*class),
            (Watching::Class(first), Ending::Errored { class, .. }) if first == *class => self.watching,
            _ => Watching::Disarmed,
        };
    }

    /// What all of the first tries died of, once there were enough.
    pub(super) fn tripped(&self) -> Option<Stopped> {
        match self.watching {
            Watching::Class(class) if self.seen == self.needed => Some(Stopped {
                class,
                tries: self.seen,
            }),
            Watching::Nothing | Watching::Class(_) | Watching::Disarmed => None,
        }
    }
}
