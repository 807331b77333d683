//! The pictures of a page as SVG. Positions and sizes are attributes, never styles: the page's policy forbids those.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::model::Outcome;
use crate::report::view::page::{History, Share, Timeline, phase_names};
use crate::report::words::duration;

/// Units across a line of the timeline.
const ACROSS: f64 = 10_000.0;
/// Pixels of the lines of a timeline in all, where that leaves each one visible.
const HEIGHT: f64 = 480.0;
/// Most marks on the axis.
const MARKS: f64 = 7.0;
/// Steps between marks, in seconds.
const STEPS: [f64; 20] = [
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0,
    14_400.0, 28_800.0, 86_400.0,
];

/// The timeline: an axis, the line that ended last, and below it the others.
pub(super) fn timeline(timeline: &Timeline) -> String {
    let others = timeline.lanes.saturating_sub(1);
    let each = (HEIGHT / others.max(1) as f64).clamp(1.0, 12.0);
    let below = (others as f64 * each).ceil();
    let height = 44.0 + below;
    let mut svg = format!(
        r#"<svg id="timeline" width="100%" height="{height}" role="img" aria-label="{} attempts over {}">"#,
        timeline.bars.len(),
        duration(timeline.wall)
    );
    for (at, text) in marks(timeline.wall) {
        let _ = write!(
            svg,
            r#"<line class="mark" x1="{at:.2}%" x2="{at:.2}%" y1="0" y2="{height}"/><text class="mark" x="{at:.2}%" y="11" dx="4">{text}</text>"#
        );
    }
    for (first, lanes, top, tall) in [(0, 1, 18.0, 18.0), (1, others, 42.0, below)] {
        if lanes == 0 {
            continue;
        }
        let _ = write!(
            svg,
            r#"<svg class="lanes" data-first="{first}" data-lanes="{lanes}" x="0" y="{top}" width="100%" height="{tall}" viewBox="0 0 {ACROSS} {}" preserveAspectRatio="none">"#,
            lanes * 10
        );
        for (class, path) in paths(timeline, first, lanes) {
            let _ = write!(svg, r#"<path class="{class}" d="{path}"/>"#);
        }
        svg.push_str("</svg>");
    }
    svg + "</svg>"
}

/// One path for each kind of thing, so that a page with ten thousand attempts has a dozen of them.
fn paths(timeline: &Timeline, first: usize, lanes: usize) -> BTreeMap<&'static str, String> {
    let mut paths: BTreeMap<&str, String> = BTreeMap::new();
    let scale = match timeline.wall > 0.0 {
        true => ACROSS / timeline.wall,
        false => 0.0,
    };
    let shown = timeline
        .bars
        .iter()
        .filter(|bar| (first..first + lanes).contains(&bar.lane));
    for bar in shown {
        let top = (bar.lane - first) * 10;
        let end = bar.start + bar.seconds;
        let mut add = |class: &'static str, from: f64, to: f64| {
            let x = (from * scale).round();
            let width = ((to - from) * scale).round().max(3.0);
            let _ = write!(paths.entry(class).or_default(), "M{x} {top}h{width}v9h-{width}z");
        };
        // What no phase accounts for is seen as well.
        add(outcome(bar.outcome), bar.start, end);
        let mut at = bar.start;
        for (seconds, name) in bar.phases.iter().zip(phase_names()) {
            let Some(seconds) = *seconds else { continue };
            let to = (at + seconds.max(0.0)).min(end);
            if name != "command" && (to - at) * scale >= 1.0 {
                add(name, at, to);
            }
            at = to;
        }
    }
    paths
}

/// Outcomes sort before phases, which are drawn over them.
fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "a-passed",
        Outcome::Failed => "a-failed",
        Outcome::TimedOut => "a-timed_out",
        Outcome::Errored => "a-errored",
        Outcome::Cancelled => "a-cancelled",
    }
}

/// Where the axis is marked, in per cent, and with what.
fn marks(wall: f64) -> Vec<(f64, String)> {
    let step = STEPS
        .into_iter()
        .find(|step| wall / step <= MARKS)
        .unwrap_or(wall);
    if step <= 0.0 || wall <= 0.0 {
        return Vec::new();
    }
    (0..=MARKS as u32)
        .map(|number| f64::from(number) * step)
        .filter(|at| *at <= wall * 0.95)
        .map(|at| (at / wall * 100.0, mark(at)))
        .collect()
}

fn mark(seconds: f64) -> String {
    match seconds {
        0.0 => "0".to_owned(),
        seconds if (60.0..3600.0).contains(&seconds) && seconds % 60.0 == 0.0 => {
            format!("{} min", seconds / 60.0)
        }
        seconds if seconds >= 3600.0 && seconds % 3600.0 == 0.0 => format!("{} h", seconds / 3600.0),
        seconds => duration(seconds),
    }
}

/// Rates with their intervals on one scale from 0 to 100 %: before above, now below.
pub(super) fn interval(before: Option<&Share>, now: Option<&Share>) -> String {
    let x = |share: f64| 6.0 + share * 188.0;
    let said = |name: &str, share: Option<&Share>| {
        share.map(|share| format!("{name} {}, 95 % interval {}", share.text, share.interval()))
    };
    let label: Vec<String> = [said("baseline", before), said("this run", now)]
        .into_iter()
        .flatten()
        .collect();
    let label = if label.is_empty() {
        "nothing to show".to_owned()
    } else {
        label.join("; ")
    };
    let mut svg = format!(
        r#"<svg class="interval" width="200" height="26" viewBox="0 0 200 26" role="img" aria-label="{label}"><path class="scale" d="M6 1V25M100 1V25M194 1V25"/>"#,
    );
    let below = if before.is_some() { 18 } else { 13 };
    for (class, share, y) in [("before", before, 8), ("now", now, below)] {
        let Some(share) = share else { continue };
        let _ = write!(
            svg,
            r#"<g class="{class}"><path d="M{low:.1} {y}H{high:.1}M{low:.1} {above}V{below}M{high:.1} {above}V{below}"/><circle cx="{at:.1}" cy="{y}" r="4"/></g>"#,
            low = x(share.low),
            high = x(share.high),
            at = x(share.share),
            above = y - 3,
            below = y + 3,
        );
    }
    svg + "</svg>"
}

/// Pass rates of run after run.
pub(super) fn history(history: &History) -> String {
    let shares: Vec<(usize, &Share)> = history
        .points
        .iter()
        .enumerate()
        .filter_map(|(at, point)| Some((at, point.share.as_ref()?)))
        .collect();
    let lowest = shares.iter().map(|(_, share)| share.low).fold(1.0, f64::min);
    let highest = shares.iter().map(|(_, share)| share.high).fold(0.0, f64::max);
    let (low, high) = ((lowest * 10.0).floor() / 10.0, (highest * 10.0).ceil() / 10.0);
    let (left, right, top, bottom) = (52.0, 700.0, 14.0, 146.0);
    let of = (history.points.len().max(2) - 1) as f64;
    let x = |at: usize| left + 20.0 + (right - left - 40.0) * at as f64 / of;
    let y = |share: f64| bottom - (bottom - top) * (share - low) / (high - low).max(f64::MIN_POSITIVE);
    let mut svg = format!(
        r#"<svg class="history" viewBox="0 0 720 160" role="img" aria-label="pass rates of {} runs, the last is this one">"#,
        history.points.len()
    );
    for share in [low, (low + high) / 2.0, high] {
        let at = y(share);
        let _ = write!(
            svg,
            r#"<path class="scale" d="M{left} {at:.1}H{right}"/><text x="{}" y="{:.1}" text-anchor="end">{:.0} %</text>"#,
            left - 8.0,
            at + 4.0,
            share * 100.0
        );
    }
    let line: Vec<String> = shares
        .iter()
        .map(|(at, share)| format!("{:.1} {:.1}", x(*at), y(share.share)))
        .collect();
    if !line.is_empty() {
        let _ = write!(svg, r#"<path class="line" d="M{}"/>"#, line.join("L"));
    }
    let last = history.points.len().saturating_sub(1);
    for (at, share) in shares {
        let class = match last - at {
            0 => "now",
            1 => "before",
            _ => "earlier",
        };
        let _ = write!(
            svg,
            r#"<g class="{class}"><path d="M{x:.1} {:.1}V{:.1}"/><circle cx="{x:.1}" cy="{:.1}" r="5"/></g>"#,
            y(share.low),
            y(share.high),
            y(share.share),
            x = x(at),
        );
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::{interval, marks};

    #[test]
    fn an_axis_has_few_marks_at_round_times() {
        for wall in [0.3, 1.6, 47.0, 1032.4, 7250.0, 1e6] {
            let marks = marks(wall);
            assert!((1..=8).contains(&marks.len()), "{wall}: {marks:?}");
        }
        let texts: Vec<String> = marks(1032.4).into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["0", "5 min", "10 min", "15 min"]);
        assert!(marks(0.0).is_empty());
    }

    #[test]
    fn an_interval_of_nothing_says_so() {
        assert!(interval(None, None).contains("nothing to show"));
    }
}
