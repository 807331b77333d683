//! Runs the command that prints the suite's pairs.

use std::io::Read;
use std::process::{Command, Stdio};

use camino::Utf8Path;

use super::{CatalogError, Leash, MOST_BYTES};
use crate::config::CommandLine;

/// How much of a failed command's standard error is shown.
const SHOWN_BYTES: usize = 4096;

/// What the command prints on standard output.
///
/// # Errors
/// It cannot be started, prints more than 64 MiB, or ends with anything but 0.
pub(super) fn output(line: &CommandLine, root: &Utf8Path, leash: &Leash) -> Result<Vec<u8>, CatalogError> {
    let shown = shown(line);
    let failed = |source| CatalogError::Start {
        command: shown.clone(),
        source,
    };
    let mut command = command(line);
    command
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = leash.hold(|| command.spawn()).map_err(failed)?;

    // Both streams are read at once, or a command that fills the one would wait for ever.
    let stderr = child.stderr.take();
    let stderr = std::thread::spawn(move || stderr.map(last_bytes).unwrap_or_default());
    let mut output = Vec::new();
    let read = match child.stdout.take() {
        Some(stdout) => stdout.take(MOST_BYTES + 1).read_to_end(&mut output),
        None => Ok(0),
    };
    if output.len() as u64 > MOST_BYTES {
        // It may have ended by itself in the meantime, which is as good.
        let _ = child.kill();
        leash.release();
        let _ = child.wait();
        return Err(CatalogError::TooLarge(format!("the output of `{shown}`")));
    }
    let status = child.wait();
    leash.release();
    read.map_err(CatalogError::Read)?;
    let status = status.map_err(CatalogError::Read)?;
    if status.success() {
        return Ok(output);
    }
    let stderr = stderr.join().unwrap_or_default();
    Err(CatalogError::Command {
        command: shown,
        status: match status.code() {
            Some(code) => format!("exit code {code}"),
            None => status.to_string(),
        },
        stderr: printable(&stderr),
    })
}

/// The command as a reader knows it.
pub(super) fn shown(line: &CommandLine) -> String {
    match line {
        CommandLine::Shell(text) => text.trim().to_owned(),
        CommandLine::Argv(words) => words.join(" "),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the suite's own command is where its pairs come from"
)]
fn command(line: &CommandLine) -> Command {
    let mut command = match line {
        CommandLine::Shell(text) => {
            let mut command = Command::new("sh");
            command.args(["-c", text]);
            command
        }
        CommandLine::Argv(words) => {
            let mut words = words.iter();
            let mut command = Command::new(words.next().map_or("", String::as_str));
            command.args(words);
            command
        }
    };
    // It is ended by its leash, with all that it has started.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
}

/// The stream's last bytes, so that one who writes for ever takes no memory.
fn last_bytes(mut from: impl Read) -> Vec<u8> {
    let mut last = Vec::new();
    let mut chunk = [0; SHOWN_BYTES];
    while let Ok(read @ 1..) = from.read(&mut chunk) {
        last.extend_from_slice(&chunk[..read]);
        last.drain(..last.len().saturating_sub(SHOWN_BYTES));
    }
    last
}

/// Text on lines of its own, without what would steer a terminal.
pub(super) fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.trim().lines();
    lines
        .map(|line| format!("\n{}", line.replace(char::is_control, " ")))
        .collect()
}
