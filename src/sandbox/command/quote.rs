//! Text as one word of a POSIX shell.

/// The text in quotes, whatever is in it but NUL, which no argument and no variable can hold.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\0', "").replace('\'', r"'\''"))
}
