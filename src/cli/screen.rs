//! Standard error: lines that stay and, on a terminal, a block below them that is drawn anew. There is one of it, whoever
//! writes to it. Does not know what is said.

use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use console::{Term, measure_text_width};

use crate::report;

static SCREEN: Mutex<Screen> = Mutex::new(Screen {
    block: Vec::new(),
    ascii: false,
});

#[derive(Debug)]
struct Screen {
    /// What is drawn below the lines that stay; the cursor is at the start of the line after it.
    block: Vec<String>,
    /// Our own signs are spelled in ASCII.
    ascii: bool,
}

fn screen() -> MutexGuard<'static, Screen> {
    SCREEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on our own signs are spelled in ASCII.
pub(super) fn spell_in_ascii() {
    screen().ascii = true;
}

/// Adds lines that stay, above the block. Nobody is left to tell where standard error is gone.
pub(super) fn write(lines: &str) {
    let mut screen = screen();
    let lines = screen.spelled(lines);
    if screen.block.is_empty() {
        let _ = std::io::stderr().write_all(lines.as_bytes());
        return;
    }
    let block = std::mem::take(&mut screen.block);
    screen.put(&block, &lines, &block);
    screen.block = block;
}

/// Draws the block, or takes it away where it has no lines. Their width and number are the caller's to keep below those
/// of the terminal.
pub(super) fn draw(block: Vec<String>) {
    let mut screen = screen();
    if !is_ours() {
        // The shell has the terminal, and has written below the block.
        screen.block.clear();
        return;
    }
    let block: Vec<String> = block.iter().map(|line| screen.spelled(line)).collect();
    if block != screen.block {
        let before = std::mem::take(&mut screen.block);
        screen.put(&before, "", &block);
        screen.block = block;
    }
}

/// Leaves the block where it is: something else has been written below it.
pub(super) fn forget() {
    screen().block.clear();
}

/// The rows and columns of the terminal.
pub(super) fn size() -> (usize, usize) {
    let (rows, columns) = Term::stderr().size_checked().unwrap_or((24, 80));
    (usize::from(rows), usize::from(columns))
}

/// Whether this process may write to its terminal as it likes: it is not a job in the background.
fn is_ours() -> bool {
    #[cfg(unix)]
    if let Ok(group) = rustix::termios::tcgetpgrp(std::io::stderr()) {
        return group == rustix::process::getpgrp();
    }
    true
}

impl Screen {
    fn spelled(&self, text: &str) -> String {
        if self.ascii {
            report::ascii(text)
        } else {
            text.to_owned()
        }
    }

    /// Takes one block away, adds lines that stay, and draws the other, all in one write so that nothing flickers.
    fn put(&self, before: &[String], lines: &str, block: &[String]) {
        let term = Term::buffered_stderr();
        let (_, columns) = size();
        let block: String = block.iter().map(|line| format!("{line}\n")).collect();
        // Nobody is left to tell where the terminal is gone.
        let _ = wipe(&term, rows(before, columns))
            .and_then(|()| term.write_str(lines))
            .and_then(|()| term.write_str(&block))
            .and_then(|()| term.flush());
    }
}

/// Empties the row of the cursor, where what a person has typed meanwhile stands, ^C also, and so many above it. Row by
/// row, because a terminal may keep what is cleared as a whole for scrolling back.
fn wipe(term: &Term, rows: usize) -> std::io::Result<()> {
    term.clear_line()?;
    for _ in 0..rows {
        term.move_cursor_up(1)?;
        term.clear_line()?;
    }
    Ok(())
}

/// How many rows lines take; a terminal that has become narrower has wrapped them.
fn rows(lines: &[String], columns: usize) -> usize {
    let rows = |line: &String| measure_text_width(line).div_ceil(columns.max(1)).max(1);
    lines.iter().map(rows).sum()
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn a_line_that_a_narrower_terminal_has_wrapped_counts_as_its_rows() {
        let lines = ["".to_owned(), "x".repeat(79), "\x1b[1mbold\x1b[0m".to_owned()];
        assert_eq!(rows(&lines, 80), 3);
        assert_eq!(rows(&lines, 79), 3);
        assert_eq!(rows(&lines, 40), 4);
        assert_eq!(rows(&lines, 20), 6);
    }
}
