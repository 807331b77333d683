//! The breakdown by experiment and by a label, and whether falls sit in one group. Does not decide the verdict.

use std::collections::{BTreeMap, BTreeSet};

use super::evidence::Compared;
use super::stats::{self, Count, StratifiedTest, Stratum};
use super::{exact_delta, four_decimals, significant_digits};
use crate::model::comparison::{Concentration, Group};
use crate::model::{Outcome, PairResult, ResultSet};

/// The grouping that there always is.
const EXPERIMENT: &str = "experiment";

/// The compared pairs, broken down by one thing.
#[derive(Debug)]
pub(super) struct Grouping<'a> {
    by: &'a str,
    groups: Vec<OneGroup<'a>>,
    /// Some pair is in several groups.
    overlaps: bool,
    /// Pairs that are in no group.
    left_out: usize,
}

impl Grouping<'_> {
    /// The excess of every group whose adjusted p-value is below alpha.
    pub(super) fn significant(&self, alpha: f64) -> impl Iterator<Item = f64> + '_ {
        self.groups
            .iter()
            .filter(move |group| group.p_adjusted < alpha)
            .map(|group| group.test.excess)
    }
}

#[derive(Debug)]
struct OneGroup<'a> {
    value: &'a str,
    pairs: Vec<Compared<'a>>,
    test: StratifiedTest,
    p_adjusted: f64,
}

impl OneGroup<'_> {
    fn passed_before(&self) -> usize {
        self.pairs.iter().filter(|pair| pair.passed_before()).count()
    }

    fn passed_now(&self) -> usize {
        self.pairs.iter().filter(|pair| pair.passed_now()).count()
    }

    fn pass_to_fail(&self) -> usize {
        let fell = |pair: &&Compared<'_>| pair.passed_before() && !pair.passed_now();
        self.pairs.iter().filter(fell).count()
    }

    fn fail_to_pass(&self) -> usize {
        let rose = |pair: &&Compared<'_>| !pair.passed_before() && pair.passed_now();
        self.pairs.iter().filter(rose).count()
    }
}

/// The grouping by experiment, then the one by the label, where there is one.
pub(super) fn groupings<'a>(compared: &[Compared<'a>], label: Option<&'a str>) -> Vec<Grouping<'a>> {
    let experiments = group(EXPERIMENT, compared, |pair| vec![pair.id().experiment.as_str()]);
    let by_label = label.filter(|name| *name != EXPERIMENT).map(|name| {
        group(name, compared, |pair| {
            pair.label_values(name).iter().map(String::as_str).collect()
        })
    });
    std::iter::once(experiments).chain(by_label).collect()
}

/// Every group of every grouping, as the document has them.
pub(super) fn table(groupings: &[Grouping<'_>]) -> Vec<Group> {
    let row = |by: &str, group: &OneGroup<'_>| Group {
        by: by.to_owned(),
        value: group.value.to_owned(),
        compared: group.pairs.len(),
        passed_baseline: group.passed_before(),
        passed_current: group.passed_now(),
        pass_to_fail: group.pass_to_fail(),
        fail_to_pass: group.fail_to_pass(),
        delta: exact_delta(&group.pairs).map(four_decimals),
        p_adjusted: Some(group.p_adjusted),
    };
    groupings
        .iter()
        .flat_map(|grouping| grouping.groups.iter().map(move |group| row(grouping.by, group)))
        .collect()
}

/// What a reader should know of a grouping that does not hold every pair.
pub(super) fn warnings(groupings: &[Grouping<'_>]) -> Vec<String> {
    groupings
        .iter()
        .filter(|grouping| grouping.left_out > 0)
        .map(|grouping| {
            let by = grouping.by;
            match grouping.left_out {
                _ if grouping.groups.is_empty() => format!("no compared pair has the label `{by}`"),
                1 => format!("1 compared pair has no label `{by}` and is in none of its groups"),
                many => format!("{many} compared pairs have no label `{by}` and are in none of its groups"),
            }
        })
        .collect()
}

/// Whether the flips down are spread over the groups of the last grouping as the pairs that passed before are.
///
/// A group is named only where they are not, and its own fall is significant: groups differ in how flaky they are,
/// so the spread alone would name one in a fifth of identical runs.
pub(super) fn concentration(
    groupings: &[Grouping<'_>],
    current: &ResultSet,
    alpha: f64,
) -> Option<Concentration> {
    let grouping = groupings.last()?;
    let say = |p_value, named: Option<&OneGroup<'_>>, reading| Concentration {
        by: grouping.by.to_owned(),
        p_value,
        named: named.map(|group| group.value.to_owned()),
        reading,
    };
    if grouping.overlaps {
        let by = grouping.by;
        return Some(say(None, None, format!("pairs have several values of `{by}`")));
    }
    if grouping.groups.is_empty() {
        return Some(say(None, None, "there are no groups".to_owned()));
    }
    let hit = grouping
        .groups
        .iter()
        .filter(|group| group.pass_to_fail() > 0)
        .count();
    if hit == 0 {
        return Some(say(None, None, "no PASS→FAIL".to_owned()));
    }
    let counts: Vec<Count> = grouping.groups.iter().map(falls).collect();
    let Some(p_value) = stats::freeman_halton(&counts).map(significant_digits) else {
        return Some(say(
            None,
            None,
            "only one group has pairs that passed before".to_owned(),
        ));
    };
    let named = grouping
        .groups
        .iter()
        .filter(|group| p_value < alpha && group.p_adjusted < alpha && group.test.excess < 0.0)
        .filter(|group| group.pass_to_fail() > 0)
        .min_by(|a, b| {
            a.p_adjusted
                .total_cmp(&b.p_adjusted)
                .then(a.test.p_value.total_cmp(&b.test.p_value))
        });
    let reading = match named {
        Some(group) if has_broken_attempts(current, grouping.by, group.value) => {
            format!("points to throttling in {}", group.value)
        }
        Some(group) => format!("concentrated in {}", group.value),
        None if hit == 1 => "all in 1 group, which may be chance".to_owned(),
        None => format!("scattered over {hit} groups"),
    };
    Some(say(Some(p_value), named, reading))
}

/// PASS→FAIL of the pairs that passed before.
fn falls(group: &OneGroup<'_>) -> Count {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Count {
        hits: count(group.pass_to_fail()),
        of: count(group.passed_before()),
    }
}

/// Whether attempts of this run timed out or errored, as throttled ones do, in any pair of a group, compared or not.
fn has_broken_attempts(current: &ResultSet, by: &str, value: &str) -> bool {
    let is_in = |pair: &&PairResult| {
        if by == EXPERIMENT {
            pair.id.experiment.as_str() == value
        } else {
            pair.labels.has(by, value)
        }
    };
    current
        .pairs
        .iter()
        .filter(is_in)
        .flat_map(|pair| pair.samples.iter().flatten())
        .any(|sample| matches!(sample.outcome, Outcome::TimedOut | Outcome::Errored))
}

fn group<'a>(
    by: &'a str,
    compared: &[Compared<'a>],
    values: impl Fn(&Compared<'a>) -> Vec<&'a str>,
) -> Grouping<'a> {
    let mut members: BTreeMap<&str, Vec<Compared<'a>>> = BTreeMap::new();
    let (mut overlaps, mut left_out) = (false, 0);
    for pair in compared {
        let values: BTreeSet<&str> = values(pair).into_iter().collect();
        overlaps |= values.len() > 1;
        left_out += usize::from(values.is_empty());
        for value in values {
            members.entry(value).or_default().push(*pair);
        }
    }
    let mut groups: Vec<OneGroup<'a>> = members
        .into_iter()
        .filter_map(|(value, pairs)| {
            let strata: Vec<Stratum> = pairs.iter().map(|pair| pair.stratum).collect();
            let test = stats::stratified_exact(&strata)?;
            Some(OneGroup {
                value,
                pairs,
                test,
                p_adjusted: test.p_value,
            })
        })
        .collect();
    let p_values: Vec<f64> = groups.iter().map(|group| group.test.p_value).collect();
    for (group, adjusted) in groups.iter_mut().zip(stats::holm(&p_values)) {
        group.p_adjusted = significant_digits(adjusted);
    }
    Grouping {
        by,
        groups,
        overlaps,
        left_out,
    }
}
