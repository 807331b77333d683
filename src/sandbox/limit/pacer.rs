//! How fast sandboxes are created: a bucket of vCPUs whose rate climbs minute by minute, behind one gate. Time is a
//! value.

use std::time::Duration;

use super::Jitter;
use super::gate::{Gate, Passage};

/// A level of the rate. A second longer than the engine's minute, which begins when the first creation arrives there.
const LEVEL: Duration = Duration::from_secs(61);

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
            level: f64::INFINITY,
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
        if self.climbing.is_some_and(|(_, last)| now - last >= RESETS_AFTER) {
            self.climbing = None;
        }
        let begun = self.climbing.map_or(now, |(first, _)| first);
        let levels = ((now - begun).as_secs() / LEVEL.as_secs()) as f64;
        let a_minute = (f64::from(start) + f64::from(ramp) * levels)
            .min(f64::from(most.max(start)))
            .max(1.0);
        // A second's worth may go out at once; with what flows in after it that must not be more than the quota.
        let holds = cost.max(a_minute / 60.0);
        let flow = if holds < a_minute {
            a_minute - holds
        } else {
            a_minute
        } / 60.0;
        let come = flow * (now - self.filled_at).as_secs_f64();
        self.level = (self.level + come).min(holds);
        self.filled_at = now;
        flow
    }
}
