//! When each attempt ran: one line for attempts that followed each other, so that the line that ends last is what the
//! run waited for. Knows no picture.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::super::{Line, Table};
use crate::model::{AttemptRecord, Outcome, PairSummary, Summary};
use crate::report::words::duration;

/// How many of the slowest attempts are listed.
const SLOWEST: usize = 8;

/// An attempt that starts so many seconds before another has ended may still have followed it: clocks are rounded.
const SLACK: f64 = 0.002;

/// The phases of an attempt in their order.
pub(in crate::report) fn phase_names() -> [&'static str; 6] {
    ["provision", "upload", "setup", "boot", "command", "collect"]
}

/// Seconds of each of them.
pub(super) fn phases_of(attempt: &AttemptRecord) -> [Option<f64>; 6] {
    let phases = attempt.phases;
    [
        phases.provision,
        phases.upload,
        phases.setup,
        phases.boot,
        phases.command,
        phases.collect,
    ]
}

/// What ran when.
#[derive(Debug)]
pub(in crate::report) struct Timeline {
    /// Seconds from the run's start to its end.
    pub(in crate::report) wall: f64,
    /// Lines; the first is the one that ended last.
    pub(in crate::report) lanes: usize,
    pub(in crate::report) bars: Vec<Bar>,
    /// What bounded the run.
    pub(in crate::report) bounds: Vec<Line>,
    pub(in crate::report) slowest: Table,
    /// The line of each attempt that started, by pair.
    of_pairs: Vec<Vec<Option<usize>>>,
}

/// One attempt; or all of a pair, where one command made them.
#[derive(Debug)]
pub(in crate::report) struct Bar {
    pub(in crate::report) lane: usize,
    pub(in crate::report) start: f64,
    pub(in crate::report) seconds: f64,
    pub(in crate::report) phases: [Option<f64>; 6],
    pub(in crate::report) outcome: Outcome,
    pair: usize,
    attempts: Vec<usize>,
}

impl Bar {
    fn end(&self) -> f64 {
        self.start + self.seconds
    }
}

impl Timeline {
    /// `None` where nothing ever started.
    pub(super) fn of(summary: &Summary) -> Option<Self> {
        let mut bars: Vec<Bar> = summary.pairs.iter().enumerate().flat_map(bars_of).collect();
        if bars.is_empty() {
            return None;
        }
        bars.sort_by(|one, other| {
            one.start
                .total_cmp(&other.start)
                .then(other.seconds.total_cmp(&one.seconds))
        });
        let lanes = pack(&mut bars);
        let wall = bars.iter().map(Bar::end).fold(summary.run.wall_seconds, f64::max);
        let mut of_pairs: Vec<Vec<Option<usize>>> = summary
            .pairs
            .iter()
            .map(|pair| vec![None; pair.attempts.len()])
            .collect();
        for bar in &bars {
            for attempt in &bar.attempts {
                of_pairs[bar.pair][*attempt] = Some(bar.lane);
            }
        }
        Some(Self {
            bounds: bounds(summary, &bars, wall),
            slowest: slowest(summary, &bars, wall),
            wall,
            lanes,
            bars,
            of_pairs,
        })
    }

    /// The line of each attempt of a pair.
    pub(super) fn lanes_of(&self, pair: usize) -> &[Option<usize>] {
        self.of_pairs.get(pair).map_or(&[], Vec::as_slice)
    }
}

fn bars_of((at, pair): (usize, &PairSummary)) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    for (index, attempt) in pair.attempts.iter().enumerate() {
        let Some(start) = attempt.started_offset.filter(|start| start.is_finite()) else {
            continue;
        };
        let (start, seconds) = (start.max(0.0), attempt.seconds.clamp(0.0, 1e9));
        let phases = phases_of(attempt);
        // Attempts that one command made share its time, down to the millisecond.
        let shared = bars
            .iter_mut()
            .find(|bar| bar.start == start && bar.phases == phases && phases.iter().any(Option::is_some));
        match shared {
            Some(bar) => {
                bar.seconds += seconds;
                bar.attempts.push(index);
                if bar.outcome == Outcome::Passed {
                    bar.outcome = attempt.outcome;
                }
            }
            None => bars.push(Bar {
                lane: 0,
                start,
                seconds,
                phases,
                outcome: attempt.outcome,
                pair: at,
                attempts: vec![index],
            }),
        }
    }
    bars
}

/// Puts each bar behind the one that ended last before it; gives the number of lines, the latest end first.
fn pack(bars: &mut [Bar]) -> usize {
    // Ends in microseconds, so that they are ordered and unique together with their line.
    let micros = |seconds: f64| (seconds * 1e6).round() as i64;
    let mut free: BTreeMap<(i64, usize), usize> = BTreeMap::new();
    let mut ends: Vec<f64> = Vec::new();
    for bar in bars.iter_mut() {
        let latest = Bound::Excluded((micros(bar.start + SLACK), usize::MAX));
        let before = free
            .range((Bound::Unbounded, latest))
            .next_back()
            .map(|(key, lane)| (*key, *lane));
        bar.lane = match before {
            Some((key, lane)) => {
                free.remove(&key);
                lane
            }
            None => {
                ends.push(0.0);
                ends.len() - 1
            }
        };
        ends[bar.lane] = bar.end();
        free.insert((micros(bar.end()), bar.lane), bar.lane);
    }
    let mut order: Vec<usize> = (0..ends.len()).collect();
    order.sort_by(|one, other| ends[*other].total_cmp(&ends[*one]));
    let mut places = vec![0; ends.len()];
    for (place, lane) in order.into_iter().enumerate() {
        places[lane] = place;
    }
    for bar in bars {
        bar.lane = places[bar.lane];
    }
    ends.len()
}

fn bounds(summary: &Summary, bars: &[Bar], wall: f64) -> Vec<Line> {
    let mut lines = Vec::new();
    let critical: Vec<&Bar> = bars.iter().filter(|bar| bar.lane == 0).collect();
    // Where the run's scheduling was looked at, that says it.
    let told = summary.scheduling.is_some();
    if let Some(last) = critical.last().filter(|_| !told) {
        let busy: f64 = critical.iter().map(|bar| bar.seconds).sum();
        let line = attempt_line(summary, last)
            .and(format!(" ended last, {} after the start: ", duration(last.end())));
        lines.push(match critical.len() {
            1 => line.and(format!(
                "it ran for {} of the {} ({}), from {} on",
                duration(last.seconds),
                duration(wall),
                percent(last.seconds, wall),
                duration(last.start)
            )),
            chain => line.and(format!(
                "{chain} attempts, each started where the one before had ended, ran for {} of the {} ({})",
                duration(busy),
                duration(wall),
                percent(busy, wall)
            )),
        });
    }
    let total: f64 = bars.iter().map(|bar| bar.seconds).sum();
    if wall > 0.0 {
        lines.push(Line::own(format!(
            "{} in all, {:.1} at a time on average and {} at most",
            duration(total),
            total / wall,
            most_at_once(bars),
        )));
    }
    if let Some(longest) = bars
        .iter()
        .max_by(|one, other| one.seconds.total_cmp(&other.seconds))
    {
        lines.push(Line::own(format!(
            "no strategy and no concurrency is faster than the slowest attempt: {}",
            duration(longest.seconds)
        )));
    }
    lines
}

fn most_at_once(bars: &[Bar]) -> usize {
    let starts = bars.iter().map(|bar| (bar.start + SLACK, 1_i64));
    let ends = bars.iter().map(|bar| (bar.end(), -1_i64));
    let mut changes: Vec<(f64, i64)> = starts.chain(ends).collect();
    changes.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let mut running = 0;
    let mut most = 1;
    for (_, change) in changes {
        running += change;
        most = most.max(running);
    }
    usize::try_from(most).unwrap_or_default()
}

fn slowest(summary: &Summary, bars: &[Bar], wall: f64) -> Table {
    let mut slowest: Vec<&Bar> = bars.iter().collect();
    slowest.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    let rows = slowest.into_iter().take(SLOWEST).map(|bar| {
        let pair = &summary.pairs[bar.pair];
        let most = bar
            .phases
            .iter()
            .zip(phase_names())
            .filter_map(|(seconds, name)| Some(((*seconds)?, name)))
            .max_by(|one, other| one.0.total_cmp(&other.0));
        let most = most.map(|(seconds, name)| format!("{name} {}", duration(seconds)));
        vec![
            Line::name(&pair.experiment),
            Line::name(&pair.eval),
            Line::own(numbers(pair, bar)),
            Line::own(outcome(bar.outcome)),
            Line::own(duration(bar.start)),
            Line::own(duration(bar.seconds)),
            Line::own(percent(bar.seconds, wall)),
            Line::own(most.unwrap_or_default()),
        ]
    });
    Table {
        columns: vec![
            "experiment",
            "eval",
            "attempt",
            "outcome",
            "started after",
            "took",
            "of the run",
            "longest phase",
        ],
        rows: rows.collect(),
    }
}

fn attempt_line(summary: &Summary, bar: &Bar) -> Line {
    let pair = &summary.pairs[bar.pair];
    Line::name(&pair.experiment)
        .and(" × ")
        .and_name(&pair.eval)
        .and(format!(
            ", {} {},",
            if bar.attempts.len() == 1 {
                "attempt"
            } else {
                "attempts"
            },
            numbers(pair, bar)
        ))
}

fn numbers(pair: &PairSummary, bar: &Bar) -> String {
    let indexes = bar.attempts.iter().filter_map(|at| pair.attempts.get(*at));
    let indexes: Vec<String> = indexes.map(|attempt| attempt.index.to_string()).collect();
    indexes.join(", ")
}

/// An outcome in words.
pub(super) fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Failed => "failed",
        Outcome::TimedOut => "timed out",
        Outcome::Errored => "errored",
        Outcome::Cancelled => "cancelled",
    }
}

fn percent(part: f64, of: f64) -> String {
    match of > 0.0 {
        true => format!("{:.0} %", (part / of * 100.0).min(100.0)),
        false => "n/a".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::Timeline;
    use crate::model::{AttemptRecord, Outcome, Phases, Summary};
    use crate::report::tests::fixtures::{attempt, pair, run_of};
    use crate::report::view::Line;

    fn from(start: f64, attempt: AttemptRecord) -> AttemptRecord {
        AttemptRecord {
            started_offset: Some(start),
            ..attempt
        }
    }

    /// Attempts of one pair each, by start and seconds.
    fn run(attempts: &[(f64, f64)]) -> Summary {
        let pairs = attempts.iter().enumerate().map(|(at, (start, seconds))| {
            let record = from(*start, attempt(1, Outcome::Passed, *seconds));
            pair("agent", &format!("task-{at}"), vec![record])
        });
        let mut summary = run_of(pairs.collect());
        summary.run.wall_seconds = 100.0;
        summary
    }

    fn lanes(timeline: &Timeline) -> Vec<Option<usize>> {
        timeline.of_pairs.iter().map(|attempts| attempts[0]).collect()
    }

    fn texts(lines: &[Line]) -> Vec<String> {
        lines.iter().map(crate::report::html::plain).collect()
    }

    #[test]
    fn of_a_wave_the_slowest_attempt_is_the_first_line() {
        let timeline = Timeline::of(&run(&[(0.0, 20.0), (1.0, 90.0), (0.5, 40.0)])).unwrap();
        assert_eq!(lanes(&timeline), [Some(2), Some(0), Some(1)]);
        assert_eq!(
            texts(&timeline.bounds),
            [
                "agent × task-1, attempt 1, ended last, 1m31s after the start: it ran for 1m30s of the 1m40s (90 %), from 1.0s on",
                "2m30s in all, 1.5 at a time on average and 3 at most",
                "no strategy and no concurrency is faster than the slowest attempt: 1m30s",
            ]
        );
    }

    #[test]
    fn attempts_that_follow_each_other_are_one_line_and_the_chain_that_ends_last_is_critical() {
        let timeline = Timeline::of(&run(&[(0.0, 30.0), (0.0, 50.0), (30.0, 60.0), (50.1, 5.0)])).unwrap();
        assert_eq!(lanes(&timeline), [Some(0), Some(1), Some(0), Some(1)]);
        assert_eq!(timeline.lanes, 2);
        assert!(
            texts(&timeline.bounds)[0]
                .contains("2 attempts, each started where the one before had ended, ran for 1m30s"),
            "{:?}",
            timeline.bounds
        );
    }

    #[test]
    fn attempts_that_one_command_made_are_one_bar() {
        let shared = |index| AttemptRecord {
            phases: Phases {
                command: Some(58.123),
                ..Phases::default()
            },
            ..from(2.0, attempt(index, Outcome::Passed, 30.0))
        };
        let summary = run_of(vec![pair("agent", "task", vec![shared(1), shared(2)])]);
        let timeline = Timeline::of(&summary).unwrap();
        assert_eq!((timeline.bars.len(), timeline.bars[0].seconds), (1, 60.0));
        assert_eq!(timeline.of_pairs, [[Some(0), Some(0)]]);
    }

    #[test]
    fn where_nothing_started_there_is_nothing_to_draw() {
        let never = AttemptRecord {
            started_offset: None,
            ..attempt(1, Outcome::Cancelled, 0.0)
        };
        assert!(Timeline::of(&run_of(vec![pair("agent", "task", vec![never])])).is_none());
    }
}
