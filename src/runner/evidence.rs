//! What a record keeps of what an attempt left, so that a report can show it: short, however much there is.

use crate::aggregate::last_lines;
use crate::model::Check;

/// Failed checks whose notes are kept.
const NOTES: usize = 5;
/// Longest note, in characters.
const NOTE_LENGTH: usize = 200;
/// Most lines of output.
const LINES: usize = 12;
/// Most bytes of output.
const BYTES: usize = 1000;

/// The names of the checks that failed, in their order.
pub(super) fn failed(checks: &[Check]) -> Vec<String> {
    let failed = checks.iter().filter(|check| !check.passed);
    failed.map(|check| check.name.clone()).collect()
}

/// What the grader wrote about the first of them; nothing where it wrote nothing at all.
pub(super) fn check_notes(checks: &[Check]) -> Vec<String> {
    let failed = checks.iter().filter(|check| !check.passed).take(NOTES);
    let note = |check: &Check| -> String {
        let note = check.notes.as_deref().unwrap_or_default().trim();
        match note.char_indices().nth(NOTE_LENGTH) {
            Some((end, _)) => format!("{}…", &note[..end]),
            None => note.to_owned(),
        }
    };
    let notes: Vec<String> = failed.map(note).collect();
    match notes.iter().all(String::is_empty) {
        true => Vec::new(),
        false => notes,
    }
}

/// The end of an output; `None` where nothing was printed.
pub(super) fn excerpt(output: &str) -> Option<String> {
    let mut lines = last_lines(output, LINES);
    while lines.len() > 1 && lines.iter().map(|line| line.len() + 1).sum::<usize>() > BYTES {
        lines.remove(0);
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::{BYTES, check_notes, excerpt};
    use crate::model::Check;

    fn check(name: &str, passed: bool, notes: Option<&str>) -> Check {
        Check {
            name: name.to_owned(),
            passed,
            notes: notes.map(str::to_owned),
        }
    }

    #[test]
    fn notes_stand_in_the_order_of_the_failed_checks_and_are_short() {
        let long = "x".repeat(999);
        let checks = [
            check("a", false, None),
            check("b", true, Some("fine")),
            check("c", false, Some(&long)),
        ];
        let notes = check_notes(&checks);
        assert_eq!(notes.len(), 2);
        assert_eq!((notes[0].as_str(), notes[1].chars().count()), ("", 201));
        assert!(check_notes(&checks[..2]).is_empty(), "nobody wrote anything");
    }

    #[test]
    fn the_end_of_an_output_is_kept_and_no_more() {
        assert_eq!(excerpt("\n \n"), None);
        assert_eq!(excerpt("one\n\ntwo\n").as_deref(), Some("one\ntwo"));
        let many: String = (0..500)
            .map(|n| format!("line {n} {}\n", "é".repeat(90)))
            .collect();
        let kept = excerpt(&many).unwrap();
        assert!(kept.len() <= BYTES && kept.ends_with(&"é".repeat(90)), "{kept}");
        assert!(kept.contains("line 499") && !kept.contains("line 400"));
    }
}
