//! The single values of a configuration: each type reads its text, whether it comes from the file, a flag, an action
//! input or a variable, and says what it expected. None knows its key.

mod choice;
mod measure;
mod mount;
mod number;
mod path;
mod word;

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Unexpected, Visitor};

use super::problem::quoted;

pub(super) use choice::{GateText, OneWave, Truth};
pub(super) use measure::{Day, Percent, Points, Seconds, Size, Span};
pub(super) use mount::MountText;
pub(super) use number::{Amount, Confidence, ExitStatus, Ratio, Version, Whole};
pub(super) use path::{
    EvalGlob, ExperimentGlob, FileGlob, IdGlob, PathTemplate, RelativePath, ResultPath, SourcePath,
};
pub(super) use word::{
    ArgumentText, EnvName, Id, LabelName, LabelText, Pattern, Pointer, ShellText, SourceText, SuiteName,
    Text, ValueText,
};

/// A type that is written as one word or line of text.
pub(super) trait FromText: Sized {
    /// What its text looks like, after "expected".
    const EXPECTED: &'static str;

    /// Reads it; the text is never empty after trimming unless it comes from the file.
    fn from_text(text: &str) -> Result<Self, Refusal>;
}

/// Why a text is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It does not look like [`FromText::EXPECTED`].
    Unlike,
    /// It has to be this instead.
    Expected(String),
    /// The whole message.
    Because(String),
}

impl Refusal {
    pub(super) fn because(text: impl fmt::Display) -> Self {
        Self::Because(text.to_string())
    }

    pub(super) fn expected(text: impl fmt::Display) -> Self {
        Self::Expected(text.to_string())
    }
}

/// Reads a value, or says what was expected and what was found.
pub(super) fn read<T: FromText>(text: &str) -> Result<T, String> {
    T::from_text(text).map_err(|refusal| match refusal {
        Refusal::Unlike => format!("expected {}, found {}", T::EXPECTED, quoted(text)),
        Refusal::Expected(expected) => format!("expected {expected}, found {}", quoted(text)),
        Refusal::Because(text) => text,
    })
}

/// Takes text alone: a number or a truth value without quotes is refused with what was expected.
pub(super) struct TextVisitor<T>(PhantomData<T>);

impl<T> TextVisitor<T> {
    pub(super) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: FromText> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        read(text).map_err(E::custom)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<T, E> {
        Err(unquoted::<T, E>(Unexpected::Bool(value), &value.to_string()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        Err(unquoted::<T, E>(Unexpected::Signed(number), &number.to_string()))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        Err(unquoted::<T, E>(
            Unexpected::Unsigned(number),
            &number.to_string(),
        ))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        Err(unquoted::<T, E>(Unexpected::Float(number), &number.to_string()))
    }
}

/// Something other than text, which would do if it were in quotes.
pub(super) fn unquoted<T: FromText, E: de::Error>(found: Unexpected<'_>, text: &str) -> E {
    if read::<T>(text).is_ok() {
        let error = E::invalid_type(found, &T::EXPECTED);
        E::custom(format_args!("{error}\nput it in quotes"))
    } else {
        E::invalid_type(found, &T::EXPECTED)
    }
}

/// Makes a [`FromText`] type readable from the file, with its JSON Schema.
macro_rules! in_file {
    ($type:ty, $schema:tt) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_str($crate::config::value::TextVisitor::new())
            }
        }

        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}
pub(super) use in_file;
