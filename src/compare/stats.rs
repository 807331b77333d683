//! The statistics of a comparison: counts in, probabilities out. Does not know what a pair or a run is.
//!
//! Everything is in linear space: probabilities are summed as they are, because sums of logarithms are slow and
//! nothing here needs a probability below [`NEGLIGIBLE`].

mod distribution;
mod freeman_halton;
mod power;
mod random;
mod stratified;

pub use distribution::NEGLIGIBLE;
pub use freeman_halton::freeman_halton;
pub use stratified::{StratifiedTest, stratified_exact};

/// Two outcomes whose probabilities differ by less than this share are equally likely, as in R.
const RELATIVE_TOLERANCE: f64 = 1e-7;

/// z of a two-sided 5 % test with 80 % power: 1.960 + 0.842.
const Z_DETECTABLE: f64 = 1.960 + 0.842;

/// z of a one-sided 95 % bound.
const Z_ONE_SIDED: f64 = 1.645;

/// How often something happened of how often it could have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// How often it happened, at most `of`.
    pub hits: u32,
    /// How often it could have.
    pub of: u32,
}

/// One stratum of a comparison: passes among samples, before and now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stratum {
    /// Of the baseline.
    pub before: Count,
    /// Of what is compared with it.
    pub now: Count,
}

impl Stratum {
    /// Whether both sides have samples. A stratum that has none on a side says nothing.
    fn is_informative(&self) -> bool {
        self.before.of > 0 && self.now.of > 0
    }
}

/// The drop of the pass share, 0 to 1, that a comparison of these strata would have seen with 80 % power at a
/// two-sided level of 5 %.
///
/// (z²/m + z √(z²/m² + 4V)) / 2n with z = 1.960 + 0.842, n strata, m the mean of √(n₁n₂), and V the sum of
/// K(N−K) / (n₁n₂(N−1)), K passes of N = n₁+n₂ samples: the drop whose square, in units of the variance expected
/// under that drop, is z². That takes the falls to be rare and the counts to be large. Up to a thousand samples the
/// exact test is tried at it, in 400 simulated comparisons from a fixed seed; where it finds less than 74 or more than
/// 86 of 100, the drop is the smallest one that it finds in 80 of 100. Of strata with samples that differ by side, the
/// larger of the drop and of the rise. `None` without strata, and where no drop that there can be is found so often.
pub fn detectable(strata: &[Stratum]) -> Option<f64> {
    let guess = half_width(strata, Z_DETECTABLE)?;
    let drop = power::adjusted(strata, guess)?;
    if strata.iter().all(|stratum| stratum.before.of == stratum.now.of) {
        return Some(drop);
    }
    let turned = |stratum: &Stratum| Stratum {
        before: stratum.now,
        now: stratum.before,
    };
    let turned: Vec<Stratum> = strata.iter().map(turned).collect();
    power::adjusted(&turned, guess).map(|rise| drop.max(rise))
}

/// The mean of q(1−q) over the groups, q being a group's own share: how noisy one sample of a group is, 0 to 1/4.
///
/// A group's own is k(n−k) / (n(n−1)), the unbiased estimate of q(1−q) from k hits of n samples (the unbiased sample
/// variance of zeros and ones). Groups of fewer than two samples say nothing of it and are left out; `None` where
/// that leaves none.
pub fn noise(groups: &[Count]) -> Option<f64> {
    let of = |group: &Count| {
        let (hits, of) = (f64::from(group.hits), f64::from(group.of));
        hits * (of - hits) / (of * (of - 1.0))
    };
    let each: Vec<f64> = groups.iter().filter(|group| group.of > 1).map(of).collect();
    (!each.is_empty()).then(|| each.iter().sum::<f64>() / each.len() as f64)
}

/// The drop that two runs of these groups would see between them, were each attempted `runs` times a side: as
/// [`detectable`], before anything is run.
///
/// The same expression with m = `runs` and V = 2 · groups · noise / `runs`, which is what V is on average between runs
/// without a change (see [`noise`]), tried in the same way, on as many groups of which 4 · noise pass every second
/// attempt, which is that noise, and the others always or never. `None` of no groups, of no runs, without a noise, and
/// where no drop that there can be is found often enough.
pub fn detectable_at(runs: u32, groups: &[Count]) -> Option<f64> {
    let noise = noise(groups).filter(|_| runs > 0)?;
    let n = groups.len() as f64;
    let guess = width(
        n,
        f64::from(runs),
        2.0 * n * noise / f64::from(runs),
        Z_DETECTABLE,
    );
    let known = groups.iter().filter(|group| group.of > 0);
    let (count, sum) = known.fold((0.0, 0.0), |(count, sum), group| {
        (count + 1.0, sum + f64::from(group.hits) / f64::from(group.of))
    });
    let flaky = (4.0 * noise * n).round().min(n);
    let passing = (sum / count * n - flaky / 2.0).round().clamp(0.0, n - flaky);
    let coins = power::coins(2 * runs, flaky as usize);
    let hits = coins
        .chain(std::iter::repeat_n(2 * runs, passing as usize))
        .chain(std::iter::repeat_n(0, (n - flaky - passing) as usize));
    let strata = hits.map(|hits| {
        let before = hits.min(runs);
        let of = |hits| Count { hits, of: runs };
        Stratum {
            before: of(before),
            now: of(hits - before),
        }
    });
    power::adjusted(&strata.collect::<Vec<Stratum>>(), guess)
}

/// The probability, 0 to 1, that at least one of `k` further attempts passes: pass@k.
///
/// 1 − C(n−c, k) / C(n, k), of c passes in n attempts: the share of all choices of k of the n attempts with a pass
/// among them, which is unbiased, as 1 − (1−c/n)ᵏ is not. (M. Chen and others, "Evaluating large language models
/// trained on code", 2021.) `None` for k = 0, and for more than there are attempts.
pub fn pass_at_k(count: Count, k: u32) -> Option<f64> {
    all_of(count.of - count.hits.min(count.of), count.of, k).map(|all_fail| 1.0 - all_fail)
}

/// The probability, 0 to 1, that each of `k` further attempts passes: pass^k.
///
/// C(c, k) / C(n, k), of c passes in n attempts: the share of all choices of k of the n attempts in which all pass,
/// which is unbiased, as (c/n)ᵏ is not. (S. Yao and others, "τ-bench", 2024.) `None` for k = 0, and for more than
/// there are attempts.
pub fn pass_hat_k(count: Count, k: u32) -> Option<f64> {
    all_of(count.hits, count.of, k)
}

/// The one-sided 95 % lower bound of a change of `delta` (−1 to 1) seen over these strata.
///
/// `delta` less the expression of [`detectable`] with z = 1.645, at least −1. `None` without strata.
pub fn lower_bound(delta: f64, strata: &[Stratum]) -> Option<f64> {
    half_width(strata, Z_ONE_SIDED).map(|width| (delta - width).max(-1.0))
}

/// Wilson's score interval of a share, both ends from 0 to 1.
///
/// Centre (k + z²/2) / (n + z²), half-width z √(k(n−k)/n + z²/4) / (n + z²) with z = 1.959964, 95 %. (E. B. Wilson,
/// "Probable inference", JASA 22, 1927; R's `prop.test(correct = FALSE)`.) `None` for a count out of nothing.
pub fn wilson(count: Count) -> Option<(f64, f64)> {
    const Z: f64 = 1.959_963_984_540_054;
    if count.of == 0 {
        return None;
    }
    let (hits, of) = (f64::from(count.hits), f64::from(count.of));
    let centre = (hits + Z * Z / 2.0) / (of + Z * Z);
    let half = Z * (hits * (of - hits) / of + Z * Z / 4.0).sqrt() / (of + Z * Z);
    Some(((centre - half).max(0.0), (centre + half).min(1.0)))
}

/// Holm's step-down adjustment of p-values, in the order given, each from 0 to 1.
///
/// The i-th smallest of m becomes the largest of (m−j+1)·p₍ⱼ₎ for j ≤ i, at most 1. (S. Holm, "A simple sequentially
/// rejective multiple test procedure", 1979; R's `p.adjust(method = "holm")`.) Empty for empty input.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut ascending: Vec<usize> = (0..p_values.len()).collect();
    ascending.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (rank, index) in ascending.into_iter().enumerate() {
        let remaining = (p_values.len() - rank) as f64;
        largest = largest.max(remaining * p_values[index]).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

/// (z²/m + z √(z²/m² + 4V)) / 2n, see [`detectable`].
fn half_width(strata: &[Stratum], z: f64) -> Option<f64> {
    let (mut strata_count, mut roots, mut variance) = (0.0, 0.0, 0.0);
    for stratum in strata.iter().filter(|stratum| stratum.is_informative()) {
        let (n1, n2) = (f64::from(stratum.before.of), f64::from(stratum.now.of));
        let passes = f64::from(stratum.before.hits) + f64::from(stratum.now.hits);
        let samples = n1 + n2;
        strata_count += 1.0;
        roots += (n1 * n2).sqrt();
        variance += passes * (samples - passes) / (n1 * n2 * (samples - 1.0));
    }
    if strata_count == 0.0 {
        return None;
    }
    Some(width(strata_count, roots / strata_count, variance, z))
}

fn width(strata: f64, samples: f64, variance: f64, z: f64) -> f64 {
    let scaled = z * z / samples;
    let root = (scaled * scaled / (z * z) + 4.0 * variance).sqrt();
    (scaled + z * root) / (2.0 * strata)
}

/// C(marked, k) / C(all, k), factor by factor, so that nothing overflows.
fn all_of(marked: u32, all: u32, k: u32) -> Option<f64> {
    if k == 0 || k > all {
        return None;
    }
    let factor = |taken: u32| f64::from(marked.saturating_sub(taken)) / f64::from(all - taken);
    Some((0..k).map(factor).product())
}

#[cfg(test)]
mod tests;
