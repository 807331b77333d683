//! The API's objects, as the official client wants them. Knows nothing of questions.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::state::{CWD, Command, REGION, Sandbox, Session, Snapshot, State};

/// Leaves out what is not known, as the API does: `null` is refused where a key may be missing.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .collect::<Map<_, _>>()
            .into(),
        other => other,
    }
}

pub(crate) fn sandbox(state: &State, sandbox: &Sandbox) -> Value {
    let session = &state.sessions[sandbox.session()];
    without_nulls(json!({
        "name": sandbox.name,
        "persistent": sandbox.persistent,
        "region": REGION,
        "vcpus": sandbox.vcpus,
        "memory": sandbox.vcpus * 2048,
        "runtime": sandbox.runtime,
        "image": sandbox.image,
        "timeout": sandbox.timeout,
        "networkPolicy": sandbox.policy,
        "createdAt": sandbox.created,
        "updatedAt": sandbox.updated,
        "currentSessionId": sandbox.session(),
        "currentSnapshotId": sandbox.snapshot,
        "status": session.status.word(),
        "statusUpdatedAt": session.updated,
        "expiresAt": session.started.map(|at| at + session.timeout),
        "cwd": CWD,
        "tags": sandbox.tags,
        "snapshotExpiration": sandbox.snapshot_expiration,
        "keepLastSnapshots": sandbox.keep_last_snapshots,
    }))
}

pub(crate) fn session(session: &Session) -> Value {
    without_nulls(json!({
        "id": session.id,
        "sourceSandboxName": session.sandbox,
        "memory": session.vcpus * 2048,
        "vcpus": session.vcpus,
        "region": REGION,
        "runtime": session.runtime,
        "timeout": session.timeout,
        "status": session.status.word(),
        "requestedAt": session.requested,
        "startedAt": session.started,
        "requestedStopAt": session.stop_requested,
        "stoppedAt": session.ended.filter(|_| session.status.word() == "stopped"),
        "abortedAt": session.ended.filter(|_| session.status.word() == "aborted"),
        "duration": session.ended.zip(session.started).map(|(end, start)| end.saturating_sub(start)),
        "sourceSnapshotId": session.source_snapshot,
        "snapshottedAt": session.snapshotted,
        "createdAt": session.requested,
        "cwd": CWD,
        "updatedAt": session.updated,
        "networkPolicy": session.policy,
    }))
}

pub(crate) fn routes(sandbox: &Sandbox) -> Value {
    let route = |port: &u16| {
        let subdomain = format!("{}-{port}", sandbox.name);
        json!({ "url": format!("https://{subdomain}.vercel.run"), "subdomain": subdomain, "port": port })
    };
    sandbox.ports.iter().map(route).collect()
}

/// A sandbox with its session, which is how it is created and looked up.
pub(crate) fn both(state: &State, of: &Sandbox, resumed: bool) -> Value {
    json!({
        "sandbox": sandbox(state, of),
        "session": session(&state.sessions[of.session()]),
        "routes": routes(of),
        "resumed": resumed,
    })
}

/// A command, which is told often, and whose arguments may be long.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Told<'a> {
    id: &'a str,
    name: &'a str,
    args: &'a RawValue,
    cwd: &'a str,
    session_id: &'a str,
    exit_code: Option<i32>,
    started_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
}

#[derive(Serialize)]
pub(crate) struct OfCommand<'a> {
    command: Told<'a>,
}

pub(crate) fn command(command: &Command) -> Told<'_> {
    Told {
        id: &command.id,
        name: &command.name,
        args: &command.args,
        cwd: &command.cwd,
        session_id: &command.session,
        exit_code: command.exit.map(|(code, _)| code),
        started_at: command.started,
        duration_ms: command.exit.map(|(_, after)| after),
    }
}

pub(crate) fn of_command(told: &Command) -> OfCommand<'_> {
    OfCommand {
        command: command(told),
    }
}

/// As it was when it began.
pub(crate) fn begun(told: &Command) -> OfCommand<'_> {
    OfCommand {
        command: Told {
            exit_code: None,
            duration_ms: None,
            ..command(told)
        },
    }
}

pub(crate) fn snapshot(snapshot: &Snapshot) -> Value {
    without_nulls(json!({
        "id": snapshot.id,
        "sourceSessionId": snapshot.session,
        "region": REGION,
        "regions": [REGION],
        "status": if snapshot.usable() { "created" } else { "deleted" },
        "sizeBytes": snapshot.bytes,
        "expiresAt": snapshot.expires,
        "createdAt": snapshot.created,
        "updatedAt": snapshot.updated,
        "lastUsedAt": snapshot.last_used,
        "parentId": snapshot.parent,
    }))
}

/// What a network policy looks like when it is told back: in another shape, and without the values of headers.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn policy(asked: &Value) -> Result<Value, String> {
    match asked["mode"].as_str() {
        Some(mode @ ("allow-all" | "deny-all")) => return Ok(json!({ "mode": mode })),
        Some(other) => return Err(format!("Invalid network policy mode `{other}`")),
        None if asked.is_object() => {}
        None => return Err("A network policy is an object".to_owned()),
    }
    let mut told = Map::new();
    told.insert("mode".to_owned(), "custom".into());
    match &asked["allow"] {
        Value::Null => {}
        Value::Array(domains) => {
            told.insert("allowedDomains".to_owned(), domains.clone().into());
        }
        Value::Object(domains) => {
            told.insert("allowedDomains".to_owned(), domains.keys().cloned().collect());
            let injected = rules(domains, "transform", |domain, rule| {
                let headers = rule["transform"].as_array().into_iter().flatten();
                let names = headers.filter_map(|one| one["headers"].as_object());
                let names: Vec<&String> = names.flat_map(Map::keys).collect();
                json!({ "domain": domain, "headerNames": names })
            });
            let forwarded = rules(
                domains,
                "forwardURL",
                |domain, rule| json!({ "domain": domain, "forwardURL": rule["forwardURL"] }),
            );
            told.insert("injectionRules".to_owned(), injected.into());
            told.insert("forwardRules".to_owned(), forwarded.into());
        }
        _ => return Err("`allow` is a list or an object".to_owned()),
    }
    for (from, to) in [("allow", "allowedCIDRs"), ("deny", "deniedCIDRs")] {
        if let Some(ranges) = asked["subnets"].get(from) {
            told.insert(to.to_owned(), ranges.clone());
        }
    }
    Ok(told.into())
}

fn rules(domains: &Map<String, Value>, key: &str, told: impl Fn(&str, &Value) -> Value) -> Vec<Value> {
    let each = domains.iter().flat_map(|(domain, rules)| {
        rules
            .as_array()
            .into_iter()
            .flatten()
            .map(move |rule| (domain, rule))
    });
    each.filter(|(_, rule)| rule.get(key).is_some())
        .map(|(domain, rule)| {
            let mut value = told(domain, rule);
            if let Some(condition) = rule.get("match") {
                value["match"] = condition.clone();
            }
            value
        })
        .collect()
}
