//! What a page shows besides the words of every rendering: each pair with its attempts, when they ran, rates with their
//! intervals, earlier runs, and the facts of the run. Knows no format.

mod evidence;
mod facts;
mod groups;
mod history;
mod pairs;
mod timeline;

use super::{Section, Topic, View};
use crate::model::Summary;

pub(in crate::report) use groups::{Grouping, Share};
pub(in crate::report) use history::History;
pub(in crate::report) use pairs::Pairs;
pub(in crate::report) use timeline::{Timeline, phase_names};

/// Everything that a page says.
pub(in crate::report) struct Page {
    pub(in crate::report) suite: String,
    pub(in crate::report) view: View,
    /// What holds for the whole run: what to know, gates, quarantine.
    pub(in crate::report) first: Vec<Section>,
    /// What else there is of pairs.
    pub(in crate::report) others: Vec<Section>,
    /// Flips as other renderings list them, for a reader without script.
    pub(in crate::report) flips: Vec<Section>,
    pub(in crate::report) pairs: Pairs,
    pub(in crate::report) timeline: Option<Timeline>,
    /// What bounded the run, and what other strategies would have come to.
    pub(in crate::report) scheduling: Vec<Section>,
    pub(in crate::report) groups: Vec<Grouping>,
    pub(in crate::report) history: Option<History>,
    pub(in crate::report) facts: super::Table,
}

pub(in crate::report) fn of(summary: &Summary) -> Page {
    let view = super::of_summary(summary);
    // Against nothing, everything would seem to have changed.
    let measured = summary.totals.passed + summary.totals.failed > 0;
    let comparison = summary.comparison.as_ref().filter(|_| measured);
    let sections = |topics: &[Topic]| -> Vec<Section> {
        let wanted = view
            .sections
            .iter()
            .filter(|section| topics.contains(&section.topic));
        wanted.cloned().collect()
    };
    let timeline = Timeline::of(summary);
    let mut facts = facts::of(summary, comparison);
    if !summary.totals.distribution.is_empty() {
        let distribution = super::sections::distribution(summary);
        facts.rows.push(vec![
            super::Line::own("pairs by attempts that passed"),
            super::Line::own(distribution),
        ]);
    }
    Page {
        suite: summary.run.suite.clone(),
        first: sections(&[Topic::Gates, Topic::Notices, Topic::Quarantine]),
        scheduling: summary
            .scheduling
            .iter()
            .map(|scheduling| super::scheduling::whole(scheduling, summary))
            .collect(),
        others: sections(&[Topic::Others]),
        flips: sections(&[Topic::Flips]),
        pairs: Pairs::of(summary, comparison, timeline.as_ref()),
        timeline,
        groups: groups::of(summary, comparison),
        history: comparison.and_then(History::of),
        facts,
        view,
    }
}
