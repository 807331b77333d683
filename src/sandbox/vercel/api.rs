//! What we read of the API's documents: no more than we use, and none of it trusted to be there where we can do without.

use std::time::Duration;

use serde::Deserialize;

/// A sandbox: a name that lasts.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sandbox {
    pub(super) name: String,
    #[serde(default)]
    pub(super) tags: Option<std::collections::BTreeMap<String, String>>,
}

/// One run of a sandbox's machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) status: Status,
    /// Where commands run.
    #[serde(default)]
    pub(super) cwd: Option<String>,
}

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Pending,
    Running,
    Stopping,
    Stopped,
    Failed,
    Aborted,
    Snapshotting,
    /// One that the service has learned since.
    #[serde(other)]
    Unknown,
}

impl Status {
    /// Whether the machine is gone for good; one in a state that we do not know may live.
    pub(super) fn is_over(self) -> bool {
        matches!(self, Self::Stopped | Self::Failed | Self::Aborted)
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Aborted => "aborted",
            Self::Snapshotting => "being stored",
            Self::Unknown => "in an unknown state",
        }
    }
}

/// What creation, and a question by name, are answered with.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Created {
    #[serde(default)]
    pub(super) sandbox: Option<Sandbox>,
    pub(super) session: Session,
}

/// What a question about a session is answered with.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct OfSession {
    pub(super) session: Session,
}

/// A page of sandboxes.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Sandboxes {
    pub(super) sandboxes: Vec<Sandbox>,
    #[serde(default)]
    pub(super) pagination: Pagination,
}

/// Where a list goes on.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Pagination {
    #[serde(default)]
    pub(super) next: Option<Cursor>,
}

/// A place in a list: a number or a text, handed back as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cursor(pub(super) String);

impl<'de> Deserialize<'de> for Cursor {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(from)? {
            serde_json::Value::String(text) => Ok(Self(text)),
            serde_json::Value::Number(number) => Ok(Self(number.to_string())),
            _ => Err(serde::de::Error::custom("expected a text or a number")),
        }
    }
}

/// A command of a session.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Command {
    pub(super) id: String,
    #[serde(default)]
    pub(super) exit_code: Option<i32>,
    /// Milliseconds from its start to its end.
    #[serde(default)]
    duration_ms: Option<serde_json::Value>,
}

impl Command {
    /// How long it took, once it has ended, where that is told. Nothing takes no time at all.
    pub(super) fn took(&self) -> Option<Duration> {
        let took = Duration::try_from_secs_f64(self.duration_ms.as_ref()?.as_f64()? / 1_000.0).ok()?;
        (!took.is_zero()).then_some(took)
    }
}

/// A command among others, told apart by what it was given, which may be long.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Listed {
    pub(super) id: String,
    #[serde(default)]
    pub(super) args: Vec<String>,
    #[serde(default)]
    pub(super) exit_code: Option<i32>,
}

/// What a question about a command is answered with.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct OfCommand {
    pub(super) command: Command,
}

/// The commands of a session.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Commands {
    pub(super) commands: Vec<Listed>,
}

/// A machine's files, kept.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Snapshot {
    pub(super) id: String,
    pub(super) status: SnapshotStatus,
    /// The session whose files it holds.
    #[serde(default)]
    pub(super) source_session_id: Option<String>,
    pub(super) created_at: Millis,
    #[serde(default)]
    pub(super) expires_at: Option<Millis>,
    #[serde(default)]
    pub(super) size_bytes: Option<u64>,
}

/// The state of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SnapshotStatus {
    Created,
    Deleted,
    Failed,
    /// One that the service has learned since.
    #[serde(other)]
    Unknown,
}

/// What a question about a snapshot, and the making of one, are answered with.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct OfSnapshot {
    pub(super) snapshot: Snapshot,
}

/// A page of a sandbox's snapshots.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Snapshots {
    pub(super) snapshots: Vec<Snapshot>,
    #[serde(default)]
    pub(super) pagination: Pagination,
}

/// Milliseconds since 1970; a fraction is dropped.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) struct Millis(pub(super) f64);

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        f64::deserialize(from).map(Self)
    }
}

impl Millis {
    /// As a moment; the last one there is for what lies beyond it.
    pub(super) fn moment(self) -> jiff::Timestamp {
        // `as` saturates.
        jiff::Timestamp::from_millisecond(self.0 as i64).unwrap_or(jiff::Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{Created, Sandboxes, Status};

    #[test]
    fn a_session_of_a_future_version_is_still_understood() {
        let text = r#"{"sandbox":null,"session":{"id":"s","status":"hibernating","newKey":[1]},"routes":[]}"#;
        let created: Created = serde_json::from_str(text).unwrap();
        assert_eq!(created.session.status, Status::Unknown);
        assert!(!created.session.status.is_over());
        assert_eq!(created.session.cwd, None);
    }

    #[test]
    fn a_list_goes_on_where_a_number_or_a_text_says_so() {
        for (next, expected) in [("17", Some("17")), ("\"abc\"", Some("abc")), ("null", None)] {
            let text = format!(r#"{{"sandboxes":[],"pagination":{{"count":0,"next":{next}}}}}"#);
            let page: Sandboxes = serde_json::from_str(&text).unwrap();
            let cursor = page.pagination.next.map(|cursor| cursor.0);
            assert_eq!(cursor.as_deref(), expected);
        }
        let page: Sandboxes = serde_json::from_str(r#"{"sandboxes":[{"name":"a"}]}"#).unwrap();
        assert!(page.pagination.next.is_none() && page.sandboxes[0].tags.is_none());
    }
}
