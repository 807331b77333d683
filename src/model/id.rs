//! Who is who: ids of experiments, evals, pairs and attempts, their labels, and their names on disk.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Everything but letters, digits, `.`, `_` and `-` is percent-encoded in a file name.
const UNSAFE_IN_FILE_NAMES: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'-');

/// Turns an id into a file name that is safe everywhere, reversibly.
///
/// Whatever is not an ASCII letter or digit, `.`, `_` or `-` becomes `%XX`, and so do the dots of `.` and `..`, which
/// would be another directory.
pub fn file_name(id: &str) -> String {
    if id == "." || id == ".." {
        return id.replace('.', "%2E");
    }
    utf8_percent_encode(id, UNSAFE_IN_FILE_NAMES).to_string()
}

/// An id that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    /// The id is empty or only white space.
    #[error("an id must not be empty")]
    Empty,
    /// The id has white space at an end, which two readers would treat differently.
    #[error("the id `{0}` starts or ends with white space")]
    Untrimmed(String),
    /// The id holds a control character.
    #[error("the id {0:?} holds a control character")]
    Control(String),
}

fn check(id: &str) -> Result<(), InvalidId> {
    if id.trim().is_empty() {
        Err(InvalidId::Empty)
    } else if id.trim() != id {
        Err(InvalidId::Untrimmed(id.to_owned()))
    } else if id.chars().any(char::is_control) {
        Err(InvalidId::Control(id.to_owned()))
    } else {
        Ok(())
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(with = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id as written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(id: String) -> Result<Self, InvalidId> {
                check(&id).map(|()| Self(id.into()))
            }
        }

        impl TryFrom<&str> for $name {
            type Error = InvalidId;

            fn try_from(id: &str) -> Result<Self, InvalidId> {
                Self::try_from(id.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.as_str().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id! {
    /// Names an experiment: an agent set-up under test.
    ExperimentId
}
id! {
    /// Names an eval: a task with its grader.
    EvalId
}

/// One experiment with one eval.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct PairId {
    /// The agent set-up under test.
    pub experiment: ExperimentId,
    /// The task.
    pub eval: EvalId,
}

impl PairId {
    /// Checks both ids and joins them.
    ///
    /// # Errors
    /// The first id that cannot be used.
    pub fn new(experiment: &str, eval: &str) -> Result<Self, InvalidId> {
        Ok(Self {
            experiment: experiment.try_into()?,
            eval: eval.try_into()?,
        })
    }

    /// The pair's directory name: `<experiment>__<eval>`, both percent-encoded.
    pub fn directory(&self) -> String {
        let experiment = file_name(self.experiment.as_str());
        let eval = file_name(self.eval.as_str());
        format!("{experiment}__{eval}")
    }
}

impl fmt::Display for PairId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} × {}", self.experiment, self.eval)
    }
}

/// One attempt of a pair; `index` counts from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AttemptId {
    /// The pair that is sampled.
    pub pair: PairId,
    /// Which of its attempts, from 1 to `runs`.
    pub index: u32,
}

impl AttemptId {
    /// The attempt's directory below the run directory.
    pub fn path(&self) -> String {
        format!("attempts/{}/{}", self.pair.directory(), self.index)
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} #{}", self.pair, self.index)
    }
}

/// Name=value marks of a pair, used to select, group and limit. A name may have several values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Labels(pub BTreeMap<String, Vec<String>>);

impl Labels {
    /// Whether `name` has `value` among its values.
    pub fn has(&self, name: &str, value: &str) -> bool {
        self.values(name).iter().any(|each| each == value)
    }

    /// The values of `name`, none where it is not set.
    pub fn values(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// Adds a value, once.
    pub fn add(&mut self, name: &str, value: &str) {
        let values = self.0.entry(name.to_owned()).or_default();
        if !values.iter().any(|each| each == value) {
            values.push(value.to_owned());
        }
    }
}

/// A pair of the suite with its labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// Which pair.
    pub id: PairId,
    /// What it is marked with.
    pub labels: Labels,
}

#[cfg(test)]
mod tests {
    use super::{InvalidId, PairId, file_name};

    #[test]
    fn ids_become_safe_file_names() {
        assert_eq!(file_name("gpt-5.4_mini"), "gpt-5.4_mini");
        assert_eq!(file_name("a/b c%é"), "a%2Fb%20c%25%C3%A9");
        assert_eq!(
            ["..", ".", "...", ".x"].map(file_name),
            ["%2E%2E", "%2E", "...", ".x"]
        );
    }

    #[test]
    fn an_id_is_never_empty_or_padded() {
        assert_eq!(PairId::new("a", ""), Err(InvalidId::Empty));
        assert_eq!(PairId::new(" ", "b"), Err(InvalidId::Empty));
        assert!(matches!(PairId::new("a ", "b"), Err(InvalidId::Untrimmed(_))));
        assert!(matches!(PairId::new("a\u{1b}", "b"), Err(InvalidId::Control(_))));
    }
}
