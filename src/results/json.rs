//! JSON from outside: bytes to text to values, and where exactly it is wrong. Knows no format.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::error::Category;

/// Bytes that are not the JSON that was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadJson {
    /// Nothing but white space.
    #[error("it is empty: expected JSON")]
    Empty,
    /// Another encoding, told by its byte order mark.
    #[error("it is UTF-16: expected UTF-8")]
    Utf16,
    /// Not text.
    #[error("byte {0} is not UTF-8: expected JSON")]
    NotUtf8(usize),
    /// The text ends too early.
    #[error("it ends at byte {0} in the middle of a value\nwas it written to its end?")]
    Truncated(usize),
    /// The text is not JSON.
    #[error("line {line}, column {column} (byte {byte}): {expected}, found `{found}`{hint}")]
    Syntax {
        /// From 1.
        line: usize,
        /// From 1, in bytes.
        column: usize,
        /// From 0.
        byte: usize,
        /// What the parser wanted.
        expected: String,
        /// What stands there.
        found: String,
        /// A second line where there is something to say.
        hint: &'static str,
    },
    /// The text is JSON of another shape.
    #[error("line {line}, column {column}: {message}")]
    Shape {
        /// From 1.
        line: usize,
        /// From 1, in bytes.
        column: usize,
        /// What is wrong.
        message: String,
    },
}

/// Bytes as text; a UTF-8 byte order mark, which some tools write, is dropped.
pub(super) fn text(bytes: &[u8]) -> Result<&str, BadJson> {
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        return Err(BadJson::Utf16);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| BadJson::NotUtf8(error.valid_up_to()))?;
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    if text.trim_ascii().is_empty() {
        return Err(BadJson::Empty);
    }
    Ok(text)
}

/// Text as a value.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, BadJson> {
    serde_json::from_str(&without_lone_surrogates(text)).map_err(|error| describe(text, &error))
}

/// JavaScript and Python write half of a character, of a text that was cut in the middle of it, as an escape that stands
/// for none: it becomes U+FFFD, in as many bytes, so that places stay what they are.
pub(super) fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    const ESCAPE: usize = r"\ud83d".len();
    if !text.contains(r"\ud") && !text.contains(r"\uD") {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, from) = rest.split_at(at);
        clean.push_str(before);
        let next = || from.get(ESCAPE..).and_then(escaped);
        let taken = match escaped(from) {
            Some(0xD800..=0xDBFF) if matches!(next(), Some(0xDC00..=0xDFFF)) => 2 * ESCAPE,
            Some(0xD800..=0xDFFF) => {
                clean.push_str(r"\ufffd");
                rest = &from[ESCAPE..];
                continue;
            }
            // Whatever is escaped begins no escape; a character may be longer than a byte.
            _ => 1 + from[1..].chars().next().map_or(0, char::len_utf8),
        };
        clean.push_str(&from[..taken]);
        rest = &from[taken..];
    }
    clean.push_str(rest);
    Cow::Owned(clean)
}

/// The number that a text begins with as an escape.
fn escaped(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix(r"\u")?.get(..4)?, 16).ok()
}

/// The `schema` of an object, read without reading the rest; `None` where it has none that is a string.
pub(super) fn schema(text: &str) -> Result<Option<String>, BadJson> {
    parse::<Head>(text).map(|head| head.0)
}

/// Where and how `text` is not what was expected.
pub(super) fn describe(text: &str, error: &serde_json::Error) -> BadJson {
    let (line, column) = (error.line(), error.column());
    let message = error.to_string();
    let message = message
        .strip_suffix(&format!(" at line {line} column {column}"))
        .unwrap_or(&message);
    match error.classify() {
        Category::Eof => BadJson::Truncated(text.len()),
        Category::Data => BadJson::Shape {
            line,
            column,
            message: message.to_owned(),
        },
        Category::Syntax | Category::Io => {
            let byte = byte_of(text, line, column);
            let found = excerpt(text, byte);
            let not_a_number = ["N", "I", "-I"].iter().any(|start| found.starts_with(start));
            BadJson::Syntax {
                line,
                column,
                byte,
                expected: message.to_owned(),
                found,
                hint: if not_a_number {
                    "\nJSON has neither NaN nor Infinity: write null"
                } else {
                    ""
                },
            }
        }
    }
}

/// What stands at `byte`: at most 20 characters of one line.
pub(super) fn excerpt(text: &str, byte: usize) -> String {
    let rest = text.get(byte..).unwrap_or_default().trim_start();
    let mut characters = rest.chars().take_while(|character| !character.is_control());
    let mut excerpt: String = characters.by_ref().take(20).collect();
    if characters.next().is_some() {
        excerpt.push('…');
    }
    excerpt
}

fn byte_of(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let mut byte = (before + column.saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(byte) {
        byte -= 1;
    }
    // The parser stops one past the first character of a word that it does not know.
    if text[..byte].ends_with('-') {
        byte -= 1;
    }
    byte
}

struct Head(Option<String>);

impl<'de> Deserialize<'de> for Head {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct HeadVisitor;
        impl<'de> Visitor<'de> for HeadVisitor {
            type Value = Head;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Head, A::Error> {
                let mut schema = None;
                while let Some(key) = map.next_key::<String>()? {
                    if key == "schema" {
                        schema = Some(map.next_value::<String>()?);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Head(schema))
            }
        }
        from.deserialize_map(HeadVisitor)
    }
}
