//! Questions about snapshots, and how one is taken.

use std::io;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{Answer, Answered};
use super::routes::{Question, page};
use super::state::{Snapshot, State, Status, now};
use super::{Shared, objects, sessions};

const THIRTY_DAYS: u64 = 30 * 24 * 60 * 60 * 1000;

#[derive(Deserialize)]
struct Asked {
    /// Milliseconds; 0 is never.
    expiration: Option<u64>,
}

/// The session is over afterwards.
pub(crate) async fn create(shared: &Arc<Shared>, question: &Question) -> Answered {
    let id = &question.ids[0];
    let asked: Asked = question.parsed()?;
    sessions::running(shared, id).await?;
    {
        let state = &mut *shared.state();
        let session = state.sessions.get_mut(id).ok_or_else(|| Answer::not_found(id))?;
        if session.status != Status::Running {
            return Err(sessions::snapshotting());
        }
        session.set(Status::Snapshotting);
    }
    sessions::pause(shared, |times| times.snapshot_ms).await;
    let taken = take(shared, id, asked.expiration).await;
    let state = &mut *shared.state();
    let snapshot = match taken {
        Ok(snapshot) => snapshot,
        Err(error) => {
            state.troubles.push(format!("{id}: {error}"));
            state.end(id, Status::Failed);
            return Err(Answer::refused(
                500,
                "internal_server_error",
                "No snapshot was made",
            ));
        }
    };
    state.end(id, Status::Stopped);
    Ok(Answer::json(&json!({
        "snapshot": objects::snapshot(&snapshot),
        "session": objects::session(sessions::found(state, id)?),
    })))
}

/// Stops what the session runs and keeps its disk.
pub(crate) async fn take(shared: &Shared, id: &str, expiration: Option<u64>) -> io::Result<Snapshot> {
    let (machine, snapshot) = {
        let state = &mut *shared.state();
        let snapshot = state.id("snap");
        let machine = state.sessions.get(id).and_then(|session| session.machine.clone());
        (
            machine.ok_or_else(|| io::Error::other("its machine is gone"))?,
            snapshot,
        )
    };
    let bytes = shared.machines.save(&machine, &snapshot).await?;
    let state = &mut *shared.state();
    let session = state
        .sessions
        .get_mut(id)
        .ok_or_else(|| io::Error::other("gone"))?;
    session.snapshotted = Some(now());
    let sandbox = state.sandboxes.get_mut(&session.sandbox);
    let expiration = expiration
        .or(sandbox.as_ref().and_then(|sandbox| sandbox.snapshot_expiration))
        .unwrap_or(THIRTY_DAYS);
    let taken = Snapshot {
        id: snapshot.clone(),
        sandbox: session.sandbox.clone(),
        session: id.to_owned(),
        parent: sandbox.and_then(|sandbox| {
            sandbox.updated = now();
            sandbox.snapshot.replace(snapshot.clone())
        }),
        deleted: false,
        bytes,
        created: now(),
        updated: now(),
        expires: Some(expiration)
            .filter(|after| *after > 0)
            .map(|after| now() + after),
        last_used: None,
    };
    state.snapshots.insert(snapshot, taken.clone());
    Ok(taken)
}

fn found<'a>(state: &'a mut State, id: &str) -> Result<&'a mut Snapshot, Answer> {
    state.snapshots.get_mut(id).ok_or_else(|| Answer::not_found(id))
}

pub(crate) fn get(shared: &Arc<Shared>, question: &Question) -> Answered {
    let state = &mut *shared.state();
    let snapshot = found(state, &question.ids[0])?;
    Ok(Answer::json(&json!({ "snapshot": objects::snapshot(snapshot) })))
}

pub(crate) fn delete(shared: &Arc<Shared>, question: &Question) -> Answered {
    let state = &mut *shared.state();
    let snapshot = found(state, &question.ids[0])?;
    snapshot.deleted = true;
    snapshot.updated = now();
    Ok(Answer::json(&json!({ "snapshot": objects::snapshot(snapshot) })))
}

pub(crate) fn list(shared: &Arc<Shared>, question: &Question) -> Answered {
    let state = shared.state();
    let name = question.get("name");
    let snapshots = state.snapshots.values();
    let snapshots = snapshots.filter(|snapshot| name.is_none_or(|name| snapshot.sandbox == name));
    let mut keyed: Vec<(String, &Snapshot)> = snapshots.map(|one| (one.id.clone(), one)).collect();
    if question.get("sortOrder") != Some("asc") {
        keyed.reverse();
    }
    let (listed, pagination) = page(question, keyed)?;
    let listed: Vec<Value> = listed.into_iter().map(objects::snapshot).collect();
    Ok(Answer::json(
        &json!({ "snapshots": listed, "pagination": pagination }),
    ))
}

/// The snapshots that this one was made from, or with `asc` those that were made from it.
pub(crate) fn tree(shared: &Arc<Shared>, question: &Question) -> Answered {
    let state = shared.state();
    let id = question.get("snapshotId").unwrap_or_default();
    let snapshot = state.snapshots.get(id).ok_or_else(|| Answer::not_found(id))?;
    let node = |of: &Snapshot| {
        let siblings = state.snapshots.values();
        let siblings: Vec<Value> = siblings
            .filter(|one| of.parent.is_some() && one.parent == of.parent && one.id != of.id)
            .map(objects::snapshot)
            .collect();
        let count = (siblings.len() + 1).to_string();
        json!({ "snapshot": objects::snapshot(of), "siblings": siblings, "count": count })
    };
    let mut line = vec![(snapshot.id.clone(), node(snapshot))];
    let mut last = snapshot;
    while let Some(next) = match question.get("sortOrder") {
        Some("asc") => state
            .snapshots
            .values()
            .find(|one| one.parent.as_ref() == Some(&last.id)),
        _ => last
            .parent
            .as_ref()
            .and_then(|parent| state.snapshots.get(parent)),
    } {
        line.push((next.id.clone(), node(next)));
        last = next;
    }
    let anchor = line[0].1.clone();
    let (nodes, pagination) = page(question, line)?;
    Ok(Answer::json(
        &json!({ "snapshots": nodes, "anchor": anchor, "pagination": pagination }),
    ))
}
