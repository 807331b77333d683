//! The event's JSON, asked for single values: whatever has another type than expected is not there. Knows no event as
//! a whole.

use serde_json::Value;

use super::{EventError, Home, PullRequest, Side, WorkflowRun, is_sha};

/// An event's JSON.
pub(super) struct Payload<'a> {
    event: &'a str,
    value: Value,
}

impl<'a> Payload<'a> {
    pub(super) fn parse(event: &'a str, bytes: &[u8]) -> Result<Self, EventError> {
        let value = serde_json::from_slice(bytes).map_err(|error| EventError::NotJson(error.to_string()))?;
        Ok(Self { event, value })
    }

    pub(super) fn text(&self, pointer: &str) -> Option<String> {
        let text = self.value.pointer(pointer)?.as_str()?;
        (!text.is_empty()).then(|| text.to_owned())
    }

    pub(super) fn number(&self, pointer: &str) -> Option<u64> {
        self.value.pointer(pointer)?.as_u64()
    }

    pub(super) fn sha(&self, pointer: &str) -> Option<String> {
        self.text(pointer).filter(|text| is_sha(text))
    }

    pub(super) fn needed_sha(&self, pointer: &'static str) -> Result<String, EventError> {
        self.sha(pointer).ok_or_else(|| self.lacks(pointer, "a commit"))
    }

    fn needed_text(&self, pointer: &'static str) -> Result<String, EventError> {
        self.text(pointer).ok_or_else(|| self.lacks(pointer, "text"))
    }

    fn needed_number(&self, pointer: &'static str) -> Result<u64, EventError> {
        self.number(pointer)
            .ok_or_else(|| self.lacks(pointer, "a number"))
    }

    /// A repository, if there is one with an id and a name.
    fn repository(&self, pointer: &str) -> Option<Home> {
        Some(Home {
            name: self.text(&format!("{pointer}/full_name"))?.parse().ok()?,
            id: self.number(&format!("{pointer}/id"))?,
        })
    }

    pub(super) fn pull_request(&self) -> Result<PullRequest, EventError> {
        Ok(PullRequest {
            number: self.needed_number("/pull_request/number")?,
            head: Side {
                sha: self.needed_sha("/pull_request/head/sha")?,
                branch: self.needed_text("/pull_request/head/ref")?,
                repository: self.repository("/pull_request/head/repo"),
            },
            base: Side {
                sha: self.needed_sha("/pull_request/base/sha")?,
                branch: self.needed_text("/pull_request/base/ref")?,
                repository: self.repository("/pull_request/base/repo"),
            },
            author: self.text("/pull_request/user/login"),
        })
    }

    pub(super) fn workflow_run(&self) -> Result<WorkflowRun, EventError> {
        let pull_requests = self
            .value
            .pointer("/workflow_run/pull_requests")
            .and_then(Value::as_array);
        let numbers = pull_requests
            .into_iter()
            .flatten()
            .filter_map(|each| each.get("number")?.as_u64());
        Ok(WorkflowRun {
            id: self.needed_number("/workflow_run/id")?,
            run_attempt: self
                .number("/workflow_run/run_attempt")
                .and_then(|attempt| u32::try_from(attempt).ok())
                .unwrap_or(1),
            head_sha: self.needed_sha("/workflow_run/head_sha")?,
            head_branch: self.text("/workflow_run/head_branch"),
            head_repository: self.repository("/workflow_run/head_repository"),
            event: self.needed_text("/workflow_run/event")?,
            pull_requests: numbers.collect(),
        })
    }

    fn lacks(&self, pointer: &'static str, expected: &'static str) -> EventError {
        EventError::Lacks {
            event: self.event.to_owned(),
            key: pointer.trim_start_matches('/'),
            expected,
        }
    }
}
