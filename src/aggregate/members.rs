//! A JSON object whose values stay as they were written. Knows no key.

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap as _, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// The members of an object in their order, each value as the text that it was written in.
#[derive(Default)]
pub struct Members<'a>(Vec<(String, RawMember<'a>)>);

enum RawMember<'a> {
    AsWritten(&'a RawValue),
    Set(Box<RawValue>),
}

impl Members<'_> {
    /// The text of a member's value; of the first, where it is written twice.
    pub fn get(&self, key: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(name, _)| name == key)?;
        Some(match value {
            RawMember::AsWritten(value) => value.get(),
            RawMember::Set(value) => value.get(),
        })
    }

    /// Sets a member: where it stands first, without its repetitions, or at the end.
    ///
    /// # Errors
    /// A value that JSON cannot hold.
    pub fn set(&mut self, key: &str, value: &impl Serialize) -> serde_json::Result<()> {
        let value = RawMember::Set(to_raw_value(value)?);
        match self.0.iter().position(|(name, _)| name == key) {
            Some(at) => {
                self.0[at].1 = value;
                let mut position = 0;
                self.0.retain(|(name, _)| {
                    position += 1;
                    name != key || position == at + 1
                });
            }
            None => self.0.push((key.to_owned(), value)),
        }
        Ok(())
    }
}

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            match value {
                RawMember::AsWritten(value) => map.serialize_entry(key, value)?,
                RawMember::Set(value) => map.serialize_entry(key, value)?,
            }
        }
        map.end()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    members.push((key, RawMember::AsWritten(value)));
                }
                Ok(Members(members))
            }
        }

        from.deserialize_map(InOrder)
    }
}
