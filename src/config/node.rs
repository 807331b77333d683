//! A YAML document as plain values, and how serde reads types out of it with errors that know their key.

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer, Unexpected, VariantAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;

use super::problem::{Problem, Segment};

/// A value of a YAML document, its aliases followed. No mapping has a key twice.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    /// The value of a key, where this is a mapping that has it and it is not null.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        match self {
            Self::Map(entries) => entries
                .iter()
                .find(|(name, value)| name == key && *value != Self::Null)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    fn unexpected(&self) -> Unexpected<'_> {
        match self {
            Self::Null => Unexpected::Unit,
            Self::Bool(value) => Unexpected::Bool(*value),
            Self::Integer(number) => match (u64::try_from(*number), i64::try_from(*number)) {
                (Ok(number), _) => Unexpected::Unsigned(number),
                (_, Ok(number)) => Unexpected::Signed(number),
                _ => Unexpected::Float(*number as f64),
            },
            Self::Float(number) => Unexpected::Float(*number),
            Self::Text(text) => Unexpected::Str(text),
            Self::List(_) => Unexpected::Seq,
            Self::Map(_) => Unexpected::Map,
        }
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self {
            Node::Null => visitor.visit_unit(),
            Node::Bool(value) => visitor.visit_bool(*value),
            Node::Integer(number) => match (u64::try_from(*number), i64::try_from(*number)) {
                (Ok(number), _) => visitor.visit_u64(number),
                (_, Ok(number)) => visitor.visit_i64(number),
                _ => visitor.visit_f64(*number as f64),
            },
            Node::Float(number) => visitor.visit_f64(*number),
            Node::Text(text) => visitor.visit_borrowed_str(text),
            Node::List(nodes) => {
                let mut list = List { nodes, next: 0 };
                let value = visitor.visit_seq(&mut list)?;
                if list.next < nodes.len() {
                    return Err(Problem::invalid_length(
                        nodes.len(),
                        &format!("{} entries", list.next).as_str(),
                    ));
                }
                Ok(value)
            }
            Node::Map(entries) => visitor.visit_map(Map { entries, next: 0 }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self {
            Node::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        visitor.visit_newtype_struct(self)
    }

    /// Only mappings: what serde derives would take a list for a struct as well.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        match self {
            Node::Map(_) => self.deserialize_any(visitor),
            _ => Err(Problem::invalid_type(self.unexpected(), &visitor)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        match self {
            Node::Text(word) => visitor.visit_enum(Word(word)),
            _ => Err(Problem::invalid_type(
                self.unexpected(),
                &super::problem::one_of(variants).as_str(),
            )),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier
    }
}

struct List<'de> {
    nodes: &'de [Node],
    next: usize,
}

impl<'de> de::SeqAccess<'de> for &mut List<'de> {
    type Error = Problem;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Problem> {
        let Some(node) = self.nodes.get(self.next) else {
            return Ok(None);
        };
        let index = self.next;
        self.next += 1;
        seed.deserialize(node)
            .map(Some)
            .map_err(|problem| problem.below(Segment::Index(index)))
    }
}

struct Map<'de> {
    entries: &'de [(String, Node)],
    next: usize,
}

impl<'de> de::MapAccess<'de> for Map<'de> {
    type Error = Problem;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Problem> {
        let Some((key, _)) = self.entries.get(self.next) else {
            return Ok(None);
        };
        let key: StrDeserializer<'de, Problem> = key.as_str().into_deserializer();
        let text = &self.entries[self.next].0;
        seed.deserialize(key)
            .map(Some)
            .map_err(|problem| problem.at_key(text))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Problem> {
        let Some((key, value)) = self.entries.get(self.next) else {
            return Err(Problem::custom("a key has no value"));
        };
        self.next += 1;
        seed.deserialize(value)
            .map_err(|problem| problem.below(Segment::Key(key.clone())))
    }
}

struct Word<'de>(&'de str);

impl<'de> EnumAccess<'de> for Word<'de> {
    type Error = Problem;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Problem> {
        let word: StrDeserializer<'de, Problem> = self.0.into_deserializer();
        seed.deserialize(word).map(|variant| (variant, self))
    }
}

/// Every choice in the file is a bare word; there is none that holds something.
impl<'de> VariantAccess<'de> for Word<'de> {
    type Error = Problem;

    fn unit_variant(self) -> Result<(), Problem> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Problem> {
        Err(Problem::invalid_type(Unexpected::Str(self.0), &"a mapping"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Problem> {
        Err(Problem::invalid_type(Unexpected::Str(self.0), &visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        Err(Problem::invalid_type(Unexpected::Str(self.0), &visitor))
    }
}
