//! Sandboxes of any engine that has a command line, by the user's own commands. It knows how they are called and what
//! their exit codes mean, and nothing of the engine behind them.
//!
//! All that an engine has to do is to create a sandbox, run `sh` in it with a script on standard input, and delete it.
//! Files are moved by such scripts too, unless the user has commands for that.

mod engine;
mod files;
mod id;
mod marks;
mod process;
mod quote;
mod reaper;
mod sandbox;
mod script;
mod talk;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use camino::Utf8PathBuf;

use super::local::{RunDirectory, limit_by_files, open_files_before};
use super::under_way::UnderWay;
use super::{Backend, Capacity, Ledger, Reaper, Sandbox, SandboxError, SandboxSpec};
use crate::config::CommandConfig;
use crate::config::template::Values;
use crate::model::file_name;
use engine::Engine;
pub use reaper::CommandReaper;
use sandbox::CommandSandbox;

/// Most sandboxes that are being created at once.
const STARTING: usize = 64;

/// What the engine needs of the process it runs in.
#[derive(Clone, Debug)]
pub struct CommandOptions {
    /// Where the user's commands run: the root of the configuration.
    pub root: Utf8PathBuf,
    /// Their environment: this process's own, without what is the attempts' alone.
    pub environment: Vec<(String, String)>,
    /// Where files are put that are passed to them: the system's directory for temporary files.
    pub temporary: Utf8PathBuf,
}

/// Starts sandboxes by the user's commands.
#[derive(Debug)]
pub struct CommandBackend {
    reaper: CommandReaper,
}

impl CommandBackend {
    /// For one run. Nothing is run yet.
    pub fn new(config: &CommandConfig, options: CommandOptions, run_id: &str) -> Self {
        Self {
            reaper: CommandReaper::new(config, options, run_id),
        }
    }
}

impl CommandReaper {
    /// For one run. Nothing is run yet; this process's limit on open files is raised (the commands get the one that it
    /// had).
    pub fn new(config: &CommandConfig, options: CommandOptions, run_id: &str) -> Self {
        let mut environment = options.environment;
        // By this a sandbox knows an environment that is not its own.
        environment.push((script::HOST_VARIABLE.to_owned(), "1".to_owned()));
        Self {
            engine: Arc::new(Engine {
                config: config.clone(),
                root: options.root,
                environment,
                open_files: open_files_before(),
                // The id may have been read from a file, and becomes a path.
                directory: RunDirectory::new(&options.temporary, &file_name(run_id)),
                live: Mutex::default(),
                creating: UnderWay::default(),
            }),
        }
    }
}

#[async_trait]
impl Backend for CommandBackend {
    fn capacity(&self) -> Capacity {
        capacity()
    }

    async fn start(&self, spec: &SandboxSpec, ledger: &dyn Ledger) -> Result<Box<dyn Sandbox>, SandboxError> {
        let engine = &self.reaper.engine;
        let mut values = Values::from([("name", spec.name.as_str()), ("run_id", spec.run_id.as_str())]);
        let lifetime = spec.limit.as_secs().to_string();
        let mut create = Engine::with(&values, &[("lifetime_sec", &lifetime)]);
        for (label, value) in &spec.labels {
            create.0.insert((*label).to_owned(), value.clone());
        }
        let id = created(engine, spec, create).await?;
        if !engine.live().insert(id.clone()) {
            return Err(SandboxError::new(format!(
                "`sandbox.create` printed `{id}`, which is another attempt's\nsee that it creates a sandbox of its own each time, and prints that one's id"
            )));
        }
        ledger.created(&spec.name, &id).await?;
        values.0.insert("sandbox".to_owned(), id.clone());
        let engine = Arc::clone(engine);
        Ok(Box::new(CommandSandbox::new(engine, spec, id, values)))
    }

    fn reaper(&self) -> &dyn Reaper {
        &self.reaper
    }
}

/// Runs `create`, and gives the id that it prints. Where nobody waits any more, what it makes is deleted.
async fn created(engine: &Arc<Engine>, spec: &SandboxSpec, values: Values) -> Result<String, SandboxError> {
    let (own, run_id, name) = (Arc::clone(engine), spec.run_id.clone(), spec.name.clone());
    let same = Arc::clone(engine);
    let creation = async move {
        let printed = own.call("create", &own.config.create, &values, None).await?;
        id::created(&printed)
            .map_err(|why| SandboxError::new(format!("cannot use what `sandbox.create` printed: {why}")))
    };
    let undo = async move |created: Result<String, SandboxError>| {
        if let Ok(id) = created
            && !same.live().contains(&id)
        {
            let _ = same.delete(&run_id, &name, &id).await;
        }
    };
    let created = engine.creating.carry(creation, undo).await;
    created.map_err(|error| SandboxError::io("cannot run `sandbox.create`", error))?
}

/// What this machine can take at once: each attempt has a process here, and the engine's own limits are not known.
/// Raises this process's limit on open files as far as it goes.
pub fn capacity() -> Capacity {
    Capacity {
        running: limit_by_files(),
        starting: STARTING,
    }
}
