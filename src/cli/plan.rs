//! `evalwave plan`.

use super::arguments::{PlanArguments, TextOrJson};
use super::baseline::Baseline;
use super::context::Context;
use super::sources::Suite;
use super::{Failure, json, print};
use crate::config::settings;
use crate::model::ExitCode;
use crate::{plan as planning, report};

pub(super) fn plan(arguments: &PlanArguments, context: &Context) -> Result<ExitCode, Failure> {
    let more = [(settings::BASELINE, arguments.baseline.as_deref())];
    let suite = Suite::read(&arguments.selection, &more, context)?;
    let baseline = Baseline::read(&suite, arguments.baseline.as_deref(), context)?;
    let plan = suite.plan(&arguments.selection, &baseline)?;
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
