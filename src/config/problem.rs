//! What is wrong at a key, before it is known where in the file that is.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

/// Names a place in a configuration: keys and list positions from the top.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeyPath(pub(super) Vec<Segment>);

/// One step of a [`KeyPath`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    Key(String),
    Index(usize),
}

impl KeyPath {
    /// The path of a key of the file that is known by name: `attempt.exit`.
    pub(super) fn of(dotted: &str) -> Self {
        Self(
            dotted
                .split('.')
                .map(|key| Segment::Key(key.to_owned()))
                .collect(),
        )
    }

    pub(super) fn key(mut self, key: &str) -> Self {
        self.0.push(Segment::Key(key.to_owned()));
        self
    }

    pub(super) fn index(mut self, index: usize) -> Self {
        self.0.push(Segment::Index(index));
        self
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Key(key) if at == 0 => write!(f, "{}", printable(key))?,
                Segment::Key(key) => write!(f, ".{}", printable(key))?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Which part of the text at a path is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    /// The value.
    Value,
    /// The key itself.
    Key,
    /// The key of the mapping that lacks this one.
    Parent,
}

/// What is wrong, and at which key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) path: KeyPath,
    pub(super) spot: Spot,
    pub(super) text: String,
    pub(super) help: Option<String>,
}

impl Problem {
    /// Something wrong with a value. A second line of `text` says what to do.
    pub(super) fn new(path: KeyPath, text: impl Into<String>) -> Self {
        let text = text.into();
        let (text, help) = match text.split_once('\n') {
            Some((text, help)) => (text.to_owned(), Some(help.to_owned())),
            None => (text, None),
        };
        Self {
            path,
            spot: Spot::Value,
            text,
            help,
        }
    }

    /// A key that has to be there and is not.
    pub(super) fn missing(path: KeyPath, expected: &str) -> Self {
        Self {
            spot: Spot::Parent,
            ..Self::new(path, format!("missing, expected {expected}"))
        }
    }

    /// The same problem, seen from one level further up.
    pub(super) fn below(mut self, segment: Segment) -> Self {
        self.path.0.insert(0, segment);
        self
    }

    /// A problem with a key's own text.
    pub(super) fn at_key(mut self, key: &str) -> Self {
        self.spot = Spot::Key;
        self.below(Segment::Key(key.to_owned()))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.0.is_empty() {
            f.write_str(&self.text)
        } else {
            write!(f, "`{}`: {}", self.path, self.text)
        }
    }
}

impl std::error::Error for Problem {}

impl de::Error for Problem {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self::new(KeyPath::default(), text.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("expected {expected}, found {}", describe(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("expected {expected}, found {length} entries"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(not_among(variant, expected))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        if field == "<<" {
            return Self::custom(
                "merge keys are not read\nwrite the keys out, or use an alias for a whole value",
            );
        }
        let nearest = nearest(field, expected)
            .map_or_else(String::new, |key| format!(", the nearest known one is `{key}`"));
        Self::custom(format_args!(
            "unknown key{nearest}\nknown here: {}",
            expected.join(", ")
        ))
    }

    fn missing_field(field: &'static str) -> Self {
        Self {
            spot: Spot::Parent,
            ..Self::custom("missing, and it has no default")
        }
        .below(Segment::Key(field.to_owned()))
    }
}

/// What to say of a word that is none of the known ones.
pub(super) fn not_among(word: &str, known: &[&str]) -> String {
    let expected = one_of(known);
    let found = quoted(word);
    match nearest(word, known) {
        Some(nearest) => format!("expected {expected}, found {found}; the nearest known one is `{nearest}`"),
        None => format!("expected {expected}, found {found}"),
    }
}

/// `a`, `b` or `c`.
pub(super) fn one_of(known: &[&str]) -> String {
    let quoted: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Text from outside as it can be shown in a message: short, in one line, no control characters.
pub(super) fn quoted(text: &str) -> String {
    const SHOWN: usize = 60;
    if text.is_empty() {
        return "an empty text".to_owned();
    }
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if text.chars().count() > SHOWN { "…" } else { "" };
    format!("`{}{more}`", printable(&shown))
}

/// What was found, in the words of a YAML file.
fn describe(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => format!("`{value}`"),
        Unexpected::Unsigned(number) => format!("the number {number}"),
        Unexpected::Signed(number) => format!("the number {number}"),
        Unexpected::Float(number) => format!("the number {number:?}"),
        Unexpected::Str(text) => quoted(text),
        Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a mapping".to_owned(),
        other => other.to_string(),
    }
}

fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            printable.extend(c.escape_debug());
        } else {
            printable.push(c);
        }
    }
    printable
}

fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    // Nobody mistypes into something this long, and the distance takes time in proportion to it.
    let word: String = word.chars().take(100).collect::<String>().to_lowercase();
    if word.is_empty() {
        return None;
    }
    known
        .iter()
        .copied()
        .min_by_key(|candidate| strsim::damerau_levenshtein(&word, candidate))
}
