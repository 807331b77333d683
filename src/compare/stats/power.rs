//! How often the exact test finds a drop, tried on strata like those at hand. Does not know what a stratum stands for.

use std::collections::{BTreeMap, HashMap};

use super::Stratum;
use super::distribution::Distribution;
use super::random::{SEED, SplitMix64};
use super::stratified::{Shape, null_of, two_sided};

/// Two-sided.
const LEVEL: f64 = 0.05;

/// Simulated comparisons: what is found 80 times of 100 is then known to 2 in 100.
const DRAWS: usize = 400;

/// How many of them are to find a drop: 80 of 100.
const ENOUGH: usize = DRAWS * 4 / 5;

/// A drop that this many find is as good as one that exactly [`ENOUGH`] do: 74 to 86 of 100.
const NEARLY: std::ops::RangeInclusive<usize> = DRAWS * 74 / 100..=DRAWS * 86 / 100;

/// Comparisons of more samples are large enough for a formula, and too large to be tried so often.
const MOST_SAMPLES: u64 = 1000;

/// `guess`, if the exact test finds a drop of this size about 80 times of 100 (always assumed beyond a thousand
/// samples), else the smallest drop of the pass share that it does find; `None` where it finds none that there can be.
///
/// Tried is a change after which some strata, each as likely as any other, have no pass on the side `now`. The rest
/// is noise as at hand: of a stratum's passes as many fall to either side as chance has it, and a stratum whose passes
/// vary may be drawn in place of another, since another run would have others.
pub(super) fn adjusted(strata: &[Stratum], guess: f64) -> Option<f64> {
    let shapes: Vec<Shape> = strata.iter().filter_map(Shape::of).collect();
    let share = |shape: &Shape| shape.passes as f64 / shape.samples as f64;
    let most = shapes.iter().map(share).sum::<f64>() / shapes.len() as f64;
    if shapes.iter().map(|shape| shape.samples).sum::<u64>() > MOST_SAMPLES {
        return Some(guess).filter(|drop| *drop <= most);
    }
    let mut trials = Trials::new(&shapes);
    if guess <= most && NEARLY.contains(&trials.found(guess / most)) {
        return Some(guess);
    }
    trials.smallest().map(|fallen| fallen * most)
}

/// How often each of some fair coins shows heads in so many throws, spread as evenly as their number allows.
pub(super) fn coins(throws: u32, coins: usize) -> impl Iterator<Item = u32> {
    let heads = Distribution::binomial(u64::from(throws), 0.5);
    (0..coins).map(move |coin| heads.at((coin as f64 + 0.5) / coins as f64) as u32)
}

/// The passes now of so many strata of a shape, where they were needed so far.
type Nulls = HashMap<(Shape, u64), Distribution>;

/// Simulated comparisons without a change, and who falls first in each.
struct Trials {
    draws: Vec<Draw>,
    nulls: Nulls,
}

struct Draw {
    /// The strata whose passes vary.
    shapes: BTreeMap<Shape, u64>,
    /// Their passes now.
    passes: u64,
    /// Those that have something to lose, the first to fall first.
    falls: Vec<Fall>,
}

struct Fall {
    /// It falls once this share of all strata does.
    at: f64,
    shape: Shape,
    /// What it loses.
    passes: u64,
}

impl Trials {
    /// At least one shape.
    fn new(shapes: &[Shape]) -> Self {
        let mut strata: Vec<Drawn> = shapes.iter().map(Drawn::of).collect();
        strata.sort_by_key(|drawn| drawn.shape);
        let mut random = SplitMix64(SEED);
        Self {
            draws: (0..DRAWS).map(|_| Draw::new(&strata, &mut random)).collect(),
            nulls: HashMap::new(),
        }
    }

    /// How many draws find it when this share of all strata falls.
    fn found(&mut self, share: f64) -> usize {
        let Self { draws, nulls } = self;
        let found = draws.iter().filter(|draw| {
            let fallen = draw.falls.partition_point(|fall| fall.at <= share);
            draw.is_found(fallen, nulls)
        });
        found.count()
    }

    /// The smallest share of all strata whose fall [`ENOUGH`] draws find.
    fn smallest(&mut self) -> Option<f64> {
        let Self { draws, nulls } = self;
        let mut shares: Vec<f64> = draws.iter().filter_map(|draw| draw.smallest(nulls)).collect();
        shares.sort_by(f64::total_cmp);
        shares.get(ENOUGH - 1).copied()
    }
}

/// What a stratum is drawn from.
struct Drawn {
    shape: Shape,
    varies: bool,
    passes_now: Distribution,
}

impl Drawn {
    fn of(shape: &Shape) -> Self {
        Self {
            shape: *shape,
            varies: shape.varies(),
            passes_now: shape.passes_now(),
        }
    }
}

impl Draw {
    fn new(strata: &[Drawn], random: &mut SplitMix64) -> Self {
        let mut draw = Self {
            shapes: BTreeMap::new(),
            passes: 0,
            falls: Vec::with_capacity(strata.len()),
        };
        for own in strata {
            let other = &strata[(random.share() * strata.len() as f64) as usize];
            let drawn = if own.varies || other.varies { other } else { own };
            let passes = drawn.passes_now.at(random.share());
            if drawn.varies {
                *draw.shapes.entry(drawn.shape).or_default() += 1;
                draw.passes += passes;
            }
            let at = random.share();
            if passes > 0 {
                let shape = drawn.shape;
                draw.falls.push(Fall { at, shape, passes });
            }
        }
        draw.falls
            .sort_unstable_by(|one, other| one.at.total_cmp(&other.at));
        draw
    }

    /// The share of all strata whose fall is found.
    fn smallest(&self, nulls: &mut Nulls) -> Option<f64> {
        let (mut fewest, mut most) = (0, self.falls.len());
        if !self.is_found(most, nulls) {
            return None;
        }
        while fewest < most {
            let half = usize::midpoint(fewest, most);
            if self.is_found(half, nulls) {
                most = half;
            } else {
                fewest = half + 1;
            }
        }
        Some(most.checked_sub(1).map_or(0.0, |last| self.falls[last].at))
    }

    fn is_found(&self, fallen: usize, nulls: &mut Nulls) -> bool {
        let mut shapes = self.shapes.clone();
        let mut observed = self.passes;
        for fall in &self.falls[..fallen] {
            if let Some(times) = shapes.get_mut(&fall.shape) {
                *times -= 1;
                observed -= fall.passes;
            }
            let passes = fall.shape.passes - fall.passes;
            let after = Shape { passes, ..fall.shape };
            if after.varies() {
                *shapes.entry(after).or_default() += 1;
            }
        }
        shapes.retain(|_, times| *times > 0);
        let null = null_of(&shapes, |shape, times| {
            let null = nulls.entry((shape, times));
            null.or_insert_with(|| shape.passes_now().times(times)).clone()
        });
        null.is_some_and(|null| two_sided(&null, observed) < LEVEL)
    }
}
