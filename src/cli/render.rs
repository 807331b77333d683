//! `evalwave report`.

use super::arguments::{ReportArguments, ReportFormat};
use super::context::Context;
use super::{Failure, json, print, tell};
use crate::aggregate;
use crate::model::{ExitCode, Summary};
use crate::report;
use crate::store::{self, Stored};

pub(super) fn report(arguments: &ReportArguments, context: &Context) -> Result<ExitCode, Failure> {
    let summary = read(&arguments.directory, context)?;
    print(&match arguments.format {
        ReportFormat::Text => context.spelled(report::text(&summary, context.color)),
        ReportFormat::Markdown => report::markdown(&summary, usize::MAX),
        ReportFormat::Html => report::html(&summary)?,
        ReportFormat::Json => json(&summary)?,
    })?;
    Ok(ExitCode::Success)
}

fn read(directory: &camino::Utf8Path, context: &Context) -> Result<Summary, Failure> {
    Ok(match store::load(&context.absolute(directory))? {
        Stored::Summary(summary) => *summary,
        Stored::Unfinished(run) => {
            tell("notice: this run has not ended, or died: what its journal holds is shown");
            aggregate::summarize(&run)
        }
    })
}
