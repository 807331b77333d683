//! `evalwave compare`.

use anyhow::anyhow;

use super::arguments::{CompareArguments, ComparisonFormat};
use super::context::{self, Context};
use super::sources::read_results;
use super::{Failure, conclude, json, print, tell};
use crate::aggregate::{self, Facts};
use crate::compare::gates::GateFacts;
use crate::compare::{self, Criteria};
use crate::config;
use crate::config::settings::{self, Given};
use crate::model::ExitCode;
use crate::report;

pub(super) fn compare(arguments: &CompareArguments, context: &Context) -> Result<ExitCode, Failure> {
    let mut flags = vec![
        (settings::POLICY, arguments.policy.as_ref()),
        (settings::GROUP_BY, arguments.group_by.as_ref()),
        (settings::FAIL_ON, arguments.fail_on.as_ref()),
    ];
    let history = arguments.history.iter();
    flags.extend(history.map(|source| (settings::HISTORY, Some(source))));
    let flags = flags
        .into_iter()
        .filter_map(|(setting, value)| Some((setting.flag?.to_owned(), value?.clone())));
    let config = config::load_comparison(None, &Given::new(flags, [], []))?;
    let sources = arguments
        .baseline
        .iter()
        .chain(&arguments.current)
        .chain(&arguments.history);
    if sources.filter(|source| *source == "-").count() > 1 {
        return Err(anyhow!(
            "cannot read standard input twice: `-` is given more than once\nwrite one of them to a file"
        )
        .into());
    }
    let read = |sources: &[String]| read_results(sources, &context.current_dir, config.policy);
    let baseline = read(&arguments.baseline)?;
    let current = read(&arguments.current)?;
    let now = context::now();
    let criteria = Criteria {
        options: conclude::options(&config.compare, &config.report, now),
        known: conclude::known(&config.history, &config.flaky, config.policy, now, context)?,
        fail_on: config.fail_on,
        gates: config.gates,
    };
    let found = compare::assess(Some(&baseline), &current, &criteria);
    if let Some(comparison) = &found.comparison {
        print(&match arguments.format {
            ComparisonFormat::Text => report::comparison_text(comparison),
            ComparisonFormat::Markdown => report::comparison_markdown(comparison, usize::MAX),
            ComparisonFormat::Json => json(comparison)?,
        })?;
    }
    let facts = GateFacts::of_results(&current);
    for gate in found.gates.iter().filter(|gate| gate.failed) {
        tell(&format!("gate `{}` failed: {}", gate.gate, gate.why));
    }
    let (_, exit) = aggregate::conclude(Facts {
        measured: facts.pass_rate().is_some(),
        complete: facts.without_verdict.is_empty(),
        cancelled: false,
        skipped: false,
        gates: &found.gates,
    });
    Ok(exit)
}
