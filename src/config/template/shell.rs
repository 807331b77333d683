//! Quotes a value for the place in a shell command where it is inserted. Reads the words of POSIX sh, not its grammar.

use std::borrow::Cow;

/// What surrounds the next character of a shell command.
#[derive(Clone, Debug, Default)]
pub(super) struct Quoting {
    open: Vec<Open>,
    comment: bool,
    /// Whether a `#` would begin a comment here.
    inside_word: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Single,
    Double,
    /// `$(…)`, and `(…)` in it.
    Substitution,
    Backticks,
    /// `${…}`.
    Parameter,
}

impl Quoting {
    /// Goes on over text of the command itself.
    pub(super) fn read(&mut self, text: &str) {
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let next = chars.peek().copied();
            if self.comment {
                self.comment = c != '\n';
                continue;
            }
            match (self.open.last().copied(), c) {
                (Some(Open::Single), '\'') | (Some(Open::Double), '"') => self.close(),
                (Some(Open::Backticks), '`') | (Some(Open::Parameter), '}') => self.close(),
                (Some(Open::Substitution), ')') => self.close(),
                (Some(Open::Single), _) => {}
                (_, '\\') => {
                    chars.next();
                }
                (_, '$') if next == Some('(') => {
                    chars.next();
                    self.open.push(Open::Substitution);
                }
                (_, '$') if next == Some('{') => {
                    chars.next();
                    self.open.push(Open::Parameter);
                }
                (_, '`') => self.open.push(Open::Backticks),
                (Some(Open::Double | Open::Parameter), _) => {}
                (_, '"') => self.open.push(Open::Double),
                (_, '\'') => self.open.push(Open::Single),
                (Some(Open::Substitution), '(') => self.open.push(Open::Substitution),
                (_, '#') if !self.inside_word => self.comment = true,
                _ => {}
            }
            self.inside_word = !(c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')'));
        }
    }

    /// The value as the shell has to see it here.
    pub(super) fn insert<'a>(&mut self, value: &'a str) -> Cow<'a, str> {
        self.inside_word = true;
        if self.comment {
            return value.replace('\n', " ").into();
        }
        match self.open.last() {
            Some(Open::Single) => value.replace('\'', r"'\''").into(),
            Some(Open::Double) => escaped(value).into(),
            _ => shlex::Quoter::new()
                .allow_nul(true)
                .quote(value)
                .expect("a NUL is the only thing that cannot be quoted, and it is allowed"),
        }
    }

    fn close(&mut self) {
        self.open.pop();
    }
}

fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '\\' | '"' | '$' | '`') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
