//! `evalwave plan`.

use super::arguments::{PlanArguments, TextOrJson, given};
use super::arms::Driver;
use super::baseline::Baseline;
use super::context::{self, Context};
use super::past::Past;
use super::sources::Suite;
use super::{Failure, conclude, engine, json, print};
use crate::config::settings;
use crate::model::ExitCode;
use crate::{plan as planning, report};

pub(super) fn plan(arguments: &PlanArguments, context: &Context) -> Result<ExitCode, Failure> {
    let mut more = vec![(settings::BASELINE, arguments.baseline.as_deref())];
    let history = arguments.history.iter();
    more.extend(history.map(|source| (settings::HISTORY, Some(source.as_str()))));
    let driver = Driver::new()?;
    let suite = Suite::read(&arguments.selection, &more, &driver, context)?;
    let config = &suite.config;
    engine::check(&config.sandbox, context)?;
    let policy = Some(config.policy);
    let known = conclude::known(&config.history, &config.flaky, policy, context::now(), context)?;
    let named = given(arguments.baseline.as_deref()).is_some();
    let baseline = Baseline::read(&suite, named, context)?;
    let past = Past::of(&suite, named, &baseline, &known, context);
    let plan = suite.plan(&arguments.selection, &past)?;
    let document = planning::document(&plan, config);
    print(&match arguments.format {
        TextOrJson::Text => context.spelled(&report::plan::text(&document)),
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
