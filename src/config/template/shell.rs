//! Quotes a value for the place in a shell command where it is inserted. Reads the words of POSIX sh, not its grammar:
//! where they do not tell for sure how a shell takes a place, only a value that needs no quotes is inserted there.

mod document;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::iter::Peekable;
use std::str::Chars;

use document::{Document, Line, Reads, Word};

/// A place where no quotes are sure to keep a value as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// In words that follow the value.
    pub(super) name: &'static str,
    /// What to do instead.
    pub(super) instead: &'static str,
}

impl Place {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            instead: "set a variable to it at the beginning of the command, and use that here",
        }
    }
}

const AFTER_A_BACKSLASH: Place = Place::new("after a `\\`");
const IN_BACKTICKS: Place = Place::new("within backticks");
const IN_ARITHMETIC: Place = Place::new("within `$((…))`");
const IN_PARAMETER: Place = Place::new("within `${…}`");
const IN_DOUBT: Place = Place::new("after what not every shell reads alike");
const IN_WORD: Place = Place {
    name: "in the word after `<<`",
    instead: "write another word there",
};
const IN_QUOTED_DOCUMENT: Place = Place {
    name: "in a here-document whose word is quoted",
    instead: "write the word after `<<` without quotes",
};
/// Shells of long ago, macOS's among them, look for the end of the substitution in the body too.
const IN_NESTED_DOCUMENT: Place = Place::new("in a here-document within `$(…)`");
const AS_END: Place = Place {
    name: "in a here-document that such a line ends",
    instead: "write another word after `<<`",
};
const AS_CUT: Place = Place {
    name: "in a here-document whose end begins as such a line does: some shells lose a part of it",
    instead: "write another word after `<<`",
};

/// What surrounds the next character of a shell command.
#[derive(Clone, Debug, Default)]
pub(super) struct Quoting {
    open: Vec<Open>,
    comment: bool,
    /// Whether the next character follows a `\`.
    escaped: bool,
    /// What there is of the word; without any, a `#` begins a comment.
    word: String,
    /// The word after `<<`, while it is read.
    ending: Option<Word>,
    /// Here-documents that begin in the next line, and how much was open where they were asked for.
    awaited: Vec<(usize, Document)>,
    /// Whether nothing is sure any more.
    doubtful: bool,
}

#[derive(Clone, Debug)]
enum Open {
    Single,
    Double,
    /// `$(…)`.
    Substitution,
    /// `(…)` in it.
    Subshell,
    Backticks,
    /// `${…}`.
    Parameter,
    /// `$((…))`, and how many `(` are open in it.
    Arithmetic(usize),
    /// The bodies that follow each other, the first one being read.
    Documents(VecDeque<Document>),
}

type Rest<'a> = Peekable<Chars<'a>>;

impl Quoting {
    /// Goes on over text of the command itself.
    ///
    /// # Errors
    /// The value that was inserted last ends a here-document, or is cut there.
    pub(super) fn read(&mut self, text: &str) -> Result<(), Place> {
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            if self.doubtful {
                break;
            }
            let escaped = std::mem::take(&mut self.escaped);
            let in_body = matches!(self.open.last(), Some(Open::Documents(_)));
            match c {
                '\n' if escaped => self.documents().for_each(Document::join),
                '\n' => self.end_line()?,
                _ => self.documents().for_each(|document| document.push(c)),
            }
            if escaped {
                if c != '\n' {
                    self.word.push(c);
                }
                continue;
            }
            self.comment &= c != '\n';
            let ends_line = c == '\n';
            let is_read = self.comment
                || (ends_line && in_body)
                || self.reads_ending(c)
                || (ends_line && self.begins_documents());
            if !is_read {
                self.step(c, &mut rest);
            }
        }
        Ok(())
    }

    /// The command has come to its end.
    ///
    /// # Errors
    /// The value that was inserted last ends a here-document, or is cut there.
    pub(super) fn end(mut self) -> Result<(), Place> {
        self.end_line()
    }

    /// The value as the shell has to see it here.
    ///
    /// # Errors
    /// A place where it cannot be inserted.
    pub(super) fn insert<'a>(&mut self, value: &'a str) -> Result<Cow<'a, str>, Place> {
        let inserted = match (self.doubt(), self.open.last()) {
            _ if self.ending.is_some() => return Err(IN_WORD),
            _ if self.comment => value.replace('\n', " ").into(),
            (Some(_), _) if is_plain(value) => value.into(),
            (Some(place), _) => return Err(place),
            (None, Some(Open::Single)) => value.replace('\'', r"'\''").into(),
            (None, Some(Open::Double)) => with_backslashes(value, &['\\', '"', '$', '`']).into(),
            (None, Some(Open::Documents(_)))
                if self.is_nested() && value.contains(['\'', '"', '(', ')', '#']) =>
            {
                return Err(IN_NESTED_DOCUMENT);
            }
            (None, Some(Open::Documents(_))) => with_backslashes(value, &['\\', '$', '`']).into(),
            (None, _) => shlex::Quoter::new()
                .allow_nul(true)
                .quote(value)
                .expect("a NUL is the only thing that cannot be quoted, and it is allowed"),
        };
        self.escaped &= inserted.is_empty();
        // No matter what it is, a word has begun that no keyword is.
        self.word.push('\'');
        for (at, line) in inserted.split('\n').enumerate() {
            if at > 0 {
                self.end_line()?;
            }
            self.documents().for_each(|document| document.fill(line));
        }
        Ok(inserted)
    }

    /// Why quotes may not do here.
    fn doubt(&self) -> Option<Place> {
        if self.doubtful {
            return Some(IN_DOUBT);
        }
        if self.escaped {
            return Some(AFTER_A_BACKSLASH);
        }
        for open in self.open.iter().rev() {
            return match open {
                Open::Single | Open::Double => continue,
                Open::Backticks => Some(IN_BACKTICKS),
                Open::Parameter => Some(IN_PARAMETER),
                Open::Arithmetic(_) => Some(IN_ARITHMETIC),
                Open::Documents(documents) if documents.front().is_some_and(Document::is_quoted) => {
                    Some(IN_QUOTED_DOCUMENT)
                }
                Open::Substitution | Open::Subshell | Open::Documents(_) => None,
            };
        }
        None
    }

    fn is_nested(&self) -> bool {
        let mut open = self.open.iter();
        open.any(|open| matches!(open, Open::Substitution))
    }

    /// The here-documents whose bodies the next character is in.
    fn documents(&mut self) -> impl Iterator<Item = &mut Document> {
        self.open.iter_mut().filter_map(|open| match open {
            Open::Documents(documents) => documents.front_mut(),
            _ => None,
        })
    }

    /// Ends a line of every here-document.
    fn end_line(&mut self) -> Result<(), Place> {
        let lines: Vec<Line> = self.documents().map(Document::end_line).collect();
        let Some((last, outer)) = lines.split_last() else {
            return Ok(());
        };
        if lines.contains(&Line::EndByValue) {
            return Err(AS_END);
        }
        if lines.contains(&Line::CutByValue) {
            return Err(AS_CUT);
        }
        let mut in_doubt = outer.iter().any(|line| *line != Line::Body);
        match (last, self.open.last_mut()) {
            (Line::Body, _) => {}
            (Line::End, Some(Open::Documents(documents))) => {
                documents.pop_front();
                if documents.is_empty() {
                    self.open.pop();
                    self.word.clear();
                }
            }
            // Within a substitution it ends the document for some shells.
            _ => in_doubt = true,
        }
        self.doubtful |= in_doubt;
        Ok(())
    }

    /// Goes on over the word after `<<`. Returns whether the character belongs to it.
    fn reads_ending(&mut self, c: char) -> bool {
        let Some(mut word) = self.ending.take() else {
            return false;
        };
        match word.read(c) {
            Reads::Part => self.ending = Some(word),
            Reads::After => {
                self.awaited.push((self.open.len(), Document::new(word)));
                return false;
            }
            Reads::Doubtful => self.doubtful = true,
        }
        true
    }

    /// At the end of a line: whether the next one is in the body of a here-document.
    fn begins_documents(&mut self) -> bool {
        if self.awaited.is_empty() {
            return false;
        }
        let depth = self.open.len();
        self.doubtful |= !self.is_command() || self.awaited.iter().any(|(asked_at, _)| *asked_at != depth);
        let documents = self.awaited.drain(..).map(|(_, document)| document).collect();
        self.open.push(Open::Documents(documents));
        true
    }

    fn is_command(&self) -> bool {
        matches!(self.open.last(), None | Some(Open::Substitution | Open::Subshell))
    }

    /// Goes on over a character that nothing before it has taken.
    fn step(&mut self, c: char, rest: &mut Rest<'_>) {
        let next = rest.peek().copied();
        match (self.open.last_mut(), c) {
            (Some(Open::Single), '\'') | (Some(Open::Double), '"') => self.close(),
            (Some(Open::Backticks), '`') | (Some(Open::Parameter), '}') => self.close(),
            (Some(Open::Single), _) => {}
            (Some(Open::Documents(documents)), _) if documents.front().is_some_and(Document::is_quoted) => {}
            (Some(Open::Arithmetic(_)), '\'' | '"' | '\\' | '#' | ';' | '\n') => self.doubtful = true,
            (_, '\\') => self.escaped = true,
            (Some(Open::Backticks), _) => {}
            (_, '`') => self.begin(Open::Backticks),
            (_, '$') => self.expansion(next, rest),
            (Some(Open::Arithmetic(depth)), '(') => *depth += 1,
            (Some(Open::Arithmetic(depth @ 1..)), ')') => *depth -= 1,
            (Some(Open::Arithmetic(_)), ')') if next == Some(')') => {
                self.take(rest);
                self.close();
                self.word.push(')');
            }
            // It was a subshell in a substitution.
            (Some(Open::Arithmetic(_)), ')') => self.doubtful = true,
            (Some(Open::Parameter), '\'' | '"') => self.quote_in_parameter(c),
            // Whether quotes hide it from `${` around them is not the same everywhere.
            (Some(Open::Double), '}') => self.doubtful |= self.open.iter().any(is_parameter),
            (Some(Open::Arithmetic(_) | Open::Double | Open::Documents(_) | Open::Parameter), _) => {}
            (None | Some(Open::Substitution | Open::Subshell), _) => self.command(c, next, rest),
        }
    }

    /// Goes on after a `$`.
    fn expansion(&mut self, next: Option<char>, rest: &mut Rest<'_>) {
        match next {
            Some('(') => {
                self.take(rest);
                if rest.peek() == Some(&'(') {
                    self.take(rest);
                    self.begin(Open::Arithmetic(0));
                } else {
                    self.begin(Open::Substitution);
                    self.word.clear();
                }
            }
            // The number of arguments.
            Some('#') => {
                self.take(rest);
                self.word.push('$');
            }
            Some('{') => {
                self.take(rest);
                self.begin(Open::Parameter);
            }
            // Some shells know escapes in it.
            Some('\'') if !matches!(self.open.last(), Some(Open::Double | Open::Documents(_))) => {
                self.doubtful = true;
            }
            _ => self.word.push('$'),
        }
    }

    fn quote_in_parameter(&mut self, quote: char) {
        let around = self.open.iter().rev().find(|open| !is_parameter(open));
        match (around, quote) {
            // Shells do not agree on quotes within quotes.
            (Some(Open::Documents(_)), _) | (Some(Open::Double), '\'') => self.doubtful = true,
            (_, '"') => self.begin(Open::Double),
            _ => self.begin(Open::Single),
        }
    }

    /// Goes on over a character of a command.
    fn command(&mut self, c: char, next: Option<char>, rest: &mut Rest<'_>) {
        let is_nested = !self.open.is_empty();
        match c {
            '"' => self.begin(Open::Double),
            '\'' => self.begin(Open::Single),
            '#' if self.word.is_empty() => self.comment = true,
            '<' if next == Some('<') => {
                self.take(rest);
                self.word.clear();
                match rest.peek() {
                    // A line for some shells, an error for all others.
                    Some('<') => self.take(rest),
                    Some('-') => {
                        self.take(rest);
                        self.ending = Some(Word::new(true));
                    }
                    _ => self.ending = Some(Word::new(false)),
                }
            }
            // Two subshells, or arithmetic.
            '(' if next == Some('(') => self.doubtful = true,
            '(' if is_nested => {
                self.word.clear();
                self.open.push(Open::Subshell);
            }
            ')' => {
                self.word.clear();
                if let Some(Open::Substitution) = self.open.pop() {
                    self.word.push(c);
                }
                let depth = self.open.len();
                self.doubtful |= self.awaited.iter().any(|(asked_at, _)| *asked_at > depth);
            }
            ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | '<' | '>' => {
                // Each of its patterns ends with a `)`.
                self.doubtful |= is_nested && self.word == "case";
                self.word.clear();
            }
            _ => self.word.push(c),
        }
    }

    /// Takes one more character that is no line end.
    fn take(&mut self, rest: &mut Rest<'_>) {
        if let Some(c) = rest.next() {
            self.documents().for_each(|document| document.push(c));
        }
    }

    fn begin(&mut self, open: Open) {
        self.word.push('$');
        self.open.push(open);
    }

    fn close(&mut self) {
        self.open.pop();
    }
}

fn is_parameter(open: &Open) -> bool {
    matches!(open, Open::Parameter)
}

/// Whether a value is the same to a shell wherever it stands.
fn is_plain(value: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._:/@+=,-".contains(c);
    value.chars().all(plain)
}

fn with_backslashes(value: &str, before: &[char]) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        if before.contains(&c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
