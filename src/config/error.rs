//! A configuration that cannot be used, in one message: where, which key, what was expected, what was found.

use std::fmt;

use super::Source;
use super::problem::{KeyPath, Problem};
use super::settings::Level;
use super::yaml::{self, Position, Unreadable};

/// A configuration that cannot be used: exit code 2, nothing was run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// There is no file, and what it would say has no default.
    #[error(
        "cannot find a configuration: expected `evalwave.yml` or `.github/evalwave.yml`, or a file named by `--config`"
    )]
    NoFile,
    /// Something in it is wrong.
    #[error("{place}: {text}{}", second_line(.help))]
    Wrong {
        /// Where.
        place: Place,
        /// The key, what was expected and what was found.
        text: String,
        /// What to do, where that is known.
        help: Option<String>,
    },
}

/// Where a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file.
    File {
        /// As the user named it.
        name: String,
        /// Where in it, if it is about one place.
        position: Option<Position>,
    },
    /// A flag, an action input or a variable, by name.
    Given {
        /// Which of them.
        level: Level,
        /// `--runs`, `runs` or `EVAL_RUNS`.
        name: &'static str,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, position: None } => f.write_str(name),
            Self::File {
                name,
                position: Some(Position { line, column }),
            } => write!(f, "{name}:{line}:{column}"),
            Self::Given { level, name } => match level {
                Level::Flag | Level::Variable => write!(f, "`{name}`"),
                Level::Input => write!(f, "input `{name}`"),
            },
        }
    }
}

fn second_line(help: &Option<String>) -> String {
    help.as_ref().map_or_else(String::new, |help| format!("\n{help}"))
}

/// A configuration file: its text, and the name that messages call it by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
}

impl<'a> Origin<'a> {
    /// The text of a file.
    pub(super) fn of(source: &Source<'a>) -> Result<Self, ConfigError> {
        let name = source.name;
        match std::str::from_utf8(source.bytes) {
            // Editors on Windows begin a file with a mark that is no part of its text.
            Ok(text) => Ok(Self {
                name,
                text: text.strip_prefix('\u{feff}').unwrap_or(text),
            }),
            Err(error) => {
                let before = &source.bytes[..error.valid_up_to()];
                let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
                let start = before
                    .iter()
                    .rposition(|byte| *byte == b'\n')
                    .map_or(0, |at| at + 1);
                let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
                let found = source.bytes[error.valid_up_to()];
                let problem = Problem::new(
                    KeyPath::default(),
                    format!("expected UTF-8, found the byte 0x{found:02X}"),
                );
                Err(wrong(name, Some(Position { line, column }), &problem))
            }
        }
    }

    /// What is wrong at a key, with its line.
    pub(super) fn error(self, problem: Problem) -> ConfigError {
        let position = yaml::locate(self.text, &problem.path, problem.spot);
        wrong(self.name, position, &problem)
    }

    /// A text that is not a configuration at all.
    pub(super) fn unreadable(self, unreadable: &Unreadable) -> ConfigError {
        wrong(self.name, unreadable.position, &unreadable.problem)
    }
}

fn wrong(name: &str, position: Option<Position>, problem: &Problem) -> ConfigError {
    let name = name.to_owned();
    ConfigError::Wrong {
        place: Place::File { name, position },
        text: problem.to_string(),
        help: problem.help.clone(),
    }
}
