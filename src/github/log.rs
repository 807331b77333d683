//! The words that a runner obeys in a step's output and reads in its files, and text that cannot be taken for one.
//! Knows nothing of what is said.

/// How loud an annotation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loudness {
    /// Something failed.
    Error,
    /// Something was not done.
    Warning,
    /// Something to know.
    Notice,
}

/// Most annotations of one kind that GitHub keeps of a step.
pub const MOST_ANNOTATIONS: usize = 10;

/// A line that makes an annotation.
pub fn annotation(loudness: Loudness, title: &str, message: &str) -> String {
    let command = match loudness {
        Loudness::Error => "error",
        Loudness::Warning => "warning",
        Loudness::Notice => "notice",
    };
    format!("::{command} title={}::{}", property(title), data(message))
}

/// A line that starts a group of lines that can be folded.
pub fn group(title: &str) -> String {
    format!("::group::{}", data(&line(title)))
}

/// The line that ends it.
pub const END_GROUP: &str = "::endgroup::";

/// A line that is shown only where debug logging was asked for.
pub fn debug(message: &str) -> String {
    format!("::debug::{}", data(message))
}

/// A line that makes the runner blot out a value; each line of the value has to be one of its own.
pub fn mask(value: &str) -> String {
    format!("::add-mask::{}", data(value))
}

/// Text from outside as one line that the runner does not obey: it obeys `::command::` where a line starts, and
/// `##[command]` anywhere in it.
pub fn line(text: &str) -> String {
    let text = text.replace("##[", "## [");
    let start = text.len() - text.trim_start().len();
    match text[start..].strip_prefix("::") {
        Some(rest) => format!("{}: :{rest}", &text[..start]),
        None => text,
    }
}

/// An entry of `GITHUB_OUTPUT`. The value ends at the delimiter, which nobody must be able to guess.
///
/// `None` where the value holds the delimiter after all.
pub fn output(name: &str, value: &str, delimiter: &str) -> Option<String> {
    (!value.contains(delimiter)).then(|| format!("{name}<<{delimiter}\n{value}\n{delimiter}\n"))
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Loudness, annotation, debug, group, line, mask, output};

    #[test]
    fn what_is_said_stays_within_its_command() {
        assert_eq!(
            annotation(Loudness::Error, "a: b, c", "one\r\n::error::two 100%"),
            "::error title=a%3A b%2C c::one%0D%0A::error::two 100%25"
        );
        assert_eq!(mask("a\nb"), "::add-mask::a%0Ab");
        assert_eq!(debug("x\ny"), "::debug::x%0Ay");
        assert_eq!(group("##[error]x\n::y"), "::group::## [error]x%0A::y");
    }

    #[test]
    fn no_text_is_taken_for_a_command() {
        assert_eq!(line("  ::error::x"), "  : :error::x");
        assert_eq!(line("a ##[add-mask]b ##[x"), "a ## [add-mask]b ## [x");
        assert_eq!(line("std::env::var"), "std::env::var");
    }

    #[test]
    fn an_output_ends_where_its_delimiter_is() {
        assert_eq!(output("a", "b\nc", "END1").unwrap(), "a<<END1\nb\nc\nEND1\n");
        assert_eq!(output("a", "b\nEND1\nx=y", "END1"), None);
    }

    proptest! {
        #[test]
        fn any_line_is_harmless(text in r"[ \t:#\[a-z\]]{0,20}") {
            let shown = line(&text);
            prop_assert!(!shown.contains("##["));
            prop_assert!(!shown.trim_start().starts_with("::"));
        }
    }
}
