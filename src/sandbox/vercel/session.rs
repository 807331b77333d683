//! A running machine: commands in it, followed to their end however often the connection drops, and files. Knows nothing
//! of how it was created, and never starts another in its place.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use camino::Utf8Path;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, Response};
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::api::{
    Command, Commands, Listed, OfCommand, OfSession, OfSnapshot, Session as Document, Snapshot, Status,
};
use super::client::{ANSWER, Ask, Client, Payload, Tries, unreachable};
use super::error::{Again, Problem, VercelError};
use super::printed::Printed;
use super::script::Script;
use super::stream::{Line, Lines, Next, PATIENCE};

/// How long the exit of a command whose output has ended is waited for, before its output is asked for again.
const EXIT_PATIENCE: Duration = Duration::from_secs(10);

/// Output that ended no earlier than this before its command did was ended by it.
const AT_ONCE: Duration = Duration::from_secs(1);

/// How often starting is tried.
const TRIES: u32 = 6;

/// How long an archive may take on its way in.
const UPLOAD: Duration = Duration::from_secs(600);

/// Most bytes in a chunk of output.
const CHUNK: usize = 16 * 1024;

/// What a session is asked for, first part of each path.
const SESSIONS: [&str; 3] = ["v2", "sandboxes", "sessions"];

/// A session.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) id: String,
    /// Where the service puts files; absolute.
    top: String,
    /// Where commands run: there, or below it.
    pub(super) cwd: String,
}

/// A user's command on its way.
#[derive(Debug)]
pub(super) struct Start<'a> {
    /// Ours: the command is started once under it.
    pub(super) id: &'a str,
    pub(super) script: Script,
    pub(super) env: Vec<(String, String)>,
}

/// Where a command's output goes.
#[derive(Debug)]
pub(super) struct Output<'a> {
    to: &'a mpsc::Sender<Vec<u8>>,
    /// Bytes that were passed on, so that a replay is not.
    passed: usize,
}

impl Session {
    /// A session whose workspace is this directory of its files; empty is all of them.
    pub(super) fn of(document: &Document, directory: &Utf8Path) -> Self {
        let top = document.cwd.clone().filter(|cwd| cwd.starts_with('/'));
        let top = top.unwrap_or_else(|| "/vercel/sandbox".to_owned());
        Self {
            id: document.id.clone(),
            cwd: match directory.as_str() {
                "" => top.clone(),
                below => format!("{top}/{below}"),
            },
            top,
        }
    }

    /// The same, whose workspace is all of its files.
    pub(super) fn at_top(&self) -> Self {
        Self {
            cwd: self.top.clone(),
            ..self.clone()
        }
    }

    fn path<'a>(&'a self, rest: &[&'a str]) -> Vec<&'a str> {
        let mut path = SESSIONS.to_vec();
        path.push(&self.id);
        path.extend(rest);
        path
    }

    /// Waits until the machine runs.
    pub(super) async fn wait_running(&self, client: &Client, mut status: Status) -> Result<(), VercelError> {
        let ask = Ask::get("start the sandbox", self.path(&[]));
        let mut wait = Duration::from_millis(250);
        loop {
            match status {
                Status::Running | Status::Unknown => return Ok(()),
                Status::Pending => {}
                gone => return Err(ask.failed(Problem::Gone(gone.word().to_owned()))),
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(Duration::from_secs(4));
            status = client.ask::<OfSession>(&ask).await?.session.status;
        }
    }

    /// Runs a user's command to its end. Returns its exit code. `started` hears the API's id of it.
    pub(super) async fn run(
        &self,
        client: &Client,
        start: Start<'_>,
        output: &mut Output<'_>,
        mut started: impl FnMut(&str),
    ) -> Result<i32, VercelError> {
        let id = self.start(client, &start).await?;
        // A wave has thousands of them, and what follows may take hours.
        drop(start);
        started(&id);
        self.follow(client, &id, output).await
    }

    /// Runs a command that leaves daemons: they may hold its output open, so its end is told with it.
    pub(super) async fn run_attached(
        &self,
        client: &Client,
        start: Start<'_>,
        output: &mut Output<'_>,
        mut started: impl FnMut(&str),
    ) -> Result<i32, VercelError> {
        let body = body(self, &start.script, &start.env, true, false);
        let ask = Ask::post("run the command", self.path(&["cmd"]), &body).once();
        let mut id = None;
        let attached = async {
            let response = client.open(&ask).await?;
            let mut lines = Lines::of(&ask, response)?;
            loop {
                match lines.next(PATIENCE).await? {
                    Next::Line(Line::Command(command)) => {
                        started(&command.id);
                        id = Some(command.id);
                        if let Some(code) = command.exit_code {
                            return Ok(code);
                        }
                    }
                    Next::Line(Line::Output { data, .. }) => output.pass(data).await,
                    Next::Line(Line::Broken(why)) => return Err(ask.failed(Problem::BrokeOff(why))),
                    Next::End => return Err(ask.failed(Problem::BrokeOff("it ended early".to_owned()))),
                    Next::Silence => return Err(ask.failed(Problem::Late(PATIENCE))),
                }
            }
        };
        let broke = match attached.await {
            Err(error) if id.is_some() || error.again() != Again::Never => error,
            done => return done,
        };
        let id = match id {
            Some(id) => id,
            None => {
                client.wait(broke.again(), 1).await;
                let id = match self.find(client, start.id).await? {
                    Some(command) => command.id,
                    None => self.start(client, &start).await?,
                };
                started(&id);
                id
            }
        };
        self.follow(client, &id, output).await
    }

    /// Starts a user's command, once, whatever becomes of the answers.
    async fn start(&self, client: &Client, start: &Start<'_>) -> Result<String, VercelError> {
        let body = body(self, &start.script, &start.env, false, false);
        let ask = Ask::post("start the command", self.path(&["cmd"]), &body).once();
        let mut tried = 0;
        loop {
            tried += 1;
            let error = match client.ask::<OfCommand>(&ask).await {
                Ok(started) => return Ok(started.command.id),
                Err(error) if error.again() == Again::Never || tried == TRIES => return Err(error),
                Err(error) => error,
            };
            client.wait(error.again(), tried).await;
            // The answer may have been lost, and not the request.
            let is_refused = matches!(error.status(), Some(400..=499));
            if !is_refused && let Some(command) = self.find(client, start.id).await? {
                return Ok(command.id);
            }
        }
    }

    /// A command that we have started: the one that was first.
    async fn find(&self, client: &Client, id: &str) -> Result<Option<Listed>, VercelError> {
        let ask = Ask::get("find the command again", self.path(&["cmd"]));
        let commands = client.ask::<Commands>(&ask).await?.commands;
        let is_ours = |command: &Listed| command.args.get(3).is_some_and(|arg| arg == id);
        // Of two, the one that came second has ended with the code that says so.
        let mut ours: Vec<Listed> = commands.into_iter().filter(is_ours).collect();
        ours.sort_by_key(|command| command.exit_code == Some(super::script::STARTED_BEFORE));
        Ok(ours.into_iter().next())
    }

    /// Another command under the same id of ours than the one that was followed, which came second. `started` hears the API's
    /// id of it.
    pub(super) async fn first_of(
        &self,
        client: &Client,
        id: &str,
        output: &mut Output<'_>,
        mut started: impl FnMut(&str),
    ) -> Result<Option<i32>, VercelError> {
        match self.find(client, id).await? {
            Some(command) if command.exit_code != Some(super::script::STARTED_BEFORE) => {
                started(&command.id);
                output.passed = 0;
                self.follow(client, &command.id, output).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Passes a command's output on until it has ended; whatever breaks off is asked for again, without a limit.
    async fn follow(&self, client: &Client, id: &str, output: &mut Output<'_>) -> Result<i32, VercelError> {
        let exit = Ask::get("wait for the command", self.path(&["cmd", id]))
            .query(vec![("wait", "true")])
            .limit(Some(EXIT_PATIENCE))
            .once();
        let since = Instant::now();
        let mut ended = None;
        let mut failures = 0;
        loop {
            let before = output.passed;
            let mut again = Again::Soon;
            let logs = self.logs(client, id, output, ended.is_some()).await;
            match (logs, ended) {
                (Ok(()), Some(code)) => return Ok(code),
                (Ok(()), None) => {
                    let end = Instant::now();
                    match client.ask::<OfCommand>(&exit).await {
                        Ok(OfCommand { command }) => match command.exit_code {
                            Some(code) if is_whole(end, since, command.took()) => return Ok(code),
                            // The output had broken off: the rest of it is still to be had.
                            Some(code) => {
                                ended = Some(code);
                                continue;
                            }
                            None => {}
                        },
                        Err(error) => again = worth(error)?,
                    }
                }
                // The rest of the output is not worth the result.
                (Err(error), Some(code)) => {
                    if error.again() == Again::Never {
                        output.lacks_the_rest(&error).await;
                    }
                    return Ok(code);
                }
                (Err(error), None) => {
                    // Output that is not to be had is no reason to give its command up.
                    again = match error.again() {
                        Again::Never => Again::Soon,
                        again => again,
                    };
                    if again == Again::Soon {
                        match self.has_ended(client, id).await {
                            Ok(code) => ended = code,
                            Err(error) => again = worth(error)?,
                        }
                    }
                }
            }
            failures = if output.passed > before { 1 } else { failures + 1 };
            client.wait(again, failures).await;
        }
    }

    /// A command as it is now, asked for once.
    pub(super) async fn look_at(&self, client: &Client, id: &str) -> Result<Command, VercelError> {
        let ask = Ask::get("look after the command", self.path(&["cmd", id])).once();
        client.ask::<OfCommand>(&ask).await.map(|found| found.command)
    }

    /// Passes on what there is still of the output of a command that has ended.
    pub(super) async fn rest(&self, client: &Client, id: &str, output: &mut Output<'_>) {
        if let Err(error) = self.logs(client, id, output, true).await {
            output.lacks_the_rest(&error).await;
        }
    }

    /// The exit code of a command, if it has ended.
    async fn has_ended(&self, client: &Client, id: &str) -> Result<Option<i32>, VercelError> {
        self.look_at(client, id).await.map(|command| command.exit_code)
    }

    /// Passes output on until it ends. After the command has ended, nothing new is waited for.
    async fn logs(
        &self,
        client: &Client,
        id: &str,
        output: &mut Output<'_>,
        has_ended: bool,
    ) -> Result<(), VercelError> {
        let ask = Ask::get("read the command's output", self.path(&["cmd", id, "logs"])).once();
        let response = client.open(&ask).await?;
        let mut lines = Lines::of(&ask, response)?;
        let mut replay = output.passed;
        let patience = if has_ended { ANSWER } else { PATIENCE };
        loop {
            match lines.next(patience).await? {
                Next::Line(Line::Output { mut data, .. }) => {
                    if replay >= data.len() {
                        replay -= data.len();
                        continue;
                    }
                    if replay > 0 {
                        // A boundary of characters, unless the replay is not the same: then it is passed whole.
                        if data.is_char_boundary(replay) {
                            data.drain(..replay);
                        }
                        replay = 0;
                    }
                    output.pass(data).await;
                }
                Next::Line(Line::Command(_)) => {}
                Next::Line(Line::Broken(why)) => return Err(ask.failed(Problem::BrokeOff(why))),
                Next::End => return Ok(()),
                Next::Silence => {
                    let is_over = has_ended
                        || match self.has_ended(client, id).await {
                            Ok(code) => code.is_some(),
                            // Nobody says: it is asked again after the next silence.
                            Err(error) => worth(error).map(|_| false)?,
                        };
                    if is_over {
                        return Err(ask.failed(Problem::Late(patience)));
                    }
                }
            }
        }
    }

    /// Runs a script of ours to its end: what it prints, and its exit code. It may be run again.
    pub(super) async fn script(
        &self,
        client: &Client,
        what: &str,
        script: &Script,
        env: &[(String, String)],
        sudo: bool,
    ) -> Result<Printed, VercelError> {
        let body = body(self, script, env, true, sudo);
        let ask = Ask::post(what, self.path(&["cmd"]), &body);
        let once = ask.clone().once();
        let mut tries = Tries::of(client, &ask);
        loop {
            match Printed::of(client, &once).await {
                Err(error) => tries.after(error).await?,
                printed => return printed,
            }
        }
    }

    /// Kills a command of the API's.
    pub(super) async fn kill(&self, client: &Client, id: &str) -> Result<(), VercelError> {
        let body = json!({ "signal": 9 });
        let ask = Ask::post("kill the command", self.path(&["cmd", id, "kill"]), &body);
        client.ask::<IgnoredAny>(&ask).await.map(drop)
    }

    /// Unpacks a compressed archive below a directory.
    pub(super) async fn write(
        &self,
        client: &Client,
        archive: Bytes,
        below: &str,
    ) -> Result<(), VercelError> {
        let ask = Ask {
            method: Method::POST,
            payload: Payload::Archive {
                bytes: archive,
                below,
            },
            ..Ask::get("bring the workspace in", self.path(&["fs", "write"])).limit(Some(UPLOAD))
        };
        client.ask::<IgnoredAny>(&ask).await.map(drop)
    }

    /// A file; `None` where there is none.
    pub(super) async fn read(&self, client: &Client, path: &str) -> Result<Option<File>, VercelError> {
        let body = json!({ "path": path });
        let ask = Ask::post(File::WHAT, self.path(&["fs", "read"]), &body);
        let response = match client.open(&ask).await {
            Err(error) if error.status() == Some(404) => return Ok(None),
            answer => answer?,
        };
        let kind = response.headers().get(CONTENT_TYPE);
        if kind.is_none_or(|kind| kind != "application/octet-stream") {
            return Err(ask.failed(Problem::Unexpected("the answer is no file".to_owned())));
        }
        Ok(Some(File(response)))
    }

    /// Stops the machine; what is in it is lost.
    pub(super) async fn stop(&self, client: &Client) -> Result<(), VercelError> {
        let ask = Ask {
            method: Method::POST,
            ..Ask::get("stop the sandbox", self.path(&["stop"]))
        };
        client.ask::<IgnoredAny>(&ask).await.map(drop)
    }

    /// Keeps the machine's files; the session ends with it. Sent once: the second time there is no session any more.
    pub(super) async fn snapshot(&self, client: &Client, limit: Duration) -> Result<Snapshot, VercelError> {
        let body = json!({});
        let ask = Ask::post("make the snapshot", self.path(&["snapshot"]), &body)
            .limit(Some(limit))
            .once();
        client.ask::<OfSnapshot>(&ask).await.map(|made| made.snapshot)
    }
}

/// How a question that failed may be asked again.
///
/// # Errors
/// The failure itself, where it may not.
fn worth(error: VercelError) -> Result<Again, VercelError> {
    match error.again() {
        Again::Never => Err(error),
        again => Ok(again),
    }
}

/// A file of a sandbox on its way.
#[derive(Debug)]
pub(super) struct File(Response);

impl File {
    const WHAT: &str = "read a file of the sandbox";

    /// The next bit; `None` is its end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, VercelError> {
        let ask = Ask::get(Self::WHAT, Vec::new());
        let chunk = tokio::time::timeout(ANSWER, self.0.chunk()).await;
        let chunk = chunk.map_err(|_| ask.failed(Problem::Late(ANSWER)))?;
        chunk.map_err(|error| unreachable(&ask, error))
    }
}

/// Whether output that ended then was ended by its command, which is known to have ended by now, and started no later
/// than `since`. An answer may be late where many are waited for; the command's own duration is not.
fn is_whole(output_end: Instant, since: Instant, took: Option<Duration>) -> bool {
    let is_soon = |command_end: Instant| command_end.saturating_duration_since(output_end) <= AT_ONCE;
    is_soon(Instant::now()) || took.and_then(|took| since.checked_add(took)).is_some_and(is_soon)
}

impl<'a> Output<'a> {
    pub(super) fn new(to: &'a mpsc::Sender<Vec<u8>>) -> Self {
        Self { to, passed: 0 }
    }

    async fn pass(&mut self, data: String) {
        self.passed += data.len();
        for chunk in data.into_bytes().chunks(CHUNK) {
            // Whoever does not listen any more does not want it.
            let _ = self.to.send(chunk.to_vec()).await;
        }
    }

    async fn lacks_the_rest(&mut self, why: &VercelError) {
        self.pass(format!(
            "\n[evalwave: the rest of the output is not to be had: {why}]\n"
        ))
        .await;
    }
}

/// What a command is asked for with.
#[derive(Serialize)]
struct Body<'a> {
    command: &'a str,
    args: &'a [String],
    cwd: &'a str,
    env: BTreeMap<&'a str, &'a str>,
    sudo: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logs: Option<bool>,
}

fn body<'a>(
    session: &'a Session,
    script: &'a Script,
    env: &'a [(String, String)],
    waits: bool,
    sudo: bool,
) -> Body<'a> {
    let env = env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let waits = waits.then_some(true);
    Body {
        command: "sh",
        args: &script.args,
        cwd: &session.cwd,
        env: env.collect(),
        sudo,
        wait: waits,
        logs: waits,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use camino::Utf8Path;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::{Instant, advance};

    use super::{Document, Problem, Script, Session, Status, is_whole};
    use crate::sandbox::vercel::client::{Client, Credentials};
    use crate::sandbox::vercel::printed::MAX_PRINTED;

    #[tokio::test(start_paused = true)]
    async fn output_is_whole_where_it_ended_when_its_command_did() {
        let since = Instant::now();
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        advance(Duration::from_secs(10)).await;
        let end = Instant::now();
        assert!(is_whole(end, since, None), "its end is known at once");
        advance(Duration::from_secs(30)).await;
        assert!(!is_whole(end, since, None), "late, and nothing told");
        assert!(is_whole(end, since, seconds(10)), "only the answer was late");
        assert!(is_whole(end, since, seconds(11)));
        assert!(!is_whole(end, since, seconds(12)), "it ran on");
    }

    #[tokio::test]
    async fn a_script_that_prints_without_end_is_given_up() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let line = format!("{{\"stream\":\"stdout\",\"data\":\"{}\"}}\n", "x".repeat(1 << 14));
        let endless = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 4096]).await;
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\n\r\n";
                stream.write_all(head.as_bytes()).await.unwrap();
                // Whoever still listens hears the end of it.
                for _ in 0..=MAX_PRINTED >> 14 {
                    if stream.write_all(line.as_bytes()).await.is_err() {
                        break;
                    }
                }
            }
        });
        let credentials = Credentials {
            token: "t".to_owned(),
            team_id: "team".to_owned(),
            project_id: "project".to_owned(),
        };
        let client = Client::new(&base_url, &credentials, 1_000, 0).unwrap();
        let document = Document {
            id: "s".to_owned(),
            status: Status::Running,
            cwd: None,
        };
        let session = Session::of(&document, Utf8Path::new(""));
        let script = Script::plain("base64 list", []);
        let printed = session.script(&client, "list", &script, &[], false).await;
        let error = printed.unwrap_err();
        assert!(matches!(error.problem, Problem::TooLarge(64)), "{error}");
        endless.abort();
    }
}
