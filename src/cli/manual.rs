//! `evalwave completions` and `evalwave man`: the command line as shells and manuals want it told.

use anyhow::Context as _;
use clap::CommandFactory as _;

use super::arguments::{Arguments, CompletionsArguments, ManArguments, given};
use super::{Failure, print};
use crate::model::ExitCode;

/// The program's name on the command line.
const NAME: &str = "evalwave";

/// `evalwave completions`.
pub(super) fn completions(arguments: &CompletionsArguments) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), NAME, &mut script);
    print(&String::from_utf8(script).context("cannot print the completions")?)?;
    Ok(ExitCode::Success)
}

/// `evalwave man`.
pub(super) fn man(arguments: &ManArguments) -> Result<ExitCode, Failure> {
    let mut program = Arguments::command();
    program.build();
    let page = match given(arguments.command.as_deref()) {
        None => program,
        Some(name) => {
            let command = program.find_subcommand(name).cloned();
            command.with_context(|| {
                let known: Vec<String> = program
                    .get_subcommands()
                    .map(|command| format!("`{}`", command.get_name()))
                    .collect();
                format!("there is no command `{name}`\nthere are {}", known.join(", "))
            })?
        }
    };
    let mut text = Vec::new();
    let page = clap_mangen::Man::new(page)
        .source(concat!("evalwave ", env!("CARGO_PKG_VERSION")))
        .manual("evalwave")
        .date("");
    let rendered = page.render(&mut text);
    rendered.context("cannot print the manual page")?;
    print(&String::from_utf8(text).context("cannot print the manual page")?)?;
    Ok(ExitCode::Success)
}
