//! `evalwave compare`.

use super::arguments::{CompareArguments, ComparisonFormat};
use super::context::{self, Context};
use super::sources::read_results;
use super::{Failure, json, print, tell};
use crate::aggregate::{self, Facts};
use crate::compare::gates::{self, GateFacts};
use crate::compare::{self, Options};
use crate::config;
use crate::config::settings::{self, Given};
use crate::model::ExitCode;
use crate::report;

pub(super) fn compare(arguments: &CompareArguments, context: &Context) -> Result<ExitCode, Failure> {
    let flags = [
        (settings::POLICY, arguments.policy.as_ref()),
        (settings::GROUP_BY, arguments.group_by.as_ref()),
        (settings::FAIL_ON, arguments.fail_on.as_ref()),
    ];
    let flags = flags
        .into_iter()
        .filter_map(|(setting, value)| Some((setting.flag?.to_owned(), value?.clone())));
    let config = config::load_comparison(None, &Given::new(flags, [], []))?;
    let read = |sources: &[String]| read_results(sources, &context.current_dir, config.policy);
    let baseline = read(&arguments.baseline)?;
    let current = read(&arguments.current)?;
    let options = Options {
        alpha: config.compare.alpha,
        margin: config.compare.margin,
        group_by: config.report.group_by,
        now: Some(context::now()),
    };
    let comparison = compare::compare(&baseline, &current, &options);
    print(&match arguments.format {
        ComparisonFormat::Text => report::comparison_text(&comparison),
        ComparisonFormat::Markdown => report::comparison_markdown(&comparison, usize::MAX),
        ComparisonFormat::Json => json(&comparison)?,
    })?;
    let facts = GateFacts::of_results(&current);
    let found = gates::evaluate(&config.fail_on, &facts, Some(&comparison));
    for gate in found.iter().filter(|gate| gate.failed) {
        tell(&format!("gate `{}` failed: {}", gate.gate, gate.why));
    }
    let (_, exit) = aggregate::conclude(Facts {
        measured: facts.pass_rate().is_some(),
        complete: facts.without_verdict.is_empty(),
        cancelled: false,
        skipped: false,
        gates: &found,
    });
    Ok(exit)
}
