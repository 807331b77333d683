//! Runs a script in a sandbox by the user's `exec`, and tells the engine's failures from the script's end by the lines
//! that the script itself prints.

use std::hash::{BuildHasher as _, Hasher as _};
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio::process::ChildStdin;
use tokio::sync::{mpsc, oneshot};

use super::engine::{Engine, Failed, printable};
use super::files::PrivateFile;
use super::marks::Marks;
use super::process::Process;
use super::script::{self, Preamble};
use crate::config::template::Values;
use crate::model::ErrorClass;
use crate::sandbox::SandboxError;

/// What follows a script on standard input.
pub(super) enum Input {
    /// Nothing; it stays open until the script has ended.
    Open,
    /// A stream, once the script has begun.
    Stream(DuplexStream),
}

/// Where a script's data goes.
pub(super) enum Sink<'a> {
    /// To whoever reads a command's output.
    Output(&'a mpsc::Sender<Vec<u8>>),
    /// To a file.
    Writer(&'a mut (dyn AsyncWrite + Send + Unpin)),
    /// Into memory, up to a limit.
    Memory(&'a mut Vec<u8>),
}

/// How long it may take to kill what runs in a sandbox.
const HALT_LIMIT: Duration = Duration::from_secs(20);
/// Most bytes that are taken into memory.
const MOST_MEMORY: usize = 64 << 20;

/// What a script that came to its end said.
#[derive(Debug)]
pub(super) struct Talked {
    /// As it began.
    pub(super) word: String,
    /// As it ended.
    pub(super) status: i32,
    /// What was written on standard error meanwhile.
    pub(super) said: String,
}

impl Engine {
    /// Whether scripts go in by standard input, which stays open as long as they are wanted.
    pub(super) fn has_input(&self) -> bool {
        !self.config.exec.uses("file")
    }

    /// Runs a script to its end. Dropping the future ends it too, where it watches its standard input.
    pub(super) async fn talk(
        &self,
        values: &Values,
        mark: &str,
        script: &str,
        input: Input,
        sink: &mut Sink<'_>,
    ) -> Result<Talked, Failed> {
        let mut values = values.clone();
        let mut file = None;
        let stdin = if self.has_input() {
            Stdio::piped()
        } else {
            let given = self.private_file(mark).and_then(|file| {
                file.write(script.as_bytes())?;
                Ok(file)
            });
            let given = given.map_err(|error| {
                Failed::for_good(SandboxError::io(
                    "cannot write the file for `sandbox.exec`",
                    error,
                ))
            })?;
            values.0.insert("file".to_owned(), given.path().to_string());
            file = Some(given);
            Stdio::null()
        };
        let line = Self::line(&self.config.exec, &values).map_err(Failed::for_good)?;
        let mut process = self.start("exec", &line, stdin).map_err(Failed::for_good)?;
        let mut marks = Marks::new(mark);
        let (begun, beginning) = oneshot::channel();
        let writing = write(process.stdin.take(), script, input, beginning);
        let heard = {
            let mut listening = pin!(listen(&mut process, &mut marks, begun, sink));
            let mut writing = pin!(writing);
            loop {
                tokio::select! {
                    biased;
                    heard = &mut listening => break heard,
                    () = &mut writing => {}
                }
            }
        };
        heard.map_err(Failed::for_good)?;
        let rest = marks.rest();
        let ended = process.end().await;
        drop(file);
        match (marks.begun(), marks.ended(), marks.status()) {
            (Some(word), true, Some(status)) => Ok(Talked {
                word: word.to_owned(),
                status,
                said: printable(&ended.said),
            }),
            (Some(_), ..) => {
                let mut failed = Failed::ended("exec", &ended, " before what it ran had come to an end");
                // It ran, so it is never run again by itself.
                failed.again = false;
                failed.error.class = Some(ErrorClass::SandboxLost);
                Err(failed)
            }
            (None, ..) => {
                let mut ended = ended;
                if ended.said.trim().is_empty() {
                    ended.said = String::from_utf8_lossy(&rest).into_owned();
                }
                Err(Failed::ended(
                    "exec",
                    &ended,
                    " before it had run the script that it was given",
                ))
            }
        }
    }

    /// Kills whatever runs in a sandbox that is about to be deleted: where it is only a directory of a machine, deleting it
    /// kills nothing. Whether that worked is the deletion's to say.
    pub(super) async fn halt(&self, values: &Values) {
        let name = values.0.get("name").map_or("", String::as_str);
        let (mark, all) = (mark(), format!("{name}/"));
        let preamble = Preamble {
            mark: &mark,
            kill: Some(&all),
            delete: &[],
        };
        let script = script::look_around(&preamble);
        let mut nowhere = Vec::new();
        let mut sink = Sink::Memory(&mut nowhere);
        let talking = self.talk(values, &mark, &script, Input::Open, &mut sink);
        let _ = tokio::time::timeout(HALT_LIMIT, talking).await;
    }

    /// A path that the user's commands may be given, with the mark in its name.
    pub(super) fn private_file(&self, mark: &str) -> std::io::Result<PrivateFile> {
        PrivateFile::reserve(&self.directory, mark)
    }

    /// The values of placeholders of one sandbox.
    pub(super) fn with(values: &Values, more: &[(&str, &str)]) -> Values {
        let mut values = values.clone();
        for (name, value) in more {
            values.0.insert((*name).to_owned(), (*value).to_owned());
        }
        values
    }
}

/// Writes the script and what follows it. Never returns while standard input has to stay open.
async fn write(stdin: Option<ChildStdin>, script: &str, input: Input, beginning: oneshot::Receiver<()>) {
    let Some(mut stdin) = stdin else {
        return std::future::pending().await;
    };
    // Whoever does not read has ended or is about to, which is noticed where its output is read.
    let _ = stdin.write_all(script.as_bytes()).await;
    let _ = stdin.flush().await;
    match input {
        Input::Open => {}
        Input::Stream(mut stream) => {
            // A shell may read ahead of the command that it runs, but not beyond what was sent.
            if beginning.await.is_ok() {
                let _ = tokio::io::copy(&mut stream, &mut stdin).await;
                drop(stdin);
                return std::future::pending().await;
            }
        }
    }
    std::future::pending::<()>().await;
    drop(stdin);
}

/// Passes data on until the script's last line, or until there is no more output.
async fn listen(
    process: &mut Process,
    marks: &mut Marks,
    begun: oneshot::Sender<()>,
    sink: &mut Sink<'_>,
) -> Result<(), SandboxError> {
    let mut begun = Some(begun);
    while !marks.ended()
        && let Some(chunk) = process.chunk().await
    {
        let data = marks.push(&chunk);
        if marks.begun().is_some()
            && let Some(begun) = begun.take()
        {
            // Nobody waits for it where nothing follows.
            let _ = begun.send(());
        }
        pass(data, sink).await?;
    }
    if marks.begun().is_some() && !marks.ended() {
        pass(marks.rest(), sink).await?;
    }
    Ok(())
}

async fn pass(data: Vec<u8>, sink: &mut Sink<'_>) -> Result<(), SandboxError> {
    if data.is_empty() {
        return Ok(());
    }
    match sink {
        Sink::Output(output) => {
            // Without a receiver the output goes nowhere; the command must not notice.
            let _ = output.send(data).await;
        }
        Sink::Writer(into) => into
            .write_all(&data)
            .await
            .map_err(|error| SandboxError::io("cannot store what came out of the sandbox", error))?,
        Sink::Memory(into) => {
            if into.len() + data.len() > MOST_MEMORY {
                return Err(SandboxError::new(
                    "the sandbox holds too many files to look through",
                ));
            }
            into.extend_from_slice(&data);
        }
    }
    Ok(())
}

/// A word that nothing else prints.
pub(super) fn mark() -> String {
    let random = || {
        // The standard library seeds its hash maps from the system's randomness.
        std::hash::RandomState::new().build_hasher().finish()
    };
    format!("evalwave-{:016x}{:016x}", random(), random())
}
