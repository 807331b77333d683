//! What a script of ours prints, and how it ends.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::client::{Ask, Client};
use super::error::{Problem, VercelError};
use super::stream::{Line, Lines, Next, PATIENCE};

/// Most bytes that a script of ours prints. Its tools are the sandbox's, and what ran there before may have replaced them.
pub(super) const MAX_PRINTED: usize = 64 << 20;

/// What a script has printed, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Printed {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) code: i32,
}

impl Printed {
    /// Runs a script once, to its end.
    pub(super) async fn of(client: &Client, ask: &Ask<'_>) -> Result<Self, VercelError> {
        let response = client.open(ask).await?;
        let mut lines = Lines::of(ask, response)?;
        let mut printed = Self::default();
        loop {
            match lines.next(PATIENCE).await? {
                Next::Line(Line::Output { is_stdout, data }) => {
                    if printed.stdout.len() + printed.stderr.len() + data.len() > MAX_PRINTED {
                        return Err(ask.failed(Problem::TooLarge(MAX_PRINTED >> 20)));
                    }
                    match is_stdout {
                        true => printed.stdout += &data,
                        false => printed.stderr += &data,
                    }
                }
                Next::Line(Line::Command(command)) => {
                    if let Some(code) = command.exit_code {
                        printed.code = code;
                        return Ok(printed);
                    }
                }
                Next::Line(Line::Broken(why)) => return Err(ask.failed(Problem::BrokeOff(why))),
                Next::End => return Err(ask.failed(Problem::BrokeOff("it ended early".to_owned()))),
                Next::Silence => return Err(ask.failed(Problem::Late(PATIENCE))),
            }
        }
    }

    /// The bytes that were printed coded, from this line on.
    pub(super) fn decoded(&self, from_line: usize) -> Result<Vec<u8>, base64::DecodeError> {
        let coded: String = self.stdout.lines().skip(from_line).map(str::trim).collect();
        STANDARD.decode(coded)
    }

    /// The end of what it has to say of a failure.
    pub(super) fn why(&self) -> String {
        let said = self.stderr.trim().lines().next_back().unwrap_or_default();
        match said.chars().take(300).collect::<String>() {
            said if said.is_empty() => format!("exit code {}", self.code),
            said => format!("exit code {}: {said}", self.code),
        }
    }
}
