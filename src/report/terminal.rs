//! A view as text in columns for a terminal. Knows neither its width nor whether it is one.

use super::escape::{plain, plain_excerpt};
use super::view::{Line, Section, Span, Table, Tone, Topic, View};
use super::words::{padded, width};

/// What a terminal shows below the table, in this order; the rest is in the reports.
const TOPICS: [Topic; 7] = [
    Topic::Flips,
    Topic::Alone,
    Topic::Quarantine,
    Topic::Others,
    Topic::Scheduling,
    Topic::Gates,
    Topic::Notices,
];

pub(super) fn render(view: &View, color: bool) -> String {
    let paint = Paint { color };
    let mut text = format!(
        "{}\n{}\n",
        paint.title(&line(&view.headline), view.tone),
        line(&view.counts)
    );
    for sentence in &view.sentences {
        text += &format!("{}\n", line(sentence));
    }
    if let Some(provenance) = &view.provenance {
        text += &format!("{}\n", line(provenance));
    }
    text += &format!("\n{}", table(&view.table, ""));
    for topic in TOPICS {
        for section in view.sections.iter().filter(|section| section.topic == topic) {
            text += &render_section(section, paint);
        }
    }
    text + &format!("\n{}\n", line(&view.footer))
}

fn render_section(section: &Section, paint: Paint) -> String {
    let more = match section.more {
        0 => String::new(),
        more => format!("  … and {more} more\n"),
    };
    let title = paint.title(&line(&section.title), section.tone);
    format!("\n{title}\n{}{more}", table(&section.table, "  "))
}

/// Columns as wide as their widest cell, two spaces apart, nothing behind the last.
fn table(table: &Table, indent: &str) -> String {
    let names = table
        .columns
        .iter()
        .map(|&name| name.to_owned())
        .collect::<Vec<_>>();
    let mut rows: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| row.iter().map(line).collect())
        .collect();
    if !names.is_empty() {
        rows.insert(0, names);
    }
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter()
                .filter_map(|row| Some(width(row.get(column)?)))
                .max()
                .unwrap_or_default()
        })
        .collect();
    let lines = rows.iter().map(|row| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| padded(cell, *width));
        format!("{indent}{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    });
    lines.collect()
}

fn line(line: &Line) -> String {
    let spans = line.0.iter().map(|span| match span {
        Span::Own(text) => text.clone(),
        Span::Name(name) => plain(name),
        Span::Excerpt(text) => plain_excerpt(text),
        Span::Link { text, url } => format!("{text} {}", plain(url)),
    });
    spans.collect()
}

/// Colour always comes on top of words that say the same.
#[derive(Clone, Copy)]
struct Paint {
    color: bool,
}

impl Paint {
    fn title(self, text: &str, tone: Tone) -> String {
        let start = match tone {
            _ if !self.color => return text.to_owned(),
            Tone::Neutral => "\x1b[1m",
            Tone::Good => "\x1b[1;32m",
            Tone::Bad => "\x1b[1;31m",
        };
        format!("{start}{text}\x1b[0m")
    }
}
