//! A gate that all creations share: a refusal shuts it for all, and when its time is over one goes ahead and tries
//! whether the engine is willing again. Time is a value.

use std::time::Duration;

use super::Jitter;

/// The longest wait where the engine does not say how long: 1 s, 2 s, 4 s and so on up to it.
const LONGEST_OWN: Duration = Duration::from_secs(20);

/// No answer shuts the gate for longer: a run would not outlast it.
const LONGEST: Duration = Duration::from_secs(300);

/// Whether creations may pass.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    state: State,
    /// How often it was shut in a row.
    refusals: u32,
    jitter: Jitter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Shut {
        until: Duration,
    },
    /// One is on its way to find out.
    Probed,
}

/// What the gate says to whoever wants to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    /// Pass.
    Free,
    /// Pass, alone: the others wait for what becomes of it.
    Probe,
    /// Not before then.
    At(Duration),
    /// When the one that went ahead is back.
    AfterProbe,
}

impl Gate {
    pub(super) fn new(jitter: Jitter) -> Self {
        Self {
            state: State::Open,
            refusals: 0,
            jitter,
        }
    }

    /// What is true at `now`; changes nothing.
    pub(super) fn look(&self, now: Duration) -> Passage {
        match self.state {
            State::Open => Passage::Free,
            State::Shut { until } if now < until => Passage::At(until),
            State::Shut { .. } => Passage::Probe,
            State::Probed => Passage::AfterProbe,
        }
    }

    /// The one that was told to has gone ahead.
    pub(super) fn probe(&mut self) {
        self.state = State::Probed;
    }

    /// A creation was refused for now.
    pub(super) fn refused(&mut self, retry_after: Option<Duration>, now: Duration) {
        let wait = match retry_after {
            Some(wait) => self.jitter.stretch(wait.min(LONGEST), 1.0, 1.4),
            None => {
                let doubled = Duration::from_secs(1 << self.refusals.min(8));
                self.jitter.stretch(doubled.min(LONGEST_OWN), 0.8, 1.2)
            }
        };
        let mut until = now + wait;
        if let State::Shut { until: before } = self.state {
            until = until.max(before);
        } else {
            self.refusals += 1;
        }
        self.state = State::Shut { until };
    }

    /// The one that went ahead was not refused.
    pub(super) fn probe_passed(&mut self) {
        if self.state == State::Probed {
            self.state = State::Open;
            self.refusals = 0;
        }
    }

    /// The one that went ahead was given up before it had an answer: the next one finds out.
    pub(super) fn probe_lost(&mut self, now: Duration) {
        if self.state == State::Probed {
            self.state = State::Shut { until: now };
        }
    }
}
