//! The variables of an attempt's commands: what the configuration gives, and who the attempt is.

use super::Job;
use crate::config::template::{UnknownPlaceholder, Values};
use crate::model::AttemptId;

/// The values of placeholders for one attempt.
pub(super) fn values(job: &Job, pair: usize, id: &AttemptId) -> Values {
    Values::of_attempt(&job.plan.pairs[pair], id, job.plan.runs, job.attempt.timeout)
}

/// The variables of an attempt, with or without its secrets; a later one of the same name wins.
///
/// # Errors
/// A placeholder of `attempt.env` without a value.
pub(super) fn variables(
    job: &Job,
    values: &Values,
    try_number: u32,
    secrets: bool,
) -> Result<Vec<(String, String)>, UnknownPlaceholder> {
    let mut variables = job.env.clone();
    for (name, template) in &job.attempt.env {
        variables.push((name.clone(), template.render(values)?));
    }
    if secrets {
        variables.extend(job.secrets.iter().cloned());
    }
    variables.extend(
        values
            .0
            .iter()
            .map(|(name, value)| (variable_name(name), value.clone())),
    );
    variables.push(("EVALWAVE_TRY".to_owned(), try_number.to_string()));
    Ok(variables)
}

/// `provider` is `EVALWAVE_PROVIDER`.
fn variable_name(placeholder: &str) -> String {
    let name = placeholder.chars().map(|char| {
        if char.is_ascii_alphanumeric() {
            char.to_ascii_uppercase()
        } else {
            '_'
        }
    });
    format!("EVALWAVE_{}", name.collect::<String>())
}
