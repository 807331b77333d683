//! The baseline of a run on GitHub: where the configuration says, or where the event does. A look-up that fails is told
//! apart from a baseline that is not there, and stops nothing.

use super::subject::Subject;
use crate::cli::Failure;
use crate::cli::baseline::{Baseline, Revision};
use crate::cli::context::{self, Context};
use crate::cli::sources::{Suite, read_results};
use crate::compare;
use crate::config::BaselineConfig;
use crate::github::Client;
use crate::github::baseline::{self, Earlier, Place, Search, ThisRun, Wanted};
use crate::github::event::Invocation;
use crate::model::{ResultSet, with_causes};

/// What came of looking for the baseline.
pub(super) struct Looked {
    pub(super) baseline: Baseline,
    /// The runs before it.
    pub(super) history: Vec<ResultSet>,
    /// Which it is, and why that one.
    pub(super) notes: Vec<String>,
    /// The look-up failed, and how.
    pub(super) failed: Option<String>,
}

/// What a look-up needs to know of the run.
pub(super) struct Looking<'a> {
    pub(super) suite: &'a Suite,
    /// The sources come from an input, and start where the step is.
    pub(super) named: bool,
    /// What the whole suite's results are kept as.
    pub(super) artifact: String,
    pub(super) subject: &'a Subject,
    pub(super) invocation: &'a Invocation,
    pub(super) client: Option<&'a Client>,
    pub(super) context: &'a Context,
}

impl Looked {
    fn only(baseline: Baseline) -> Self {
        Self {
            baseline,
            history: Vec::new(),
            notes: Vec::new(),
            failed: None,
        }
    }

    fn none(why: impl Into<String>) -> Self {
        Self::only(Baseline::None(why.into()))
    }

    fn failed(how: String) -> Self {
        let how = format!("the baseline was not looked up: {how}");
        Self {
            failed: Some(how.clone()),
            ..Self::none(how)
        }
    }
}

impl Looking<'_> {
    /// Looks wherever the configuration says.
    ///
    /// # Errors
    /// A file or a commit that is named and cannot be read, as for a run at a terminal.
    pub(super) async fn look(&self) -> Result<Looked, Failure> {
        let sources = match &self.suite.config.baseline {
            BaselineConfig::None => return Ok(Looked::none("no baseline was asked for")),
            BaselineConfig::Measure(Some(reference)) => {
                return Ok(Looked::only(Baseline::Measure(Some(Revision::named(reference)))));
            }
            BaselineConfig::Measure(None) => return Ok(self.base().await),
            BaselineConfig::Auto => vec!["auto".to_owned()],
            BaselineConfig::Sources(sources) => sources.clone(),
        };
        let mut sets: Vec<ResultSet> = Vec::new();
        let mut histories = Vec::new();
        let (mut notes, mut failed) = (Vec::new(), None);
        for source in &sources {
            let Some(place) = self.place(source) else {
                sets.push(self.read(source)?);
                continue;
            };
            let place = match place {
                Ok(place) => place,
                Err(why) => return Ok(Looked::none(format!("no baseline: {why}"))),
            };
            let (search, earlier) = self.find(place).await;
            notes.extend(self.fewer(&earlier));
            histories.push(earlier.results);
            failed = failed.or(earlier
                .failed
                .map(|how| format!("earlier runs were not looked up: {how}")));
            match search {
                Search::Found(found) => {
                    sets.push(found.results);
                    notes.push(format!("baseline: {}", found.how));
                }
                Search::NotFound(why) => return Ok(Looked::none(why)),
                Search::Failed(how) => return Ok(Looked::failed(how)),
            }
        }
        let merged = match sets.len() {
            // One set keeps what is known of its run.
            1 => sets.remove(0),
            _ => compare::merge(sets)?,
        };
        Ok(Looked {
            history: histories.into_iter().flatten().collect(),
            notes,
            failed,
            ..Looked::only(Baseline::Known(merged))
        })
    }

    /// What the event compares with, to be measured; what git says, where the event does not.
    async fn base(&self) -> Looked {
        let (Some(client), Some(event)) = (self.client, &self.subject.event) else {
            return Looked::only(Baseline::Measure(None));
        };
        match baseline::base(client, &self.invocation.repository, event).await {
            Ok(base) => Looked::only(Baseline::Measure(base.map(|base| Revision {
                reference: base.commit,
                name: base.branch,
            }))),
            Err(error) => Looked::failed(with_causes(&error)),
        }
    }

    fn read(&self, source: &String) -> Result<ResultSet, Failure> {
        let directory = if self.named {
            &self.context.current_dir
        } else {
            &self.suite.root
        };
        let policy = Some(self.suite.config.policy);
        let results = read_results(std::slice::from_ref(source), directory, policy);
        Ok(anyhow::Context::context(results, "cannot read the baseline")?)
    }

    /// Where on GitHub a source is; `None` where it is not there, and why it cannot be looked for.
    fn place(&self, source: &str) -> Option<Result<Place, &'static str>> {
        let event = || {
            let event = self.subject.event.clone();
            event.ok_or("this event is on no branch that earlier runs could be on")
        };
        if source == "auto" {
            return Some(event().map(Place::Auto));
        }
        if let Some(name) = source.strip_prefix("artifact:") {
            let name = name.to_owned();
            return Some(event().map(|event| Place::Artifact { name, event }));
        }
        if source == "latest-release" {
            return Some(Ok(Place::LatestRelease));
        }
        if let Some(tag) = source.strip_prefix("ref:") {
            return Some(Ok(Place::Tag(tag.to_owned())));
        }
        let id = source.strip_prefix("run:")?;
        Some(id.parse().map(Place::Run).map_err(|_| "`run:` needs a number"))
    }

    /// Says that a history is shorter than it was wanted, and why.
    fn fewer(&self, earlier: &Earlier) -> Option<String> {
        let opened = earlier.exhausted?;
        Some(format!(
            "the history has {} of the {} runs that were asked for: {opened} runs were looked through, and no more are",
            earlier.results.len(),
            self.suite.config.history.runs
        ))
    }

    async fn find(&self, place: Place) -> (Search, Earlier) {
        let Some(client) = self.client else {
            let how = "GitHub cannot be asked".to_owned();
            return (Search::Failed(how), Earlier::default());
        };
        let workflow = match (&self.invocation.workflow, &place) {
            (Some(workflow), _) => workflow.clone(),
            (None, Place::Run(_)) => String::new(),
            (None, _) => {
                let why = "no baseline: `GITHUB_WORKFLOW_REF` does not say which workflow this is";
                return (Search::NotFound(why.to_owned()), Earlier::default());
            }
        };
        let wanted = Wanted {
            repository: self.invocation.repository.clone(),
            workflow,
            suite: self.suite.config.suite.name.clone(),
            artifact: self.artifact.clone(),
            run: ThisRun {
                id: self.invocation.run_id,
                number: self.invocation.run_number,
            },
            place,
            now: context::now(),
            policy: Some(self.suite.config.policy),
        };
        baseline::find(client, &wanted, self.suite.config.history.runs).await
    }
}
