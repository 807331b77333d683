//! Text from outside, made harmless: for a Markdown cell, and for a terminal. Knows nothing of what the text is.

use std::fmt::Write;
use std::sync::LazyLock;

use regex::Regex;

/// Longest name in Markdown, in characters.
const NAME_LENGTH: usize = 80;

/// Longest excerpt of a text, in characters.
const EXCERPT_LENGTH: usize = 200;

/// A name for Markdown: at most 80 characters in `<code>`, every ASCII character that is neither letter nor digit as
/// a numeric entity. No mention, link, image, comment, row or cell can come out of it.
pub fn code(name: &str) -> String {
    encode(name, NAME_LENGTH)
}

/// The beginning of a text for Markdown: at most 200 characters, encoded as [`code`] does.
pub fn excerpt(text: &str) -> String {
    encode(text, EXCERPT_LENGTH)
}

/// A text for a terminal, on one line: no escape sequences, and no control, bidirectional or invisible characters.
pub fn plain(text: &str) -> String {
    ESCAPE_SEQUENCES
        .replace_all(text, "")
        .chars()
        .map(|character| if character.is_whitespace() { ' ' } else { character })
        .filter(|&character| !is_hidden(character))
        .collect()
}

/// The signs that our own words have, spelled in ASCII. What comes from outside stays as it is otherwise.
pub fn ascii(text: &str) -> String {
    text.chars()
        .fold(String::with_capacity(text.len()), |mut text, sign| {
            match sign {
                '·' => text.push('|'),
                '×' => text.push('x'),
                '→' => text.push_str("->"),
                '±' => text.push_str("+/-"),
                '−' | '–' | '—' => text.push('-'),
                '…' => text.push_str("..."),
                '≤' => text.push_str("<="),
                '≥' => text.push_str(">="),
                '“' | '”' => text.push('"'),
                '’' => text.push('\''),
                sign => text.push(sign),
            }
            text
        })
}

/// The beginning of a text for a terminal.
pub(super) fn plain_excerpt(text: &str) -> String {
    let text = plain(text);
    let (start, cut) = cut(text.trim(), EXCERPT_LENGTH);
    format!("{start}{}", if cut { "…" } else { "" })
}

/// The beginning of a text for a page, which encodes it: without escape sequences, and what would be hidden is seen as
/// a replacement character. Lines and tabs stay.
pub(super) fn visible(text: &str, length: usize) -> String {
    let (start, is_cut) = cut(text, length);
    let start = ESCAPE_SEQUENCES.replace_all(start, "").replace("\r\n", "\n");
    let mut shown: String = start
        .chars()
        // It only asks for an emoji in colour.
        .filter(|&character| character != '\u{FE0F}')
        .map(|character| match character {
            '\n' | '\t' => character,
            '\r' => '\n',
            character if is_hidden(character) => char::REPLACEMENT_CHARACTER,
            character => character,
        })
        .collect();
    if is_cut {
        shown.push('…');
    }
    shown
}

fn encode(text: &str, length: usize) -> String {
    let (start, cut) = cut(text, length);
    let mut encoded = String::from("<code>");
    for character in start.chars() {
        let character = match character {
            character if character.is_whitespace() => ' ',
            character if is_hidden(character) => char::REPLACEMENT_CHARACTER,
            character => character,
        };
        if character.is_ascii() && !character.is_ascii_alphanumeric() {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "&#{};", u32::from(character));
        } else {
            encoded.push(character);
        }
    }
    encoded.push_str(if cut { "…</code>" } else { "</code>" });
    encoded
}

/// The first `length` characters, and whether there are more.
fn cut(text: &str, length: usize) -> (&str, bool) {
    match text.char_indices().nth(length) {
        Some((end, _)) => (&text[..end], true),
        None => (text, false),
    }
}

/// Control characters, what changes the direction of text, and what has no width.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{00AD}'
                | '\u{034F}'
                | '\u{061C}'
                | '\u{115F}'..='\u{1160}'
                | '\u{17B4}'..='\u{17B5}'
                | '\u{180B}'..='\u{180F}'
                | '\u{200B}'..='\u{200F}'
                | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}'
                | '\u{3164}'
                | '\u{FE00}'..='\u{FE0F}'
                | '\u{FEFF}'
                | '\u{FFA0}'
                | '\u{FFF0}'..='\u{FFFB}'
                | '\u{1D173}'..='\u{1D17A}'
                | '\u{E0000}'..='\u{E0FFF}'
        )
}

/// Control sequences with their parameters, strings to the terminal, and the two-character ones. A string without
/// its end is left to the filter of control characters: it must not take the rest of the text with it.
static ESCAPE_SEQUENCES: LazyLock<Regex> = LazyLock::new(|| {
    let sequences = [
        r"(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]",
        r"\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)",
        r"\x1b[ -/]*[0-~]",
    ];
    Regex::new(&sequences.join("|")).expect("the pattern is constant")
});

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::{code, excerpt, is_hidden, plain, plain_excerpt};

    #[test]
    fn names_lose_all_their_power_in_markdown() {
        assert_eq!(code("a-b|c"), "<code>a&#45;b&#124;c</code>");
        assert_eq!(code("@team #1\n<!-- -->"), code("@team #1 <!-- -->"));
        assert_eq!(
            code("évil\u{202e}\u{200b}x"),
            "<code>évil\u{fffd}\u{fffd}x</code>"
        );
        assert_eq!(code(&"x".repeat(81)), format!("<code>{}…</code>", "x".repeat(80)));
    }

    #[test]
    fn a_terminal_sees_words_only() {
        assert_eq!(
            plain("\x1b[31;1mred\x1b[0m and \x1b]0;title\x07more\r\nlines"),
            "red and more  lines"
        );
        assert_eq!(plain("a\x1b]8;;http://x\x1b\\b"), "ab");
        assert_eq!(plain("kept \x1b]0;without an end"), "kept 0;without an end");
        assert_eq!(plain("\u{9b}2Ja\u{202e}b\u{7}"), "ab");
        assert_eq!(plain_excerpt(&"x".repeat(300)).chars().count(), 201);
    }

    proptest! {
        #[test]
        fn any_string_survives_a_markdown_cell(text in any::<String>()) {
            let cell = Regex::new(r"^<code>(?:[A-Za-z0-9]|&#[0-9]{1,3};|[^\x00-\x7f])*</code>$").unwrap();
            for encoded in [code(&text), excerpt(&text)] {
                prop_assert!(cell.is_match(&encoded), "{encoded}");
                prop_assert!(!encoded.contains(is_hidden));
            }
        }

        #[test]
        fn any_string_survives_a_terminal(text in any::<String>(), escapes in "[\x1b\u{9b}\\]\\[;0-9mPX^_\x07a]{0,20}") {
            let shown = plain(&format!("{text}{escapes}{text}"));
            prop_assert!(!shown.contains(is_hidden));
            prop_assert!(!shown.contains('\n'));
        }
    }
}
