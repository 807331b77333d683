//! What whoever tries things out may set and look at from outside, under `/fake/`. No part of Vercel's API.

use serde::de::DeserializeOwned;
use serde_json::json;

use super::Shared;
use super::answer::Answer;
use super::faults::Rule;
use super::state::{State, Status, now};

pub(crate) fn answer(shared: &Shared, method: &str, path: &str, body: &[u8]) -> Answer {
    let state = &mut *shared.state();
    let parts: Vec<&str> = path.split('/').skip(2).collect();
    let answered = match (method, parts.as_slice()) {
        ("GET", ["counts"]) => Ok(Answer::json(&counts(state))),
        ("PUT", ["faults"]) => parsed::<Vec<Rule>>(body).map(|rules| {
            state.faults.replace(rules);
            done()
        }),
        ("PUT", ["times"]) => parsed(body).map(|times| {
            state.take(times);
            done()
        }),
        ("PUT", ["limits"]) => parsed(body).map(|limits| {
            state.limit(limits);
            done()
        }),
        ("POST", ["sessions", id, end @ ("abort" | "fail" | "stop")]) => {
            let status = match *end {
                "abort" => Status::Aborted,
                "fail" => Status::Failed,
                _ => Status::Stopped,
            };
            state.end(id, status);
            Ok(done())
        }
        ("POST", ["snapshots", id, "expire"]) => match state.snapshots.get_mut(*id) {
            Some(snapshot) => {
                snapshot.expires = Some(now());
                Ok(done())
            }
            None => Err(Answer::not_found(id)),
        },
        _ => Err(Answer::not_found(path)),
    };
    answered.unwrap_or_else(|refused| refused)
}

fn done() -> Answer {
    Answer::json(&json!({}))
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T, Answer> {
    serde_json::from_slice(body).map_err(|error| Answer::bad_request(&error.to_string()))
}

fn counts(state: &State) -> serde_json::Value {
    let mut counts = state.counts.json();
    counts["sandboxes"] = state.sandboxes.len().into();
    counts["faults"] = json!(state.faults.shown);
    counts["troubles"] = json!(state.troubles);
    counts
}
