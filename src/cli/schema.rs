//! `evalwave schema`.

use super::arguments::{Document, SchemaArguments};
use super::{Failure, json, print};
use crate::model::{ExitCode, summary};
use crate::config;

pub(super) fn schema(arguments: &SchemaArguments) -> Result<ExitCode, Failure> {
    let schema = match arguments.document {
        Document::Config => config::schema(),
        Document::Summary => summary::schema(),
    };
    print(&json(&schema)?)?;
    Ok(ExitCode::Success)
}
