//! How fast sandboxes are created: a bucket of vCPUs whose rate climbs minute by minute, behind one gate. Time is a
//! value.

use std::time::Duration;

use super::Jitter;
use super::gate::{Gate, Passage};

/// A level of the rate. A second longer than the engine's minute, which begins when the first creation arrives there.
const LEVEL: Duration = Duration::from_secs(61);

/// What may go out at once at the very start, as a share of the first minute's.
const AT_ONCE: f64 = 1.0 / 3.0;

/// Without a creation for so long, the rate starts again.
const RESETS_AFTER: Duration = Duration::from_secs(600);

/// vCPUs that may be started each minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sandbox) struct Rates {
    /// In the first minute.
    pub(in crate::sandbox) start: u32,
    /// More in each further one.
    pub(in crate::sandbox) ramp: u32,
    /// At most.
    pub(in crate::sandbox) most: u32,
}

/// Decides when the next creation may go out.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    rates: Rates,
    gate: Gate,
    /// vCPUs in the bucket.
    level: f64,
    filled_at: Duration,
    /// The first creation since the rate started, and the last.
    climbing: Option<(Duration, Duration)>,
}

/// When a creation may go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Now. Whether it is the one by which the gate's others know.
    Now { probe: bool },
    /// Not before then; ask again.
    At(Duration),
    /// When what is under way has an answer.
    AfterProbe,
}

impl Pacer {
    pub(super) fn new(rates: Rates, jitter: Jitter) -> Self {
        Self {
            rates,
            gate: Gate::new(jitter),
            level: 0.0,
            filled_at: Duration::ZERO,
            climbing: None,
        }
    }

    /// Takes the turn of a creation of `cost` vCPUs, if it is now.
    pub(super) fn turn(&mut self, cost: u32, now: Duration) -> Turn {
        let passage = self.gate.look(now);
        match passage {
            Passage::At(at) => return Turn::At(at),
            Passage::AfterProbe => return Turn::AfterProbe,
            Passage::Free | Passage::Probe => {}
        }
        let cost = f64::from(cost.max(1));
        let flow = self.fill(cost, now);
        let missing = cost - self.level;
        // A remainder of rounding is no reason to wait.
        if missing > 1e-6 {
            return Turn::At(now + Duration::from_secs_f64(missing / flow).max(Duration::from_millis(1)));
        }
        self.level -= cost;
        self.climbing = Some((self.climbing.map_or(now, |(first, _)| first), now));
        let probe = passage == Passage::Probe;
        if probe {
            self.gate.probe();
        }
        Turn::Now { probe }
    }

    /// A creation was refused for now; the engine may say for how long.
    pub(super) fn refused(&mut self, retry_after: Option<Duration>, now: Duration) {
        self.gate.refused(retry_after, now);
    }

    /// The creation that went ahead was not refused.
    pub(super) fn probe_passed(&mut self) {
        self.gate.probe_passed();
    }

    /// The creation that went ahead was given up.
    pub(super) fn probe_lost(&mut self, now: Duration) {
        self.gate.probe_lost(now);
    }

    /// Lets flow in what has come since the last time. Returns how much comes each second.
    fn fill(&mut self, cost: f64, now: Duration) -> f64 {
        let Rates { start, ramp, most } = self.rates;
        let start = f64::from(start).max(1.0);
        let begun = match self.climbing {
            Some((first, last)) if now - last < RESETS_AFTER => first,
            _ => {
                self.climbing = None;
                self.level = cost.max(start * AT_ONCE);
                self.filled_at = now;
                now
            }
        };
        let levels = ((now - begun).as_secs() / LEVEL.as_secs()) as f64;
        let a_minute = (start + f64::from(ramp) * levels).min(f64::from(most).max(start));
        // What the bucket holds may go out at once; with what flows in after it that must not be more than the quota.
        let holds = cost.max(a_minute / 60.0);
        let at_once = if levels == 0.0 {
            cost.max(start * AT_ONCE)
        } else {
            holds
        };
        let flow = if at_once < a_minute {
            a_minute - at_once
        } else {
            a_minute
        } / 60.0;
        let come = flow * (now - self.filled_at).as_secs_f64();
        self.level = (self.level + come).min(holds.max(self.level));
        self.filled_at = now;
        flow
    }
}
