//! `evalwave compare`.

use anyhow::Context as _;

use super::arguments::{CompareArguments, ComparisonFormat};
use super::context::{self, Context};
use super::{Failure, print, tell};
use crate::compare::{self, GateFacts, Options, gates};
use crate::config::{CompareConfig, parse_gates};
use crate::model::{ExitCode, Policy, ResultSet};
use crate::report;
use crate::results::{self, Place};

pub(super) fn compare(arguments: &CompareArguments, context: &Context) -> Result<ExitCode, Failure> {
    let policy: Policy = match &arguments.policy {
        Some(policy) => policy.parse().context("cannot use --policy")?,
        None => Policy::default(),
    };
    let fail_on = parse_gates(arguments.fail_on.as_deref()).context("cannot use --fail-on")?;
    let baseline = read(&arguments.baseline, policy, context)?;
    let current = read(&arguments.current, policy, context)?;
    let CompareConfig { alpha, margin } = CompareConfig::default();
    let options = Options { alpha, margin, group_by: arguments.group_by.clone(), now: Some(context::now()) };
    let comparison = compare::compare(&baseline, &current, &options);
    let found = gates::evaluate(&fail_on, &GateFacts::of_results(&current), Some(&comparison));
    print(&match arguments.format {
        ComparisonFormat::Text => report::comparison_text(&comparison, context.color),
        ComparisonFormat::Markdown => report::comparison_markdown(&comparison, report::FILE_LIMIT),
        ComparisonFormat::Json => report::json(&comparison),
    })?;
    for gate in found.iter().filter(|gate| gate.failed) {
        tell(&format!("gate `{}` failed: {}", gate.gate, gate.why));
    }
    Ok(gates::exit_code(&found, &GateFacts::of_results(&current)))
}

fn read(sources: &[String], policy: Policy, context: &Context) -> Result<ResultSet, Failure> {
    let place = Place { directory: context.current_dir.clone(), policy };
    let sets: Result<Vec<ResultSet>, _> =
        sources.iter().map(|source| results::read(source, &place, &mut std::io::stdin())).collect();
    Ok(compare::merge(sets?)?)
}
