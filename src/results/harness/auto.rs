//! Format `auto`: which format a document is of, told by its content alone and never by luck.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::value::{kind, shown};
use super::{Read, ReadError, agent_eval, evals, graded, harbor, inspect, junit, promptfoo};
use crate::config::Grade;
use crate::results::json::{self, BadJson};
use crate::zip::{self, Archive};

/// A format that an object can be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Candidate {
    Evals,
    AgentEval,
    Inspect,
    Harbor,
    Promptfoo,
}

impl Candidate {
    fn name(self) -> &'static str {
        match self {
            Self::Evals => "evals",
            Self::AgentEval => "agent-eval",
            Self::Inspect => "inspect",
            Self::Harbor => "harbor",
            Self::Promptfoo => "promptfoo",
        }
    }
}

/// Reads a document of a format that its content tells; the error says what was seen.
pub(super) fn read(bytes: &[u8]) -> Result<Read, ReadError> {
    if zip::is_zip(bytes) {
        let names = Archive::open(bytes, inspect::LIMITS)?.names();
        return match names.iter().any(|name| name == inspect::HEADER) {
            true => Ok(of_another(inspect::read(bytes)?)),
            false => Err(ReadError::Unknown(format!(
                "it is a zip archive without `{}`",
                inspect::HEADER
            ))),
        };
    }
    let text = json::text(bytes)?;
    let start = text.trim_start();
    if start.starts_with('{') {
        let several = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .nth(1)
            .is_some();
        return match several && graded::are_rows(text) {
            true => Ok(of_another(graded::read_lines(text, &Grade::of_rows())?)),
            false => read_object(text, bytes),
        };
    }
    let seen = if start.starts_with('<') {
        if start.contains("<testsuite") {
            return Ok(of_another(vec![junit::read(text)?]));
        }
        format!("it begins with `{}`", json::excerpt(text, 0))
    } else {
        format!("it is {}", kind(&json::parse(text)?))
    };
    Err(ReadError::Unknown(seen))
}

fn read_object(text: &str, bytes: &[u8]) -> Result<Read, ReadError> {
    let seen = match candidates_of_object(text)?.as_slice() {
        [Candidate::Evals] => {
            return Ok(Read {
                attempts: vec![evals::read(evals::parse(text)?)?],
                is_evals: true,
            });
        }
        [Candidate::AgentEval] => return Ok(of_another(vec![agent_eval::read(text)?])),
        [Candidate::Inspect] => return Ok(of_another(inspect::read(bytes)?)),
        [Candidate::Harbor] => return Ok(of_another(vec![harbor::read(text)?])),
        [Candidate::Promptfoo] => return Ok(of_another(promptfoo::read(text)?)),
        [] => {
            let marks: Marks = json::parse(text)?;
            match &marks.passed {
                Some(passed) => format!("it is an object whose `passed` is {}", shown(passed)),
                None if marks.keys.is_empty() => "it is an empty object".to_owned(),
                None => format!("it is an object without `passed`, with {}", marks.listed()),
            }
        }
        several => {
            let names: Vec<String> = several.iter().map(|one| format!("`{}`", one.name())).collect();
            format!("it could be {}", names.join(" or "))
        }
    };
    Err(ReadError::Unknown(seen))
}

/// The formats that an object can be of, by the keys that none of the others has.
pub(super) fn candidates_of_object(text: &str) -> Result<Vec<Candidate>, BadJson> {
    let text = inspect::without_constants(text);
    let marks: Marks = json::parse(&text)?;
    let text_of = |value: &Option<Value>| value.as_ref().and_then(Value::as_str).map(str::to_owned);
    let status = text_of(&marks.status);
    let is_run = matches!(status.as_deref(), Some("passed" | "failed"));
    let of: [(Candidate, bool); 5] = [
        (
            Candidate::Evals,
            marks.passed.as_ref().is_some_and(Value::is_boolean),
        ),
        (Candidate::AgentEval, is_run && marks.has("duration")),
        (
            Candidate::Inspect,
            status.is_some() && marks.has("version") && marks.names_a_task,
        ),
        (
            Candidate::Harbor,
            ["trial_name", "task_name", "agent_info"]
                .iter()
                .all(|key| marks.has(key)),
        ),
        (Candidate::Promptfoo, marks.has_result_rows),
    ];
    let found = of.into_iter().filter(|(_, is)| *is);
    Ok(found.map(|(candidate, _)| candidate).collect())
}

fn of_another(attempts: Vec<crate::model::Reading>) -> Read {
    Read {
        attempts,
        is_evals: false,
    }
}

/// What of an object tells its format; a result may be megabytes of which nothing else is kept.
#[derive(Default)]
struct Marks {
    /// In their order, each once.
    keys: Map<String, Value>,
    passed: Option<Value>,
    status: Option<Value>,
    /// `eval` is an object with `task` and `model`.
    names_a_task: bool,
    /// `results` is an object with a list `results`.
    has_result_rows: bool,
}

impl Marks {
    fn has(&self, key: &str) -> bool {
        self.keys.contains_key(key)
    }

    /// The first keys, for a message.
    fn listed(&self) -> String {
        const SHOWN: usize = 8;
        let keys = self.keys.keys().take(SHOWN);
        let mut shown: Vec<String> = keys.map(|key| format!("`{}`", json::excerpt(key, 0))).collect();
        if self.keys.len() > SHOWN {
            shown.push(format!("{} more", self.keys.len() - SHOWN));
        }
        shown.join(", ")
    }
}

impl<'de> Deserialize<'de> for Marks {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct MarksVisitor;

        impl<'de> Visitor<'de> for MarksVisitor {
            type Value = Marks;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Marks, A::Error> {
                let mut marks = Marks::default();
                while let Some(key) = map.next_key::<String>()? {
                    match &*key {
                        "passed" => marks.passed = Some(map.next_value()?),
                        "status" => marks.status = Some(map.next_value()?),
                        "eval" => {
                            let value: Value = map.next_value()?;
                            marks.names_a_task = value["task"].is_string() && value["model"].is_string();
                        }
                        "results" => {
                            let value: Value = map.next_value()?;
                            marks.has_result_rows = value["results"].is_array();
                        }
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                    marks.keys.insert(key, Value::Null);
                }
                Ok(marks)
            }
        }

        from.deserialize_map(MarksVisitor)
    }
}
