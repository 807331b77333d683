//! Makes the engine that a configuration names. Each engine is one arm in each function here.

use std::sync::Arc;

use anyhow::anyhow;
use camino::{Utf8Path, Utf8PathBuf};

use super::context::Context;
use super::{Failure, sources, tell, vercel};
use crate::config::{AttemptConfig, SandboxConfig};
use crate::model::Whereabouts;
use crate::runner::Job;
use crate::sandbox::command::{self, CommandBackend, CommandOptions, CommandReaper};
use crate::sandbox::docker::{self, DockerBackend, DockerEngine, DockerReaper};
use crate::sandbox::local::{self, LocalBackend, LocalOptions, LocalReaper};
use crate::sandbox::{self, Backend, Capacity, Reaper};

/// What the engine can take at once, as far as that is known before it is spoken to.
pub(super) fn capacity(config: &SandboxConfig, context: &Context) -> Option<Capacity> {
    match config {
        SandboxConfig::Local(local) => Some(local::capacity_here(local)),
        SandboxConfig::Vercel(config) => Some(sandbox::vercel::capacity(config)),
        SandboxConfig::Docker(config) => Some(docker::capacity(config, &docker_engine(context))),
        SandboxConfig::Command(_) => Some(command::capacity()),
    }
}

/// The variables that the engine needs of this process's environment and that are not there.
pub(super) fn missing(config: &SandboxConfig, context: &Context) -> Vec<String> {
    match config {
        SandboxConfig::Vercel(config) => vercel::missing(config, context),
        SandboxConfig::Local(_) | SandboxConfig::Docker(_) | SandboxConfig::Command(_) => Vec::new(),
    }
}

/// Says which are not there, and what else keeps the engine from being spoken to, before anything is planned.
pub(super) fn check(config: &SandboxConfig, context: &Context) -> Result<(), Failure> {
    let missing = missing(config, context);
    if missing.is_empty() {
        return match config {
            SandboxConfig::Vercel(config) => vercel::check(config, context),
            SandboxConfig::Local(_) | SandboxConfig::Docker(_) | SandboxConfig::Command(_) => Ok(()),
        };
    }
    let missing: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
    Err(anyhow!(
        "missing in the environment: {} (`sandbox.kind: {}`)\nset it; nothing is planned without it",
        missing.join(", "),
        config.kind()
    )
    .into())
}

/// What the engine uses that must not be seen in anything that is kept.
pub(super) fn hidden(config: &SandboxConfig, context: &Context) -> Vec<String> {
    match config {
        SandboxConfig::Vercel(config) => vercel::hidden(config, context),
        SandboxConfig::Local(_) | SandboxConfig::Docker(_) | SandboxConfig::Command(_) => Vec::new(),
    }
}

/// The revision that sandboxes fetch themselves, where it is another than what is checked out.
pub(super) fn revision(config: &SandboxConfig) -> Option<&str> {
    match config {
        SandboxConfig::Vercel(config) => config.revision.as_deref(),
        SandboxConfig::Local(_) | SandboxConfig::Docker(_) | SandboxConfig::Command(_) => None,
    }
}

/// The engine for a run; `root` is the configuration's.
pub(super) fn backend(
    config: &SandboxConfig,
    job: &Job,
    root: &Utf8Path,
    context: &Context,
) -> Result<Arc<dyn Backend>, Failure> {
    match config {
        SandboxConfig::Local(local) => {
            for link in &local.link {
                if !job.workspace.root.join(link).exists() {
                    tell(&format!(
                        "warning: `sandbox.link` names `{link}`, which is not there: attempts have none"
                    ));
                }
            }
            let options = LocalOptions {
                run_id: job.run_id.clone(),
                temporary: context.temp_dir.clone(),
                program: context.program.clone(),
                path: context.environment.get("PATH").cloned(),
                home: context.environment.get("HOME").map(Utf8PathBuf::from),
                lang: context.environment.get("LANG").cloned(),
                system: context.system_variables(),
            };
            Ok(Arc::new(LocalBackend::new(local, options, &job.workspace.root)?))
        }
        SandboxConfig::Docker(config) => {
            let engine = docker_engine(context);
            Ok(Arc::new(DockerBackend::new(config, engine, &job.workspace.root)?))
        }
        SandboxConfig::Command(command) => {
            let options = command_options(&job.attempt, root, context);
            Ok(Arc::new(CommandBackend::new(command, options, &job.run_id)))
        }
        SandboxConfig::Vercel(config) => Ok(Arc::new(vercel::backend(config, job, root, context)?)),
    }
}

/// What deletes the sandboxes of the run `run_id`, which is over. Commands are those of the configuration, which is read
/// again: what a run has written down is no reason to run any.
pub(super) fn reaper(
    whereabouts: &Whereabouts,
    run_id: &str,
    config: Option<&Utf8Path>,
    context: &Context,
) -> Result<Box<dyn Reaper>, Failure> {
    match whereabouts {
        Whereabouts::Local { temporary } => Ok(Box::new(LocalReaper::new(temporary))),
        Whereabouts::Docker { host } => Ok(Box::new(DockerReaper::new(DockerEngine {
            host: Some(host.clone()),
            ..docker_engine(context)
        }))),
        Whereabouts::Vercel { .. } => Ok(Box::new(vercel::reaper(whereabouts, context)?)),
        Whereabouts::Command => {
            let (config, root, name) = sources::configuration(config, context)?;
            let SandboxConfig::Command(command) = &config.sandbox else {
                let kind = config.sandbox.kind();
                return Err(anyhow!(
                    "its sandboxes were made by the commands of a configuration, but `{name}` has `sandbox.kind: {kind}`\nname the run's own configuration with --config"
                )
                .into());
            };
            let options = command_options(&config.attempt, &root, context);
            Ok(Box::new(CommandReaper::new(command, options, run_id)))
        }
    }
}

/// The user's commands have this process's environment, but nothing that is an attempt's alone.
fn command_options(attempt: &AttemptConfig, root: &Utf8Path, context: &Context) -> CommandOptions {
    let is_secret = |name: &str| attempt.secrets.iter().any(|secret| secret.name == name);
    let environment = context.environment.iter().filter(|(name, _)| !is_secret(name));
    CommandOptions {
        root: root.to_owned(),
        environment: environment
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        temporary: context.temp_dir.clone(),
    }
}

/// The engine that docker's own variables name.
fn docker_engine(context: &Context) -> DockerEngine {
    let path = |name: &str| {
        context
            .variable(name)
            .map(|path| context.absolute(Utf8Path::new(path)))
    };
    let home = path(if cfg!(windows) { "USERPROFILE" } else { "HOME" });
    let configuration = path("DOCKER_CONFIG").or_else(|| Some(home?.join(".docker")));
    DockerEngine {
        host: context.variable("DOCKER_HOST").map(str::to_owned),
        tls: context.variable("DOCKER_TLS_VERIFY").is_some(),
        certificates: path("DOCKER_CERT_PATH").or_else(|| configuration.clone()),
        configuration,
        path: context.environment.get("PATH").cloned(),
    }
}
