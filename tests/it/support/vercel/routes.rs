//! Which question is asked, whether it may be, and who answers it. Knows no connections.

use std::sync::Arc;

use hyper::body::Bytes;
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::answer::{Answer, Answered};
use super::state::{PROJECT, TEAM, TOKEN, now};
use super::{Shared, commands, files, sandboxes, sessions, snapshots};

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Route {
    Create,
    Fork,
    Get,
    List,
    Update,
    Delete,
    GetSession,
    ListSessions,
    Stop,
    Extend,
    NetworkPolicy,
    /// A detached command.
    Run,
    /// A command whose output and end come with the answer.
    RunAndWait,
    ListCommands,
    GetCommand,
    /// The same, answered when the command has ended.
    Wait,
    Logs,
    Kill,
    Mkdir,
    Write,
    Read,
    Snapshot,
    Interactive,
    GetSnapshot,
    DeleteSnapshot,
    ListSnapshots,
    SnapshotTree,
}

impl Route {
    /// As it is written in rules and counts.
    pub(crate) fn name(self) -> String {
        let name = serde_json::to_value(self).unwrap();
        name.as_str().unwrap_or_default().to_owned()
    }

    /// Whether it is about a session that has to be running.
    pub(crate) fn needs_session(self) -> bool {
        use Route::{
            Extend, GetCommand, Interactive, Kill, ListCommands, Logs, Mkdir, NetworkPolicy, Read, Run,
            RunAndWait, Snapshot, Wait, Write,
        };
        matches!(
            self,
            Extend
                | GetCommand
                | Interactive
                | Kill
                | ListCommands
                | Logs
                | Mkdir
                | NetworkPolicy
                | Read
                | Run
                | RunAndWait
                | Snapshot
                | Wait
                | Write
        )
    }
}

/// A question.
pub(crate) struct Question {
    pub(crate) route: Route,
    /// The names and ids in its path, in order.
    pub(crate) ids: Vec<String>,
    query: Vec<(String, String)>,
    pub(crate) body: Bytes,
    pub(crate) content_type: String,
    /// Where files are to be written.
    pub(crate) directory: Option<String>,
    authorization: Option<String>,
    /// Whether a line of failure comes in the middle of the answer.
    pub(crate) breaks: bool,
}

/// A question's head.
pub(crate) struct Head<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) content_type: Option<String>,
    pub(crate) directory: Option<String>,
    pub(crate) authorization: Option<String>,
}

impl Question {
    /// `None` where there is no such route.
    pub(crate) fn new(head: Head<'_>, body: Bytes) -> Option<Self> {
        let query = pairs(head.query);
        let path = head.path.strip_prefix("/api/")?;
        let parts: Vec<&str> = path.split('/').collect();
        let (route, ids) = match (head.method, parts.as_slice()) {
            ("POST", ["v2" | "v3" | "v4", "sandboxes"]) => (Route::Create, vec![]),
            (method, ["v2", "sandboxes", rest @ ..]) => {
                let flag = |name: &str| query.iter().any(|(key, value)| key == name && value == "true");
                routed(method, rest, flag("wait"), waits(&body))?
            }
            _ => return None,
        };
        Some(Self {
            route,
            ids: ids.into_iter().map(decoded).collect(),
            query,
            body,
            content_type: head.content_type.unwrap_or_default(),
            directory: head.directory,
            authorization: head.authorization,
            breaks: false,
        })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let pair = self.query.iter().find(|(key, _)| key == name);
        pair.map(|(_, value)| value.as_str())
    }

    /// Every value of a key that may be repeated.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let pairs = self.query.iter().filter(move |(key, _)| key == name);
        pairs.map(|(_, value)| value.as_str())
    }

    /// The body, where none is the same as an empty object.
    pub(crate) fn parsed<T: DeserializeOwned>(&self) -> Result<T, Answer> {
        let body = if self.body.is_empty() {
            b"{}"
        } else {
            &self.body[..]
        };
        serde_json::from_slice(body)
            .map_err(|error| Answer::bad_request(&format!("Invalid request: {error}")))
    }

    /// Whether a sandbox is to start from a snapshot.
    pub(crate) fn is_from_snapshot(&self) -> bool {
        let parsed: Option<serde_json::Value> = serde_json::from_slice(&self.body).ok();
        parsed.is_some_and(|body| body["source"]["type"] == "snapshot")
    }

    /// Whether it may be asked.
    fn allowed(&self) -> Result<(), Answer> {
        let Some(authorization) = &self.authorization else {
            return Err(Answer::refused(401, "unauthorized", "Authentication is required"));
        };
        if authorization.strip_prefix("Bearer ") != Some(TOKEN) {
            return Err(Answer::refused(403, "forbidden", "Not authorized"));
        }
        if self.get("teamId") != Some(TEAM) {
            return Err(Answer::refused(403, "forbidden", "Not authorized for this team"));
        }
        let key = match self.route {
            Route::Get | Route::Update | Route::Delete | Route::Fork => "projectId",
            Route::List | Route::ListSessions | Route::ListSnapshots | Route::SnapshotTree => "project",
            _ => return Ok(()),
        };
        self.project(key, self.get(key))
    }

    /// Whether this is the project; `key` names where it was looked for.
    pub(crate) fn project(&self, key: &str, project: Option<&str>) -> Result<(), Answer> {
        match project {
            Some(PROJECT) => Ok(()),
            Some(other) => Err(Answer::not_found(other)),
            None => Err(Answer::bad_request(&format!("Missing `{key}`"))),
        }
    }
}

fn routed<'a>(method: &str, path: &[&'a str], wait: bool, body_waits: bool) -> Option<(Route, Vec<&'a str>)> {
    Some(match (method, path) {
        ("GET", []) => (Route::List, vec![]),
        ("GET", ["sessions"]) => (Route::ListSessions, vec![]),
        ("GET", ["sessions", id]) => (Route::GetSession, vec![id]),
        ("POST", ["sessions", id, "stop"]) => (Route::Stop, vec![id]),
        ("POST", ["sessions", id, "extend-timeout"]) => (Route::Extend, vec![id]),
        ("POST", ["sessions", id, "network-policy"]) => (Route::NetworkPolicy, vec![id]),
        ("POST", ["sessions", id, "snapshot"]) => (Route::Snapshot, vec![id]),
        ("POST", ["sessions", id, "interactive"]) => (Route::Interactive, vec![id]),
        ("POST", ["sessions", id, "cmd"]) if body_waits => (Route::RunAndWait, vec![id]),
        ("POST", ["sessions", id, "cmd"]) => (Route::Run, vec![id]),
        ("GET", ["sessions", id, "cmd"]) => (Route::ListCommands, vec![id]),
        ("GET", ["sessions", id, "cmd", command]) if wait => (Route::Wait, vec![id, command]),
        ("GET", ["sessions", id, "cmd", command]) => (Route::GetCommand, vec![id, command]),
        ("GET", ["sessions", id, "cmd", command, "logs"]) => (Route::Logs, vec![id, command]),
        ("POST", ["sessions", id, "cmd", command, "kill"]) => (Route::Kill, vec![id, command]),
        ("POST", ["sessions", id, "fs", "mkdir"]) => (Route::Mkdir, vec![id]),
        ("POST", ["sessions", id, "fs", "write"]) => (Route::Write, vec![id]),
        ("POST", ["sessions", id, "fs", "read"]) => (Route::Read, vec![id]),
        ("GET", ["snapshots"]) => (Route::ListSnapshots, vec![]),
        ("GET", ["snapshots", "tree"]) => (Route::SnapshotTree, vec![]),
        ("GET", ["snapshots", id]) => (Route::GetSnapshot, vec![id]),
        ("DELETE", ["snapshots", id]) => (Route::DeleteSnapshot, vec![id]),
        ("GET", [name]) => (Route::Get, vec![name]),
        ("PATCH", [name]) => (Route::Update, vec![name]),
        ("DELETE", [name]) => (Route::Delete, vec![name]),
        ("POST", [name, "fork"]) => (Route::Fork, vec![name]),
        _ => return None,
    })
}

fn waits(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Waits {
        #[serde(default)]
        wait: bool,
    }
    serde_json::from_slice::<Waits>(body).is_ok_and(|body| body.wait)
}

/// Does what is asked.
pub(crate) async fn answer(shared: &Arc<Shared>, question: &Question) -> Answered {
    question.allowed()?;
    {
        let state = &mut *shared.state();
        let limit = state.limits.requests_per_minute;
        if let Some(wait) = state.requests.full(now(), limit) {
            return Err(Answer::too_many(Some(seconds(wait))));
        }
        state.requests.add(now(), 1);
    }
    match question.route {
        Route::Create => sandboxes::create(shared, question).await,
        Route::Fork => sandboxes::fork(shared, question).await,
        Route::Get => sandboxes::get(shared, question).await,
        Route::List => sandboxes::list(shared, question),
        Route::Update => sandboxes::update(shared, question),
        Route::Delete => sandboxes::delete(shared, question),
        Route::GetSession => sessions::get(shared, question),
        Route::ListSessions => sessions::list(shared, question),
        Route::Stop => sessions::stop(shared, question).await,
        Route::Extend => sessions::extend(shared, question).await,
        Route::NetworkPolicy => sessions::network_policy(shared, question).await,
        Route::Interactive => sessions::interactive(shared, question).await,
        Route::Snapshot => snapshots::create(shared, question).await,
        Route::Run | Route::RunAndWait => commands::run(shared, question).await,
        Route::ListCommands => commands::list(shared, question).await,
        Route::GetCommand => commands::get(shared, question).await,
        Route::Wait => commands::wait(shared, question).await,
        Route::Logs => commands::logs(shared, question).await,
        Route::Kill => commands::kill(shared, question).await,
        Route::Mkdir => files::mkdir(shared, question).await,
        Route::Write => files::write(shared, question).await,
        Route::Read => files::read(shared, question).await,
        Route::GetSnapshot => snapshots::get(shared, question),
        Route::DeleteSnapshot => snapshots::delete(shared, question),
        Route::ListSnapshots => snapshots::list(shared, question),
        Route::SnapshotTree => snapshots::tree(shared, question),
    }
}

/// What `Retry-After` says for so many milliseconds: whole seconds, at least one.
pub(crate) fn seconds(milliseconds: u64) -> String {
    milliseconds.div_ceil(1000).max(1).to_string()
}

/// A page of what is listed, and the cursor of the next: the key of the last that was given, so that deleting what
/// was listed skips nothing. `entries` are sorted as asked.
pub(crate) fn page<T>(
    question: &Question,
    entries: Vec<(String, T)>,
) -> Result<(Vec<T>, serde_json::Value), Answer> {
    let limit = match question.get("limit").map(str::parse::<usize>) {
        None => 20,
        Some(Ok(limit @ 1..=100)) => limit,
        Some(_) => return Err(Answer::bad_request("`limit` must be a number from 1 to 100")),
    };
    let descending = question.get("sortOrder") != Some("asc");
    let after = question.get("cursor");
    let rest = entries.into_iter().filter(|(key, _)| match after {
        Some(after) if descending => key.as_str() < after,
        Some(after) => key.as_str() > after,
        None => true,
    });
    let mut page: Vec<(String, T)> = rest.take(limit + 1).collect();
    let more = page.len() > limit;
    page.truncate(limit);
    let next = page.last().filter(|_| more).map(|(key, _)| key.clone());
    let pagination = serde_json::json!({ "count": page.len(), "next": next });
    Ok((page.into_iter().map(|(_, entry)| entry).collect(), pagination))
}

fn pairs(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(&key.replace('+', " ")), decoded(&value.replace('+', " ")))
        })
        .collect()
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
