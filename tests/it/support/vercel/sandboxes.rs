//! Questions about sandboxes by name.

use std::sync::Arc;

use serde_json::{Value, json};

use super::answer::{Answer, Answered};
use super::machine::Disk;
use super::routes::{Question, page, seconds};
use super::state::{Sandbox, State, Status, now};
use super::wanted::{Asked, FIVE_MINUTES, Resources, too_long, use_snapshot};
use super::{Shared, objects, sessions};

/// Whether the account may start one more of this size.
fn admitted(state: &mut State, vcpus: u64) -> Result<(), Answer> {
    if state.counts.live >= state.limits.concurrent {
        // When one of the others ends is not known, so no time is told.
        return Err(Answer::too_many(None));
    }
    let limits = state.limits;
    state
        .quota
        .take(now(), vcpus, &limits)
        .map_err(|wait| Answer::too_many(Some(seconds(wait))))
}

pub(crate) async fn create(shared: &Arc<Shared>, question: &Question) -> Answered {
    let asked: Asked = question.parsed()?;
    question.project("projectId", asked.project_id.as_deref())?;
    let (name, booting) = {
        let state = &mut *shared.state();
        asked.checked(state)?;
        let (disk, snapshot) = asked.disk(state)?;
        started(shared, state, asked, disk, snapshot)?
    };
    sessions::booted(shared, &booting).await?;
    let state = shared.state();
    let sandbox = state.sandboxes.get(&name);
    let sandbox = sandbox.ok_or_else(|| Answer::not_found(&name))?;
    Ok(Answer::json(&objects::both(&state, sandbox, false)))
}

/// Enters a sandbox with a session that begins to boot; the name and the session's id.
fn started(
    shared: &Arc<Shared>,
    state: &mut State,
    asked: Asked,
    disk: Disk,
    snapshot: Option<String>,
) -> Result<(String, String), Answer> {
    let policy = asked.network_policy.as_ref().map(objects::policy).transpose();
    let policy = policy.map_err(|message| Answer::bad_request(&message))?;
    let vcpus = asked.vcpus();
    admitted(state, vcpus)?;
    let name = match asked.name {
        Some(name) => name,
        None => state.id("sandbox").replace('_', "-"),
    };
    let sandbox = Sandbox {
        name: name.clone(),
        persistent: asked.persistent.unwrap_or(true),
        vcpus,
        runtime: asked.runtime,
        image: asked.image,
        timeout: asked.timeout.unwrap_or(FIVE_MINUTES),
        env: asked.env.unwrap_or_default(),
        tags: asked.tags.unwrap_or_default(),
        ports: asked.ports.unwrap_or_default(),
        policy,
        snapshot_expiration: asked.snapshot_expiration,
        keep_last_snapshots: asked.keep_last_snapshots,
        created: now(),
        updated: now(),
        sessions: Vec::new(),
        snapshot: None,
    };
    let session = sessions::begin(shared, state, sandbox, disk, snapshot);
    Ok((name, session))
}

/// From the current snapshot of another, with what is asked in place of what it has.
pub(crate) async fn fork(shared: &Arc<Shared>, question: &Question) -> Answered {
    let mut asked: Asked = question.parsed()?;
    let (name, booting) = {
        let state = &mut *shared.state();
        asked.checked(state)?;
        let origin = found(state, &question.ids[0])?.clone();
        let disk = origin.snapshot.clone().map_or(Disk::Empty, Disk::Snapshot);
        if let Some(id) = &origin.snapshot {
            use_snapshot(state, id)?;
        }
        asked.persistent.get_or_insert(origin.persistent);
        asked.timeout.get_or_insert(origin.timeout);
        asked.env.get_or_insert(origin.env);
        asked.tags.get_or_insert(origin.tags);
        asked.ports.get_or_insert(origin.ports);
        asked.resources.get_or_insert(Resources {
            vcpus: Some(origin.vcpus),
        });
        if asked.image.is_none() {
            asked.runtime = origin.runtime;
            asked.image = origin.image;
        }
        started(shared, state, asked, disk, origin.snapshot)?
    };
    sessions::booted(shared, &booting).await?;
    let state = shared.state();
    let sandbox = found(&state, &name)?;
    Ok(Answer::json(&objects::both(&state, sandbox, false)))
}

fn found<'a>(state: &'a State, name: &str) -> Result<&'a Sandbox, Answer> {
    state.sandboxes.get(name).ok_or_else(|| Answer::not_found(name))
}

/// With `resume`, one whose session is over, or about to be, gets another.
pub(crate) async fn get(shared: &Arc<Shared>, question: &Question) -> Answered {
    let name = &question.ids[0];
    let mut booting = None;
    if question.get("resume") == Some("true") {
        let session = found(&shared.state(), name)?.session().to_owned();
        sessions::settled(shared, &session).await?;
        let state = &mut *shared.state();
        let sandbox = found(state, name)?.clone();
        if state.sessions[sandbox.session()].status.over() {
            let snapshot = sandbox.snapshot.clone();
            if let Some(id) = &snapshot {
                use_snapshot(state, id)?;
            }
            admitted(state, sandbox.vcpus)?;
            let disk = snapshot.clone().map_or(Disk::Empty, Disk::Snapshot);
            booting = Some(sessions::begin(shared, state, sandbox, disk, snapshot));
        }
    }
    if let Some(session) = &booting {
        sessions::booted(shared, session).await?;
    }
    let state = shared.state();
    let sandbox = found(&state, name)?;
    Ok(Answer::json(&objects::both(&state, sandbox, booting.is_some())))
}

pub(crate) fn list(shared: &Arc<Shared>, question: &Question) -> Answered {
    let state = shared.state();
    let prefix = question.get("namePrefix").unwrap_or_default();
    let tagged = |sandbox: &Sandbox| {
        question.all("tags").all(|tag| {
            let (key, value) = tag.split_once(':').unwrap_or((tag, ""));
            sandbox.tags.get(key).is_some_and(|tag| tag == value)
        })
    };
    let sandboxes = state.sandboxes.values();
    let sandboxes = sandboxes.filter(|sandbox| sandbox.name.starts_with(prefix) && tagged(sandbox));
    let key = |sandbox: &Sandbox| {
        let time = match question.get("sortBy") {
            Some("name") => 0,
            Some("statusUpdatedAt") => state.sessions[sandbox.session()].updated,
            _ => sandbox.created,
        };
        format!("{time:020}/{}", sandbox.name)
    };
    let mut keyed: Vec<(String, &Sandbox)> = sandboxes.map(|sandbox| (key(sandbox), sandbox)).collect();
    keyed.sort_by(|(one, _), (other, _)| one.cmp(other));
    if question.get("sortOrder") != Some("asc") {
        keyed.reverse();
    }
    let (listed, pagination) = page(question, keyed)?;
    let listed: Vec<Value> = listed
        .into_iter()
        .map(|sandbox| objects::sandbox(&state, sandbox))
        .collect();
    Ok(Answer::json(
        &json!({ "sandboxes": listed, "pagination": pagination }),
    ))
}

pub(crate) fn update(shared: &Arc<Shared>, question: &Question) -> Answered {
    let name = &question.ids[0];
    let asked: Asked = question.parsed()?;
    let state = &mut *shared.state();
    found(state, name)?;
    if asked
        .timeout
        .is_some_and(|timeout| timeout > state.limits.timeout_ms)
    {
        return Err(too_long(state));
    }
    let policy = asked.network_policy.as_ref().map(objects::policy).transpose();
    let policy = policy.map_err(|message| Answer::bad_request(&message))?;
    let clears = serde_json::from_slice::<Value>(&question.body)
        .is_ok_and(|body| body.get("keepLastSnapshots").is_some_and(Value::is_null));
    let ports = asked.ports.is_some();
    let sandbox = state
        .sandboxes
        .get_mut(name)
        .ok_or_else(|| Answer::not_found(name))?;
    sandbox.vcpus = asked
        .resources
        .and_then(|asked| asked.vcpus)
        .unwrap_or(sandbox.vcpus);
    sandbox.persistent = asked.persistent.unwrap_or(sandbox.persistent);
    sandbox.timeout = asked.timeout.unwrap_or(sandbox.timeout);
    sandbox.policy = policy.or(sandbox.policy.take());
    sandbox.tags = asked.tags.unwrap_or_else(|| std::mem::take(&mut sandbox.tags));
    sandbox.ports = asked.ports.unwrap_or_else(|| std::mem::take(&mut sandbox.ports));
    sandbox.snapshot_expiration = asked.snapshot_expiration.or(sandbox.snapshot_expiration);
    sandbox.keep_last_snapshots = match clears {
        true => None,
        false => asked.keep_last_snapshots.or(sandbox.keep_last_snapshots.take()),
    };
    sandbox.snapshot = asked.current_snapshot_id.or(sandbox.snapshot.take());
    sandbox.updated = now();
    let sandbox = found(state, name)?;
    let mut answer = json!({ "sandbox": objects::sandbox(state, sandbox) });
    if ports {
        answer["routes"] = objects::routes(sandbox);
    }
    Ok(Answer::json(&answer))
}

pub(crate) fn delete(shared: &Arc<Shared>, question: &Question) -> Answered {
    let name = &question.ids[0];
    let state = &mut *shared.state();
    let limit = state.limits.deletes_per_second;
    if let Some(wait) = state.deletes.full(now(), limit) {
        return Err(Answer::too_many(Some(seconds(wait))));
    }
    state.deletes.add(now(), 1);
    let session = found(state, name)?.session().to_owned();
    state.end(&session, Status::Stopped);
    let answer = json!({ "sandbox": objects::sandbox(state, found(state, name)?) });
    let sandbox = state
        .sandboxes
        .remove(name)
        .ok_or_else(|| Answer::not_found(name))?;
    if question.get("deleteOrphanSnapshots") == Some("true") {
        for snapshot in state.snapshots.values_mut().filter(|one| one.sandbox == *name) {
            snapshot.deleted = true;
        }
    }
    // Its sessions stay, over, so that whoever still asks for one learns that; what they printed does not.
    for session in &sandbox.sessions {
        let commands = state
            .sessions
            .get_mut(session)
            .map(|session| std::mem::take(&mut session.commands));
        for id in commands.into_iter().flatten() {
            state.commands.remove(&id);
        }
    }
    Ok(Answer::json(&answer))
}
