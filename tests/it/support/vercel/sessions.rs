//! Questions about sessions, and their life: pending, running, stopping, over.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::answer::{Answer, Answered};
use super::machine::{Disk, Machine};
use super::routes::{Question, page};
use super::state::{Sandbox, Session, State, Status, Times, ms, now};
use super::{Shared, objects, snapshots};

/// Enters the sandbox with a new session, which boots and ends by itself. Its id.
pub(crate) fn begin(
    shared: &Arc<Shared>,
    state: &mut State,
    mut sandbox: Sandbox,
    disk: Disk,
    snapshot: Option<String>,
) -> String {
    let id = state.id("sbx");
    state.counts.created(now(), sandbox.vcpus);
    let session = Session {
        id: id.clone(),
        sandbox: sandbox.name.clone(),
        status: Status::Pending,
        vcpus: sandbox.vcpus,
        timeout: sandbox.timeout,
        runtime: sandbox.runtime.clone(),
        policy: sandbox.policy.clone(),
        source_snapshot: snapshot,
        requested: now(),
        started: None,
        stop_requested: None,
        ended: None,
        snapshotted: None,
        updated: now(),
        machine: None,
        commands: Vec::new(),
        changed: watch::Sender::new(()),
    };
    let changes = session.changed.subscribe();
    sandbox.sessions.push(id.clone());
    state.sessions.insert(id.clone(), session);
    state.sandboxes.insert(sandbox.name.clone(), sandbox);
    let (shared, living) = (Arc::clone(shared), id.clone());
    tokio::spawn(async move {
        pause(&shared, |times| times.create_ms).await;
        boot(&shared, &living, disk).await;
        outlive(&shared, &living, changes).await;
    });
    id
}

async fn boot(shared: &Shared, id: &str, disk: Disk) {
    let booted = shared.machines.boot(disk).await;
    let state = &mut *shared.state();
    let Some(session) = state.sessions.get_mut(id) else {
        return;
    };
    match booted {
        // Whoever has ended it meanwhile wants no machine.
        Ok(machine) if session.status != Status::Pending => machine.kill(),
        Ok(machine) => {
            session.machine = Some(Arc::new(machine));
            session.started = Some(now());
            session.set(Status::Running);
        }
        Err(error) => {
            state.troubles.push(format!("{id}: {error}"));
            state.end(id, Status::Failed);
        }
    }
}

/// Waits until its time has run out, and ends it then.
async fn outlive(shared: &Shared, id: &str, mut changes: watch::Receiver<()>) {
    loop {
        let left = {
            let state = shared.state();
            let Some(session) = state.sessions.get(id).filter(|one| !one.status.over()) else {
                return;
            };
            let started = session.started.unwrap_or(session.requested);
            (started + session.timeout).saturating_sub(now())
        };
        if left == 0 {
            return finish(shared, id, |_| 0).await;
        }
        let _ = timeout(ms(left), changes.changed()).await;
    }
}

/// Waits until a session is no longer pending, unless creations answer before.
pub(crate) async fn booted(shared: &Shared, id: &str) -> Result<(), Answer> {
    if shared.state().times().borrow().answers_pending {
        return Ok(());
    }
    match status(shared, id, |status| status != Status::Pending).await? {
        Status::Failed => Err(Answer::refused(
            500,
            "internal_server_error",
            "The sandbox could not be started",
        )),
        _ => Ok(()),
    }
}

/// The status, once it is one of these.
async fn status(shared: &Shared, id: &str, wanted: impl Fn(Status) -> bool) -> Result<Status, Answer> {
    loop {
        let mut changes = {
            let state = shared.state();
            let session = found(&state, id)?;
            if wanted(session.status) {
                return Ok(session.status);
            }
            session.changed.subscribe()
        };
        let _ = changes.changed().await;
    }
}

/// Waits until a session runs or is over.
pub(crate) async fn settled(shared: &Shared, id: &str) -> Result<(), Answer> {
    let settled = status(shared, id, |status| status == Status::Running || status.over());
    settled.await.map(drop)
}

pub(crate) fn found<'a>(state: &'a State, id: &str) -> Result<&'a Session, Answer> {
    state.sessions.get(id).ok_or_else(|| Answer::not_found(id))
}

/// What is asked of a session that is over.
pub(crate) fn over() -> Answer {
    Answer::refused(410, "sandbox_stopped", "Sandbox is stopped")
}

fn stopping() -> Answer {
    Answer::refused(422, "sandbox_stopping", "Sandbox is stopping")
}

pub(crate) fn snapshotting() -> Answer {
    Answer::refused(422, "sandbox_snapshotting", "Sandbox is being snapshotted")
}

/// The machine of a session that runs; one that is pending is waited for.
pub(crate) async fn running(shared: &Shared, id: &str) -> Result<Arc<Machine>, Answer> {
    match status(shared, id, |status| status != Status::Pending).await? {
        Status::Stopping => return Err(stopping()),
        Status::Snapshotting => return Err(snapshotting()),
        _ => {}
    }
    found(&shared.state(), id)?.machine.clone().ok_or_else(over)
}

/// Lets pass what something takes.
pub(crate) async fn pause(shared: &Shared, takes: impl Fn(&Times) -> u64) {
    let began = Instant::now();
    let mut times = shared.state().times();
    loop {
        let until = began + ms(takes(&times.borrow_and_update()));
        tokio::select! {
            () = sleep_until(until) => return,
            _ = times.changed() => {}
        }
    }
}

/// Stops a session, and keeps the disk of a persistent sandbox.
async fn finish(shared: &Shared, id: &str, takes: impl Fn(&Times) -> u64) {
    let persistent = {
        let state = &mut *shared.state();
        let Some(session) = state.sessions.get_mut(id).filter(|one| !one.status.over()) else {
            return;
        };
        session.stop_requested = Some(now());
        session.set(Status::Stopping);
        let sandbox = state.sandboxes.get(&session.sandbox);
        sandbox.is_some_and(|sandbox| sandbox.persistent) && session.machine.is_some()
    };
    pause(shared, takes).await;
    // It may have been ended or deleted meanwhile.
    if found(&shared.state(), id).is_ok_and(|session| session.status.over()) {
        return;
    }
    if persistent && let Err(error) = snapshots::take(shared, id, None).await {
        shared.state().troubles.push(format!("{id}: {error}"));
    }
    shared.state().end(id, Status::Stopped);
}

pub(crate) async fn stop(shared: &Arc<Shared>, question: &Question) -> Answered {
    let id = &question.ids[0];
    let before = found(&shared.state(), id)?.status;
    match before {
        Status::Snapshotting => return Err(snapshotting()),
        Status::Stopping => settled(shared, id).await?,
        Status::Pending | Status::Running => finish(shared, id, |times| times.stop_ms).await,
        Status::Stopped | Status::Failed | Status::Aborted => {}
    }
    let state = shared.state();
    let session = found(&state, id)?;
    let mut answer = json!({ "session": objects::session(session) });
    if let Some(sandbox) = state.sandboxes.get(&session.sandbox) {
        answer["sandbox"] = objects::sandbox(&state, sandbox);
        let mut snapshots = state.snapshots.values();
        if let Some(snapshot) = snapshots.rfind(|one| one.session == *id) {
            answer["snapshot"] = objects::snapshot(snapshot);
        }
    }
    Ok(Answer::json(&answer))
}

pub(crate) fn get(shared: &Arc<Shared>, question: &Question) -> Answered {
    let state = shared.state();
    let session = found(&state, &question.ids[0])?;
    let routes = state
        .sandboxes
        .get(&session.sandbox)
        .map_or_else(|| json!([]), objects::routes);
    Ok(Answer::json(
        &json!({ "session": objects::session(session), "routes": routes }),
    ))
}

pub(crate) fn list(shared: &Arc<Shared>, question: &Question) -> Answered {
    let state = shared.state();
    let name = question.get("name");
    let sessions = state.sessions.values();
    let sessions = sessions.filter(|session| name.is_none_or(|name| session.sandbox == name));
    let mut keyed: Vec<(String, &Session)> = sessions.map(|session| (session.id.clone(), session)).collect();
    keyed.sort_by(|(one, _), (other, _)| one.cmp(other));
    if question.get("sortOrder") != Some("asc") {
        keyed.reverse();
    }
    let (listed, pagination) = page(question, keyed)?;
    let listed: Vec<Value> = listed.into_iter().map(objects::session).collect();
    Ok(Answer::json(
        &json!({ "sessions": listed, "pagination": pagination }),
    ))
}

#[derive(Deserialize)]
struct Extension {
    duration: u64,
}

pub(crate) async fn extend(shared: &Arc<Shared>, question: &Question) -> Answered {
    let asked: Extension = question.parsed()?;
    if asked.duration < 1000 {
        return Err(Answer::bad_request("`duration` must be at least 1000"));
    }
    running(shared, &question.ids[0]).await?;
    let state = &mut *shared.state();
    let most = state.limits.timeout_ms;
    let session = changing(state, &question.ids[0])?;
    let extended = session.timeout.saturating_add(asked.duration);
    if extended > most {
        return Err(Answer::refused(
            400,
            "sandbox_timeout_invalid",
            &format!("The timeout exceeds the maximum of {most} ms"),
        ));
    }
    session.timeout = extended;
    session.set(session.status);
    Ok(Answer::json(&json!({ "session": objects::session(session) })))
}

pub(crate) async fn network_policy(shared: &Arc<Shared>, question: &Question) -> Answered {
    let asked: Value = question.parsed()?;
    let policy = objects::policy(&asked).map_err(|message| Answer::bad_request(&message))?;
    running(shared, &question.ids[0]).await?;
    let state = &mut *shared.state();
    let session = changing(state, &question.ids[0])?;
    session.policy = Some(policy);
    session.set(session.status);
    Ok(Answer::json(&json!({ "session": objects::session(session) })))
}

pub(crate) async fn interactive(shared: &Arc<Shared>, question: &Question) -> Answered {
    let id = &question.ids[0];
    running(shared, id).await?;
    Ok(Answer::json(
        &json!({ "url": format!("wss://{id}.vercel.run/interactive"), "token": format!("token-of-{id}") }),
    ))
}

fn changing<'a>(state: &'a mut State, id: &str) -> Result<&'a mut Session, Answer> {
    state.sessions.get_mut(id).ok_or_else(|| Answer::not_found(id))
}
