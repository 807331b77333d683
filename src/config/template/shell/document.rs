//! Here-documents: the word that ends one, and the lines of its body.

/// The word after `<<`, while it is read.
#[derive(Clone, Debug)]
pub(super) struct Word {
    text: String,
    strips_tabs: bool,
    begun: bool,
    quoted: bool,
    /// The quote that is open; after a `\` that.
    open: Option<char>,
}

/// What a character is to the word after `<<`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    /// A part of it, or of what is before it.
    Part,
    /// What follows it.
    After,
    /// Something that shells do not agree on.
    Doubtful,
}

impl Word {
    pub(super) fn new(strips_tabs: bool) -> Self {
        Self {
            text: String::new(),
            strips_tabs,
            begun: false,
            quoted: false,
            open: None,
        }
    }

    pub(super) fn read(&mut self, c: char) -> Reads {
        match (self.open, c) {
            (Some(_), '\n') | (Some('"'), '\\' | '$' | '`') => return Reads::Doubtful,
            (Some('\\'), _) => {
                self.open = None;
                self.text.push(c);
            }
            (Some(quote), _) if c == quote => self.open = None,
            (Some(_), _) => self.text.push(c),
            (None, '\'' | '"' | '\\') => {
                (self.begun, self.quoted) = (true, true);
                self.open = Some(c);
            }
            (None, '$' | '`') => return Reads::Doubtful,
            (None, ' ' | '\t') if !self.begun => {}
            (None, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>') if self.begun => {
                return Reads::After;
            }
            (None, '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' | '#') if !self.begun => {
                return Reads::Doubtful;
            }
            (None, _) => {
                self.begun = true;
                self.text.push(c);
            }
        }
        Reads::Part
    }
}

/// A here-document, whose body is read line by line.
#[derive(Clone, Debug)]
pub(super) struct Document {
    word: Word,
    line: String,
    /// Whether a value is in the line.
    filled: bool,
    /// Where in the line the text begins a line of its own, if it has more than one for it.
    joined_at: Option<usize>,
}

/// What a line is to a here-document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Body,
    End,
    /// Its end by a value: what was to be a line of the body.
    EndByValue,
    /// A line with a value in it that dash 0.5.12, the `sh` of Debian and Ubuntu, loses a byte of: the one that follows
    /// what the line has of the end's word is no ASCII.
    CutByValue,
    /// Its end for some shells.
    Doubtful,
}

impl Document {
    pub(super) fn new(word: Word) -> Self {
        Self {
            word,
            line: String::new(),
            filled: false,
            joined_at: None,
        }
    }

    /// Whether nothing in its body is expanded.
    pub(super) fn is_quoted(&self) -> bool {
        self.word.quoted
    }

    pub(super) fn push(&mut self, c: char) {
        self.line.push(c);
    }

    pub(super) fn fill(&mut self, value: &str) {
        self.line.push_str(value);
        self.filled = true;
    }

    /// Takes back a `\` that a line end has followed.
    pub(super) fn join(&mut self) {
        self.line.pop();
        self.joined_at = Some(self.line.len());
    }

    pub(super) fn end_line(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        let filled = std::mem::take(&mut self.filled);
        let joined_at = std::mem::take(&mut self.joined_at);
        let ends = |line: &str| self.without_tabs(line) == self.word.text;
        let is_joined = joined_at.is_some();
        let may_end = joined_at.is_some_and(|at| ends(&line[at..]))
            // To bash, within a substitution.
            || self.without_tabs(&line).strip_prefix(&self.word.text).is_some_and(|rest| rest.contains(')'));
        let is_cut = || self.is_cut(&line) || joined_at.is_some_and(|at| self.is_cut(&line[at..]));
        match ends(&line) {
            ends if filled && (ends || may_end) => Line::EndByValue,
            _ if filled && is_cut() => Line::CutByValue,
            true if !is_joined => Line::End,
            ends if ends || may_end => Line::Doubtful,
            _ => Line::Body,
        }
    }

    fn is_cut(&self, line: &str) -> bool {
        let line = self.without_tabs(line).as_bytes();
        let word = self.word.text.as_bytes();
        let same = line.iter().zip(word).take_while(|(one, other)| one == other);
        let same = same.count();
        same > 0 && line.get(same).is_some_and(|next| !next.is_ascii())
    }

    fn without_tabs<'a>(&self, line: &'a str) -> &'a str {
        match self.word.strips_tabs {
            true => line.trim_start_matches('\t'),
            false => line,
        }
    }
}
