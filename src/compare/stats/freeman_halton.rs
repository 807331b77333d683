//! The Fisher-Freeman-Halton test of a table of two columns. Does not know what its rows stand for.

use super::distribution::Distribution;
use super::random::{SEED, SplitMix64};
use super::{Count, RELATIVE_TOLERANCE};

/// Tables up to this many are all looked at.
const MOST_TABLES: f64 = 1e6;

/// Draws of the Monte Carlo estimate where there are more.
const DRAWS: u32 = 100_000;

/// Whether the hits are spread over the groups in proportion to the groups' sizes: a p-value above 0 to 1.
///
/// Given all sizes and the number of hits, a table is multivariate hypergeometric; p is the sum of the probabilities
/// of all tables no more likely than the observed one, with a relative tolerance of 1e-7. (G. H. Freeman and
/// J. H. Halton, Biometrika 38, 1951; R's `fisher.test` of the hits beside the misses.) Exact while there are at most
/// a million tables; beyond, (1 + draws no more likely) / (1 + 100,000) from a fixed seed. Groups of size 0 are left
/// out. `None` without hits, and with fewer than two groups.
pub fn freeman_halton(groups: &[Count]) -> Option<f64> {
    let mut groups: Vec<Count> = groups.iter().copied().filter(|group| group.of > 0).collect();
    let mut hits: u32 = groups.iter().map(|group| group.hits).sum();
    if hits == 0 || groups.len() < 2 {
        return None;
    }
    let misses: u32 = groups.iter().map(|group| group.of - group.hits).sum();
    if misses < hits {
        // The test is the same for both, and the fewer there are, the less there is to do.
        hits = misses;
        for group in &mut groups {
            group.hits = group.of - group.hits;
        }
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
    ///
    /// With hits at most half of all, no number on the way is larger than the last, so nothing small is lost beside
    /// something large. Too many for a float is not a number, and not at most anything.
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
        // Placing a hit costs about as much as starting half a group.
        let unlikely = self.draw(limit, self.hits > 2 * self.sizes.len());
        f64::from(1 + unlikely) / f64::from(1 + DRAWS)
    }

    /// How many draws are no more likely than the limit.
    ///
    /// Hits are placed one by one on things that have none. With `starts`, most are first drawn as if the groups were
    /// independent, by a probability that gives a few too few: for their number, these are spread as any hits are, and
    /// so they still are with the lacking ones placed. A start that has too many is drawn again.
    fn draw(&self, limit: f64, starts: bool) -> u32 {
        let mut random = SplitMix64(SEED);
        let group_of: Vec<usize> = (0..)
            .zip(&self.sizes)
            .flat_map(|(group, size)| std::iter::repeat_n(group, *size))
            .collect();
        let starts = if starts { self.starts() } else { Vec::new() };
        let mut taken = vec![0; self.sizes.len()];
        let mut unlikely = 0;
        for _ in 0..DRAWS {
            taken.fill(0);
            let mut placed = loop {
                let mut placed = 0;
                for (taken, start) in taken.iter_mut().zip(&starts) {
                    *taken = start.draw(&mut random);
                    placed += *taken;
                }
                if placed <= self.hits {
                    break placed;
                }
            };
            let started = taken.iter().zip(&self.ln_ways).take(starts.len());
            let mut ln_ways: f64 = started.map(|(taken, ln_ways)| ln_ways[*taken]).sum();
            while placed < self.hits {
                let (one, other) = random.halves();
                let group = group_of[scaled(one, group_of.len())];
                // Which places of a group are taken does not matter, so the first ones are.
                if scaled(other, self.sizes[group]) >= taken[group] {
                    ln_ways += self.ln_ways[group][taken[group] + 1] - self.ln_ways[group][taken[group]];
                    taken[group] += 1;
                    placed += 1;
                }
            }
            unlikely += u32::from(ln_ways <= limit);
        }
        unlikely
    }

    /// Each group's independent hits, their sum half a standard deviation below the hits on average.
    fn starts(&self) -> Vec<Start> {
        let (hits, all) = (self.hits as f64, self.sizes.iter().sum::<usize>() as f64);
        let deviation = (hits * (1.0 - hits / all)).sqrt();
        let probability = (hits - deviation / 2.0) / all;
        self.sizes
            .iter()
            .map(|size| Start::new(*size, probability))
            .collect()
    }
}

/// A binomial count, drawn by Walker's alias method: every column is as likely, and holds at most two counts.
struct Start {
    columns: Vec<Column>,
}

#[derive(Clone, Copy)]
struct Column {
    count: usize,
    other: usize,
    /// The share of the column that is `count`, in 2^32 parts; the rest is `other`.
    share: u32,
}

impl Start {
    /// M. D. Vose, "A linear algorithm for generating random numbers with a given distribution", 1991.
    fn new(size: usize, probability: f64) -> Self {
        let Distribution { low, mass } = Distribution::binomial(size as u64, probability);
        let mut left: Vec<f64> = mass.iter().map(|each| each * mass.len() as f64).collect();
        let mut columns: Vec<Column> = (0..mass.len())
            .map(|offset| Column {
                count: low as usize + offset,
                other: low as usize + offset,
                share: u32::MAX,
            })
            .collect();
        let (mut less, mut more): (Vec<usize>, Vec<usize>) =
            (0..mass.len()).partition(|column| left[*column] < 1.0);
        while let (Some(small), Some(&large)) = (less.pop(), more.last()) {
            columns[small].share = (left[small] * 2.0_f64.powi(32)) as u32;
            columns[small].other = columns[large].count;
            left[large] -= 1.0 - left[small];
            if left[large] < 1.0 {
                more.pop();
                less.push(large);
            }
        }
        Self { columns }
    }

    fn draw(&self, random: &mut SplitMix64) -> usize {
        let (one, other) = random.halves();
        let column = self.columns[scaled(one, self.columns.len())];
        if other < column.share {
            column.count
        } else {
            column.other
        }
    }
}

/// A random number of 32 bits, made one from 0 to below `end`. Its bias, below end / 2^32, is nothing beside the error
/// of so many draws.
fn scaled(random: u32, end: usize) -> usize {
    ((u64::from(random) * end as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::{Count, DRAWS, Table, freeman_halton};

    fn counts(groups: &[(u32, u32)]) -> Vec<Count> {
        groups.iter().map(|&(hits, of)| Count { hits, of }).collect()
    }

    #[test]
    fn drawing_with_and_without_starts_agrees_with_looking_at_every_table() {
        let groups = counts(&[(5, 71), (4, 41), (1, 99), (3, 30)]);
        let table = Table::new(&groups, 13);
        let limit = groups
            .iter()
            .zip(&table.ln_ways)
            .map(|(group, ways)| ways[group.hits as usize])
            .sum::<f64>()
            + 1e-7;
        let exact = table.exact(limit);
        for unlikely in [false, true].map(|starts| table.draw(limit, starts)) {
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
    fn hits_and_misses_give_the_same() {
        for hits in [12, 1000] {
            let groups: Vec<Count> = (0..4)
                .map(|each| Count {
                    hits: hits + 9 * each,
                    of: 1040,
                })
                .collect();
            let misses = groups.iter().map(|group| Count {
                hits: group.of - group.hits,
                of: group.of,
            });
            assert_eq!(
                freeman_halton(&misses.collect::<Vec<Count>>()),
                freeman_halton(&groups)
            );
        }
        assert_eq!(
            freeman_halton(&counts(&[(3, 3), (4, 4)])),
            Some(1.0),
            "no other table"
        );
    }

    #[test]
    fn more_tables_than_a_float_can_count_are_too_many() {
        let table = Table::new(&counts(&[(60, 300); 300]), 18_000);
        assert!(table.how_many().is_nan());
        let table = Table::new(&counts(&[(2, 5); 3]), 6);
        assert_eq!(table.how_many(), 25.0);
    }

    #[test]
    fn a_group_for_every_hit_does_not_exhaust_the_stack() {
        let mut groups = counts(&[(0, 1); 50_000]);
        groups[7].hits = 1;
        assert!(freeman_halton(&groups).is_some_and(|p| (p - 1.0).abs() < 1e-6));
    }
}
