//! Pairs as they are written: a list of maps in JSON, YAML or the configuration itself.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::error::At;
use super::{CatalogError, EntryProblem, label, yaml};
use crate::config::OneOrMany;
use crate::model::{EvalId, ExperimentId, InvalidId, Labels, Pair, PairId};

/// Which language the text is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    /// JSON and nothing else.
    Json,
    /// YAML, unless it is JSON.
    Any,
}

/// One key of an entry with what stands there.
pub(super) type Fields = Vec<(String, Field)>;

/// A value of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// `null`: not set.
    Absent,
    /// A scalar, as it is written.
    Text(String),
    /// A list of scalars.
    List(Vec<String>),
    /// Anything else, in words.
    Other(&'static str),
}

/// Reads the pairs in `text`; `origin` is where it came from, in words.
pub(super) fn read(text: &str, origin: &str, syntax: Syntax) -> Result<Vec<Pair>, CatalogError> {
    let text = text.trim_start_matches('\u{feff}');
    let entry = Cell::new(0);
    let fields = match (json(text, &entry), syntax) {
        (Ok(fields), _) => Ok(fields),
        // A list in brackets that is no JSON may be YAML; if it is neither, JSON was meant.
        _ if text.trim().is_empty() => Err("there is nothing in it: expected a list of pairs".into()),
        (Err(error), Syntax::Any) if text.trim_start().starts_with('[') => {
            let meant = entry.get();
            yaml::entries(text, &entry).map_err(|_| {
                entry.set(meant);
                error.into()
            })
        }
        (Err(_), Syntax::Any) => {
            entry.set(0);
            yaml::entries(text, &entry).map_err(Into::into)
        }
        (Err(error), Syntax::Json) => Err(error.into()),
    };
    let fields = fields.map_err(|source| CatalogError::Syntax {
        origin: origin.to_owned(),
        at: At(Some(entry.get()).filter(|entry| *entry > 0)),
        source,
    })?;
    pairs(fields, origin)
}

/// Reads the pairs that the configuration holds itself.
pub(super) fn inline(entries: &[BTreeMap<String, OneOrMany>]) -> Result<Vec<Pair>, CatalogError> {
    let fields = entries.iter().map(|entry| {
        let fields = entry.iter().map(|(key, OneOrMany(values))| {
            let field = match values.as_slice() {
                [one] => Field::Text(one.clone()),
                many => Field::List(many.to_vec()),
            };
            (key.clone(), field)
        });
        fields.collect()
    });
    pairs(fields.collect(), "`suite.pairs`")
}

fn pairs(entries: Vec<Fields>, origin: &str) -> Result<Vec<Pair>, CatalogError> {
    let mut pairs: Vec<Pair> = Vec::with_capacity(entries.len());
    let mut seen: HashMap<PairId, usize> = HashMap::with_capacity(entries.len());
    for (index, fields) in entries.iter().enumerate() {
        let entry = index + 1;
        let pair = pair(fields).map_err(|source| CatalogError::Entry {
            origin: origin.to_owned(),
            entry,
            source,
        })?;
        if let Some(first) = seen.insert(pair.id.clone(), entry) {
            return Err(CatalogError::Duplicate {
                origin: origin.to_owned(),
                entry,
                pair: pair.id.to_string(),
                first,
            });
        }
        pairs.push(pair);
    }
    Ok(pairs)
}

fn pair(fields: &Fields) -> Result<Pair, EntryProblem> {
    let mut eval: Option<EvalId> = None;
    let mut experiment: Option<ExperimentId> = None;
    let mut labels = Labels::default();
    let mut keys = HashSet::with_capacity(fields.len());
    for (key, field) in fields {
        if !keys.insert(key) {
            return Err(EntryProblem::Repeated(key.clone()));
        }
        let wrong = |found, expected| EntryProblem::Type {
            key: key.clone(),
            found,
            expected,
        };
        match (key.as_str(), field) {
            (_, Field::Absent) => {}
            ("eval" | "eval_id", _) if eval.is_some() => return Err(EntryProblem::TwoEvals),
            ("eval" | "eval_id", Field::Text(text)) => eval = Some(id("eval", text)?),
            ("experiment", Field::Text(text)) => experiment = Some(id("experiment", text)?),
            ("eval" | "eval_id" | "experiment", Field::List(_)) => return Err(wrong("a list", "one id")),
            ("eval" | "eval_id" | "experiment", Field::Other(found)) => return Err(wrong(found, "one id")),
            (name, Field::Text(text)) => label::add(&mut labels, name, [text.as_str()])?,
            (name, Field::List(texts)) => label::add(&mut labels, name, texts.iter().map(String::as_str))?,
            (_, Field::Other(found)) => return Err(wrong(found, "a string or a list of strings")),
        }
    }
    let missing = |key| EntryProblem::Missing {
        key,
        hint: meant(key, fields),
    };
    let id = PairId {
        experiment: experiment.ok_or_else(|| missing("experiment"))?,
        eval: eval.ok_or_else(|| missing("eval"))?,
    };
    Ok(Pair { id, labels })
}

fn id<'a, I: TryFrom<&'a str, Error = InvalidId>>(
    key: &'static str,
    text: &'a str,
) -> Result<I, EntryProblem> {
    I::try_from(text).map_err(|source| EntryProblem::Id { key, source })
}

fn meant(key: &str, fields: &Fields) -> String {
    fields
        .iter()
        .map(|(other, _)| (strsim::jaro_winkler(key, other), other))
        .filter(|(likeness, other)| *likeness >= 0.8 && !["eval", "experiment"].contains(&other.as_str()))
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map_or(String::new(), |(_, other)| {
            format!("\nthe nearest key there is `{other}`")
        })
}

fn json(text: &str, entry: &Cell<usize>) -> Result<Vec<Fields>, serde_json::Error> {
    let mut from = serde_json::Deserializer::from_str(text);
    let entries: Vec<Vec<(String, Value)>> = EntryList::new(entry).deserialize(&mut from)?;
    entry.set(0);
    from.end()?;
    let field = |(key, value)| (key, Field::from(value));
    Ok(entries
        .into_iter()
        .map(|entry| entry.into_iter().map(field).collect())
        .collect())
}

impl From<Value> for Field {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Absent,
            Value::Bool(value) => Self::Text(value.to_string()),
            Value::Number(number) => Self::Text(number.to_string()),
            Value::String(text) => Self::Text(text),
            Value::Array(values) => values
                .into_iter()
                .map(|value| match Self::from(value) {
                    Self::Text(text) => Some(text),
                    _ => None,
                })
                .collect::<Option<_>>()
                .map_or(Self::Other("a list that does not hold text alone"), Self::List),
            Value::Object(_) => Self::Other("a map"),
        }
    }
}

/// A list of maps with values of one kind, every key kept, also one that is there twice. The number of the entry
/// that is being read is kept aside, for errors.
pub(super) struct EntryList<'a, V> {
    entry: &'a Cell<usize>,
    values: PhantomData<V>,
}

impl<'a, V> EntryList<'a, V> {
    /// Counts in `entry`.
    pub(super) fn new(entry: &'a Cell<usize>) -> Self {
        Self {
            entry,
            values: PhantomData,
        }
    }
}

impl<'de, V: Deserialize<'de>> DeserializeSeed<'de> for EntryList<'_, V> {
    type Value = Vec<Vec<(String, V)>>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de, V: Deserialize<'de>> Visitor<'de> for EntryList<'_, V> {
    type Value = Vec<Vec<(String, V)>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of pairs, each with `eval` and `experiment`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        loop {
            self.entry.set(entries.len() + 1);
            match from.next_element::<FieldMap<V>>()? {
                Some(fields) => entries.push(fields.0),
                None => break,
            }
        }
        Ok(entries)
    }
}

/// One map, in its order.
pub(super) struct FieldMap<V>(pub(super) Vec<(String, V)>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for FieldMap<V> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(FieldMapVisitor(PhantomData))
    }
}

struct FieldMapVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for FieldMapVisitor<V> {
    type Value = FieldMap<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<FieldMap<V>, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = from.next_entry()? {
            fields.push(field);
        }
        Ok(FieldMap(fields))
    }
}
