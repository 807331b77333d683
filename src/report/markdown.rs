//! A view as GitHub's Markdown, within a number of bytes. Knows no marker and no comment.

use super::escape::{code, excerpt};
use super::view::{Line, Section, Span, Table, Topic, View};

/// Kept free for saying that sections are missing.
const ROOM_FOR_NOTE: usize = 80;

pub(super) fn render(view: &View, limit: usize) -> String {
    let mut body = format!("### Evals: {}\n{}\n", line(&view.headline), line(&view.counts));
    for sentence in &view.sentences {
        body += &format!("\n{}\n", line(sentence));
    }
    if let Some(provenance) = &view.provenance {
        body += &format!("\n{}\n", line(provenance));
    }
    body += &format!("\n{}", table(&view.table));
    let footer = format!("\n<sub>{}</sub>\n", line(&view.footer));

    let mut left_out = view.sections.len();
    for section in &view.sections {
        let note = if left_out > 1 { ROOM_FOR_NOTE } else { 0 };
        let room = limit.saturating_sub(body.len() + footer.len() + note);
        let Some(text) = fitting(section, room) else {
            break;
        };
        body += &text;
        left_out -= 1;
    }
    let note = format!("\n<sub>{left_out} more sections do not fit in here</sub>\n");
    for (tail, wanted) in [(note, left_out > 0), (footer, true)] {
        if wanted && body.len() + tail.len() <= limit {
            body += &tail;
        }
    }
    body
}

/// A section in at most so many bytes, with fewer of its rows where it has to be; `None` where not even one fits.
fn fitting(section: &Section, room: usize) -> Option<String> {
    let mut section = section.clone();
    loop {
        let text = render_section(&section);
        if text.len() <= room {
            return Some(text);
        }
        let rows = section.table.rows.len();
        if rows < 2 {
            return None;
        }
        section.table.rows.truncate(rows / 2);
        section.more += rows - rows / 2;
    }
}

fn render_section(section: &Section) -> String {
    let title = line(&section.title);
    let more = match section.more {
        0 => String::new(),
        more => format!("\n… and {more} more\n"),
    };
    match section.topic {
        Topic::Notices => format!("\n{}{more}", list(&section.table)),
        Topic::Gates => format!("\n**{title}**\n{}{more}", list(&section.table)),
        Topic::Flips
        | Topic::Groups
        | Topic::Alone
        | Topic::Quarantine
        | Topic::Attempts
        | Topic::Scheduling
        | Topic::Others => format!(
            "\n<details><summary>{title}</summary>\n\n{}{more}\n</details>\n",
            table(&section.table)
        ),
    }
}

fn list(table: &Table) -> String {
    let items = table.rows.iter().map(|row| {
        let cells: Vec<String> = row.iter().map(line).collect();
        format!("- {}\n", cells.join(": "))
    });
    items.collect()
}

fn table(table: &Table) -> String {
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let names = table.columns.iter().map(|&name| name.to_owned()).collect();
    let rule = table.columns.iter().map(|_| "---".to_owned()).collect();
    let rows = table
        .rows
        .iter()
        .map(|cells| row(cells.iter().map(line).collect()));
    row(names) + &row(rule) + &rows.collect::<String>()
}

fn line(line: &Line) -> String {
    line.0.iter().map(span).collect()
}

fn span(span: &Span) -> String {
    match span {
        Span::Own(text) => text.clone(),
        Span::Name(name) => code(name),
        Span::Excerpt(text) => excerpt(text),
        Span::Link { text, url } if is_harmless(url) => format!("[{text}](<{url}>)"),
        Span::Link { text, url } => format!("{text} {}", code(url)),
    }
}

/// Whether an address can stand in Markdown as it is.
fn is_harmless(url: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/:?=&%#+".contains(&byte);
    url.starts_with("https://") && url.bytes().all(allowed)
}
