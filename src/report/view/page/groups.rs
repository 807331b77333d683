//! Pass rates of groups of pairs with their intervals: against the baseline over what is compared, else of this run.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{Compared, Line};
use crate::compare::stats::{Count, wilson};
use crate::model::comparison::Group;
use crate::model::{Comparison, PairSummary, Summary, Verdict};
use crate::report::words::{p_number, points, rate};

/// Most groups of one grouping that are shown.
const GROUPS: usize = 60;

/// Pairs, broken down by one thing.
#[derive(Debug)]
pub(in crate::report) struct Grouping {
    pub(in crate::report) title: Line,
    /// Whether there is something to compare with.
    pub(in crate::report) compared: bool,
    pub(in crate::report) rows: Vec<Row>,
    /// Groups that are not shown.
    pub(in crate::report) more: usize,
}

/// One group.
#[derive(Debug)]
pub(in crate::report) struct Row {
    pub(in crate::report) name: Line,
    pub(in crate::report) pairs: usize,
    pub(in crate::report) before: Option<Share>,
    pub(in crate::report) now: Option<Share>,
    pub(in crate::report) change: String,
    pub(in crate::report) down: usize,
    pub(in crate::report) up: usize,
    pub(in crate::report) p: String,
}

/// Passed of all, with Wilson's 95 % interval.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::report) struct Share {
    /// As text: `50.0 % (1/2)`.
    pub(in crate::report) text: String,
    /// From 0 to 1, as its interval.
    pub(in crate::report) share: f64,
    pub(in crate::report) low: f64,
    pub(in crate::report) high: f64,
}

impl Share {
    pub(super) fn of(passed: usize, of: usize) -> Option<Self> {
        let number = |number: usize| u32::try_from(number).ok();
        let passed = passed.min(of);
        let (low, high) = wilson(Count {
            hits: number(passed)?,
            of: number(of)?,
        })?;
        Some(Self {
            text: format!("{} ({passed}/{of})", rate(passed, of)?),
            share: passed as f64 / of as f64,
            low,
            high,
        })
    }

    /// The interval in words.
    pub(in crate::report) fn interval(&self) -> String {
        format!("{:.1} % to {:.1} %", self.low * 100.0, self.high * 100.0)
    }
}

pub(super) fn of(summary: &Summary, comparison: Option<&Comparison>) -> Vec<Grouping> {
    let against = comparison.map(against_baseline).unwrap_or_default();
    if against.is_empty() {
        alone(&summary.pairs)
    } else {
        against
    }
}

fn against_baseline(comparison: &Comparison) -> Vec<Grouping> {
    let mut groupings: Vec<(&str, Vec<&Group>)> = Vec::new();
    for group in &comparison.groups {
        match groupings.iter_mut().find(|(by, _)| *by == group.by) {
            Some((_, groups)) => groups.push(group),
            None => groupings.push((&group.by, vec![group])),
        }
    }
    let of = |(by, groups): (&str, Vec<&Group>)| {
        let mut title = Line::own("By ").and_name(by);
        if let Some(found) = comparison.concentration.as_ref().filter(|found| found.by == by) {
            title = title.and(": ").and_excerpt(&found.reading);
        }
        Grouping {
            title,
            compared: true,
            more: groups.len().saturating_sub(GROUPS),
            rows: groups.into_iter().take(GROUPS).map(row).collect(),
        }
    };
    groupings.into_iter().map(of).collect()
}

fn row(group: &Group) -> Row {
    let compared = Compared {
        baseline: group.passed_baseline,
        current: group.passed_current,
        of: group.compared,
    };
    let unknown = || "n/a".to_owned();
    Row {
        name: Line::name(&group.value),
        pairs: group.compared,
        before: Share::of(group.passed_baseline, group.compared),
        now: Share::of(group.passed_current, group.compared),
        change: compared.delta().map_or_else(unknown, points),
        down: group.pass_to_fail,
        up: group.fail_to_pass,
        p: group.p_adjusted.map_or_else(unknown, p_number),
    }
}

/// By experiment, and by every label that tells pairs apart.
fn alone(pairs: &[PairSummary]) -> Vec<Grouping> {
    let decided: Vec<&PairSummary> = pairs
        .iter()
        .filter(|pair| matches!(pair.verdict, Verdict::Pass | Verdict::Fail))
        .collect();
    let names: BTreeSet<&str> = decided
        .iter()
        .flat_map(|pair| pair.labels.0.keys().map(String::as_str))
        .collect();
    let experiment = grouping("experiment", &decided, |pair| vec![pair.experiment.as_str()]);
    let labels = names.into_iter().map(|name| {
        grouping(name, &decided, |pair| {
            pair.labels.values(name).iter().map(String::as_str).collect()
        })
    });
    std::iter::once(experiment)
        .chain(labels)
        // One group says what the headline says, and groups of one pair what the grid says.
        .filter(|grouping| grouping.rows.len() > 1 && grouping.rows.len() + grouping.more < decided.len())
        .collect()
}

fn grouping<'a>(
    by: &str,
    pairs: &[&'a PairSummary],
    values: impl Fn(&'a PairSummary) -> Vec<&'a str>,
) -> Grouping {
    let mut groups: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for pair in pairs {
        for value in values(pair) {
            let (passed, of) = groups.entry(value).or_default();
            *passed += usize::from(pair.verdict == Verdict::Pass);
            *of += 1;
        }
    }
    let more = groups.len().saturating_sub(GROUPS);
    let rows = groups.into_iter().take(GROUPS).map(|(value, (passed, of))| Row {
        name: Line::name(value),
        pairs: of,
        before: None,
        now: Share::of(passed, of),
        change: String::new(),
        down: 0,
        up: 0,
        p: String::new(),
    });
    Grouping {
        title: Line::own("By ").and_name(by),
        compared: false,
        rows: rows.collect(),
        more,
    }
}

#[cfg(test)]
mod tests {
    use super::{Share, alone};
    use crate::model::Outcome;
    use crate::report::tests::fixtures::{attempt, pair};

    #[test]
    fn a_share_comes_with_its_interval() {
        let share = Share::of(9, 12).unwrap();
        assert_eq!(share.text, "75.0 % (9/12)");
        assert_eq!(share.interval(), "46.8 % to 91.1 %");
        assert_eq!(Share::of(0, 0), None, "nothing has no rate");
    }

    #[test]
    fn without_a_baseline_only_groupings_that_tell_pairs_apart_are_shown() {
        let of = |experiment: &str, eval: &str, kind: &str, id: &str| {
            let mut pair = pair(experiment, eval, vec![attempt(1, Outcome::Passed, 1.0)]);
            for (name, value) in [("kind", kind), ("id", id), ("suite", "all")] {
                pair.labels.add(name, value);
            }
            pair
        };
        let pairs = [
            of("a", "one", "text", "1"),
            of("a", "two", "text", "2"),
            of("b", "one", "number", "3"),
        ];
        let shown: Vec<String> = alone(&pairs)
            .iter()
            .map(|grouping| crate::report::html::plain(&grouping.title))
            .collect();
        assert_eq!(shown, ["By experiment", "By kind"]);
    }
}
