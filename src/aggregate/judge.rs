//! What became of one try of an attempt: the outcome table as one function. Reads no file and waits for nothing.

use std::borrow::Cow;
use std::time::Duration;

use regex::Regex;

use super::throttling::shows_throttling;
use crate::model::{
    AttemptError, CancelReason, ErrorClass, OnTimeout, Outcome, Phase, Reading, ReadingVerdict,
};

/// Lines of output that follow an error's first line.
const TAIL_LINES: usize = 10;
/// Characters of each of these lines.
const TAIL_WIDTH: usize = 300;

/// Characters of the beginning and of the end that are kept of a result's own error text.
const ERROR_PART: usize = 1000;

/// The course that one try took.
#[derive(Clone, Debug)]
pub enum Course<'a> {
    /// The run was stopped, or a sibling decided the pair, while it was under way.
    Cancelled(CancelReason),
    /// The sandbox, or a phase other than the command, failed it.
    Failed(Failure),
    /// Its command ran, and its result, if there was one, was brought out.
    Ran(Ran<'a>),
}

/// A try whose command ran and whose result, if there was one, was brought out.
#[derive(Clone, Copy, Debug)]
pub struct Ran<'a> {
    /// How the command ended.
    pub end: CommandEnd,
    /// What lay at the result's path. For `format: exit-code` there is no such path: [`Found::Nothing`].
    pub result: Found<'a>,
    /// The sandbox's disk was full when the command had ended, in words.
    pub full_disk: Option<&'a str>,
    /// Where the result was looked for, as the configuration has it after filling in placeholders.
    pub result_path: &'a str,
    /// The last part of the command's output.
    pub output_tail: &'a str,
}

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEnd {
    /// By itself.
    Code(i32),
    /// By a signal that was not ours.
    Signal(i32),
    /// It was killed at timeout + grace.
    KilledAtLimit(Duration),
}

/// What lay at the result's path.
#[derive(Clone, Copy, Debug)]
pub enum Found<'a> {
    /// No file.
    Nothing,
    /// A file that is no valid result, and why.
    Unreadable(&'a str),
    /// A valid result.
    Reading(&'a Reading),
}

/// What failed that is not the command's doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind of failure.
    pub class: ErrorClass,
    /// Where it happened.
    pub phase: Phase,
    /// One or a few lines for a reader.
    pub message: String,
    /// How the command had ended, where it had.
    pub end: Option<CommandEnd>,
}

/// The parts of the configuration that decide what an ending means.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Set for `format: exit-code`: then a command that ends by itself is judged by its exit code.
    pub exit: Option<ExitRules>,
    /// `infra.exit`: exit codes of a broken infrastructure.
    pub infra_exit: Vec<i32>,
    /// `infra.error`: patterns on the result's own error text.
    pub infra_error: Vec<Regex>,
    /// What a command that is killed at its limit counts as.
    pub on_timeout: OnTimeout,
    /// The command holds `{timeout_sec}`: its harness keeps the time, so one that is killed hung.
    pub owns_time: bool,
}

/// `exit`: what exit codes mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitRules {
    /// Codes that pass.
    pub pass: Vec<i32>,
    /// Codes that fail.
    pub fail: Vec<i32>,
}

/// What became of a try.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// How it ended.
    pub outcome: Outcome,
    /// Why it was cancelled, where it was.
    pub reason: Option<CancelReason>,
    /// What went wrong; `Some` exactly where the outcome is errored.
    pub error: Option<AttemptError>,
    /// Whether another try, in a fresh sandbox, may give a result.
    pub retry: bool,
}

impl Judgement {
    /// Whether a provider throttled the try, so that the next one should wait.
    pub fn throttled(&self) -> bool {
        self.error
            .as_ref()
            .is_some_and(|error| error.class == ErrorClass::Throttled)
    }

    /// Whether the pair's next attempt may run in the same sandbox: after passed and failed only.
    pub fn sandbox_is_usable(&self) -> bool {
        matches!(self.outcome, Outcome::Passed | Outcome::Failed)
    }

    fn graded(outcome: Outcome) -> Self {
        Self {
            outcome,
            reason: None,
            error: None,
            retry: false,
        }
    }

    fn errored(error: AttemptError, retry: bool) -> Self {
        Self {
            outcome: Outcome::Errored,
            reason: None,
            error: Some(error),
            retry,
        }
    }
}

/// Says what became of a try. The rules are in order, and the first that fits decides:
///
/// 1. it was cancelled;
/// 2. the sandbox or a phase around the command failed: errored;
/// 3. a valid result says passed, however the command ended: passed; anything else on a full disk: errored;
/// 4. a valid result says that something broke, or says failed and `infra` matches: errored;
/// 5. a valid result says failed: failed;
/// 6. `format: exit-code`, and the command ended by itself or by a foreign signal: by its code;
/// 7. the command was killed at its limit: errored as hung if it keeps the time itself, else timed out;
/// 8. there is no valid result: errored.
///
/// Only errored tries are worth another one, and not where the result says that it would be the same again, nor
/// where a time limit was turned into an error by `on-timeout: error`.
pub fn judge(course: &Course<'_>, rules: &Rules) -> Judgement {
    match course {
        Course::Cancelled(reason) => Judgement {
            reason: Some(*reason),
            ..Judgement::graded(Outcome::Cancelled)
        },
        Course::Failed(failure) => Judgement::errored(failure.error(), failure.class != ErrorClass::Refused),
        Course::Ran(ran) => {
            let judgement = match ran.result {
                Found::Reading(reading) => judge_reading(ran, reading, rules),
                Found::Unreadable(why) => judge_without_result(ran, Some(why), rules),
                Found::Nothing => judge_without_result(ran, None, rules),
            };
            match ran.full_disk {
                // What a command fails at on a full disk is not the agent's.
                Some(full) if judgement.outcome != Outcome::Passed => {
                    Judgement::errored(ran.error(ErrorClass::OutOfDisk, full), true)
                }
                _ => judgement,
            }
        }
    }
}

fn judge_reading(ran: &Ran<'_>, reading: &Reading, rules: &Rules) -> Judgement {
    let infra = infra_match(ran, reading, rules);
    let (why, retry) = match (reading.verdict, infra) {
        (ReadingVerdict::Passed, _) => return Judgement::graded(Outcome::Passed),
        (ReadingVerdict::Failed, None) => return Judgement::graded(Outcome::Failed),
        (ReadingVerdict::Failed | ReadingVerdict::Errored { .. }, Some(why)) => (why, true),
        (ReadingVerdict::Errored { retry }, None) => (
            "the result says that something broke, so there is no grade".to_owned(),
            retry,
        ),
    };
    let text = reading.error.as_deref().unwrap_or_default();
    let class = if reading.throttled || shows_throttling(text) {
        ErrorClass::Throttled
    } else {
        ErrorClass::Infra
    };
    let sentence = if text.trim().is_empty() {
        why
    } else {
        format!("{why}: {}", shortened(text.trim()))
    };
    Judgement::errored(ran.error(class, &sentence), retry)
}

/// Why `infra` says that a result which is no pass is the infrastructure's doing.
fn infra_match(ran: &Ran<'_>, reading: &Reading, rules: &Rules) -> Option<String> {
    if let CommandEnd::Code(code) = ran.end
        && rules.infra_exit.contains(&code)
    {
        return Some(format!("exit {code} is in `infra.exit`"));
    }
    let text = reading.error.as_deref()?;
    let pattern = rules.infra_error.iter().find(|pattern| pattern.is_match(text))?;
    Some(format!("the result's error matches `{pattern}` of `infra.error`"))
}

fn judge_without_result(ran: &Ran<'_>, unreadable: Option<&str>, rules: &Rules) -> Judgement {
    match (ran.end, &rules.exit) {
        (CommandEnd::KilledAtLimit(limit), _) => judge_killed(ran, limit, rules),
        (CommandEnd::Code(code), Some(exit)) => judge_exit_code(ran, code, exit, rules),
        (CommandEnd::Signal(signal), Some(_)) => {
            let sentence =
                format!("signal {signal} ended the command, which is neither a pass nor a failure");
            Judgement::errored(ran.error_by_output(ErrorClass::ExitCode, &sentence), true)
        }
        (end @ (CommandEnd::Code(_) | CommandEnd::Signal(_)), None) => {
            let path = ran.result_path;
            let (class, sentence) = match unreadable {
                Some(why) => (
                    ErrorClass::InvalidResult,
                    format!("{end}, cannot read the result at `{path}`: {why}"),
                ),
                None => (ErrorClass::NoResult, format!("{end}, no result at `{path}`")),
            };
            Judgement::errored(ran.error_by_output(class, &sentence), true)
        }
    }
}

fn judge_killed(ran: &Ran<'_>, limit: Duration, rules: &Rules) -> Judgement {
    let limit = limit.as_secs_f64();
    if rules.owns_time {
        let sentence = format!(
            "killed after {limit} s (timeout + grace): the harness was given `{{timeout_sec}}` and did not keep it"
        );
        return Judgement::errored(ran.error(ErrorClass::Hung, &sentence), true);
    }
    match rules.on_timeout {
        OnTimeout::Fail => Judgement::graded(Outcome::TimedOut),
        OnTimeout::Error => {
            let sentence = format!("killed after {limit} s (timeout + grace) without a result");
            Judgement::errored(ran.error(ErrorClass::TimedOut, &sentence), false)
        }
    }
}

fn judge_exit_code(ran: &Ran<'_>, code: i32, exit: &ExitRules, rules: &Rules) -> Judgement {
    if exit.pass.contains(&code) {
        Judgement::graded(Outcome::Passed)
    } else if rules.infra_exit.contains(&code) {
        let sentence = format!("exit {code} is in `infra.exit`");
        Judgement::errored(ran.error_by_output(ErrorClass::Infra, &sentence), true)
    } else if exit.fail.contains(&code) {
        Judgement::graded(Outcome::Failed)
    } else {
        let sentence = format!("exit {code} is neither in `exit.pass` nor in `exit.fail`");
        Judgement::errored(ran.error_by_output(ErrorClass::ExitCode, &sentence), true)
    }
}

impl Failure {
    fn error(&self) -> AttemptError {
        AttemptError {
            class: self.class,
            phase: self.phase,
            message: self.message.clone(),
            exit_code: self.end.and_then(CommandEnd::code),
            signal: self.end.and_then(CommandEnd::signal),
        }
    }
}

impl Ran<'_> {
    /// The error of a command that left nothing to read: a known sign of throttling in its output gives the class.
    fn error_by_output(&self, class: ErrorClass, sentence: &str) -> AttemptError {
        if shows_throttling(self.output_tail) {
            let sentence = format!("{sentence}; its output shows that a provider throttled it");
            self.error(ErrorClass::Throttled, &sentence)
        } else {
            self.error(class, sentence)
        }
    }

    fn error(&self, class: ErrorClass, sentence: &str) -> AttemptError {
        AttemptError {
            class,
            phase: Phase::Command,
            message: with_last_lines(sentence, self.output_tail),
            exit_code: self.end.code(),
            signal: self.end.signal(),
        }
    }
}

impl CommandEnd {
    fn code(self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(code),
            Self::Signal(_) | Self::KilledAtLimit(_) => None,
        }
    }

    fn signal(self) -> Option<i32> {
        match self {
            Self::Signal(signal) => Some(signal),
            Self::Code(_) | Self::KilledAtLimit(_) => None,
        }
    }
}

impl std::fmt::Display for CommandEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::KilledAtLimit(limit) => write!(f, "killed after {} s", limit.as_secs_f64()),
        }
    }
}

/// A text of bounded length: where it is long, its beginning and its end, which mostly says why.
fn shortened(text: &str) -> Cow<'_, str> {
    let head = text.char_indices().nth(ERROR_PART).map(|(at, _)| at);
    let tail = text.char_indices().nth_back(ERROR_PART - 1).map(|(at, _)| at);
    match (head, tail) {
        (Some(head), Some(tail)) if head < tail => {
            Cow::Owned(format!("{}\n…\n{}", &text[..head], &text[tail..]))
        }
        _ => Cow::Borrowed(text),
    }
}

/// A sentence, and below it the last lines of output that show something.
pub fn with_last_lines(sentence: &str, output: &str) -> String {
    let mut lines = last_lines(output, TAIL_LINES);
    lines.insert(0, sentence.to_owned());
    lines.join("\n")
}

/// The last lines of an output that say something, at most `most` of them, each of a bounded length.
pub fn last_lines(output: &str, most: usize) -> Vec<String> {
    // A progress bar rewrites its line with carriage returns; what stood there last is what a terminal shows.
    let shown = |line: &str| -> String {
        let line = line.trim_end();
        let line = line.rsplit('\r').next().unwrap_or(line);
        line.chars().take(TAIL_WIDTH).collect()
    };
    let mut lines: Vec<String> = output
        .lines()
        .rev()
        .map(shown)
        .filter(|line| !line.trim().is_empty())
        .take(most)
        .collect();
    lines.reverse();
    lines
}

#[cfg(test)]
mod tests;
