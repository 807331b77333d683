//! The document that stands for a pair: its harness's own, but for what the pair's attempts decide together.

use super::members::Members;
use crate::model::{Check, PairId};

/// A document that stands for a pair, or for one of its attempts, in a run directory.
#[derive(Clone, Debug)]
pub struct Published {
    /// Which pair.
    pub pair: PairId,
    /// Which attempt, where each stands for itself.
    pub run: Option<u32>,
    /// Its path in the pair's directory, with `/`.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// What a document says of its pair.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// Whether the pair passed, or the one attempt that the document is of.
    pub passed: bool,
    /// How many attempts gave a result; 1 where it is of one.
    pub attempts: u32,
    /// Which attempt it is of, where it is of one alone.
    pub run: Option<u32>,
}

/// The document to publish, as JSON text with a final newline.
///
/// Every key of the harness's document stays in its place, every value the bytes that the harness wrote, but for
/// `passed`, `attempts` (the number of attempts that gave a result) and, where it is of one attempt alone, `run`, which
/// are set, at the end where they were missing. Where there is no document, or none that is an object, it is one of ours: experiment, eval, passed,
/// attempts, checks.
pub fn publish_document(
    document: Option<&str>,
    pair: &PairId,
    standing: Standing,
    checks: &[Check],
) -> serde_json::Result<String> {
    let Standing {
        passed,
        attempts,
        run,
    } = standing;
    // A byte order mark is no part of JSON, but some harnesses write one.
    let document = document.map(|document| document.trim_start_matches('\u{feff}'));
    let members = document.and_then(|document| serde_json::from_str::<Members<'_>>(document).ok());
    let mut members = match members {
        Some(members) => members,
        None => {
            let mut members = Members::default();
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
    if let Some(run) = run {
        members.set("run", &run)?;
    }
    let mut text = serde_json::to_string_pretty(&members)?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::{Standing, publish_document};
    use crate::model::{Check, PairId};

    fn publish(document: Option<&str>) -> String {
        let pair = PairId::new("x", "y").unwrap();
        let checks = [Check {
            name: "c".to_owned(),
            passed: false,
            notes: None,
        }];
        let standing = Standing {
            passed: true,
            attempts: 2,
            run: None,
        };
        publish_document(document, &pair, standing, &checks).unwrap()
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
