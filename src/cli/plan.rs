//! `evalwave plan`.

use super::arguments::{PlanArguments, TextOrJson};
use super::context::Context;
use super::sources::Suite;
use super::{Failure, engine, json, print};
use crate::model::ExitCode;
use crate::{plan as planning, report};

pub(super) fn plan(arguments: &PlanArguments, context: &Context) -> Result<ExitCode, Failure> {
    let suite = Suite::read(&arguments.selection, &[], context)?;
    engine::check(&suite.config.sandbox, context)?;
    let plan = suite.plan(&arguments.selection)?;
    let document = planning::document(&plan, &suite.config);
    print(&match arguments.format {
        TextOrJson::Text => report::plan::text(&document),
        TextOrJson::Json => json(&document)?,
    })?;
    Ok(
        if plan.pairs.is_empty() && !arguments.selection.is_skipped(&plan) {
            ExitCode::NothingMeasured
        } else {
            ExitCode::Success
        },
    )
}
