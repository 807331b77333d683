//! `evalwave report`.

use std::collections::HashSet;
use std::io::Read as _;

use anyhow::Context as _;
use camino::Utf8Path;

use super::arguments::{ReportArguments, ReportFormat, given};
use super::context::Context;
use super::{Failure, json, print, tell};
use crate::aggregate::{self, Published};
use crate::model::layout::{ATTEMPTS_DIR, RAW_RESULTS};
use crate::model::{ExitCode, PairId, PairSummary, Summary, Verdict};
use crate::report;
use crate::store::{self, Replayed, Stored};

/// Said of a run that has no summary.
const DIED: &str = "this run has not ended, or died before its end: this is what its journal holds";

pub(super) fn report(arguments: &ReportArguments, context: &Context) -> Result<ExitCode, Failure> {
    let merge = given(arguments.merge.as_deref());
    if merge.is_some() && arguments.format != ReportFormat::Results {
        return Err(anyhow::anyhow!(
            "`--merge` is for `--format results`\nleave it out, or name that format"
        )
        .into());
    }
    let summary = read(&arguments.directory, context)?;
    print(&match arguments.format {
        ReportFormat::Text => context.spelled(&report::text(&summary, context.color)),
        ReportFormat::Markdown => report::markdown(&summary, usize::MAX),
        ReportFormat::Html => report::html(&summary)?,
        ReportFormat::Junit => report::junit(&summary),
        ReportFormat::Ctrf => report::ctrf(&summary)?,
        ReportFormat::Json => json(&summary)?,
        ReportFormat::Results => results(arguments, &summary, merge, context)?,
        ReportFormat::Jsonl => report::jsonl(&summary)?,
    })?;
    Ok(ExitCode::Success)
}

/// What a reader should know of a run that its journal alone tells of.
pub(super) fn unfinished(replayed: &Replayed) -> Vec<String> {
    let mut notices = Vec::new();
    if replayed.run.findings.is_none() {
        notices.push(DIED.to_owned());
    }
    notices.extend(replayed.unreadable());
    notices
}

fn results(
    arguments: &ReportArguments,
    summary: &Summary,
    merge: Option<&str>,
    context: &Context,
) -> Result<String, Failure> {
    let published = store::published(&context.absolute(&arguments.directory), summary)?;
    if let Some(notice) = without_document(summary, &published, &arguments.directory) {
        tell(&format!("notice: {notice}"));
    }
    let existing = match merge {
        Some("-") => {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.context("cannot read the rows to merge into from standard input")?;
            Some(text)
        }
        Some(file) => Some(fs_err::read_to_string(context.absolute(file.into()))?),
        None => None,
    };
    let rendered = report::results::render(summary, &published, existing.as_deref());
    Ok(rendered.with_context(|| format!("cannot merge into `{}`", merge.unwrap_or_default()))?)
}

/// What a reader should know of rows that lack what only a result's document says.
fn without_document(summary: &Summary, published: &[Published], directory: &Utf8Path) -> Option<String> {
    let found: HashSet<&PairId> = published.iter().map(|document| &document.pair).collect();
    let decided = summary
        .pairs
        .iter()
        .filter(|pair| matches!(pair.verdict, Verdict::Pass | Verdict::Fail))
        .map(PairSummary::id);
    let without: Vec<PairId> = decided.filter(|pair| !found.contains(pair)).collect();
    let first = without.first()?;
    let others = match without.len() - 1 {
        0 => String::new(),
        1 => " and of 1 other pair".to_owned(),
        many => format!(" and of {many} other pairs"),
    };
    Some(format!(
        "there is no result document of `{first}`{others} in `{directory}`: a row of theirs has only what the summary knows\n\
         bring the run's `{RAW_RESULTS}…` and `{ATTEMPTS_DIR}` there to have their checks, usage and the like"
    ))
}

fn read(directory: &Utf8Path, context: &Context) -> Result<Summary, Failure> {
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
