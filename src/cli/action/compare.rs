//! The action's `command: compare`: two sets of results that exist already, as outputs and a summary.

use anyhow::{Context as _, anyhow};

use super::findings;
use super::inputs::Inputs;
use super::step::Step;
use crate::cli::Failure;
use crate::cli::compare::between;
use crate::cli::context::Context;
use crate::cli::sources::{comparison_config, read_results};
use crate::config::BaselineConfig;
use crate::model::ExitCode;
use crate::report;

/// Compares `output-dir` with `baseline`.
pub(super) fn compare(inputs: &Inputs, step: &Step, context: &Context) -> Result<ExitCode, Failure> {
    let (config, root) = comparison_config(inputs.config.as_deref(), &inputs.given, context)?;
    let (BaselineConfig::Sources(baseline), Some(current)) = (&config.baseline, &inputs.output_dir) else {
        return Err(anyhow!(
            "`command: compare` needs two sets of results\nname them with `baseline` and `output-dir`"
        )
        .into());
    };
    // A path in an input starts where the user is, one in the file where the file is.
    let directory = match inputs.names_baseline {
        true => &context.current_dir,
        false => &root,
    };
    let baseline = read_results(baseline, directory, config.policy).context("cannot read the baseline")?;
    let current = read_results(&[current.to_string()], &context.current_dir, config.policy)?;
    let compared = between(&baseline, &current, &config, context)?;
    let conclusion = match compared.exit {
        ExitCode::Success => "success",
        ExitCode::NothingMeasured => "empty",
        ExitCode::Incomplete => "incomplete",
        _ => "failure",
    };
    let comparison = &compared.comparison;
    let mut outputs = vec![("conclusion", conclusion.to_owned())];
    let rate = comparison.pass_rate.current;
    outputs.push(("pass-rate", rate.map(|rate| rate.to_string()).unwrap_or_default()));
    outputs.extend(findings::comparison_outputs(Some(comparison)));
    step.outputs(&outputs);
    step.summarize(|limit| report::comparison_markdown(comparison, limit));
    step.say(&report::comparison_text(comparison));
    for gate in compared.gates.iter().filter(|gate| gate.failed) {
        step.say(&format!("gate `{}` failed: {}", gate.gate, gate.why));
    }
    Ok(compared.exit)
}
