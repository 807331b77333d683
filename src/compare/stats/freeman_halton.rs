//! The Fisher-Freeman-Halton test of a table of two columns. Does not know what its rows stand for.

use super::distribution::Distribution;
use super::{Count, RELATIVE_TOLERANCE};

/// Tables up to this many are all looked at.
const MOST_TABLES: f64 = 1e6;

/// Draws of the Monte Carlo estimate where there are more.
const DRAWS: u32 = 100_000;

/// Where the draws start, so that the same table always gives the same p-value.
const SEED: u64 = 0x6576_616c_7761_7665;

/// Whether the hits are spread over the groups in proportion to the groups' sizes: a p-value above 0 to 1.
///
/// Given all sizes and the number of hits, a table is multivariate hypergeometric; p is the sum of the probabilities
/// of all tables no more likely than the observed one, with a relative tolerance of 1e-7. (G. H. Freeman and
/// J. H. Halton, Biometrika 38, 1951; R's `fisher.test` of the hits beside the misses.) Exact while there are at most
/// a million tables; beyond, (1 + draws no more likely) / (1 + 100,000) from a fixed seed. Groups of size 0 are left
/// out. `None` without hits, and with fewer than two groups.
pub fn freeman_halton(groups: &[Count]) -> Option<f64> {
    let groups: Vec<Count> = groups.iter().copied().filter(|group| group.of > 0).collect();
    let hits: u32 = groups.iter().map(|group| group.hits).sum();
    if hits == 0 || groups.len() < 2 {
        return None;
    }
    let table = Table::new(&groups, hits);
    let observed: f64 = groups
        .iter()
        .zip(&table.ln_ways)
        .map(|(group, ln_ways)| ln_ways[group.hits as usize])
        .sum();
    let limit = observed + RELATIVE_TOLERANCE;
    Some(if table.how_many() <= MOST_TABLES {
        table.exact(limit)
    } else {
        table.estimate(limit)
    })
}

/// The margins of a table, and the logarithm of the number of ways to put so many hits into each group.
struct Table {
    sizes: Vec<usize>,
    hits: usize,
    ln_ways: Vec<Vec<f64>>,
}

impl Table {
    fn new(groups: &[Count], hits: u32) -> Self {
        let hits = hits as usize;
        let sizes: Vec<usize> = groups.iter().map(|group| group.of as usize).collect();
        let ln_ways = sizes
            .iter()
            .map(|size| {
                let mut ln_ways = vec![0.0];
                for taken in 0..hits.min(*size) {
                    let more = (size - taken) as f64 / (taken + 1) as f64;
                    ln_ways.push(ln_ways[taken] + more.ln());
                }
                ln_ways
            })
            .collect();
        Self { sizes, hits, ln_ways }
    }

    /// How many tables have these margins: the coefficient of z^hits in the product of 1 + z + … + z^size.
    fn how_many(&self) -> f64 {
        let mut ways = vec![0.0; self.hits + 1];
        ways[0] = 1.0;
        for size in &self.sizes {
            let mut window = 0.0;
            let before = ways.clone();
            for total in 0..=self.hits {
                window += before[total];
                if total > *size {
                    window -= before[total - size - 1];
                }
                ways[total] = window;
            }
        }
        ways[self.hits]
    }

    /// Visits every table. On a stack of its own, because there may be as many groups as pairs.
    fn exact(&self, limit: f64) -> f64 {
        let mut room_after: Vec<usize> = vec![0; self.sizes.len()];
        for group in (1..self.sizes.len()).rev() {
            room_after[group - 1] = room_after[group] + self.sizes[group];
        }
        let all_ways: f64 = self.ln_all_ways();
        let mut p_value = 0.0;
        let mut open = vec![(0, self.hits, 0.0)];
        while let Some((group, left, ln_ways)) = open.pop() {
            if left == 0 {
                if ln_ways <= limit {
                    p_value += f64::exp(ln_ways - all_ways);
                }
                continue;
            }
            let least = left.saturating_sub(room_after[group]);
            for taken in least..=left.min(self.sizes[group]) {
                open.push((group + 1, left - taken, ln_ways + self.ln_ways[group][taken]));
            }
        }
        p_value.min(1.0)
    }

    /// The logarithm of the number of ways to choose the hits among all.
    fn ln_all_ways(&self) -> f64 {
        let all: usize = self.sizes.iter().sum();
        (0..self.hits)
            .map(|taken| ((all - taken) as f64 / (taken + 1) as f64).ln())
            .sum()
    }

    fn estimate(&self, limit: f64) -> f64 {
        // A draw costs a step a hit, or a step a group that is a few times dearer.
        let unlikely = if self.hits <= 4 * self.sizes.len() {
            self.draw_hit_by_hit(limit)
        } else {
            self.draw_group_by_group(limit)
        };
        f64::from(1 + unlikely) / f64::from(1 + DRAWS)
    }

    /// How many of the draws are no more likely than the limit: each hit falls on one of the things not hit yet.
    fn draw_hit_by_hit(&self, limit: f64) -> u32 {
        let mut random = SplitMix64(SEED);
        let mut things: Vec<usize> = Vec::new();
        for (group, size) in self.sizes.iter().enumerate() {
            things.resize(things.len() + size, group);
        }
        let mut taken = vec![0; self.sizes.len()];
        let mut unlikely = 0;
        for _ in 0..DRAWS {
            let mut ln_ways = 0.0;
            for hit in 0..self.hits {
                let other = hit + random.below(things.len() - hit);
                things.swap(hit, other);
                let group = things[hit];
                ln_ways += self.ln_ways[group][taken[group] + 1] - self.ln_ways[group][taken[group]];
                taken[group] += 1;
            }
            for group in &things[..self.hits] {
                taken[*group] = 0;
            }
            unlikely += u32::from(ln_ways <= limit);
        }
        unlikely
    }

    /// The same by drawing each group's hits out of those that are left, by inversion of the cumulative probabilities.
    fn draw_group_by_group(&self, limit: f64) -> u32 {
        let mut random = SplitMix64(SEED);
        let all: usize = self.sizes.iter().sum();
        let mut cumulative: Vec<Vec<Option<Cumulative>>> =
            self.sizes.iter().map(|_| vec![None; self.hits + 1]).collect();
        let mut unlikely = 0;
        for _ in 0..DRAWS {
            let (mut left, mut room, mut ln_ways) = (self.hits, all, 0.0);
            for (group, size) in self.sizes.iter().enumerate() {
                if left == 0 {
                    break;
                }
                let Cumulative { low, steps } = cumulative[group][left]
                    .get_or_insert_with(|| cumulative_hypergeometric(room, *size, left));
                let share = random.share();
                let taken = *low + steps.partition_point(|step| *step <= share);
                ln_ways += self.ln_ways[group][taken];
                left -= taken;
                room -= size;
            }
            unlikely += u32::from(ln_ways <= limit);
        }
        unlikely
    }
}

/// The probabilities of at most `low`, at most `low + 1`, … without the last, which is 1.
#[derive(Clone)]
struct Cumulative {
    low: usize,
    steps: Vec<f64>,
}

fn cumulative_hypergeometric(total: usize, marked: usize, drawn: usize) -> Cumulative {
    let distribution = Distribution::hypergeometric(total as u64, marked as u64, drawn as u64);
    let mut sum = 0.0;
    let mut steps: Vec<f64> = distribution
        .mass
        .iter()
        .map(|each| {
            sum += each;
            sum
        })
        .collect();
    steps.pop();
    Cumulative {
        low: distribution.low as usize,
        steps,
    }
}

/// Sebastiano Vigna's SplitMix64: a 64-bit counter, mixed. Good enough for draws, and the same on every machine.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to below 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// From 0 to below `end`, by multiplication; its bias, below end / 2^64, is nothing here.
    fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::{Count, DRAWS, Table, freeman_halton};

    fn counts(groups: &[(u32, u32)]) -> Vec<Count> {
        groups.iter().map(|&(hits, of)| Count { hits, of }).collect()
    }

    #[test]
    fn both_ways_to_draw_agree_with_looking_at_every_table() {
        let groups = counts(&[(5, 71), (4, 41), (1, 99), (3, 30)]);
        let table = Table::new(&groups, 13);
        let limit = groups
            .iter()
            .zip(&table.ln_ways)
            .map(|(group, ways)| ways[group.hits as usize])
            .sum::<f64>()
            + 1e-7;
        let exact = table.exact(limit);
        for unlikely in [table.draw_hit_by_hit(limit), table.draw_group_by_group(limit)] {
            let estimate = f64::from(unlikely) / f64::from(DRAWS);
            // Five standard errors of 100,000 draws.
            let error = 5.0 * (exact * (1.0 - exact) / f64::from(DRAWS)).sqrt();
            assert!((estimate - exact).abs() < error, "{estimate} is not {exact}");
        }
    }

    #[test]
    fn a_table_of_many_groups_is_estimated_and_always_the_same() {
        let even = counts(&[(15, 300); 30]);
        assert_eq!(freeman_halton(&even), Some(1.0), "nothing is likelier than even");
        let mut uneven = even;
        uneven[0].hits = 60;
        assert_eq!(freeman_halton(&uneven), Some(1.0 / 100_001.0));
        uneven[0].hits = 27;
        let p_value = freeman_halton(&uneven);
        assert!(p_value.is_some_and(|p| p > 0.0 && p < 1.0));
        assert_eq!(freeman_halton(&uneven), p_value);
    }

    #[test]
    fn a_group_for_every_hit_does_not_exhaust_the_stack() {
        let mut groups = counts(&[(0, 1); 50_000]);
        groups[7].hits = 1;
        assert!(freeman_halton(&groups).is_some_and(|p| (p - 1.0).abs() < 1e-6));
    }
}
