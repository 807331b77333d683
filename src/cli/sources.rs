//! From the command line to a plan: the configuration, its pairs, and what was selected of them.

use anyhow::{Context as _, anyhow};
use camino::{Utf8Path, Utf8PathBuf};

use super::Failure;
use super::arguments::SelectionArguments;
use super::context::Context;
use crate::catalog;
use crate::config::settings::Setting;
use crate::config::{self, Config, Given, SandboxConfig, Source};
use crate::model::{Pair, RunPlan};
use crate::plan::{self, Request, Select, Shard};
use crate::sandbox::local;

/// Where a configuration is looked for.
const CONFIG_FILES: [&str; 2] = ["evalwave.yml", ".github/evalwave.yml"];

/// A configuration with its root and its pairs.
pub(super) struct Suite {
    pub(super) config: Config,
    /// Where its paths start.
    pub(super) root: Utf8PathBuf,
    pub(super) pairs: Vec<Pair>,
}

impl Suite {
    /// Reads the configuration and the pairs.
    pub(super) fn read(
        selection: &SelectionArguments,
        more: &[(Setting, Option<&str>)],
        context: &Context,
    ) -> Result<Self, Failure> {
        let given = given(selection, more, context);
        let file = find_config(selection.config.as_deref(), context)?;
        let source = file
            .as_ref()
            .map(|(path, name)| -> anyhow::Result<Source> {
                let bytes = fs_err::read(path).context("cannot read the configuration")?;
                Ok(Source { name: name.to_string(), bytes })
            })
            .transpose()?;
        let config = config::load(source.as_ref(), &given)?;
        let root = match &file {
            Some((path, _)) => root_of(path),
            None => context.current_dir.clone(),
        };
        let pairs = catalog::pairs(&config.suite, &root, &mut std::io::stdin())?;
        Ok(Self { config, root, pairs })
    }

    /// Plans what was selected.
    pub(super) fn plan(&self, selection: &SelectionArguments) -> Result<RunPlan, Failure> {
        let changed = selection
            .changed_since
            .as_deref()
            .map(|reference| catalog::changed_files(&self.root, reference))
            .transpose()?;
        let select = Select {
            experiments: selection.experiment.clone(),
            evals: selection.eval.clone(),
            labels: selection.label.iter().map(|label| label.parse()).collect::<Result<_, _>>()?,
            changed,
            shard: selection.shard.as_deref().map(str::parse::<Shard>).transpose()?,
        };
        let SandboxConfig::Local(local) = &self.config.sandbox;
        let request = Request {
            config: &self.config,
            pairs: &self.pairs,
            select: &select,
            capacity: local::capacity(local).running.map(|limit| (limit.value, limit.reason)),
        };
        Ok(plan::build(&request)?)
    }
}

fn given(
    selection: &SelectionArguments,
    more: &[(Setting, Option<&str>)],
    context: &Context,
) -> Given {
    let flags = [
        (Setting::Pairs, selection.pairs.as_deref()),
        (Setting::PairsJson, selection.pairs_json.as_deref()),
        (Setting::Runs, selection.runs.as_deref()),
        (Setting::Strategy, selection.strategy.as_deref()),
        (Setting::ParallelAttempts, selection.parallel_attempts.as_deref()),
        (Setting::Concurrency, selection.concurrency.as_deref()),
        (Setting::Timeout, selection.timeout.as_deref()),
        (Setting::Sandbox, selection.sandbox.as_deref()),
    ];
    let flags = flags.iter().chain(more).filter_map(|(setting, value)| Some((*setting, (*value)?.to_owned())));
    Given::new(flags.collect(), &context.environment)
}

/// The configuration's path, and its name as the user knows it.
fn find_config(
    named: Option<&Utf8Path>,
    context: &Context,
) -> Result<Option<(Utf8PathBuf, Utf8PathBuf)>, Failure> {
    if let Some(named) = named {
        let path = context.absolute(named);
        if !path.is_file() {
            return Err(anyhow!("cannot find the configuration `{named}`").into());
        }
        return Ok(Some((path, named.to_owned())));
    }
    let found = CONFIG_FILES.iter().map(Utf8Path::new).find(|name| context.absolute(name).is_file());
    match found {
        Some(name) => Ok(Some((context.absolute(name), name.to_owned()))),
        None => Err(anyhow!(
            "cannot find a configuration: neither `{}` nor `{}` is in `{}`\nwrite one, or name it with --config",
            CONFIG_FILES[0],
            CONFIG_FILES[1],
            context.current_dir
        )
        .into()),
    }
}

/// The file's directory; for `.github/evalwave.yml` the repository's root.
fn root_of(file: &Utf8Path) -> Utf8PathBuf {
    let directory = file.parent().unwrap_or(Utf8Path::new("/"));
    match (directory.file_name(), directory.parent()) {
        (Some(".github"), Some(root)) => root.to_owned(),
        _ => directory.to_owned(),
    }
}
