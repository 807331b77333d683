//! A fingerprint of what decides an attempt's result, so that results of two configurations are not taken for the same.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::config::template::{CommandTemplate, Template};
use crate::config::{Config, Format};
use crate::model::{OnTimeout, Produces};

/// SHA-256, hexadecimal, of command, set-up, formats, environment, time limits, runs and policy.
pub(super) fn config_hash(config: &Config) -> String {
    let attempt = &config.attempt;
    let env: BTreeMap<&str, &str> = attempt
        .env
        .iter()
        .map(|(name, value)| (name.as_str(), value.source()))
        .collect();
    let infra: Vec<&str> = attempt.infra.error.iter().map(regex::Regex::as_str).collect();
    let facts = json!({
        "setup": attempt.setup.as_ref().map(command),
        "boot": attempt.boot.as_ref().map(command),
        "command": command(&attempt.command),
        "produces": match attempt.produces {
            Produces::Attempt => "attempt",
            Produces::Pair => "pair",
        },
        "result": attempt.result.as_ref().map(Template::source),
        "format": match attempt.format {
            Format::Auto => "auto",
            Format::Evals => "evals",
            Format::ExitCode => "exit-code",
        },
        "exit": [&attempt.exit.pass, &attempt.exit.fail],
        "infra": [json!(attempt.infra.exit), json!(infra)],
        "timeout": attempt.timeout.as_millis().to_string(),
        "grace": attempt.grace.as_millis().to_string(),
        "env": env,
        "env-from": attempt.env_from,
        "runs": config.runs,
        "policy": config.policy.to_string(),
        "on-timeout": match config.on_timeout {
            OnTimeout::Fail => "fail",
            OnTimeout::Error => "error",
        },
    });
    let digest = Sha256::digest(facts.to_string());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn command(command: &CommandTemplate) -> Value {
    match command {
        CommandTemplate::Shell(template) => json!(template.source()),
        CommandTemplate::Argv(templates) => json!(templates.iter().map(Template::source).collect::<Vec<_>>()),
    }
}
