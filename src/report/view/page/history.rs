//! Pass rates and flips over earlier runs, the baseline and this run, all over the pairs that are compared.

use super::super::{Compared, Line, baseline_name, headline};
use super::groups::Share;
use crate::model::Comparison;
use crate::model::comparison::EarlierRun;

/// Earlier runs in the order of their time, then the baseline, then this run.
#[derive(Debug)]
pub(in crate::report) struct History {
    pub(in crate::report) points: Vec<Point>,
}

/// One run.
#[derive(Debug)]
pub(in crate::report) struct Point {
    pub(in crate::report) name: Line,
    pub(in crate::report) day: String,
    pub(in crate::report) share: Option<Share>,
    /// Flips against the baseline; `None` for the baseline itself.
    pub(in crate::report) flips: Option<(usize, usize)>,
}

impl History {
    /// `None` without earlier runs.
    pub(super) fn of(comparison: &Comparison) -> Option<Self> {
        let mut earlier: Vec<&EarlierRun> = comparison
            .history
            .iter()
            .flat_map(|history| &history.each)
            .collect();
        if earlier.is_empty() {
            return None;
        }
        // Those of which no time is known stay first.
        earlier.sort_by_key(|run| run.started_at);
        let compared = Compared::of(comparison);
        let day = |time: Option<jiff::Timestamp>| {
            time.map_or_else(String::new, |time| time.strftime("%Y-%m-%d %H:%M").to_string())
        };
        let baseline = Point {
            name: Line::own("baseline ").and_name(baseline_name(comparison)),
            day: day(comparison.baseline.started_at),
            share: Share::of(compared.baseline, compared.of),
            flips: None,
        };
        let flips = &comparison.flips;
        let now = Point {
            name: Line::own("this run"),
            day: day(comparison.current.started_at),
            share: Share::of(compared.current, compared.of),
            flips: Some((flips.pass_to_fail.len(), flips.fail_to_pass.len())),
        };
        let point = |run: &EarlierRun| Point {
            name: Line::name(run.commit.as_deref().map_or(&*run.source, headline::short)),
            day: day(run.started_at),
            share: Share::of(run.passed, run.pairs),
            flips: Some((run.pass_to_fail, run.fail_to_pass)),
        };
        let points = earlier.into_iter().map(point).chain([baseline, now]).collect();
        Some(Self { points })
    }
}
