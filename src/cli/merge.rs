//! `evalwave merge`, and what the action's `command: merge` shares with it: parts of one plan as the run that they are.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};

use super::arguments::{MergeArguments, SelectionArguments, TextOrJson, given};
use super::arms::Driver;
use super::baseline::Baseline;
use super::conclude::{self, Judging};
use super::context::{self, Context};
use super::execution::{Done, LOST};
use super::sources::Suite;
use super::{Failure, json, keep, measure, print, tell};
use crate::aggregate::{self, Joined, Part};
use crate::compare::Known;
use crate::config::{Config, settings};
use crate::model::summary::Conclusion;
use crate::model::{ExitCode, Gate, PairId};
use crate::report;
use crate::store::{self, PartDir, Stored};

pub(super) fn merge(arguments: &MergeArguments, context: &Context) -> Result<ExitCode, Failure> {
    let mut more = vec![
        (settings::BASELINE, arguments.baseline.as_deref()),
        (settings::FAIL_ON, arguments.fail_on.as_deref()),
    ];
    let history = arguments.history.iter();
    more.extend(history.map(|source| (settings::HISTORY, Some(source.as_str()))));
    let selection = SelectionArguments {
        config: arguments.config.clone(),
        ..SelectionArguments::default()
    };
    let suite = Suite::without_pairs(&selection, &more, context)?;
    let config = &suite.config;
    let known = conclude::known(
        &config.history,
        &config.flaky,
        Some(config.policy),
        context::now(),
        context,
    )?;
    let named = given(arguments.baseline.as_deref()).is_some();
    let baseline = Baseline::read(&suite, named, context)?;
    let merging = Merging {
        config,
        baseline,
        known,
        directory: context.absolute(&arguments.output_dir),
        url: None,
    };
    let parts = Parts::find(&arguments.directories, context)?;
    let driver = Driver::new()?;
    let done = merging.run(&parts, &driver, Vec::new())?;
    print(&match arguments.format {
        TextOrJson::Text => context.spelled(&report::text(&done.summary, context.color)),
        TextOrJson::Json => json(&done.summary)?,
    })?;
    tell(&format!("results in {}", arguments.output_dir));
    if done.lost {
        tell(&format!("error: {LOST}"));
    }
    Ok(done.exit(false))
}

/// Parts that belong together.
pub(super) struct Parts {
    directories: Vec<PartDir>,
    pub(super) joined: Joined,
}

impl Parts {
    /// Reads the runs that are named, and finds whether they belong together.
    pub(super) fn find(named: &[Utf8PathBuf], context: &Context) -> Result<Self, Failure> {
        let mut directories = Vec::new();
        for shown in named {
            directories.extend(store::find_parts(&context.absolute(shown), shown)?);
        }
        Self::of(directories)
    }

    /// Finds whether runs belong together.
    fn of(directories: Vec<PartDir>) -> Result<Self, Failure> {
        let parts: Vec<Part<'_>> = directories
            .iter()
            .map(|part| Part {
                name: &part.name,
                run: &part.replayed.run,
            })
            .collect();
        let joined = aggregate::join(&parts).map_err(anyhow::Error::from)?;
        let mut joined = anyhow::Context::context(joined, "no run was named")?;
        for part in &directories {
            let unreadable = part.replayed.unreadable();
            joined
                .notices
                .extend(unreadable.map(|why| format!("{}: {why}", part.name)));
        }
        Ok(Self { directories, joined })
    }

    /// The runs of the base revision that were made beside them; `None` where there are none.
    fn bases(&self) -> Result<Option<Self>, Failure> {
        let mut bases = Vec::new();
        for part in &self.directories {
            let path = measure::directory(&part.path);
            if store::has_begun(&path) {
                bases.extend(store::find_parts(
                    &path,
                    &measure::directory(Utf8Path::new(&part.name)),
                )?);
            }
        }
        match bases.is_empty() {
            true => Ok(None),
            false => Self::of(bases).map(Some),
        }
    }

    /// Whose runs they are.
    pub(super) fn suite(&self) -> &str {
        &self.joined.plan.suite
    }
}

/// Everything that decides what the whole comes to.
pub(super) struct Merging<'a> {
    pub(super) config: &'a Config,
    pub(super) baseline: Baseline,
    pub(super) known: Known,
    pub(super) directory: Utf8PathBuf,
    /// The page of the workflow run that it is a part of.
    pub(super) url: Option<String>,
}

impl Merging<'_> {
    /// Writes the whole, compares it and holds it to its gates.
    pub(super) fn run(self, parts: &Parts, driver: &Driver, notices: Vec<String>) -> Result<Done, Failure> {
        let Parts { directories, joined } = parts;
        let run_id = context::new_run_id(context::now());
        let merging = store::merge(
            directories,
            joined,
            &run_id,
            &self.directory,
            &self.config.attempt,
        );
        driver.set_out();
        let (directory, run) = driver.finish(merging)?;
        let mut judging = Judging {
            config: self.config,
            run: &run,
            summary: aggregate::summarize(&run),
            baseline: None,
            is_cut_short: joined.missing.is_some(),
            known: self.known,
        };
        let fresh = confirmed(directories);
        judging.known.confirmed = (self.config.confirm > 0 || !fresh.is_empty()).then_some(fresh);
        judging.summary.run.url = self.url;
        judging.summary.notices.extend(notices);
        let mut base_is_kept = true;
        match self.baseline {
            Baseline::Known(results) => judging.baseline = Some(results),
            Baseline::None(why) => judging.summary.notices.push(why),
            Baseline::Measure(revision) => match parts.bases()? {
                Some(bases) => {
                    let Parts { directories, joined } = &bases;
                    let run_id = format!("{run_id}-baseline");
                    let to = measure::directory(&self.directory);
                    let merging = store::merge(directories, joined, &run_id, &to, &self.config.attempt);
                    let (directory, run) = driver.finish(merging)?;
                    let summary = aggregate::summarize(&run);
                    base_is_kept = keep(&directory, &summary)?;
                    let told: Vec<String> = joined.notices.iter().chain(&joined.missing).cloned().collect();
                    let name = revision.as_ref().map(|revision| revision.name.as_str());
                    judging.measured(&summary, name, &told);
                    if joined.missing.is_some() {
                        judging.lacks_base();
                    }
                }
                None => {
                    let why = "no baseline: no shard has measured the base revision";
                    judging.summary.notices.push(why.to_owned());
                }
            },
        }
        // Shards in which there was nothing to do have done it.
        let was_skipped = |part: &PartDir| {
            let findings = part.replayed.run.findings.as_ref();
            findings.is_some_and(|findings| findings.conclusion == Conclusion::Skipped)
        };
        let skipped = run.plan.pairs.is_empty() && directories.iter().all(was_skipped);
        let (summary, exit) = judging.conclude(false, skipped);
        let kept = keep(&directory, &summary)?;
        let is_silent = self.config.fail_on.contains(&Gate::Never);
        Ok(Done {
            summary,
            exit: match exit {
                ExitCode::Success if joined.missing.is_some() && !is_silent => ExitCode::Incomplete,
                exit => exit,
            },
            lost: !kept || !base_is_kept,
        })
    }
}

/// What fresh attempts said of the flips of each part. A part without a summary says nothing.
fn confirmed(parts: &[PartDir]) -> BTreeMap<PairId, bool> {
    let mut confirmed = BTreeMap::new();
    for part in parts {
        let Ok(Stored::Summary(summary)) = store::load(&part.path) else {
            continue;
        };
        let flips = summary.comparison.map(|comparison| comparison.flips);
        let flips = flips
            .into_iter()
            .flat_map(|flips| [flips.pass_to_fail, flips.fail_to_pass]);
        confirmed.extend(flips.flatten().filter_map(|flip| {
            let id = PairId {
                experiment: flip.experiment,
                eval: flip.eval,
            };
            Some((id, flip.confirmed?))
        }));
    }
    confirmed
}
