//! The commands: the only module that reads the environment, wires the others together, and prints.

mod action;
mod arguments;
mod arms;
mod baseline;
mod calibrate;
mod cleanup;
mod compare;
mod conclude;
mod confirm;
mod context;
mod engine;
mod execution;
mod init;
mod job;
mod manual;
mod measure;
mod merge;
mod output;
mod past;
mod plan;
mod progress;
mod recorder;
mod render;
mod run;
mod schema;
mod screen;
mod signals;
mod snapshot;
mod sources;
mod vercel;

use std::io::Write as _;

use clap::Parser as _;

use crate::github::log;
use crate::model::layout::SUMMARY_FILE;
use crate::model::{ExitCode, Summary, with_causes};
use crate::report;
use crate::store::{RunDir, StoreError};
use arguments::{Arguments, Subcommand};
use context::Context;

/// The report beside the summary.
const REPORT_FILE: &str = "report.md";
/// The page beside it.
const PAGE_FILE: &str = "report.html";
/// The same for what reads test reports.
const JUNIT_FILE: &str = "junit.xml";
const CTRF_FILE: &str = "ctrf.json";

/// A command that could not be done.
#[derive(Debug)]
struct Failure {
    exit: ExitCode,
    error: anyhow::Error,
}

/// Whatever is wrong before anything has run is the user's to mend.
impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self {
            exit: ExitCode::Usage,
            error: error.into(),
        }
    }
}

/// Reads the arguments, does what they say, and tells how it ended.
pub fn run() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Nobody is left to tell where the terminal itself is gone.
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::Usage
            } else {
                ExitCode::Success
            };
        }
    };
    let done = Context::of_process().map_err(Failure::from).and_then(|context| {
        if context.stderr_in_ascii() {
            screen::spell_in_ascii();
        }
        dispatch(arguments, &context)
    });
    match done {
        Ok(exit) => exit,
        Err(failure) => {
            tell(&format!("error: {}", with_causes(failure.error.as_ref())));
            failure.exit
        }
    }
}

fn dispatch(arguments: Arguments, context: &Context) -> Result<ExitCode, Failure> {
    match arguments.command {
        Subcommand::Plan(arguments) => plan::plan(&arguments, context),
        Subcommand::Run(arguments) => run::run(&arguments, context),
        Subcommand::Compare(arguments) => compare::compare(&arguments, context),
        Subcommand::Calibrate(arguments) => calibrate::calibrate(&arguments, context),
        Subcommand::Report(arguments) => render::report(&arguments, context),
        Subcommand::Merge(arguments) => merge::merge(&arguments, context),
        Subcommand::Action => Ok(action::action(context)),
        Subcommand::Comment(arguments) => action::comment(&arguments.directory, context),
        Subcommand::Cleanup(arguments) => cleanup::cleanup(
            arguments.directory.as_deref(),
            arguments.config.as_deref(),
            context,
        ),
        Subcommand::Snapshot(arguments) => snapshot::snapshot(&arguments, context),
        Subcommand::Init(arguments) => init::init(&arguments, context),
        Subcommand::Schema(arguments) => schema::schema(&arguments),
        Subcommand::Completions(arguments) => manual::completions(&arguments),
        Subcommand::Man(arguments) => manual::man(&arguments),
    }
}

/// A document as JSON text.
fn json(document: &impl serde::Serialize) -> Result<String, Failure> {
    Ok(report::json(document)?)
}

/// Prints a result.
fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        // A reader that has seen enough, like `head`, is no failure.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(anyhow::Error::new(error)
            .context("cannot write to standard output")
            .into()),
        _ => Ok(()),
    }
}

/// Writes the documents of a whole run; what cannot be written is said. Gives whether all were.
fn keep(directory: &RunDir, summary: &Summary) -> Result<bool, Failure> {
    let mut all = true;
    let mut note = |written: Result<(), StoreError>| {
        if let Err(error) = written {
            tell(&format!("warning: {}", with_causes(&error)));
            all = false;
        }
    };
    note(directory.conclude(summary.findings()));
    // One at a time: those of a large run are large.
    note(directory.write(SUMMARY_FILE, &json(summary)?));
    note(directory.write(REPORT_FILE, &report::markdown(summary, usize::MAX)));
    note(directory.write(PAGE_FILE, &report::html(summary)?));
    note(directory.write(JUNIT_FILE, &report::junit(summary)));
    note(directory.write(CTRF_FILE, &report::ctrf(summary)?));
    Ok(all)
}

/// Tells something besides the result. Nothing in it commands a terminal or the runner of a workflow.
fn tell(text: &str) {
    let lines = text.lines().map(|line| log::line(&report::plain(line)) + "\n");
    screen::write(&lines.collect::<String>());
}
