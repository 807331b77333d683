//! A fingerprint of what decides the results, so that two runs can tell whether they measured the same thing.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::template::CommandTemplate;
use super::{Config, Format, Grade};
use crate::model::{OnTimeout, Produces};

/// Which keys and which spelling of them are hashed. Another number makes every hash another one.
const FORM: u32 = 1;

pub(super) fn hash(config: &Config) -> String {
    let attempt = &config.attempt;
    let form = json!({
        "form": FORM,
        "command": command(&attempt.command),
        "setup": attempt.setup.as_ref().map(command),
        "boot": attempt.boot.as_ref().map(command),
        "env": attempt.env.iter().map(|(name, value)| json!([name, value.source()])).collect::<Value>(),
        "env_from": attempt.env_from,
        "secrets": attempt.secrets.iter().map(|secret| secret.name.as_str()).collect::<Value>(),
        "produces": match attempt.produces {
            Produces::Attempt => "attempt",
            Produces::Pair => "pair",
        },
        "format": format(&attempt.format),
        "result": attempt.result.as_ref().map(|result| result.source()),
        "exit": [&attempt.exit.pass, &attempt.exit.fail],
        "infra": [
            json!(attempt.infra.exit),
            attempt.infra.error.iter().map(regex::Regex::as_str).collect::<Value>(),
        ],
        "runs": config.runs,
        "policy": config.policy.to_string(),
        "on_timeout": match config.on_timeout {
            OnTimeout::Fail => "fail",
            OnTimeout::Error => "error",
        },
        "timeout_ms": attempt.timeout.as_millis().to_string(),
    });
    let digest = Sha256::digest(form.to_string());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn format(format: &Format) -> Value {
    let grade = |name: &str, grade: &Grade| json!([name, grade.passed, grade.score, grade.threshold]);
    match format {
        Format::Auto => json!("auto"),
        Format::Evals => json!("evals"),
        Format::ExitCode => json!("exit-code"),
        Format::Junit => json!("junit"),
        Format::AgentEval => json!("agent-eval"),
        Format::Inspect => json!("inspect"),
        Format::Harbor => json!("harbor"),
        Format::Promptfoo => json!("promptfoo"),
        Format::Jsonl(at) => grade("jsonl", at),
        Format::Json(at) => grade("json", at),
    }
}

fn command(command: &CommandTemplate) -> Value {
    match command {
        CommandTemplate::Shell(template) => json!(template.source()),
        CommandTemplate::Argv(templates) => templates.iter().map(|template| template.source()).collect(),
    }
}
