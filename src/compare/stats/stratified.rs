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
    let mut shapes: BTreeMap<(u64, u64, u64), u64> = BTreeMap::new();
    let mut observed = 0;
    for stratum in strata.iter().filter(|stratum| stratum.is_informative()) {
        let samples = u64::from(stratum.before.of) + u64::from(stratum.now.of);
        let passes = u64::from(stratum.before.hits) + u64::from(stratum.now.hits);
        *shapes
            .entry((samples, passes, u64::from(stratum.now.of)))
            .or_default() += 1;
        observed += u64::from(stratum.now.hits);
    }
    let mut expected = 0.0;
    let mut sums = VecDeque::new();
    for ((samples, passes, now), times) in shapes {
        expected += times as f64 * passes as f64 * now as f64 / samples as f64;
        sums.push_back(Distribution::hypergeometric(samples, passes, now).times(times));
    }
    let distribution = sum_of_all(sums)?;
    Some(StratifiedTest {
        p_value: two_sided(&distribution, observed),
        excess: observed as f64 - expected,
    })
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

fn two_sided(distribution: &Distribution, observed: u64) -> f64 {
    let Some(probability) = distribution.probability(observed) else {
        return NEGLIGIBLE;
    };
    let limit = probability * (1.0 + RELATIVE_TOLERANCE);
    let p_value: f64 = distribution.mass.iter().filter(|each| **each <= limit).sum();
    p_value.min(1.0)
}
