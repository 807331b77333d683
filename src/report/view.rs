//! The one view model behind all renderings: what is said, in which order, in which words. Knows no format.

pub(super) mod calibration;
mod headline;
pub(super) mod page;
mod scheduling;
mod sections;
mod sentences;
mod table;

use crate::model::summary::Conclusion;
use crate::model::{CancelReason, Comparison, RunFacts, Summary};

use super::words;

/// Most rows of one kind that a section shows.
const MOST_ROWS: usize = 25;

/// Says once what a flip is.
const SCREEN: &str = "a flip is a screen, not proof";

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Span {
    /// Our own words.
    Own(String),
    /// A name from outside.
    Name(String),
    /// A text from outside, of which the beginning is shown.
    Excerpt(String),
    /// A page; the address is from outside.
    Link { text: &'static str, url: String },
}

/// What stands in one line or cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line(pub(super) Vec<Span>);

impl Line {
    pub(super) fn own(text: impl Into<String>) -> Self {
        Self::default().and(text)
    }

    pub(super) fn name(name: impl ToString) -> Self {
        Self::default().and_name(name)
    }

    /// `2/2`, `pass` or `fail` as our own word; anything else that stands in its place is a name from outside.
    fn result(text: &str) -> Self {
        let is_number = |text: &str| text.parse::<u32>().is_ok_and(|number| number.to_string() == text);
        let is_ratio = text
            .split_once('/')
            .is_some_and(|(passed, of)| is_number(passed) && is_number(of));
        if is_ratio || ["pass", "fail"].contains(&text) {
            Self::own(text)
        } else {
            Self::name(text)
        }
    }

    pub(super) fn excerpt(text: &str) -> Self {
        Self::default().and_excerpt(text)
    }

    pub(super) fn and(self, text: impl Into<String>) -> Self {
        self.with(Span::Own(text.into()))
    }

    pub(super) fn and_name(self, name: impl ToString) -> Self {
        self.with(Span::Name(name.to_string()))
    }

    pub(super) fn and_excerpt(self, text: &str) -> Self {
        self.with(Span::Excerpt(text.to_owned()))
    }

    fn with(mut self, span: Span) -> Self {
        self.0.push(span);
        self
    }

    fn joined(lines: Vec<Self>, separator: &str) -> Self {
        let mut joined = Self::default();
        for line in lines {
            if !joined.0.is_empty() {
                joined = joined.and(separator);
            }
            joined.0.extend(line.0);
        }
        joined
    }
}

/// Rows of cells under their columns' names; without names where rows speak for themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) columns: Vec<&'static str>,
    pub(super) rows: Vec<Vec<Line>>,
}

/// Whether something is good or bad news.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tone {
    #[default]
    Neutral,
    Good,
    Bad,
}

/// What a section is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    Notices,
    Gates,
    Flips,
    Groups,
    /// What only a run says that is compared with nothing.
    Alone,
    Quarantine,
    Attempts,
    Scheduling,
    Others,
}

/// Details under a title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) topic: Topic,
    pub(super) tone: Tone,
    pub(super) title: Line,
    pub(super) table: Table,
    /// Rows that are not shown.
    pub(super) more: usize,
}

/// Everything that a rendering says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    pub(super) tone: Tone,
    pub(super) headline: Line,
    pub(super) counts: Line,
    /// What the comparison says in plain sentences.
    pub(super) sentences: Vec<Line>,
    /// Which commits and runs; `None` where nothing is known.
    pub(super) provenance: Option<Line>,
    pub(super) table: Table,
    /// In the order of their weight.
    pub(super) sections: Vec<Section>,
    pub(super) footer: Line,
}

pub(super) fn of_summary(summary: &Summary) -> View {
    let measured = summary.totals.passed + summary.totals.failed > 0;
    // Against nothing, everything would seem to have changed.
    let comparison = summary.comparison.as_ref().filter(|_| measured);
    let mut sections = Vec::new();
    let warnings = comparison.map_or(&[][..], |comparison| &comparison.warnings);
    sections.extend(sections::notices(summary.notices.iter().chain(warnings)));
    sections.extend(sections::gates(&summary.gates));
    if let Some(comparison) = comparison {
        sections.extend(sections::flips(comparison, Some(summary)));
        sections.extend(sections::fewer_passes(comparison));
        sections.extend(sections::groups(comparison));
    } else {
        sections.extend(sections::experiments(summary));
        sections.extend(sections::failed(summary));
    }
    sections.extend(sections::quarantine(summary));
    sections.extend(sections::attempts(summary));
    let scheduling = summary.scheduling.as_ref();
    sections.extend(scheduling.map(|scheduling| scheduling::section(scheduling, summary)));
    sections.extend(sections::others(comparison, Some(summary)));
    View {
        tone: match (summary.run.conclusion, comparison) {
            (Conclusion::Empty | Conclusion::Failure, _) => Tone::Bad,
            (_, comparison) => comparison.map_or(Tone::Neutral, headline::tone),
        },
        headline: headline::of_summary(summary, comparison),
        counts: headline::counts(summary, comparison),
        sentences: comparison.map_or_else(Vec::new, sentences::of),
        provenance: headline::provenance(&summary.run, comparison),
        table: table::of_summary(summary, comparison),
        sections,
        footer: footer(summary, comparison),
    }
}

/// A run that goes on: what has ended so far is no result yet.
pub(super) fn of_running(summary: &Summary) -> View {
    let row = |name: &str, value: String| vec![Line::own(name), Line::own(value)];
    let attempts = &summary.totals.attempts;
    let records = summary.pairs.iter().flat_map(|pair| &pair.attempts);
    // Until the run is over, this is the reason of those that have no record yet; any other is known of one that ended.
    let not_ended = records.filter(|record| record.reason == Some(CancelReason::Run));
    let ended = attempts.planned.saturating_sub(not_ended.count());
    View {
        tone: Tone::Neutral,
        headline: Line::own(format!(
            "running, {ended} of {} attempts have ended",
            attempts.planned
        )),
        counts: Line::own("the result takes this comment's place when the run has ended"),
        sentences: Vec::new(),
        provenance: headline::provenance(&summary.run, None),
        table: Table {
            columns: vec!["", "so far"],
            rows: vec![
                row("attempts passed", attempts.passed.to_string()),
                row(
                    "failed or timed out",
                    (attempts.failed + attempts.timed_out).to_string(),
                ),
                row("errored", attempts.errored.to_string()),
            ],
        },
        sections: Vec::new(),
        footer: footer(summary, None),
    }
}

pub(super) fn of_comparison(comparison: &Comparison) -> View {
    let mut sections = Vec::new();
    sections.extend(sections::notices(comparison.warnings.iter()));
    sections.extend(sections::flips(comparison, None));
    sections.extend(sections::fewer_passes(comparison));
    sections.extend(sections::groups(comparison));
    sections.extend(sections::others(Some(comparison), None));
    View {
        tone: headline::tone(comparison),
        headline: headline::of_comparison(comparison),
        counts: headline::comparison_counts(comparison, None),
        sentences: sentences::of(comparison),
        provenance: headline::comparison_provenance(comparison),
        table: table::of_comparison(comparison),
        sections,
        footer: Line::own(SCREEN),
    }
}

/// Passed pairs of both sides, over the compared ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Compared {
    baseline: usize,
    current: usize,
    of: usize,
}

impl Compared {
    /// Current less baseline, from the counts: the document's delta is rounded already, and rounding twice can be
    /// off by a tenth.
    fn delta(self) -> Option<f64> {
        (self.of > 0).then(|| (self.current as f64 - self.baseline as f64) / self.of as f64)
    }

    /// The document has rates, rounded; exact counts are those of a side that was compared whole, or the sum over
    /// experiments, of which every pair has one.
    fn of(comparison: &Comparison) -> Self {
        let of = comparison.compared;
        let groups = || comparison.groups.iter().filter(|group| group.by == "experiment");
        let grouped = groups().map(|group| group.compared).sum::<usize>() == of;
        let rounded = |rate: Option<f64>| (rate.unwrap_or_default() * of as f64).round() as usize;
        let sides = [&comparison.baseline, &comparison.current];
        let [baseline, current] = sides.map(|side| (side.pairs == of).then_some(side.passed));
        let by_group = |exact: Option<usize>, sum: usize, rate| {
            exact
                .or(grouped.then_some(sum))
                .unwrap_or_else(|| rounded(rate))
                .min(of)
        };
        Self {
            baseline: by_group(
                baseline,
                groups().map(|group| group.passed_baseline).sum(),
                comparison.pass_rate.baseline,
            ),
            current: by_group(
                current,
                groups().map(|group| group.passed_current).sum(),
                comparison.pass_rate.current,
            ),
            of,
        }
    }
}

/// Branch or tag, else the source as it was named.
fn baseline_name(comparison: &Comparison) -> &str {
    let baseline = &comparison.baseline;
    baseline.reference.as_deref().unwrap_or(&baseline.source)
}

/// How many at once, and why.
fn concurrency(run: &RunFacts) -> Line {
    let number = run.concurrency.to_string();
    match run.concurrency_reason.as_str() {
        "" => Line::own(number),
        reason if reason.starts_with(&number) => Line::excerpt(reason),
        reason => Line::own(format!("{number}: ")).and_excerpt(reason),
    }
}

fn footer(summary: &Summary, comparison: Option<&Comparison>) -> Line {
    let run = &summary.run;
    let mut parts = vec![
        Line::own(run.strategy.to_string()),
        Line::own(words::count(run.runs as usize, "attempt", "attempts")),
        Line::own(table::policy(run.policy)),
    ];
    let Line(concurrency) = concurrency(run);
    parts.push(Line([Line::own("concurrency ").0, concurrency].concat()));
    parts.extend(table::warm(summary).map(Line::own));
    if summary.totals.attempts.retried > 0 {
        let retried = words::count(summary.totals.attempts.retried, "attempt", "attempts");
        parts.push(Line::own(format!("{retried} tried again")));
    }
    let mut footer = Line::joined(parts, ", ");
    if comparison.is_some() {
        footer = footer.and(format!(" · {SCREEN}"));
    }
    footer.and(" · evalwave ").and_name(&summary.tool.version)
}
