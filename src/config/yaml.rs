//! YAML text into a [`Node`], and the place of a key in that text. Knows none of the configuration's keys.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::anchors::reused_anchor;
use super::node::Node;
use super::problem::{KeyPath, Problem, Segment, Spot};

/// A line and a column, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

/// Text that is not one YAML document, or one that is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub(super) position: Option<Position>,
    pub(super) problem: Problem,
}

/// Reads the one document of a text.
pub(super) fn parse(text: &str) -> Result<Node, Unreadable> {
    refuse_control_characters(text)?;
    refuse_deep_nesting(text)?;
    let mut documents = serde_yaml::Deserializer::from_str(text);
    let mut reader = Reader {
        // What a text without aliases can cost, and then some for aliases: none of it grows with their nesting.
        budget: text.len().saturating_mul(10).saturating_add(10_000),
        path: KeyPath::default(),
        problem: None,
    };
    let node = match documents.next() {
        Some(document) => reader
            .deserialize(document)
            .map_err(|error| unreadable(text, &error, reader.problem.take()))?,
        None => Node::Null,
    };
    if let Some(second) = documents.next() {
        let position = Stop.deserialize(second).err().as_ref().and_then(position);
        let problem = Problem::custom(
            "expected one document, found a second one\na line of `---` begins another document",
        );
        return Err(Unreadable { position, problem });
    }
    if let Some(reused) = reused_anchor(text) {
        let before = &text[..reused.at];
        let line = before.rsplit('\n').next().unwrap_or_default();
        return Err(Unreadable {
            position: Some(Position {
                line: before.matches('\n').count() + 1,
                column: line.chars().count() + 1,
            }),
            problem: Problem::custom(reused),
        });
    }
    Ok(node)
}

/// They are not YAML, and the parser would not say where they are.
fn refuse_control_characters(text: &str) -> Result<(), Unreadable> {
    let allowed = |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r' | '\u{85}');
    for (index, line) in text.split('\n').enumerate() {
        if let Some((column, c)) = line.chars().enumerate().find(|(_, c)| !allowed(*c)) {
            return Err(Unreadable {
                position: Some(Position {
                    line: index + 1,
                    column: column + 1,
                }),
                problem: Problem::custom(format_args!(
                    "expected text, found the control character U+{:04X}",
                    u32::from(c)
                )),
            });
        }
    }
    Ok(())
}

/// The parser takes time in proportion to the square of how deep brackets are open. No file comes near this, so it does
/// not matter that brackets inside of text are counted too.
fn refuse_deep_nesting(text: &str) -> Result<(), Unreadable> {
    const DEEPEST: usize = 500;
    let mut open = 0_usize;
    for (index, line) in text.split('\n').enumerate() {
        for (column, c) in line.chars().enumerate() {
            match c {
                '[' | '{' => open += 1,
                ']' | '}' => open = open.saturating_sub(1),
                _ => {}
            }
            if open > DEEPEST {
                return Err(Unreadable {
                    position: Some(Position {
                        line: index + 1,
                        column: column + 1,
                    }),
                    problem: Problem::custom(format_args!(
                        "expected at most {DEEPEST} open brackets, found more"
                    )),
                });
            }
        }
    }
    Ok(())
}

/// Where a path is in a text that [`parse`] has read.
pub(super) fn locate(text: &str, path: &KeyPath, spot: Spot) -> Option<Position> {
    let (path, spot) = match (path.0.split_last(), spot) {
        (Some((_, parent)), Spot::Parent) => (parent, Spot::Key),
        _ => (path.0.as_slice(), spot),
    };
    if path.is_empty() && spot == Spot::Key {
        return Some(Position { line: 1, column: 1 });
    }
    // serde says where an error arose, so one is made on purpose: there.
    let document = serde_yaml::Deserializer::from_str(text).next()?;
    let error = Walk { path, spot }.deserialize(document).err()?;
    position(&error)
}

fn position(error: &serde_yaml::Error) -> Option<Position> {
    error.location().map(|location| Position {
        line: location.line(),
        column: location.column(),
    })
}

fn unreadable(text: &str, error: &serde_yaml::Error, problem: Option<Problem>) -> Unreadable {
    let position = position(error);
    let tab = position
        .and_then(|position| text.lines().nth(position.line - 1))
        .is_some_and(|line| line.trim_start_matches(' ').starts_with('\t'));
    let problem = problem.unwrap_or_else(|| {
        let said = error.to_string();
        // The position comes first in our own message.
        let said = said.split(" at line ").next().unwrap_or(&said);
        if tab {
            Problem::custom("expected spaces, found a tab: YAML is not indented with tabs")
        } else {
            Problem::custom(format_args!("cannot read this as YAML: {said}"))
        }
    });
    Unreadable { position, problem }
}

/// Builds a [`Node`]; knows the path that it is at when it fails.
struct Reader {
    budget: usize,
    path: KeyPath,
    problem: Option<Problem>,
}

impl Reader {
    fn fail<E: Error>(&mut self, text: &str) -> E {
        self.problem = Some(Problem::new(self.path.clone(), text));
        E::custom(text)
    }

    fn spend<E: Error>(&mut self, cost: usize) -> Result<(), E> {
        match self.budget.checked_sub(cost + 1) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => {
                self.path = KeyPath::default();
                Err(self.fail("the aliases make it too large\nwrite the values out"))
            }
        }
    }

    fn scalar<E: Error>(&mut self, node: Node) -> Result<Node, E> {
        self.spend(0).map(|()| node)
    }
}

impl<'de> DeserializeSeed<'de> for &mut Reader {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Node, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Reader {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        self.scalar(Node::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Node, E> {
        self.scalar(Node::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node, E> {
        self.scalar(Node::Bool(value))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Node, E> {
        self.scalar(Node::Integer(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Node, E> {
        self.scalar(Node::Integer(number.into()))
    }

    fn visit_i128<E: Error>(self, number: i128) -> Result<Node, E> {
        self.scalar(Node::Integer(number))
    }

    fn visit_u128<E: Error>(self, number: u128) -> Result<Node, E> {
        self.scalar(i128::try_from(number).map_or(Node::Float(number as f64), Node::Integer))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Node, E> {
        self.scalar(Node::Float(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node, E> {
        self.spend(text.len())?;
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, _: A) -> Result<Node, A::Error> {
        Err(self.fail("tags such as `!name` are not read\nput text that begins with `!` in quotes"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        self.spend(0)?;
        let mut nodes = Vec::new();
        loop {
            self.path.0.push(Segment::Index(nodes.len()));
            let node = list.next_element_seed(&mut *self)?;
            self.path.0.pop();
            match node {
                Some(node) => nodes.push(node),
                None => return Ok(Node::List(nodes)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        self.spend(0)?;
        let mut entries = Vec::new();
        let mut seen = BTreeSet::new();
        while let Some(key) = map.next_key_seed(NewKey {
            reader: &mut *self,
            seen: &mut seen,
        })? {
            self.path.0.push(Segment::Key(key.clone()));
            let value = map.next_value_seed(&mut *self)?;
            self.path.0.pop();
            entries.push((key, value));
        }
        Ok(Node::Map(entries))
    }
}

struct NewKey<'a> {
    reader: &'a mut Reader,
    seen: &'a mut BTreeSet<String>,
}

impl<'de> DeserializeSeed<'de> for NewKey<'_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<String, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for NewKey<'_> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text as a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<String, E> {
        self.reader.spend(key.len())?;
        if self.seen.insert(key.to_owned()) {
            Ok(key.to_owned())
        } else {
            self.reader.path.0.push(Segment::Key(key.to_owned()));
            Err(self.reader.fail("the key is there twice\nkeep one of them"))
        }
    }
}

/// Goes to a path and fails there.
struct Walk<'a> {
    path: &'a [Segment],
    spot: Spot,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        if self.path.is_empty() {
            from.deserialize_any(Stop)
        } else {
            from.deserialize_any(self)
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or mapping")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if let Some((Segment::Index(index), path)) = self.path.split_first() {
            for _ in 0..*index {
                list.next_element::<IgnoredAny>()?;
            }
            list.next_element_seed(Walk {
                path,
                spot: self.spot,
            })?;
        }
        Err(A::Error::custom("not there"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if let Some((Segment::Key(key), path)) = self.path.split_first() {
            let stop = path.is_empty() && self.spot == Spot::Key;
            while let Some(found) = map.next_key_seed(Key { key, stop })? {
                if found {
                    map.next_value_seed(Walk {
                        path,
                        spot: self.spot,
                    })?;
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Err(A::Error::custom("not there"))
    }
}

/// Says whether a key is the one, or stops at it.
struct Key<'a> {
    key: &'a str,
    stop: bool,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<bool, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<bool, E> {
        match key == self.key {
            true if self.stop => Err(E::custom("here")),
            found => Ok(found),
        }
    }
}

/// Takes nothing, so that the error says where it was offered.
struct Stop;

impl<'de> DeserializeSeed<'de> for Stop {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl Visitor<'_> for Stop {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing")
    }
}
