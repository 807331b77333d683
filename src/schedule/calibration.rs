//! What the run itself says of its predictions: how far off they are, and what is usual. Decides nothing.

use std::time::Duration;

/// Estimates need at least so many attempts, and as many that have come as far, or a quarter of all where those are few.
const FEWEST: usize = 8;
/// An attempt is unusually long once it has taken longer than this share of all.
const USUAL: f64 = 0.6;
/// Predictions are worth little where the fifth of attempts that run over them most takes more than so many times what
/// the one in the middle does.
const WILD: f64 = 2.0;
/// Estimates are made anew after this much more has happened.
const NEWS: f64 = 1.1;

/// How far an attempt's command has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// What was predicted, above zero, where anything was.
    pub(super) predicted: Option<f64>,
    /// Seconds so far.
    pub(super) seconds: f64,
    /// It came to its end, rather than being stopped or still running.
    pub(super) ended: bool,
}

/// Estimates from the attempts of this run. Attempts that still run count for as long as they have run, or the short
/// ones, which end first, would be taken for all.
#[derive(Clone, Debug)]
pub(super) struct Calibration {
    finished: Vec<Seen>,
    overheads: Vec<f64>,
    /// The median of what attempts took over what was predicted.
    pub(super) bias: f64,
    /// Whether predictions, set right by the bias, still say little; they are trusted until then.
    pub(super) is_wild: bool,
    /// What most attempts take at most, in seconds; `None` is not known yet.
    pub(super) usual: Option<f64>,
    /// Seconds around the command in a fresh sandbox.
    pub(super) overhead: f64,
    is_given: bool,
    at: f64,
    after: usize,
}

impl Calibration {
    /// At the start of a run, where the time around a command may be known from elsewhere.
    pub(super) fn new(overhead: Option<Duration>) -> Self {
        Self {
            finished: Vec::new(),
            overheads: Vec::new(),
            bias: 1.0,
            is_wild: false,
            usual: None,
            overhead: overhead.map_or(0.0, |overhead| overhead.as_secs_f64()),
            is_given: overhead.is_some(),
            at: 0.0,
            after: 0,
        }
    }

    /// Takes note of an attempt that does not run any more.
    pub(super) fn add(&mut self, seen: Seen) {
        self.finished.push(seen);
    }

    /// Takes note of the time around a command in a fresh sandbox.
    pub(super) fn add_overhead(&mut self, overhead: Duration) {
        if !self.is_given {
            self.overheads.push(overhead.as_secs_f64());
        }
    }

    /// Whether enough has happened for new estimates.
    pub(super) fn is_due(&self, now: f64) -> bool {
        now > (self.at * NEWS).max(self.at + 1.0)
            || self.finished.len() as f64 >= self.after as f64 * NEWS + 1.0
    }

    /// Makes the estimates anew.
    pub(super) fn estimate(&mut self, now: f64, running: impl Iterator<Item = Seen>) {
        self.at = now;
        self.after = self.finished.len();
        if !self.overheads.is_empty() {
            self.overheads.sort_unstable_by(f64::total_cmp);
            self.overhead = self.overheads[self.overheads.len() / 2];
        }
        let seen: Vec<Seen> = self.finished.iter().copied().chain(running).collect();
        let ratios = seen
            .iter()
            .filter_map(|seen| Some((seen.seconds / seen.predicted?, seen.ended)));
        let ratios: Vec<(f64, bool)> = ratios.collect();
        let high = quantile(0.8, ratios.clone());
        self.bias = match quantile(0.5, ratios) {
            Quantile::At(ratio) => ratio,
            // Predictions are too short for sure where most attempts have run longer than that.
            Quantile::Beyond(ratio) => ratio.max(1.0),
            Quantile::Unknown => 1.0,
        };
        self.is_wild = match high {
            Quantile::At(ratio) | Quantile::Beyond(ratio) => ratio > WILD * self.bias,
            Quantile::Unknown => false,
        };
        let seconds = seen.iter().map(|seen| (seen.seconds, seen.ended));
        self.usual = match quantile(USUAL, seconds.collect()) {
            Quantile::At(seconds) => Some(seconds),
            Quantile::Beyond(_) | Quantile::Unknown => None,
        };
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Quantile {
    At(f64),
    /// Above this, for all that is known.
    Beyond(f64),
    Unknown,
}

/// The value that a `share` of all stay below, by the product-limit estimator of Kaplan and Meier: a value that did
/// not come to its end is a lower bound.
fn quantile(share: f64, mut values: Vec<(f64, bool)>) -> Quantile {
    values.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    if values.len() < FEWEST {
        return Quantile::Unknown;
    }
    let fewest = FEWEST.min(values.len() / 4);
    let mut surviving = 1.0;
    let mut reached = Quantile::Unknown;
    for (position, (value, ended)) in values.iter().enumerate() {
        let at_risk = values.len() - position;
        if at_risk < fewest {
            break;
        }
        reached = Quantile::Beyond(*value);
        if *ended {
            surviving *= 1.0 - 1.0 / at_risk as f64;
            if surviving <= 1.0 - share {
                return Quantile::At(*value);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::{Calibration, Quantile, Seen, quantile};
    use std::time::Duration;

    fn ended(seconds: f64) -> Seen {
        Seen {
            predicted: Some(100.0),
            seconds,
            ended: true,
        }
    }

    fn running(seconds: f64) -> Seen {
        Seen {
            ended: false,
            ..ended(seconds)
        }
    }

    #[test]
    fn attempts_that_still_run_are_not_taken_for_short_ones() {
        // Of 100 attempts of 1 to 100 s, those of at most 30 s have ended.
        let values = (1..=100).map(|second| (f64::from(second.min(30)), second <= 30));
        assert_eq!(quantile(0.5, values.clone().collect()), Quantile::Beyond(30.0));
        assert_eq!(quantile(0.25, values.collect()), Quantile::At(25.0));
    }

    #[test]
    fn a_few_attempts_are_no_estimate() {
        assert_eq!(quantile(0.5, vec![(1.0, true); 7]), Quantile::Unknown);
        let mut calibration = Calibration::new(None);
        calibration.add(ended(10.0));
        calibration.estimate(10.0, std::iter::empty());
        assert_eq!((calibration.bias, calibration.usual), (1.0, None));
    }

    #[test]
    fn predictions_that_are_wrong_by_a_factor_are_set_right() {
        let mut calibration = Calibration::new(None);
        (1..=20).for_each(|more| calibration.add(ended(290.0 + f64::from(more))));
        calibration.estimate(310.0, std::iter::empty());
        assert_eq!((calibration.bias, calibration.usual), (3.0, Some(302.0)));
        // Nothing has ended yet, and that alone says that they are too short.
        let mut nothing = Calibration::new(None);
        nothing.estimate(200.0, (0..20).map(|_| running(200.0)));
        assert_eq!((nothing.bias, nothing.usual), (2.0, None));
        let mut young = Calibration::new(None);
        young.estimate(50.0, (0..20).map(|_| running(50.0)));
        assert_eq!(young.bias, 1.0);
    }

    #[test]
    fn the_time_around_a_command_is_the_runs_own_where_no_other_is_known() {
        let seconds = [40, 60, 50].map(Duration::from_secs);
        let mut own = Calibration::new(None);
        let mut given = Calibration::new(Some(Duration::from_secs(7)));
        for calibration in [&mut own, &mut given] {
            seconds.iter().for_each(|each| calibration.add_overhead(*each));
            calibration.estimate(1.0, std::iter::empty());
        }
        assert_eq!((own.overhead, given.overhead), (50.0, 7.0));
    }
}
