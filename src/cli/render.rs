//! `evalwave report`.

use super::arguments::{ComparisonFormat, ReportArguments};
use super::context::Context;
use super::{Failure, json, print, tell};
use crate::aggregate;
use crate::model::{ExitCode, Summary};
use crate::report;
use crate::store::{self, Replayed, Stored};

/// Said of a run that has no summary.
const DIED: &str = "this run has not ended, or died before its end: this is what its journal holds";

pub(super) fn report(arguments: &ReportArguments, context: &Context) -> Result<ExitCode, Failure> {
    let summary = read(&arguments.directory, context)?;
    print(&match arguments.format {
        ComparisonFormat::Text => report::text(&summary, context.color),
        ComparisonFormat::Markdown => report::markdown(&summary, usize::MAX),
        ComparisonFormat::Json => json(&summary)?,
    })?;
    Ok(ExitCode::Success)
}

/// What a reader should know of a run that its journal alone tells of.
pub(super) fn unfinished(replayed: &Replayed) -> Vec<String> {
    let mut notices = Vec::new();
    if replayed.run.findings.is_none() {
        notices.push(DIED.to_owned());
    }
    if let Some(first) = replayed.broken.first() {
        let lines = match replayed.broken.len() {
            1 => "1 line".to_owned(),
            many => format!("{many} lines"),
        };
        notices.push(format!(
            "{lines} of its journal cannot be read, the first is line {first}: what was told there is missing"
        ));
    }
    notices
}

fn read(directory: &camino::Utf8Path, context: &Context) -> Result<Summary, Failure> {
    Ok(match store::load(&context.absolute(directory))? {
        Stored::Summary(summary) => *summary,
        Stored::Journal(replayed) => {
            for notice in unfinished(&replayed) {
                tell(&format!("notice: {notice}"));
            }
            aggregate::summarize(&replayed.run)
        }
    })
}
