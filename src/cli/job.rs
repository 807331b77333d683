//! From a plan to what the runner needs: the secrets, the environment, the files of the workspace.

use anyhow::anyhow;
use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;

use super::context::{self, Context};
use super::{Failure, engine, tell};
use crate::catalog;
use crate::config::{Config, SecretConfig};
use crate::model::RunPlan;
use crate::redact::{MIN_SECRET, Redactor};
use crate::runner::{self, Job};
use crate::sandbox::Workspace;

/// What attempts are given from this process's environment.
pub(super) struct Means {
    env: Vec<(String, String)>,
    /// By name.
    pub(super) secrets: Vec<(String, String)>,
    redactor: Redactor,
}

impl Means {
    /// What `attempt.setup` is given: no secrets.
    pub(super) fn without_secrets(config: &Config, context: &Context) -> Self {
        let hidden = engine::hidden(&config.sandbox, context);
        Self {
            env: env(config, context),
            secrets: Vec::new(),
            redactor: Redactor::new(hidden.iter().map(String::as_str)),
        }
    }

    /// Gathers it; a missing secret is said before anything is spent. `hidden` is taken out of whatever is kept, besides
    /// the secrets.
    pub(super) fn gather(config: &Config, hidden: &[&str], context: &Context) -> Result<Self, Failure> {
        let secrets = secrets(config, context)?;
        Ok(Self {
            env: env(config, context),
            redactor: Redactor::new(
                secrets
                    .iter()
                    .map(|(_, value)| value.as_str())
                    .chain(
                        engine::hidden(&config.sandbox, context)
                            .iter()
                            .map(String::as_str),
                    )
                    .chain(hidden.iter().copied()),
            ),
            secrets,
        })
    }
}

/// The variables that are taken as they are.
fn env(config: &Config, context: &Context) -> Vec<(String, String)> {
    let names = config.attempt.env_from.iter();
    names
        .filter_map(|name| Some((name.clone(), context.environment.get(name)?.clone())))
        .collect()
}

/// What every sandbox of a revision receives.
pub(super) fn workspace(
    config: &Config,
    root: &Utf8Path,
    leave_out: &[Utf8PathBuf],
) -> Result<Workspace, Failure> {
    Ok(Workspace {
        root: root.to_owned(),
        files: catalog::workspace_files(root, &config.attempt.upload, leave_out)?.into(),
    })
}

/// Everything that the runner needs of one plan.
pub(super) fn job(
    config: &Config,
    means: &Means,
    workspace: Workspace,
    plan: RunPlan,
    run_id: String,
    started_at: Timestamp,
) -> Result<Job, Failure> {
    Ok(Job {
        run_id,
        started_at,
        now: context::now,
        earlier: None,
        commit: catalog::commit(&workspace.root),
        redactor: means.redactor.clone(),
        env: means.env.clone(),
        secrets: means.secrets.clone(),
        rules: runner::rules(config),
        price: config.price.clone(),
        retry: config.retry,
        workspace,
        attempt: config.attempt.clone(),
        plan,
    })
}

/// The secrets that a suite needs and that are not there.
pub(super) fn missing_secrets(config: &Config, context: &Context) -> Vec<String> {
    let secrets = config.attempt.secrets.iter();
    let missing = secrets.filter(|secret| !secret.optional && context.variable(&secret.name).is_none());
    missing.map(|secret| format!("`{}`", secret.name)).collect()
}

fn secrets(config: &Config, context: &Context) -> Result<Vec<(String, String)>, Failure> {
    let mut found = Vec::new();
    for SecretConfig { name, .. } in &config.attempt.secrets {
        let Some(value) = context.variable(name) else {
            continue;
        };
        if value.len() < MIN_SECRET {
            tell(&format!(
                "warning: the secret `{name}` is shorter than {MIN_SECRET} characters: it cannot be taken out of logs"
            ));
        }
        found.push((name.clone(), value.to_owned()));
    }
    let missing = missing_secrets(config, context);
    if missing.is_empty() {
        return Ok(found);
    }
    let missing = missing.join(", ");
    Err(anyhow!(
        "missing in the environment: {missing} (`attempt.secrets`)\nset it, or mark it `optional: true`"
    )
    .into())
}
