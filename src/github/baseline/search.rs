//! The search itself: from the event to candidates, from a candidate to its results. Compares nothing.

use std::collections::{HashMap, HashSet, VecDeque};

use super::ask::Workflow;
use super::order::{self, Fit, Run, TRUSTED, TRUSTED_OF_TAG};
use super::{Event, Found, Place, ThisRun, Wanted};
use crate::github::artifact::{self, ReadError};
use crate::github::client::Client;
use crate::github::error::GithubError;
use crate::model::{ResultSet, SelectionKind, Summary};
use crate::results;

/// No more runs than this are opened in search of a baseline, nor beside the runs before it: of those, some have no
/// results, and some are newer than the baseline.
const MOST: usize = 20;

/// The file of an artifact that results are read from.
const FILE: &str = "summary.json";

/// Earlier runs that can be a baseline, the best first. Each is opened when it is asked for, so that who wants only the
/// first reads only that; those who want the runs before it go on asking.
#[derive(Debug)]
pub struct Candidates<'a> {
    wanted: &'a Wanted,
    /// The name of the artifact that is read.
    artifact: &'a str,
    /// How many runs before the baseline are wanted.
    history: usize,
    queue: VecDeque<(Run, Fit)>,
    /// What is asked where the queue holds no result at all.
    fallback: Option<Branch>,
    /// What a fit is measured from, in words.
    base: String,
    /// Said of each: why it is not looked for where one would expect.
    remark: Option<String>,
    /// A candidate whose results are of another commit than its run is none: it measured something else.
    strict: bool,
    opened: usize,
    found: usize,
    /// What was looked for, for where nothing is found.
    looked_for: String,
    /// Why candidates were passed over.
    passed_over: Vec<String>,
}

/// Runs on a branch, as seen from a commit.
#[derive(Clone, Debug)]
struct Branch {
    name: String,
    commit: Option<String>,
    /// Only runs before this one.
    before: Option<ThisRun>,
    /// A merge queue measures what becomes the branch.
    queue: bool,
}

impl<'a> Candidates<'a> {
    /// Lists the runs that can be a baseline, or one of `history` runs before it.
    ///
    /// # Errors
    /// GitHub does not answer: nobody knows whether there are any.
    pub async fn list(client: &Client, wanted: &'a Wanted, history: usize) -> Result<Self, GithubError> {
        let mut candidates = Self {
            wanted,
            artifact: &wanted.artifact,
            history,
            queue: VecDeque::new(),
            fallback: None,
            base: "base".to_owned(),
            remark: None,
            strict: true,
            opened: 0,
            found: 0,
            looked_for: String::new(),
            passed_over: Vec::new(),
        };
        match &wanted.place {
            Place::Auto(event) => candidates.of_event(client, event).await?,
            Place::Artifact { name, event } => {
                candidates.artifact = name;
                candidates.of_event(client, event).await?;
                // What an earlier job of this very run has left under that name is meant first of all.
                if !candidates.would_be_itself(wanted.run.id) {
                    let own = Run {
                        id: wanted.run.id,
                        ..Run::default()
                    };
                    candidates.queue.push_front((own, Fit::Unrelated));
                }
            }
            Place::Run(id) if candidates.would_be_itself(*id) => {
                candidates.looked_for = format!("run {id} is this very run, which is no baseline of itself");
            }
            Place::Run(id) => {
                candidates.strict = false;
                candidates.looked_for = format!("there is no run {id} in `{}`", wanted.repository);
                let run = candidates.workflow(client).run(*id).await?;
                candidates.queue.extend(run.map(|run| (run, Fit::Unrelated)));
            }
            Place::Tag(tag) => candidates.of_tag(client, tag).await?,
            Place::LatestRelease => match candidates.workflow(client).latest_release().await? {
                Some(tag) => candidates.of_tag(client, &tag).await?,
                None => candidates.looked_for = "there is no release yet".to_owned(),
            },
        }
        Ok(candidates)
    }

    /// The next candidate that has results, read; `None` where there is no more.
    ///
    /// # Errors
    /// GitHub does not answer.
    pub async fn next(&mut self, client: &Client) -> Result<Option<Found>, GithubError> {
        loop {
            while let Some((run, fit)) = self.queue.pop_front() {
                if self.exhausted().is_some() {
                    return Ok(None);
                }
                self.opened += 1;
                match self.open(client, &run).await? {
                    Ok(results) => {
                        self.found += 1;
                        return Ok(Some(self.describe(&run, fit, results)));
                    }
                    Err(why) => self.passed_over.push(format!("run {}: {why}", run.id)),
                }
            }
            if !self.fall_back(client).await? {
                return Ok(None);
            }
        }
    }

    /// How many runs were opened, once no more are.
    pub(super) fn exhausted(&self) -> Option<usize> {
        let most = match self.found {
            0 => MOST,
            _ => self.most(),
        };
        (self.opened == most).then_some(most)
    }

    fn most(&self) -> usize {
        MOST + self.history
    }

    /// Whether what is read of a run is what this job has kept itself, in an earlier attempt.
    fn would_be_itself(&self, run: u64) -> bool {
        run == self.wanted.run.id && self.artifact == self.wanted.artifact
    }

    /// Why there is none, in words.
    pub(super) fn why_none(&self) -> String {
        match self.passed_over.as_slice() {
            [] => self.looked_for.clone(),
            [first, rest @ ..] => {
                let more = match rest.len() {
                    0 => String::new(),
                    more => format!(", and {more} more"),
                };
                format!("no earlier run has results to compare with ({first}{more})")
            }
        }
    }

    fn workflow<'c>(&self, client: &'c Client) -> Workflow<'c>
    where
        'a: 'c,
    {
        Workflow {
            client,
            repository: &self.wanted.repository,
            file: &self.wanted.workflow,
        }
    }

    async fn of_event(&mut self, client: &Client, event: &Event) -> Result<(), GithubError> {
        let workflow = self.workflow(client);
        let this = Some(self.wanted.run);
        let base = super::base(client, &self.wanted.repository, event).await?;
        let commit = base.map(|base| base.commit);
        let branch = match event {
            Event::PullRequest { base_branch, .. } | Event::MergeGroup { base_branch, .. } => Branch {
                name: base_branch.clone(),
                commit,
                before: None,
                queue: true,
            },
            Event::Push { branch, .. } => Branch {
                name: branch.clone(),
                commit,
                before: this,
                queue: false,
            },
            Event::OnBranch { branch, commit } => Branch {
                name: branch.clone(),
                commit: commit.clone(),
                before: this,
                queue: false,
            },
            Event::Tag { tag } => {
                return match workflow.release_before(tag).await? {
                    Some(earlier) => self.of_tag(client, &earlier).await,
                    None => {
                        self.looked_for = format!("there is no release before `{tag}`");
                        Ok(())
                    }
                };
            }
        };
        self.base = match event {
            Event::Push { .. } => "previous push",
            Event::OnBranch { .. } => "measured commit",
            _ => "base",
        }
        .to_owned();
        if !matches!(event, Event::Push { .. }) {
            self.fallback = Some(branch.clone());
        }
        self.of_branch(client, &branch).await
    }

    async fn of_branch(&mut self, client: &Client, branch: &Branch) -> Result<(), GithubError> {
        let workflow = self.workflow(client);
        let now = self.wanted.now;
        let this = self.wanted.run;
        let may_be = |run: &Run| {
            let earlier = branch
                .before
                .is_none_or(|this| run.number.is_none_or(|number| number < this.number));
            run.is_trusted(&TRUSTED) && run.id != this.id && earlier && run.commit.is_some()
        };
        let filter = format!("branch={}", crate::github::segment(&branch.name));
        let on_branch = |run: &Run| may_be(run) && run.branch.as_deref() == Some(&branch.name);
        let mut runs = workflow.runs(&filter, now, self.most(), on_branch).await?;
        self.looked_for = format!(
            "no finished run of `{}` on `{}` in the last 90 days",
            self.wanted.workflow, branch.name
        );
        let mut steps = HashMap::new();
        if let Some(commit) = &branch.commit {
            let exact = runs.iter().any(|run| run.commit.as_ref() == Some(commit));
            let mut queued = Vec::new();
            if branch.queue && !exact {
                let in_queue = |run: &Run| may_be(run) && run.is_queued_for(&branch.name);
                queued = workflow
                    .runs("event=merge_group", now, self.most(), in_queue)
                    .await?;
            }
            let looked_for: HashSet<&str> = runs
                .iter()
                .chain(&queued)
                .filter_map(|run| run.commit.as_deref())
                .collect();
            if !looked_for.is_empty() {
                steps = order::steps(commit, &workflow.ancestry(commit, &looked_for).await?);
            }
            // What the queue threw out again never was on the branch.
            queued.retain(|run| {
                run.commit
                    .as_deref()
                    .is_some_and(|commit| steps.contains_key(commit))
            });
            runs.extend(queued);
        }
        self.queue.extend(order::order(runs, &steps));
        Ok(())
    }

    async fn of_tag(&mut self, client: &Client, tag: &str) -> Result<(), GithubError> {
        let workflow = self.workflow(client);
        let Some(commit) = workflow.commit_of_tag(tag).await? else {
            self.looked_for = format!("there is no tag `{tag}`");
            return Ok(());
        };
        self.base = format!("commit of {tag}");
        self.looked_for = format!(
            "no finished run of `{}` at `{tag}` in the last 90 days",
            self.wanted.workflow
        );
        let filter = format!("head_sha={commit}");
        let id = self.wanted.run.id;
        let of_tag = |run: &Run| run.is_trusted(&TRUSTED_OF_TAG) && run.id != id;
        let runs = workflow
            .runs(&filter, self.wanted.now, self.most(), of_tag)
            .await?;
        let steps = HashMap::from([(commit, 0)]);
        self.queue.extend(order::order(runs, &steps));
        Ok(())
    }

    /// Goes on with the default branch where the branch that was meant has given nothing.
    async fn fall_back(&mut self, client: &Client) -> Result<bool, GithubError> {
        let Some(branch) = self.fallback.take().filter(|_| self.found == 0) else {
            return Ok(false);
        };
        let default = self.workflow(client).default_branch().await?;
        if default == branch.name {
            return Ok(false);
        }
        self.remark = Some(format!("for {} has no result", branch.name));
        let branch = Branch {
            name: default,
            ..branch
        };
        let before = std::mem::take(&mut self.looked_for);
        self.of_branch(client, &branch).await?;
        self.looked_for = format!("{before}, and none on the default branch `{}`", branch.name);
        Ok(true)
    }

    /// The results of a run, or why it has none that count.
    async fn open(&self, client: &Client, run: &Run) -> Result<Result<ResultSet, String>, GithubError> {
        let repository = &self.wanted.repository;
        let artifacts = match artifact::list(client, repository, run.id, self.artifact).await {
            Err(error) if error.is_gone() => return Ok(Err("it is there no more".to_owned())),
            artifacts => artifacts?,
        };
        let Some(newest) = artifacts.first() else {
            let name = self.artifact;
            return Ok(Err(format!("it has no artifact `{name}`, or that has expired")));
        };
        let bytes = match artifact::read(client, repository, newest, FILE).await {
            Ok(bytes) => bytes,
            Err(ReadError::Github(error)) => return Err(error),
            Err(error) => return Ok(Err(format!("its artifact `{}`: {error}", newest.name))),
        };
        let summary = match results::parse_summary(FILE, &bytes) {
            Ok(summary) => summary,
            Err(error) => return Ok(Err(error.to_string())),
        };
        if let Some(why) = self.objection(run, &summary) {
            return Ok(Err(why));
        }
        let results = results::parse(&format!("run {}", run.id), &bytes, self.wanted.policy);
        Ok(results.map_err(|error| error.to_string()))
    }

    fn objection(&self, run: &Run, summary: &Summary) -> Option<String> {
        let facts = &summary.run;
        if facts.suite != self.wanted.suite && !matches!(self.wanted.place, Place::Artifact { .. }) {
            return Some(format!("its results are of suite `{}`", facts.suite));
        }
        if facts.selection.kind != SelectionKind::All {
            return Some("it ran a part of the suite only".to_owned());
        }
        if !facts.complete {
            return Some("it is not complete".to_owned());
        }
        // A dispatched run may have measured a fork's commit; only what the branch itself held counts.
        match (&run.commit, &facts.commit) {
            (Some(head), Some(measured)) if self.strict && !same_commit(head, measured) => {
                Some("it measured another commit than its own".to_owned())
            }
            (Some(_), None) if self.strict && run.event.as_deref() == Some("workflow_dispatch") => {
                Some("it does not say which commit it measured".to_owned())
            }
            _ => None,
        }
    }

    fn describe(&self, run: &Run, fit: Fit, mut results: ResultSet) -> Found {
        results.commit = results.commit.or_else(|| run.commit.clone());
        results.reference.clone_from(&run.branch);
        results.run_url.clone_from(&run.url);
        let started_at = results.started_at.or(run.created_at);
        let age = started_at.map(|from| order::age(from, self.wanted.now));
        let distance = match fit {
            _ if run.id == self.wanted.run.id => Some("this very run".to_owned()),
            Fit::Exact => Some(format!("exact {}", self.base)),
            Fit::Before(1) => Some(format!("1 commit before the {}", self.base)),
            Fit::Before(steps) => Some(format!("{steps} commits before the {}", self.base)),
            Fit::Unrelated if self.strict => Some(format!("not known how far from the {}", self.base)),
            Fit::Unrelated => None,
        };
        let parts = [run.branch.clone(), self.remark.clone(), distance, age];
        let how: Vec<String> = parts.into_iter().flatten().collect();
        Found {
            results,
            how: how.join(", "),
            run: run.id,
        }
    }
}

/// Either may be abbreviated.
fn same_commit(one: &str, other: &str) -> bool {
    let length = one.len().min(other.len());
    length >= 7 && one.as_bytes()[..length].eq_ignore_ascii_case(&other.as_bytes()[..length])
}
