//! From a plan to what the runner needs: the secrets, the environment, the files of the workspace.

use anyhow::anyhow;
use jiff::Timestamp;

use super::context::Context;
use super::output::Output;
use super::sources::Suite;
use super::{Failure, tell};
use crate::catalog;
use crate::config::{Config, SecretConfig};
use crate::model::RunPlan;
use crate::redact::{MIN_SECRET, Redactor};
use crate::runner::{self, Job};
use crate::sandbox::Workspace;

/// Gathers it all; a missing secret is said before anything is spent.
pub(super) fn job(
    suite: &Suite,
    plan: RunPlan,
    started_at: Timestamp,
    output: &Output,
    context: &Context,
) -> Result<Job, Failure> {
    let config = &suite.config;
    let secrets = secrets(config, context)?;
    let env = config.attempt.env_from.iter();
    let env = env.filter_map(|name| Some((name.clone(), context.environment.get(name)?.clone())));
    let files = catalog::workspace_files(&suite.root, &config.attempt.upload, &output.roots())?;
    Ok(Job {
        run_id: output.run_id.clone(),
        started_at,
        commit: catalog::commit(&suite.root),
        redactor: Redactor::new(secrets.iter().map(|(_, value)| value.as_str())),
        env: env.collect(),
        secrets,
        rules: runner::rules(config),
        price: config.price.clone(),
        retry: config.retry,
        workspace: Workspace {
            root: suite.root.clone(),
            files,
        },
        attempt: config.attempt.clone(),
        plan,
    })
}

fn secrets(config: &Config, context: &Context) -> Result<Vec<(String, String)>, Failure> {
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for SecretConfig { name, optional } in &config.attempt.secrets {
        match context.variable(name) {
            Some(value) => {
                if value.len() < MIN_SECRET {
                    tell(&format!(
                        "warning: the secret `{name}` is shorter than {MIN_SECRET} characters: it cannot be taken out of logs"
                    ));
                }
                found.push((name.clone(), value.to_owned()));
            }
            None if *optional => {}
            None => missing.push(format!("`{name}`")),
        }
    }
    if missing.is_empty() {
        return Ok(found);
    }
    let missing = missing.join(", ");
    Err(anyhow!(
        "missing in the environment: {missing} (`attempt.secrets`)\nset it, or mark it `optional: true`"
    )
    .into())
}
