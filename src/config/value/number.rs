//! Numbers with bounds.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use super::{FromText, Refusal};

/// A whole number within bounds, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) struct Whole<const MIN: u32, const MAX: u32>(pub(in crate::config) u32);

/// `version`: the only one there is.
pub(in crate::config) type Version = Whole<1, 1>;

/// An exit code of a command.
pub(in crate::config) type ExitStatus = Whole<0, 255>;

impl<const MIN: u32, const MAX: u32> Whole<MIN, MAX> {
    fn expected() -> String {
        if MIN == MAX {
            format!("the number {MIN}")
        } else {
            format!("a whole number from {MIN} to {MAX}")
        }
    }

    fn within(number: u64) -> Option<Self> {
        let number = u32::try_from(number).ok()?;
        (MIN..=MAX).contains(&number).then_some(Self(number))
    }
}

impl<const MIN: u32, const MAX: u32> FromText for Whole<MIN, MAX> {
    const EXPECTED: &'static str = "a whole number";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        let digits = text.chars().all(|c| c.is_ascii_digit());
        let number = if digits { text.parse().ok() } else { None };
        number
            .and_then(Self::within)
            .ok_or_else(|| Refusal::Expected(Self::expected()))
    }
}

impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for Whole<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct WholeVisitor<const MIN: u32, const MAX: u32>;

        impl<const MIN: u32, const MAX: u32> Visitor<'_> for WholeVisitor<MIN, MAX> {
            type Value = Whole<MIN, MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&Self::Value::expected())
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
                Whole::within(number).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
            }
        }

        from.deserialize_u32(WholeVisitor)
    }
}

impl<const MIN: u32, const MAX: u32> JsonSchema for Whole<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Whole{MIN}To{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $expected:literal, $within:expr, $schema:tt) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub(in crate::config) struct $name(pub(in crate::config) f64);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct NumberVisitor;

                impl Visitor<'_> for NumberVisitor {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expected)
                    }

                    fn visit_u64<E: de::Error>(self, number: u64) -> Result<$name, E> {
                        let within: fn(f64) -> bool = $within;
                        // A bound is far below where a float skips whole numbers.
                        within(number as f64)
                            .then_some($name(number as f64))
                            .ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
                    }

                    fn visit_f64<E: de::Error>(self, number: f64) -> Result<$name, E> {
                        let within: fn(f64) -> bool = $within;
                        within(number)
                            .then_some($name(number))
                            .ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
                    }
                }

                from.deserialize_f64(NumberVisitor)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

number! {
    /// A share of one.
    Ratio, "a number from 0 to 1", |number| (0.0..=1.0).contains(&number),
    { "type": "number", "minimum": 0, "maximum": 1 }
}
number! {
    /// A level of significance.
    Confidence, "a number between 0 and 1, such as 0.05", |number| 0.0 < number && number < 1.0,
    { "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 }
}
number! {
    /// An amount of money or time.
    Amount, "a number of 0 or more", |number| (0.0..=1e12).contains(&number),
    { "type": "number", "minimum": 0, "maximum": 1e12 }
}
