//! Questions about commands, and how one runs to its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::answer::{Answer, Answered};
use super::machine::{Job, Machine};
use super::routes::{Question, Route};
use super::state::{CWD, Command, Line, State, now};
use super::{Shared, objects, sessions};

#[derive(Deserialize)]
struct Asked {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    cwd: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    timeout: Option<u64>,
    #[serde(default)]
    logs: bool,
}

pub(crate) async fn run(shared: &Arc<Shared>, question: &Question) -> Answered {
    let session = &question.ids[0];
    let asked: Asked = question.parsed()?;
    let machine = sessions::running(shared, session).await?;
    let logs = asked.logs;
    let command = {
        let state = &mut *shared.state();
        start(shared, state, session, asked, machine)?
    };
    let started = {
        let state = shared.state();
        let mut command = objects::command(found(&state, session, &command)?);
        // It may have ended already, which the first line does not tell.
        command["exitCode"] = Value::Null;
        json!({ "command": command })
    };
    if question.route == Route::Run {
        return Ok(Answer::json(&started));
    }
    let followed = Followed {
        lines: logs,
        end: true,
        breaks: question.breaks,
    };
    let rest = follow(shared, session, &command, followed);
    Ok(Answer::lines(stream::iter([started]).chain(rest).boxed()))
}

/// Starts it; its id.
fn start(
    shared: &Arc<Shared>,
    state: &mut State,
    session: &str,
    asked: Asked,
    machine: Arc<Machine>,
) -> Result<String, Answer> {
    let id = state.id("cmd");
    let held = state
        .sessions
        .get_mut(session)
        .ok_or_else(|| Answer::not_found(session))?;
    if held.machine.is_none() {
        return Err(sessions::over());
    }
    held.commands.push(id.clone());
    let sandbox = state.sandboxes.get(&held.sandbox).ok_or_else(sessions::over)?;
    let mut env = sandbox.env.clone();
    env.extend(asked.env);
    let (signals, mut received) = mpsc::unbounded_channel();
    let command = Command {
        id: id.clone(),
        session: session.to_owned(),
        name: asked.command.clone(),
        args: asked.args.clone(),
        cwd: asked.cwd.unwrap_or_else(|| CWD.to_owned()),
        started: now(),
        exit: None,
        log: Vec::new(),
        signals,
        changed: watch::Sender::new(()),
    };
    let job = Job {
        program: asked.command,
        args: asked.args,
        cwd: command.cwd.clone(),
        env,
        tags: sandbox.tags.clone(),
        timeout: asked.timeout.map(Duration::from_millis),
    };
    state.commands.insert(id.clone(), command);
    let (shared, running) = (Arc::clone(shared), id.clone());
    tokio::spawn(async move {
        let started = Instant::now();
        let (writer, command) = (Arc::clone(&shared), running.clone());
        let print = Arc::new(move |stream, data| {
            let mut state = writer.state();
            if let Some(command) = state.commands.get_mut(&command).filter(|one| one.exit.is_none()) {
                command.log.push(Line { stream, data });
                command.changed.send_replace(());
            }
        });
        let code = machine.run(job, &mut received, print).await;
        if let Some(command) = shared.state().commands.get_mut(&running) {
            command.exit = Some((code, started.elapsed().as_millis() as u64));
            command.changed.send_replace(());
        }
    });
    Ok(id)
}

fn found<'a>(state: &'a State, session: &str, id: &str) -> Result<&'a Command, Answer> {
    let command = state
        .commands
        .get(id)
        .filter(|command| command.session == session);
    command.ok_or_else(|| Answer::not_found(id))
}

pub(crate) async fn list(shared: &Arc<Shared>, question: &Question) -> Answered {
    let session = &question.ids[0];
    sessions::running(shared, session).await?;
    let state = shared.state();
    let ids = &sessions::found(&state, session)?.commands;
    let commands = ids.iter().filter_map(|id| state.commands.get(id));
    let commands: Vec<Value> = commands.map(objects::command).collect();
    Ok(Answer::json(&json!({ "commands": commands })))
}

pub(crate) async fn get(shared: &Arc<Shared>, question: &Question) -> Answered {
    sessions::running(shared, &question.ids[0]).await?;
    let state = shared.state();
    let command = found(&state, &question.ids[0], &question.ids[1])?;
    Ok(Answer::json(&json!({ "command": objects::command(command) })))
}

/// Not even headers are sent before it has ended.
pub(crate) async fn wait(shared: &Arc<Shared>, question: &Question) -> Answered {
    let (session, id) = (&question.ids[0], &question.ids[1]);
    sessions::running(shared, session).await?;
    loop {
        let mut changes = {
            let state = shared.state();
            if sessions::found(&state, session)?.status.over() {
                return Err(sessions::over());
            }
            let command = found(&state, session, id)?;
            if command.exit.is_some() {
                return Ok(Answer::json(&json!({ "command": objects::command(command) })));
            }
            command.changed.subscribe()
        };
        let _ = changes.changed().await;
    }
}

pub(crate) async fn logs(shared: &Arc<Shared>, question: &Question) -> Answered {
    let (session, id) = (&question.ids[0], &question.ids[1]);
    sessions::running(shared, session).await?;
    found(&shared.state(), session, id)?;
    let followed = Followed {
        lines: true,
        end: false,
        breaks: question.breaks,
    };
    Ok(Answer::lines(follow(shared, session, id, followed)))
}

/// What is told of a command as it runs.
#[derive(Clone, Copy)]
struct Followed {
    /// What it prints.
    lines: bool,
    /// How it ended.
    end: bool,
    /// Whether a line of failure comes in the middle.
    breaks: bool,
}

fn follow(shared: &Arc<Shared>, session: &str, id: &str, what: Followed) -> BoxStream<'static, Value> {
    let (send, receive) = mpsc::channel(16);
    let (shared, session, id) = (Arc::clone(shared), session.to_owned(), id.to_owned());
    tokio::spawn(async move {
        let mut told = 0;
        loop {
            let (lines, last, changes) = next(&shared, &session, &id, told);
            told += lines.len();
            let lines = lines.into_iter().filter(|_| what.lines);
            let mut lines: Vec<Value> = lines
                .map(|line| json!({ "stream": line.stream, "data": line.data }))
                .collect();
            if what.breaks && (last.is_some() || !lines.is_empty()) {
                lines.truncate(1);
                lines.push(failure("sandbox_stream_closed", "The stream was closed"));
            } else {
                lines.extend(
                    last.clone()
                        .filter(|last| what.end || last.get("stream").is_some()),
                );
            }
            for line in lines {
                let broken = line["stream"] == "error";
                if send.send(line).await.is_err() || broken {
                    return;
                }
            }
            let Some(mut changes) = changes.filter(|_| last.is_none()) else {
                return;
            };
            tokio::select! {
                _ = changes.changed() => {}
                () = send.closed() => return,
            }
        }
    });
    stream::unfold(receive, |mut receive| async {
        receive.recv().await.map(|line| (line, receive))
    })
    .boxed()
}

/// What was printed since, the last thing to tell if there is one, and what tells of more.
fn next(
    shared: &Shared,
    session: &str,
    id: &str,
    told: usize,
) -> (Vec<Line>, Option<Value>, Option<watch::Receiver<()>>) {
    let state = shared.state();
    let stopped = || failure("sandbox_stopped", "Sandbox is stopped");
    let Ok(command) = found(&state, session, id) else {
        return (Vec::new(), Some(stopped()), None);
    };
    let over = sessions::found(&state, session).is_ok_and(|session| session.status.over());
    let last = match command.exit {
        _ if over => Some(stopped()),
        Some(_) => Some(json!({ "command": objects::command(command) })),
        None => None,
    };
    (
        command.log[told..].to_vec(),
        last,
        Some(command.changed.subscribe()),
    )
}

fn failure(code: &str, message: &str) -> Value {
    json!({ "stream": "error", "data": { "code": code, "message": message } })
}

#[derive(Deserialize)]
struct Signal {
    signal: i32,
}

pub(crate) async fn kill(shared: &Arc<Shared>, question: &Question) -> Answered {
    let asked: Signal = question.parsed()?;
    if !(1..=64).contains(&asked.signal) {
        return Err(Answer::bad_request("`signal` must be the number of a signal"));
    }
    sessions::running(shared, &question.ids[0]).await?;
    let state = shared.state();
    let command = found(&state, &question.ids[0], &question.ids[1])?;
    let _ = command.signals.send(asked.signal);
    Ok(Answer::json(&json!({ "command": objects::command(command) })))
}
