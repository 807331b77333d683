//! Questions about commands, and how one runs to its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::answer::{Answer, Answered, text};
use super::machine::{Job, Machine};
use super::routes::{Question, Route};
use super::state::{CWD, Command, Line, State, now};
use super::{Shared, objects, sessions};

#[derive(Deserialize)]
struct Asked {
    command: String,
    args: Option<Box<RawValue>>,
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
    // It may have ended already, which the first line does not tell.
    let started = text(&objects::begun(found(&shared.state(), session, &command)?));
    if question.route == Route::Run {
        return Ok(Answer::json(&RawValue::from_string(started).unwrap()));
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
    let args = match asked.args {
        Some(args) => args,
        None => RawValue::from_string("[]".to_owned()).unwrap(),
    };
    let given =
        serde_json::from_str(args.get()).map_err(|error| Answer::bad_request(&format!("`args`: {error}")))?;
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
        args,
        cwd: asked.cwd.unwrap_or_else(|| CWD.to_owned()),
        started: now(),
        exit: None,
        log: Vec::new(),
        signals,
        changed: watch::Sender::new(()),
    };
    let job = Job {
        program: asked.command,
        args: given,
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
    let commands: Vec<_> = commands.map(objects::command).collect();
    let commands = BTreeMap::from([("commands", commands)]);
    Ok(Answer::json(&commands))
}

pub(crate) async fn get(shared: &Arc<Shared>, question: &Question) -> Answered {
    sessions::running(shared, &question.ids[0]).await?;
    let state = shared.state();
    let command = found(&state, &question.ids[0], &question.ids[1])?;
    Ok(Answer::json(&objects::of_command(command)))
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
                return Ok(Answer::json(&objects::of_command(command)));
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

fn follow(shared: &Arc<Shared>, session: &str, id: &str, what: Followed) -> BoxStream<'static, String> {
    let (send, receive) = mpsc::channel(16);
    let (shared, session, id) = (Arc::clone(shared), session.to_owned(), id.to_owned());
    tokio::spawn(async move {
        let mut told = 0;
        loop {
            let Found {
                mut lines,
                last,
                is_over,
                changes,
            } = next(&shared, &session, &id, what, told);
            told += lines.len();
            if !what.lines {
                lines.clear();
            }
            let breaks = what.breaks && (is_over || !lines.is_empty());
            if breaks {
                lines.truncate(1);
                lines.push(failure("sandbox_stream_closed", "The stream was closed"));
            } else {
                lines.extend(last);
            }
            for line in lines {
                if send.send(line).await.is_err() {
                    return;
                }
            }
            let Some(mut changes) = changes.filter(|_| !is_over && !breaks) else {
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

/// What there is to tell.
struct Found {
    /// What was printed.
    lines: Vec<String>,
    /// What is told at the end.
    last: Option<String>,
    /// Nothing comes after this.
    is_over: bool,
    /// Tells of more.
    changes: Option<watch::Receiver<()>>,
}

/// What is new since so many lines were told.
fn next(shared: &Shared, session: &str, id: &str, what: Followed, told: usize) -> Found {
    let state = shared.state();
    let stopped = || Some(failure("sandbox_stopped", "Sandbox is stopped"));
    let Ok(command) = found(&state, session, id) else {
        return Found {
            lines: Vec::new(),
            last: stopped(),
            is_over: true,
            changes: None,
        };
    };
    let over = sessions::found(&state, session).is_ok_and(|session| session.status.over());
    let last = match command.exit {
        _ if over => stopped(),
        Some(_) if what.end => Some(text(&objects::of_command(command))),
        _ => None,
    };
    let lines = command.log[told..].iter();
    Found {
        lines: lines
            .map(|line| text(&json!({ "stream": line.stream, "data": line.data })))
            .collect(),
        last,
        is_over: over || command.exit.is_some(),
        changes: Some(command.changed.subscribe()),
    }
}

fn failure(code: &str, message: &str) -> String {
    text(&json!({ "stream": "error", "data": { "code": code, "message": message } }))
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
    Ok(Answer::json(&objects::of_command(command)))
}
