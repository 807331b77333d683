//! The document that stands for a pair: its harness's own, but for what the pair's attempts decide together.

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap as _, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::model::{Check, PairId};

/// The members of an object in their order, each value as the text that it was written in.
struct Members<'a>(Vec<(String, RawMember<'a>)>);

enum RawMember<'a> {
    AsWritten(&'a RawValue),
    Set(Box<RawValue>),
}

/// The document to publish, as JSON text with a final newline.
///
/// Every key of the harness's document stays in its place, every value the bytes that the harness wrote, but for
/// `passed` and `attempts` (the number of attempts that gave a result), which are set, at the end where they were
/// missing. Where there is no document, or none that is an object, it is one of ours: experiment, eval, passed,
/// attempts, checks.
pub fn publish_document(
    document: Option<&str>,
    pair: &PairId,
    passed: bool,
    attempts: u32,
    checks: &[Check],
) -> serde_json::Result<String> {
    // A byte order mark is no part of JSON, but some harnesses write one.
    let document = document.map(|document| document.trim_start_matches('\u{feff}'));
    let members = document.and_then(|document| serde_json::from_str::<Members<'_>>(document).ok());
    let mut members = match members {
        Some(members) => members,
        None => {
            let mut members = Members(Vec::new());
            members.set("experiment", &pair.experiment)?;
            members.set("eval", &pair.eval)?;
            members.set("passed", &passed)?;
            members.set("attempts", &attempts)?;
            members.set("checks", &checks)?;
            members
        }
    };
    members.set("passed", &passed)?;
    members.set("attempts", &attempts)?;
    let mut text = serde_json::to_string_pretty(&members)?;
    text.push('\n');
    Ok(text)
}

impl Members<'_> {
    /// Sets a member: where it stands first, without its repetitions, or at the end.
    fn set(&mut self, key: &str, value: &impl Serialize) -> serde_json::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::publish_document;
    use crate::model::{Check, PairId};

    fn publish(document: Option<&str>) -> String {
        let pair = PairId::new("x", "y").unwrap();
        let checks = [Check {
            name: "c".to_owned(),
            passed: false,
            notes: None,
        }];
        publish_document(document, &pair, true, 2, &checks).unwrap()
    }

    #[test]
    fn every_value_of_the_harness_stays_as_it_was_written() {
        let document =
            r#"{"z": 1.50, "passed": false, "a": {"b":  [1e5, -0, 12345678901234567890123]}, "é": "\u00e9"}"#;
        insta::assert_snapshot!(publish(Some(document)), @r#"
        {
          "z": 1.50,
          "passed": true,
          "a": {"b":  [1e5, -0, 12345678901234567890123]},
          "é": "\u00e9",
          "attempts": 2
        }
        "#);
    }

    #[test]
    fn a_byte_order_mark_loses_nothing() {
        let compact: String = publish(Some("\u{feff}{\"z\": 1}")).split_whitespace().collect();
        assert_eq!(compact, r#"{"z":1,"passed":true,"attempts":2}"#);
    }

    #[test]
    fn a_key_that_is_written_twice_is_set_once() {
        let document = r#"{"passed": false, "z": 1, "passed": false, "attempts": 9}"#;
        let compact: String = publish(Some(document)).split_whitespace().collect();
        assert_eq!(compact, r#"{"passed":true,"z":1,"attempts":2}"#);
    }

    #[test]
    fn without_an_object_the_document_is_ours() {
        for document in [None, Some("[1]"), Some("not JSON")] {
            let compact: String = publish(document).split_whitespace().collect();
            let expected = r#"{"experiment":"x","eval":"y","passed":true,"attempts":2,"checks":[{"name":"c","passed":false}]}"#;
            assert_eq!(compact, expected);
        }
    }
}
