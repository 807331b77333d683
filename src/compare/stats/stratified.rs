//! The exact stratified conditional test. Does not know what a stratum stands for.

use std::collections::{BTreeMap, VecDeque};

use super::distribution::{Distribution, NEGLIGIBLE};
use super::{RELATIVE_TOLERANCE, Stratum};

/// What the test found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StratifiedTest {
    /// Two-sided, above 0 to 1.
    pub p_value: f64,
    /// Passes now, less those expected if nothing had changed: below 0 is a fall.
    pub excess: f64,
}

/// The exact conditional test that the odds ratio is 1 in every stratum, two-sided.
///
/// Given each stratum's passes, its passes now are hypergeometric, and their sum S over the strata is the convolution;
/// p is the sum of the probabilities of all values no more likely than the observed one, with a relative tolerance of
/// 1e-7. This is R's `mantelhaen.test(exact = TRUE)`; with one sample a side it is McNemar's exact test, with one
/// stratum Fisher's. (A. Agresti, "Categorical Data Analysis", 3rd edition, 7.3.5.) Strata of the same shape are
/// convolved by doubling, so 100,000 strata of 10 samples a side take a moment. Accurate down to [`NEGLIGIBLE`],
/// which is returned for whatever is smaller. `None` where no stratum has samples on both sides.
pub fn stratified_exact(strata: &[Stratum]) -> Option<StratifiedTest> {
    let mut shapes: BTreeMap<Shape, u64> = BTreeMap::new();
    let (mut observed, mut expected) = (0, 0.0);
    for (stratum, shape) in strata.iter().filter_map(|each| Some((each, Shape::of(each)?))) {
        *shapes.entry(shape).or_default() += 1;
        observed += u64::from(stratum.now.hits);
    }
    for (shape, times) in &shapes {
        expected += *times as f64 * shape.passes as f64 * shape.now as f64 / shape.samples as f64;
    }
    let null = null_of(&shapes, |shape, times| shape.passes_now().times(times))?;
    Some(StratifiedTest {
        p_value: two_sided(&null, observed),
        excess: observed as f64 - expected,
    })
}

/// A stratum without what fell to which side by chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Shape {
    /// Samples of both sides.
    pub(super) samples: u64,
    /// Passes of both sides.
    pub(super) passes: u64,
    /// Samples of the side `now`.
    pub(super) now: u64,
}

impl Shape {
    /// `None` without samples on both sides.
    pub(super) fn of(stratum: &Stratum) -> Option<Self> {
        stratum.is_informative().then(|| Self {
            samples: u64::from(stratum.before.of) + u64::from(stratum.now.of),
            passes: u64::from(stratum.before.hits) + u64::from(stratum.now.hits),
            now: u64::from(stratum.now.of),
        })
    }

    /// Whether its passes could have fallen otherwise.
    pub(super) fn varies(&self) -> bool {
        0 < self.passes && self.passes < self.samples
    }

    /// How many of its passes fall to the side `now` by chance.
    pub(super) fn passes_now(&self) -> Distribution {
        Distribution::hypergeometric(self.samples, self.passes, self.now)
    }
}

/// How many passes fall to the side `now` by chance, given how often there is a stratum of each shape, and how many do
/// in so many of one; `None` of none.
pub(super) fn null_of(
    shapes: &BTreeMap<Shape, u64>,
    mut passes_now: impl FnMut(Shape, u64) -> Distribution,
) -> Option<Distribution> {
    let sums = shapes.iter().map(|(shape, times)| passes_now(*shape, *times));
    sum_of_all(sums.collect())
}

/// Takes two from the front and puts their sum at the back, so that sums of like size meet.
fn sum_of_all(mut parts: VecDeque<Distribution>) -> Option<Distribution> {
    let mut sum = parts.pop_front()?;
    while let Some(next) = parts.pop_front() {
        parts.push_back(sum.plus(&next));
        sum = parts.pop_front()?;
    }
    sum.normalise();
    Some(sum)
}

/// The sum of the probabilities of all counts no more likely than the observed one.
pub(super) fn two_sided(distribution: &Distribution, observed: u64) -> f64 {
    let Some(probability) = distribution.probability(observed) else {
        return NEGLIGIBLE;
    };
    let limit = probability * (1.0 + RELATIVE_TOLERANCE);
    let p_value: f64 = distribution.mass.iter().filter(|each| **each <= limit).sum();
    p_value.min(1.0)
}
