//! What tests of engines share: what to start, a ledger, and commands run to their end.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use evalwave::config::CommandLine;
use evalwave::sandbox::{Backend, Command, Exit, Ledger, Sandbox, SandboxError, SandboxSpec};
use tokio::sync::mpsc;

/// Long enough for anything that ends at all, on any machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A sandbox of the run `r1`.
pub(crate) fn spec(name: &str) -> SandboxSpec {
    SandboxSpec {
        name: name.to_owned(),
        run_id: "r1".to_owned(),
        labels: vec![
            ("experiment", "an experiment".to_owned()),
            ("eval", "é/val".to_owned()),
            ("attempt", "1.1".to_owned()),
            ("expires", "2030-01-01T00:00:00Z".to_owned()),
        ],
        limit: Duration::from_secs(600),
    }
}

/// Remembers what engines say of their sandboxes.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    /// Names with the engine's own ids.
    pub(crate) created: Mutex<Vec<(String, String)>>,
    pub(crate) named: Mutex<Vec<String>>,
    pub(crate) gone: Mutex<Vec<String>>,
}

#[async_trait]
impl Ledger for Remembered {
    async fn named(&self, name: &str) -> Result<(), SandboxError> {
        self.named.lock().unwrap().push(name.to_owned());
        Ok(())
    }

    async fn created(&self, name: &str, id: &str) -> Result<(), SandboxError> {
        self.created
            .lock()
            .unwrap()
            .push((name.to_owned(), id.to_owned()));
        Ok(())
    }

    async fn gone(&self, name: &str) -> Result<(), SandboxError> {
        self.gone.lock().unwrap().push(name.to_owned());
        Ok(())
    }
}

pub(crate) async fn start(backend: &dyn Backend, name: &str) -> Box<dyn Sandbox> {
    backend.start(&spec(name), &Remembered::default()).await.unwrap()
}

pub(crate) fn shell(text: &str) -> Command {
    Command {
        line: CommandLine::Shell(text.to_owned()),
        env: Vec::new(),
        keeps_daemons: false,
    }
}

pub(crate) fn argv(words: &[&str]) -> Command {
    Command {
        line: CommandLine::Argv(words.iter().map(|word| (*word).to_owned()).collect()),
        ..shell("")
    }
}

/// Runs a command to its end, with its output.
pub(crate) async fn run(
    sandbox: &mut dyn Sandbox,
    command: &Command,
) -> (Result<Exit, SandboxError>, String) {
    let (sender, mut receiver) = mpsc::channel(4);
    let collect = tokio::spawn(async move {
        let mut bytes = Vec::new();
        while let Some(chunk) = receiver.recv().await {
            bytes.extend(chunk);
        }
        String::from_utf8(bytes).unwrap()
    });
    let exit = tokio::time::timeout(PATIENCE, sandbox.exec(command, &sender))
        .await
        .unwrap();
    drop(sender);
    (exit, collect.await.unwrap())
}

/// Runs a shell command that has to succeed. Returns its output.
pub(crate) async fn sh(sandbox: &mut dyn Sandbox, text: &str) -> String {
    let (exit, output) = run(sandbox, &shell(text)).await;
    assert_eq!(exit.unwrap(), Exit::Code(0), "{output}");
    output
}
