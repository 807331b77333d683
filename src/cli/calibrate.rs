//! `evalwave calibrate`.

use super::arguments::{CalibrateArguments, TextOrJson, given};
use super::context::{self, Context};
use super::sources::read_results;
use super::{Failure, conclude, json, print};
use crate::compare::calibrate as comparing;
use crate::config;
use crate::config::settings::{self, Given};
use crate::model::{ExitCode, Gate, ResultSet};
use crate::report;

/// Gates that are tried where none are named.
const TRIED: [Gate; 5] = [
    Gate::Regression,
    Gate::Significant,
    Gate::Inconclusive,
    Gate::Drop(0.05),
    Gate::NotProven(0.05),
];

pub(super) fn calibrate(arguments: &CalibrateArguments, context: &Context) -> Result<ExitCode, Failure> {
    let flags = [
        (settings::POLICY, arguments.policy.as_ref()),
        (settings::GROUP_BY, arguments.group_by.as_ref()),
        (settings::FAIL_ON, arguments.fail_on.as_ref()),
    ];
    let flags = flags
        .into_iter()
        .filter_map(|(setting, value)| Some((setting.flag?.to_owned(), value?.clone())));
    let config = config::load_comparison(None, &Given::new(flags, [], []))?;
    let read =
        |source: &String| read_results(std::slice::from_ref(source), &context.current_dir, config.policy);
    let runs: Vec<ResultSet> = arguments.runs.iter().map(read).collect::<anyhow::Result<_>>()?;
    let gates = match given(arguments.fail_on.as_deref()) {
        Some(_) => config.fail_on,
        None => TRIED.to_vec(),
    };
    let options = conclude::options(&config.compare, &config.report, context::now());
    let calibration = comparing::calibrate(&runs, &gates, &options);
    print(&match arguments.format {
        TextOrJson::Text => context.spelled(&report::calibration_text(&calibration)),
        TextOrJson::Json => json(&calibration)?,
    })?;
    Ok(if calibration.flips.compared == 0 {
        ExitCode::NothingMeasured
    } else {
        ExitCode::Success
    })
}
