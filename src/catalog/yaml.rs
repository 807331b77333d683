//! Reads the one kind of YAML that pairs and front matter are: maps of text and lists of text, every scalar as it is
//! written (`1.10` stays `1.10`), which takes two readings: one for the shapes, one for the text.

use std::cell::Cell;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, IgnoredAny, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};

use super::entries::{EntryList, Field, FieldMap, Fields};
use crate::config::reused_anchor;

/// A list of maps. On an error the entry that was being read is in `entry`, from 1; 0 is none.
pub(super) fn entries(text: &str, entry: &Cell<usize>) -> Result<Vec<Fields>, serde_yaml::Error> {
    let shapes: Vec<Vec<(String, Shape)>> =
        EntryList::new(entry).deserialize(serde_yaml::Deserializer::from_str(text))?;
    entry.set(0);
    refuse_reused_anchor(text)?;
    Texts(&shapes).deserialize(serde_yaml::Deserializer::from_str(text))
}

/// One map; nothing at all is an empty one.
pub(super) fn map(text: &str) -> Result<Fields, serde_yaml::Error> {
    let shapes: Option<FieldMap<Shape>> = serde_yaml::from_str(text)?;
    refuse_reused_anchor(text)?;
    match shapes {
        Some(shapes) => Text(&shapes.0).deserialize(serde_yaml::Deserializer::from_str(text)),
        None => Ok(Vec::new()),
    }
}

fn refuse_reused_anchor(text: &str) -> Result<(), serde_yaml::Error> {
    reused_anchor(text).map_or(Ok(()), |reused| Err(serde::de::Error::custom(reused)))
}

/// What kind of value stands somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Absent,
    Scalar,
    Scalars,
    Other(&'static str),
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ShapeVisitor)
    }
}

struct ShapeVisitor;

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Shape, E> {
        Ok(Shape::Scalar)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Shape, E> {
        Ok(Shape::Scalar)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Shape, E> {
        Ok(Shape::Scalar)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Shape, E> {
        Ok(Shape::Scalar)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Shape, E> {
        Ok(Shape::Scalar)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Shape, E> {
        Ok(Shape::Scalar)
    }

    fn visit_str<E>(self, _: &str) -> Result<Shape, E> {
        Ok(Shape::Scalar)
    }

    fn visit_unit<E>(self) -> Result<Shape, E> {
        Ok(Shape::Absent)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Shape, A::Error> {
        let mut shape = Shape::Scalars;
        while let Some(element) = from.next_element::<Shape>()? {
            if element != Shape::Scalar {
                shape = Shape::Other("a list that does not hold text alone");
            }
        }
        Ok(shape)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Shape, A::Error> {
        while from.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Shape::Other("a map"))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, from: A) -> Result<Shape, A::Error> {
        let (_, value) = from.variant::<IgnoredAny>()?;
        value.newtype_variant::<IgnoredAny>()?;
        Ok(Shape::Other("a tagged value"))
    }
}

/// The second reading of a list of maps.
struct Texts<'a>(&'a [Vec<(String, Shape)>]);

impl<'de> DeserializeSeed<'de> for Texts<'_> {
    type Value = Vec<Fields>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Texts<'_> {
    type Value = Vec<Fields>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of pairs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::with_capacity(self.0.len());
        for shapes in self.0 {
            entries.extend(from.next_element_seed(Text(shapes))?);
        }
        Ok(entries)
    }
}

/// The second reading of one map.
struct Text<'a>(&'a [(String, Shape)]);

impl<'de> DeserializeSeed<'de> for Text<'_> {
    type Value = Fields;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Fields, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Text<'_> {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Fields, A::Error> {
        let mut fields = Vec::with_capacity(self.0.len());
        for (_, shape) in self.0 {
            let Some(key) = from.next_key::<String>()? else {
                break;
            };
            let field = match shape {
                Shape::Scalar => Field::Text(from.next_value()?),
                Shape::Scalars => Field::List(from.next_value()?),
                Shape::Absent => {
                    from.next_value::<IgnoredAny>()?;
                    Field::Absent
                }
                Shape::Other(found) => {
                    from.next_value::<IgnoredAny>()?;
                    Field::Other(found)
                }
            };
            fields.push((key, field));
        }
        Ok(fields)
    }
}
