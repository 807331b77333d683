//! The live view as lines of text: runs, a moment and the size of a terminal in, what it shows out. Draws nothing
//! itself.

use std::time::Duration;

use console::{Style, measure_text_width, truncate_str};

use super::left::left;
use super::lines::{left_in_words, oldest, time};
use super::standing::{Standing, Tally};
use crate::report::plain;

/// Shorter names of experiments tell nothing any more: columns give way first.
const LEAST_NAME: usize = 12;

/// What the view is drawn on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Canvas {
    pub(super) columns: usize,
    pub(super) rows: usize,
    pub(super) color: bool,
    /// Stands for what has no room.
    pub(super) ellipsis: &'static str,
}

/// The lines of all runs that go on; none where none does. No line is wider than the canvas, nor are there more than
/// it has rows, and its last row and column stay free.
pub(super) fn view(standings: &[Standing], now: Duration, canvas: Canvas) -> Vec<String> {
    let live: Vec<&Standing> = standings.iter().filter(|standing| standing.is_live()).collect();
    let width = canvas.columns.saturating_sub(1).max(1);
    let rows = canvas.rows.saturating_sub(1) / live.len().max(1);
    let lines = live.iter().flat_map(|standing| {
        let mut lines = of_run(
            standing,
            now,
            Canvas {
                rows,
                columns: width,
                ..canvas
            },
        );
        lines.truncate(rows);
        lines
    });
    let most = canvas.rows.saturating_sub(1);
    lines
        .take(most)
        .map(|line| truncate_str(&line, width, canvas.ellipsis).into_owned())
        .collect()
}

fn of_run(standing: &Standing, now: Duration, room: Canvas) -> Vec<String> {
    let color = room.color;
    let total = standing.total();
    let mut lines = wrapped(&headline(standing, &total, now, color), room.columns);
    let mut last = Vec::new();
    if let Some(still) = standing.stuck(now) {
        let text = format!("nothing has progressed for {}", time(still));
        last.push(paint(color).yellow().apply_to(text).to_string());
    }
    if let Some((attempt, running)) = standing.oldest() {
        last.push(format!("oldest: {}", plain(&oldest(&attempt, running, now))));
    }
    let rows = room.rows.saturating_sub(lines.len() + last.len());
    lines.extend(table(standing, Canvas { rows, ..room }));
    lines.extend(last);
    lines
}

/// The parts of the line above the table.
fn headline(standing: &Standing, total: &Tally, now: Duration, color: bool) -> Vec<String> {
    let mut parts = vec![
        paint(color)
            .bold()
            .apply_to(format!(
                "{}{}/{} attempts",
                standing.name,
                total.ended(),
                total.planned
            ))
            .to_string(),
    ];
    let counts = [
        (total.passed, "passed", paint(color).green()),
        (total.failed, "failed", paint(color).red()),
        (total.errored, "errored", paint(color).yellow()),
        (total.cancelled, "not needed", paint(color)),
        (total.running, "running", paint(color)),
        (total.retrying, "to be tried again", paint(color).yellow()),
        (total.waiting(), "waiting", paint(color)),
    ];
    for (count, word, style) in counts {
        if count > 0 {
            parts.push(style.apply_to(format!("{count} {word}")).to_string());
        }
    }
    parts.push(format!("{} so far", time(standing.elapsed(now))));
    parts.push(left_in_words(left(standing, now)));
    parts
}

fn paint(color: bool) -> Style {
    Style::new().for_stderr().force_styling(color)
}

/// Parts one after another, on as many lines as they take.
fn wrapped(parts: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if measure_text_width(line) + 3 + measure_text_width(part) <= width => {
                line.push_str(" · ");
                line.push_str(part);
            }
            _ => lines.push(part.clone()),
        }
    }
    lines
}

/// A figure of the table.
struct Column {
    title: &'static str,
    of: fn(&Tally) -> String,
}

/// The figures, the first to stay where there is little room.
const COLUMNS: [Column; 6] = [
    Column {
        title: "ended",
        of: |tally| format!("{}/{}", tally.ended(), tally.planned),
    },
    Column {
        title: "passed",
        of: |tally| number(tally.passed),
    },
    Column {
        title: "failed",
        of: |tally| number(tally.failed),
    },
    Column {
        title: "errored",
        of: |tally| number(tally.errored),
    },
    Column {
        title: "running",
        of: |tally| number(tally.running),
    },
    Column {
        title: "retrying",
        of: |tally| number(tally.retrying),
    },
];

fn number(count: usize) -> String {
    match count {
        0 => "-".to_owned(),
        count => count.to_string(),
    }
}

/// A row for each experiment, those that go on first where there is no room for all. None of a single experiment: the
/// headline says the same.
fn table(standing: &Standing, room: Canvas) -> Vec<String> {
    let experiments = standing.experiments();
    if experiments.len() < 2 || room.rows < 3 {
        return Vec::new();
    }
    let mut shown: Vec<usize> = (0..experiments.len()).collect();
    if experiments.len() + 1 > room.rows {
        shown.sort_by_key(|&at| rank(&experiments[at].1));
        shown.truncate(room.rows - 2);
        shown.sort_unstable();
    }
    let names: Vec<String> = shown.iter().map(|&at| plain(experiments[at].0)).collect();
    let longest = names.iter().map(|name| measure_text_width(name)).max();
    let longest = longest.unwrap_or_default().max("experiment".len());
    let cells = |tally: &Tally| COLUMNS.map(|column| (column.of)(tally));
    let widths: Vec<usize> = COLUMNS
        .iter()
        .map(|column| {
            let cells = experiments
                .iter()
                .map(|(_, tally)| (column.of)(tally).chars().count());
            cells.max().unwrap_or_default().max(column.title.len())
        })
        .collect();
    let mut kept = COLUMNS.len();
    let figures = |kept: usize| widths[..kept].iter().map(|width| width + 2).sum::<usize>();
    while kept > 0 && figures(kept) + longest.min(LEAST_NAME) > room.columns {
        kept -= 1;
    }
    let name_width = longest.min(room.columns.saturating_sub(figures(kept)));
    let row = |name: &str, cells: &[String]| {
        let name = truncate_str(name, name_width, room.ellipsis);
        let pad = " ".repeat(name_width - measure_text_width(&name));
        let cells = cells[..kept]
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("  {cell:>width$}"));
        format!("{name}{pad}{}", cells.collect::<String>())
    };
    let titles = COLUMNS.map(|column| column.title.to_owned());
    let mut lines = vec![
        paint(room.color)
            .dim()
            .apply_to(row("experiment", &titles))
            .to_string(),
    ];
    for (name, &at) in names.iter().zip(&shown) {
        lines.push(row(name, &cells(&experiments[at].1)));
    }
    let more = experiments.len() - shown.len();
    if more > 0 {
        let noun = if more == 1 { "experiment" } else { "experiments" };
        lines.push(format!("{} and {more} more {noun}", room.ellipsis));
    }
    lines
}

/// What is looked at first: what runs, then what waits, then what has ended.
fn rank(tally: &Tally) -> u8 {
    match tally {
        tally if tally.running + tally.retrying > 0 => 0,
        tally if tally.ended() < tally.planned => 1,
        _ => 2,
    }
}
