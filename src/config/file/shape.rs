//! Values that may be written in more than one way: one or a list, text or a mapping.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, DeserializeSeed, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::config::value::{FromText, read};

/// A list in which nothing stands twice.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::config) struct List<T>(pub(in crate::config) Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// One text, or a list in which nothing stands twice.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::config) struct OneOrList<T>(pub(in crate::config) Vec<T>);

impl<'de, T: Deserialize<'de> + PartialEq> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ListVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de> + PartialEq> Visitor<'de> for ListVisitor<T> {
            type Value = List<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<List<T>, A::Error> {
                distinct(list).map(List)
            }
        }

        from.deserialize_seq(ListVisitor(PhantomData))
    }
}

impl<'de, T: FromText + Deserialize<'de> + PartialEq> Deserialize<'de> for OneOrList<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct EitherVisitor<T>(PhantomData<T>);

        impl<'de, T: FromText + Deserialize<'de> + PartialEq> Visitor<'de> for EitherVisitor<T> {
            type Value = OneOrList<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}, or a list of them", T::EXPECTED)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<OneOrList<T>, E> {
                let one = read(text).map_err(E::custom)?;
                Ok(OneOrList(vec![one]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<OneOrList<T>, A::Error> {
                let values = distinct(list)?;
                if values.is_empty() {
                    return Err(de::Error::custom(format_args!(
                        "expected {}, found an empty list",
                        T::EXPECTED
                    )));
                }
                Ok(OneOrList(values))
            }
        }

        from.deserialize_any(EitherVisitor(PhantomData))
    }
}

fn distinct<'de, T: Deserialize<'de> + PartialEq, A: SeqAccess<'de>>(
    mut list: A,
) -> Result<Vec<T>, A::Error> {
    let mut values = Vec::new();
    while let Some(value) = list.next_element_seed(Another(&values))? {
        values.push(value);
    }
    Ok(values)
}

/// One more element, checked while its place in the list is still known.
struct Another<'a, T>(&'a [T]);

impl<'de, T: Deserialize<'de> + PartialEq> DeserializeSeed<'de> for Another<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        let value = T::deserialize(from)?;
        if self.0.contains(&value) {
            return Err(de::Error::custom(
                "the same stands in this list already\nkeep one of them",
            ));
        }
        Ok(value)
    }
}

impl<T: JsonSchema> JsonSchema for List<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("ListOf{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": generator.subschema_for::<T>(), "uniqueItems": true })
    }
}

impl<T: JsonSchema> JsonSchema for OneOrList<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("OneOrListOf{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            generator.subschema_for::<T>(),
            { "type": "array", "items": generator.subschema_for::<T>(), "uniqueItems": true, "minItems": 1 },
        ] })
    }
}

/// Makes an enum readable from the file by the shape of what is found there, with its JSON Schema.
macro_rules! by_shape {
    ($type:ident, $expected:expr, $($shape:ident $variant:ident($inner:ty)),+ $(,)?) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct ShapeVisitor;

                impl<'de> serde::de::Visitor<'de> for ShapeVisitor {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expected)
                    }

                    $($crate::config::file::shape::by_shape!(@$shape $type, $variant, $inner);)+
                }

                from.deserialize_any(ShapeVisitor)
            }
        }

        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "anyOf": [$(generator.subschema_for::<$inner>()),+] })
            }
        }
    };
    (@text $type:ident, $variant:ident, $inner:ty) => {
        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
            $crate::config::value::read::<$inner>(text).map($type::$variant).map_err(E::custom)
        }
    };
    (@number $type:ident, $variant:ident, $inner:ty) => {
        fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<$type, E> {
            use serde::de::IntoDeserializer as _;
            <$inner as serde::Deserialize>::deserialize(number.into_deserializer()).map($type::$variant)
        }
    };
    (@list $type:ident, $variant:ident, $inner:ty) => {
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, list: A) -> Result<$type, A::Error> {
            <$inner as serde::Deserialize>::deserialize(serde::de::value::SeqAccessDeserializer::new(list))
                .map($type::$variant)
        }
    };
    (@map $type:ident, $variant:ident, $inner:ty) => {
        fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<$type, A::Error> {
            <$inner as serde::Deserialize>::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                .map($type::$variant)
        }
    };
}
pub(in crate::config) use by_shape;
