//! From the command line to a plan: the configuration, its pairs, and what was selected of them.

use anyhow::{Context as _, anyhow};
use camino::{Utf8Path, Utf8PathBuf};

use super::arguments::{SelectionArguments, given};
use super::arms::Driver;
use super::context::Context;
use super::past::Past;
use super::{Failure, engine, tell};
use crate::catalog::{self, Leash};
use crate::compare;
use crate::config::settings::{self, Given, Setting};
use crate::config::{self, ComparisonConfig, Config, Discovery, Source, SuiteConfig, SuiteSource};
use crate::model::{Pair, Policy, ResultSet, RunPlan};
use crate::plan::{self, Experience, Globs, PlanError, Request, Select};
use crate::results;

/// Where a configuration is looked for; a first one is written where it is looked for first.
pub(super) const CONFIG_FILES: [&str; 2] = ["evalwave.yml", ".github/evalwave.yml"];

/// A configuration that leaves everything as by default.
const DEFAULTS: &[u8] = b"version: 1\nattempt: { command: 'true' }\n";

/// A configuration with its root and its pairs.
pub(super) struct Suite {
    pub(super) config: Config,
    /// Where its paths start.
    pub(super) root: Utf8PathBuf,
    pub(super) pairs: Vec<Pair>,
    /// Most sandboxes that the engine can run at once, and why.
    capacity: Option<(usize, String)>,
}

impl Suite {
    /// Reads the configuration and the pairs.
    pub(super) fn read(
        selection: &SelectionArguments,
        more: &[(Setting, Option<&str>)],
        driver: &Driver,
        context: &Context,
    ) -> Result<Self, Failure> {
        let given = settings_given(selection, more, context);
        let found = FoundConfig::read(selection.config.as_deref(), context)?;
        let config = config::load(Some(&found.source()), &given)?;
        let root = found.root;
        let pairs = catalog::pairs(&config.suite, &root, &mut std::io::stdin(), driver.leash())?;
        if pairs.is_empty() {
            tell(&format!(
                "warning: the suite has no pairs: {}",
                where_to_look(&config.suite)
            ));
        }
        let running = engine::capacity(&config.sandbox, context).and_then(|capacity| capacity.running);
        Ok(Self {
            capacity: running.map(|limit| (limit.value, limit.reason)),
            config,
            root,
            pairs,
        })
    }

    /// Reads the configuration alone, for results that are there already. Without one everything is as by default.
    pub(super) fn without_pairs(
        selection: &SelectionArguments,
        more: &[(Setting, Option<&str>)],
        context: &Context,
    ) -> Result<Self, Failure> {
        let given = settings_given(selection, more, context);
        let found = FoundConfig::read_any(selection.config.as_deref(), context)?;
        let defaults = Source {
            name: "the defaults",
            bytes: DEFAULTS,
        };
        let source = found.as_ref().map_or(defaults, FoundConfig::source);
        Ok(Self {
            config: config::load_without_pairs(&source, &given)?,
            root: found.map_or_else(|| context.current_dir.clone(), |found| found.root),
            pairs: Vec::new(),
            // Nothing is going to run.
            capacity: None,
        })
    }

    /// Plans what was selected.
    pub(super) fn plan(&self, selection: &SelectionArguments, past: &Past) -> Result<RunPlan, Failure> {
        let select = self.select(selection)?;
        Ok(plan::build(&self.request(
            &select,
            &past.experience,
            past.is_pinned,
        ))?)
    }

    /// Finds what is wrong with a run before anything is known of earlier ones: its selection, its plan, the files that
    /// its sandboxes receive.
    pub(super) fn check(&self, selection: &SelectionArguments) -> Result<(), Failure> {
        let select = self.select(selection)?;
        match plan::build(&self.request(&select, &Experience::default(), false)) {
            // Earlier runs may tell what it will use.
            Ok(_) | Err(PlanError::UnknownUse { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        catalog::workspace_files(&self.root, &self.config.attempt.upload, &[])?;
        Ok(())
    }

    fn select(&self, selection: &SelectionArguments) -> Result<Select, Failure> {
        let changed = given(selection.changed_since.as_deref())
            .map(|reference| catalog::changed_files(&self.root, reference))
            .transpose()?;
        Ok(Select {
            experiments: globs(&selection.experiment),
            evals: globs(&selection.eval),
            labels: selection
                .label
                .iter()
                .flat_map(|labels| labels.0.clone())
                .collect(),
            changed,
            shard: given(selection.shard.as_deref())
                .map(str::parse)
                .transpose()
                .context("cannot use `--shard`")?,
        })
    }

    fn request<'a>(&'a self, select: &'a Select, experience: &'a Experience, is_pinned: bool) -> Request<'a> {
        Request {
            config: &self.config,
            pairs: &self.pairs,
            select,
            capacity: self.capacity.clone(),
            experience,
            is_pinned,
        }
    }

    /// The pairs of the suite as it stands in another revision; those that are given otherwise are the same there.
    pub(super) fn pairs_of(&self, root: &Utf8Path) -> Result<Vec<Pair>, Failure> {
        let unheld = Leash::default();
        Ok(match &self.config.suite.source {
            SuiteSource::Discover { .. } => {
                catalog::pairs(&self.config.suite, root, &mut std::io::empty(), &unheld).unwrap_or_default()
            }
            SuiteSource::File(path) if path.is_relative() && root.join(path).is_file() => {
                catalog::pairs(&self.config.suite, root, &mut std::io::empty(), &unheld)?
            }
            SuiteSource::File(path) if path.is_relative() => Vec::new(),
            _ => self.pairs.clone(),
        })
    }
}

/// What says which pairs there are.
fn where_to_look(suite: &SuiteConfig) -> String {
    let glob = |key: &str, from: &Discovery| match from {
        Discovery::Glob { glob, .. } => Some(format!("the glob `{glob}` of `{key}`")),
        Discovery::List(_) => None,
    };
    let mut places: Vec<String> = match &suite.source {
        SuiteSource::Discover { evals, experiments } => [
            glob("suite.evals", evals),
            experiments
                .as_ref()
                .and_then(|from| glob("suite.experiments", from)),
        ]
        .into_iter()
        .flatten()
        .collect(),
        _ => vec!["the list of pairs".to_owned()],
    };
    for (key, filters) in [
        ("suite.include", &suite.include),
        ("suite.exclude", &suite.exclude),
    ] {
        if !filters.is_empty() {
            places.push(format!("`{key}`"));
        }
    }
    format!("look at {}", places.join(", "))
}

fn globs(lists: &[Globs]) -> Vec<String> {
    lists.iter().flat_map(|list| list.0.clone()).collect()
}

fn settings_given(
    selection: &SelectionArguments,
    more: &[(Setting, Option<&str>)],
    context: &Context,
) -> Given {
    // A path in a flag starts where the user is, one in the file where the file is.
    let pairs = given(selection.pairs.as_deref()).map(|pairs| match pairs.trim() {
        "-" => pairs.to_owned(),
        path => context.absolute(Utf8Path::new(path)).into_string(),
    });
    let flags = [
        (settings::PAIRS, pairs.as_deref()),
        (settings::PAIRS_JSON, selection.pairs_json.as_deref()),
        (settings::RUNS, selection.runs.as_deref()),
        (settings::STRATEGY, selection.strategy.as_deref()),
        (
            settings::PARALLEL_ATTEMPTS,
            selection.parallel_attempts.as_deref(),
        ),
        (settings::CONCURRENCY, selection.concurrency.as_deref()),
        (settings::TIMEOUT, selection.timeout.as_deref()),
        (settings::SANDBOX, selection.sandbox.as_deref()),
    ];
    let flags = flags.iter().chain(more);
    let flags = flags.filter_map(|(setting, value)| Some((setting.flag?.to_owned(), (*value)?.to_owned())));
    let inputs = context.inputs.iter().map(|(name, value)| {
        let value = match Some(name.as_str()) == settings::PAIRS.input && !value.trim().is_empty() {
            true => context.absolute(Utf8Path::new(value.trim())).into_string(),
            false => value.clone(),
        };
        (name.clone(), value)
    });
    Given::new(flags, inputs, context.environment.clone())
}

/// The configuration that is named, by the action's input or else by itself, with its root and its name.
pub(super) fn configuration(
    named: Option<&Utf8Path>,
    context: &Context,
) -> Result<(Config, Utf8PathBuf, Utf8PathBuf), Failure> {
    let context = context.with_inputs();
    let given = Given::new([], context.inputs.clone(), context.environment.clone());
    let input = given.text(&settings::CONFIG)?.map(Utf8Path::new);
    let found = FoundConfig::read(self::given(named).or(input), &context)?;
    let config = config::load_without_pairs(&found.source(), &given)?;
    Ok((config, found.root, found.name))
}

/// What a comparison of results that exist already needs, with where the paths of the configuration start: of the one
/// that is named, else of the one that is found, else as by default.
pub(super) fn comparison_config(
    named: Option<&Utf8Path>,
    settings: &Given,
    context: &Context,
) -> Result<(ComparisonConfig, Utf8PathBuf), Failure> {
    let found = FoundConfig::read_any(named, context)?;
    let source = found.as_ref().map(FoundConfig::source);
    let config = config::load_comparison(source.as_ref(), settings)?;
    let root = found.map_or_else(|| context.current_dir.clone(), |found| found.root);
    Ok((config, root))
}

/// A configuration's text.
struct FoundConfig {
    /// As the user knows it.
    name: Utf8PathBuf,
    /// Where its paths start.
    root: Utf8PathBuf,
    bytes: Vec<u8>,
}

impl FoundConfig {
    /// The one that is named, else the one that is found.
    fn read(named: Option<&Utf8Path>, context: &Context) -> Result<Self, Failure> {
        Ok(Self::read_any(named, context)?.ok_or_else(|| {
            anyhow!(
                "cannot find a configuration: neither `{}` nor `{}` is in `{}`\nlet `evalwave init` write one, or name it{}",
                CONFIG_FILES[0],
                CONFIG_FILES[1],
                context.current_dir,
                if context.inputs.is_empty() {
                    " with --config"
                } else {
                    " with the input `config`"
                }
            )
        })?)
    }

    /// The same where there need not be one.
    fn read_any(named: Option<&Utf8Path>, context: &Context) -> Result<Option<Self>, Failure> {
        let name = match given(named) {
            Some(named) => {
                let path = context.absolute(named);
                if !path.exists() || path.is_dir() {
                    return Err(anyhow!("cannot find the configuration `{named}`").into());
                }
                named
            }
            None => {
                let mut names = CONFIG_FILES.iter().map(Utf8Path::new);
                match names.find(|name| context.absolute(name).is_file()) {
                    Some(name) => name,
                    None => return Ok(None),
                }
            }
        };
        let path = context.absolute(name);
        let bytes = fs_err::read(&path).context("cannot read the configuration")?;
        Ok(Some(Self {
            name: name.to_owned(),
            // A pipe lies nowhere.
            root: match path.is_file() {
                true => root_of(&path),
                false => context.current_dir.clone(),
            },
            bytes,
        }))
    }

    fn source(&self) -> Source<'_> {
        Source {
            name: self.name.as_str(),
            bytes: &self.bytes,
        }
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

/// Reads several sources as one set; relative paths start at `directory`.
pub(super) fn read_results(
    sources: &[String],
    directory: &Utf8Path,
    policy: Option<Policy>,
) -> anyhow::Result<ResultSet> {
    let sets: Result<Vec<ResultSet>, _> = sources
        .iter()
        .map(|source| results::read(source, directory, policy, &mut std::io::stdin()))
        .collect();
    Ok(compare::merge(sets?)?)
}
