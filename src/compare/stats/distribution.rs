//! Distributions of a count, as a run of probabilities. Knows nothing of what is counted.

/// A probability below this is dropped from a distribution's tails.
pub const NEGLIGIBLE: f64 = 1e-30;

/// The probabilities of `low`, `low + 1`, …; those outside are negligible.
#[derive(Clone, Debug)]
pub(super) struct Distribution {
    pub(super) low: u64,
    /// Never empty.
    pub(super) mass: Vec<f64>,
}

impl Distribution {
    /// 0 for certain.
    fn zero() -> Self {
        Self {
            low: 0,
            mass: vec![1.0],
        }
    }

    /// How many of `drawn` things out of `total` are among the `marked` ones, both at most `total`.
    pub(super) fn hypergeometric(total: u64, marked: u64, drawn: u64) -> Self {
        let low = (marked + drawn).saturating_sub(total);
        let high = marked.min(drawn);
        let mode = (drawn + 1) * (marked + 1) / (total + 2);
        Self::grown(low, mode.clamp(low, high), high, |count| {
            let up = (marked - count) as f64 * (drawn - count) as f64;
            up / ((count + 1) as f64 * (total + count + 1 - marked - drawn) as f64)
        })
    }

    /// How many of `trials` succeed, each with a probability from 0 to below 1.
    pub(super) fn binomial(trials: u64, probability: f64) -> Self {
        let mode = ((trials + 1) as f64 * probability).floor() as u64;
        let odds = probability / (1.0 - probability);
        Self::grown(0, mode.min(trials), trials, |count| {
            odds * (trials - count) as f64 / (count + 1) as f64
        })
    }

    /// Grows outwards from the mode, so that nothing overflows, by `ratio(count)`: P(count + 1) / P(count).
    fn grown(low: u64, mode: u64, high: u64, ratio: impl Fn(u64) -> f64) -> Self {
        let mut mass = vec![0.0; (high - low + 1) as usize];
        let at = |count: u64| (count - low) as usize;
        mass[at(mode)] = 1.0;
        for count in mode..high {
            mass[at(count + 1)] = mass[at(count)] * ratio(count);
        }
        for count in (low..mode).rev() {
            mass[at(count)] = mass[at(count + 1)] / ratio(count);
        }
        let mut distribution = Self { low, mass };
        distribution.normalise();
        distribution.trim();
        distribution
    }

    /// The sum of two independent counts.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let (short, long) = if self.mass.len() < other.mass.len() {
            (&self.mass, &other.mass)
        } else {
            (&other.mass, &self.mass)
        };
        let mut mass = vec![0.0; short.len() + long.len() - 1];
        for (offset, weight) in short.iter().enumerate() {
            for (sum, each) in mass[offset..].iter_mut().zip(long) {
                *sum += weight * each;
            }
        }
        let mut sum = Self {
            low: self.low + other.low,
            mass,
        };
        sum.trim();
        sum
    }

    /// The sum of `times` independent counts like this one, by repeated doubling.
    pub(super) fn times(mut self, mut times: u64) -> Self {
        let mut sum = Self::zero();
        loop {
            if times % 2 == 1 {
                sum = sum.plus(&self);
            }
            times /= 2;
            if times == 0 {
                return sum;
            }
            self = self.plus(&self);
        }
    }

    /// The probability of `count`; `None` where it is negligible.
    pub(super) fn probability(&self, count: u64) -> Option<f64> {
        let offset = count.checked_sub(self.low)?;
        self.mass.get(usize::try_from(offset).ok()?).copied()
    }

    /// The count below which lies this share of the probability, 0 to below 1.
    pub(super) fn at(&self, share: f64) -> u64 {
        let mut below = 0.0;
        let offset = self.mass.iter().position(|each| {
            below += each;
            share < below
        });
        self.low + offset.unwrap_or(self.mass.len() - 1) as u64
    }

    /// Makes the probabilities sum to 1.
    pub(super) fn normalise(&mut self) {
        let total: f64 = self.mass.iter().sum();
        for each in &mut self.mass {
            *each /= total;
        }
    }

    fn trim(&mut self) {
        let keep = |each: &f64| *each >= NEGLIGIBLE;
        let first = self.mass.iter().position(keep).unwrap_or(0);
        let last = self.mass.iter().rposition(keep).unwrap_or(first);
        self.mass.truncate(last + 1);
        self.mass.drain(..first);
        self.low += first as u64;
    }
}
