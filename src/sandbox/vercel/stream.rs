//! Documents that come line by line while a command runs. Knows lines, not what they mean to a run.

use std::time::Duration;

use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::Value;

use super::api::Command;
use super::client::{Ask, unreachable};
use super::error::{Problem, VercelError};

/// After so much silence the command may be over, or the stream lost.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);

/// A longer line is no line of the API.
const MAX_LINE: usize = 16 << 20;

/// A line.
#[derive(Clone, Debug)]
pub(super) enum Line {
    /// Output: which stream it is of, and what it says.
    Output { is_stdout: bool, data: String },
    /// The command as it is now: at the beginning, and when it has ended.
    Command(Command),
    /// The stream has failed, and why.
    Broken(String),
}

/// The lines of an answer.
pub(super) struct Lines<'a> {
    ask: &'a Ask<'a>,
    response: Response,
    buffer: Vec<u8>,
    /// Where the next line begins in it.
    start: usize,
}

/// What came next.
pub(super) enum Next {
    Line(Line),
    /// The answer has ended.
    End,
    /// Nothing for so long.
    Silence,
}

impl<'a> Lines<'a> {
    /// Reads what `ask` is answered with.
    ///
    /// # Errors
    /// An answer that is no stream of lines.
    pub(super) fn of(ask: &'a Ask<'a>, mut response: Response) -> Result<Self, VercelError> {
        let kind = response.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or("nothing");
        if !kind.starts_with("application/x-ndjson") {
            let kind: String = kind.chars().take(60).collect();
            return Err(ask.failed(Problem::Unexpected(format!(
                "the answer is {kind}, not lines of JSON"
            ))));
        }
        // They would hold the buffer that they were read into as long as the output lasts.
        response.headers_mut().clear();
        Ok(Self {
            ask,
            response,
            buffer: Vec::new(),
            start: 0,
        })
    }

    /// The next line, waited for as long as `patience`. Nothing is lost where this is dropped.
    pub(super) async fn next(&mut self, patience: Duration) -> Result<Next, VercelError> {
        loop {
            if let Some(line) = self.line()? {
                return Ok(Next::Line(line));
            }
            let Ok(chunk) = tokio::time::timeout(patience, self.response.chunk()).await else {
                return Ok(Next::Silence);
            };
            match chunk.map_err(|error| unreachable(self.ask, error))? {
                Some(chunk) if self.buffer.len() + chunk.len() <= MAX_LINE => {
                    self.buffer.extend_from_slice(&chunk)
                }
                Some(_) => return Err(self.ask.failed(Problem::TooLarge(MAX_LINE >> 20))),
                // What is no whole line was cut off.
                None => return Ok(Next::End),
            }
        }
    }

    fn line(&mut self) -> Result<Option<Line>, VercelError> {
        loop {
            let rest = &self.buffer[self.start..];
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                self.buffer.drain(..self.start);
                self.start = 0;
                return Ok(None);
            };
            let line = read(&rest[..end]);
            self.start += end + 1;
            match line {
                Ok(Some(line)) => return Ok(Some(line)),
                Ok(None) => {}
                Err(error) => return Err(self.ask.failed(Problem::Shape(error))),
            }
        }
    }
}

/// Reads a line; `None` is one that says nothing to us.
fn read(line: &[u8]) -> Result<Option<Line>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Written {
        stream: Option<String>,
        data: Option<Value>,
        command: Option<Command>,
    }
    if line.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let Written {
        stream,
        data,
        command,
    } = serde_json::from_slice(line)?;
    Ok(match (stream.as_deref(), data, command) {
        (_, _, Some(command)) => Some(Line::Command(command)),
        (Some("error"), data, _) => Some(Line::Broken(broken(data.as_ref()))),
        (Some(stream), Some(Value::String(data)), _) => Some(Line::Output {
            is_stdout: stream == "stdout",
            data,
        }),
        _ => None,
    })
}

/// The code and the message of a failure, no longer than a line.
fn broken(data: Option<&Value>) -> String {
    let field = |name| data.and_then(|data| data.get(name)?.as_str());
    let text = match (field("code"), field("message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(text), None) | (None, Some(text)) => text.to_owned(),
        (None, None) => "without a reason".to_owned(),
    };
    text.lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(300)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Line, read};

    #[test]
    fn every_line_of_the_api_is_understood_and_others_are_passed_over() {
        let line = |text: &str| read(text.as_bytes()).unwrap();
        assert!(
            matches!(line(r#"{"stream":"stderr","data":"a\n"}"#), Some(Line::Output { is_stdout: false, data }) if data == "a\n")
        );
        let command = r#"{"command":{"id":"c","name":"sh","args":["-c"],"exitCode":3}}"#;
        assert!(matches!(line(command), Some(Line::Command(command)) if command.exit_code == Some(3)));
        let took = |told: &str| {
            let told = format!(r#"{{"command":{{"id":"c","exitCode":0,"durationMs":{told}}}}}"#);
            match line(&told) {
                Some(Line::Command(command)) => command.took(),
                _ => None,
            }
        };
        assert_eq!(took("1500"), Some(Duration::from_millis(1500)));
        for nothing in ["0", "-1", "null", "\"12\"", "{}"] {
            assert_eq!(took(nothing), None, "{nothing}");
        }
        let broken = r#"{"stream":"error","data":{"code":"sandbox_stopped","message":"gone"}}"#;
        assert!(matches!(line(broken), Some(Line::Broken(why)) if why == "sandbox_stopped: gone"));
        assert!(line(r#"{"heartbeat":1}"#).is_none());
        assert!(line("  \r").is_none());
        assert!(read(b"<html>").is_err());
    }
}
