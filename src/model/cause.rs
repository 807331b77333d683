//! An error with its causes as one text. Knows no error of its own.

use std::error::Error;

/// What went wrong and why, on one line; what to do about it, which messages say on further lines, comes last.
pub fn with_causes(error: &dyn Error) -> String {
    let (mut why, mut help) = (String::new(), String::new());
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        let (first, more) = text.split_once('\n').unwrap_or((&text, ""));
        if !why.is_empty() {
            why.push_str(": ");
        }
        why.push_str(first);
        if !more.is_empty() {
            help.push('\n');
            help.push_str(more);
        }
        next = error.source();
    }
    why + &help
}

#[cfg(test)]
mod tests {
    use super::with_causes;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot start `git`\ninstall git")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn what_to_do_comes_after_the_causes() {
        let error = Outer(std::io::Error::other("no such file"));
        assert_eq!(
            with_causes(&error),
            "cannot start `git`: no such file\ninstall git"
        );
    }
}
