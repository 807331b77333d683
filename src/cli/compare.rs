//! `evalwave compare`.

use anyhow::{Context as _, anyhow};

use super::arguments::{CompareArguments, ComparisonFormat};
use super::context::{self, Context};
use super::sources::read_results;
use super::{Failure, conclude, json, print, tell};
use crate::aggregate::{self, Facts};
use crate::compare::gates::GateFacts;
use crate::compare::{self, Criteria};
use crate::config::settings::{self, Given};
use crate::config::{self, ComparisonConfig};
use crate::model::summary::GateResult;
use crate::model::{Comparison, ExitCode, ResultSet};
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
    let (baseline, current) = (read(&arguments.baseline)?, read(&arguments.current)?);
    let compared = between(&baseline, &current, &config, context)?;
    let comparison = &compared.comparison;
    print(&match arguments.format {
        ComparisonFormat::Text => context.spelled(&report::comparison_text(comparison)),
        ComparisonFormat::Markdown => report::comparison_markdown(comparison, usize::MAX),
        ComparisonFormat::Json => json(comparison)?,
    })?;
    for gate in compared.gates.iter().filter(|gate| gate.failed) {
        tell(&format!("gate `{}` failed: {}", gate.gate, gate.why));
    }
    Ok(compared.exit)
}

/// What comes of comparing two sets of results.
pub(super) struct Compared {
    pub(super) comparison: Comparison,
    pub(super) gates: Vec<GateResult>,
    pub(super) exit: ExitCode,
}

/// Compares two sides.
pub(super) fn between(
    baseline: &ResultSet,
    current: &ResultSet,
    config: &ComparisonConfig,
    context: &Context,
) -> Result<Compared, Failure> {
    let now = context::now();
    let criteria = Criteria {
        options: conclude::options(&config.compare, &config.report, now),
        known: conclude::known(&config.history, &config.flaky, config.policy, now, context)?,
        fail_on: config.fail_on.clone(),
        gates: config.gates.clone(),
    };
    let found = compare::assess(Some(baseline), current, &criteria);
    let facts = GateFacts::of_results(current);
    let (_, exit) = aggregate::conclude(Facts {
        measured: facts.pass_rate().is_some(),
        complete: facts.without_verdict.is_empty(),
        cancelled: false,
        skipped: false,
        gates: &found.gates,
    });
    Ok(Compared {
        // Two sides give a comparison, whatever is in them.
        comparison: found.comparison.context("cannot compare the two")?,
        gates: found.gates,
        exit,
    })
}
