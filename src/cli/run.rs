//! `evalwave run`.

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use camino::{Utf8Path, Utf8PathBuf};
use tokio_util::sync::CancellationToken;

use super::arguments::{RunArguments, TextOrJson};
use super::context::{self, Context};
use super::progress::Progress;
use super::recorder::Recording;
use super::sources::{Suite, read_results};
use super::{Failure, json, print, tell};
use crate::aggregate::Facts;
use crate::compare::gates::{self, GateFacts};
use crate::compare::{self, Options};
use crate::config::settings;
use crate::config::{BaselineConfig, Config, SandboxConfig, SecretConfig};
use crate::model::{ExitCode, Gate, ResultSet, Run, RunPlan, Summary};
use crate::redact::{MIN_SECRET, Redactor};
use crate::runner::{self, Job};
use crate::sandbox::local::{LocalBackend, LocalOptions, harden_self};
use crate::sandbox::{Backend, Workspace};
use crate::schedule::Pace;
use crate::store::{self, RunDir};
use crate::{aggregate, catalog, report};

/// Where runs go that are not told where.
const OUTPUT_ROOT: &str = "evalwave-out";

pub(super) fn run(arguments: &RunArguments, context: &Context) -> Result<ExitCode, Failure> {
    let more = [
        (settings::BASELINE, arguments.baseline.as_deref()),
        (settings::FAIL_ON, arguments.fail_on.as_deref()),
    ];
    let suite = Suite::read(&arguments.selection, &more, context)?;
    let plan = suite.plan(&arguments.selection)?;
    let secrets = secrets(&suite.config, context)?;
    let baseline = baseline(&suite, arguments, context)?;
    let started_at = context::now();
    let run_id = context::new_run_id(started_at);
    let output = Output::of(arguments, &run_id, context);
    let job = job(&suite, plan, secrets, run_id, started_at, &output, context)?;
    harden_self();
    let backend = backend(&suite, &job, context)?;
    let directory = RunDir::create(
        &output.directory,
        arguments.overwrite,
        &job.plan,
        &suite.config.attempt.publish,
    )?;
    output.point_latest();
    if job.plan.concurrency.bounded {
        tell(&format!("notice: concurrency {}", job.plan.concurrency.reason));
    }
    let recording = Arc::new(Recording {
        directory,
        progress: Progress::new(job.plan.attempts()),
    });
    let run = drive(Arc::new(job), backend, &recording)?;
    let skipped =
        arguments.selection.changed_since.is_some() && run.plan.pairs.is_empty() && run.plan.selection.of > 0;
    let (summary, exit) = conclude(&run, &suite.config, baseline, skipped);
    keep(&recording.directory, &summary)?;
    print(&match arguments.format {
        TextOrJson::Text => report::text(&summary, context.color),
        TextOrJson::Json => json(&summary)?,
    })?;
    tell(&format!("results in {}", output.shown));
    Ok(exit)
}

/// Where the run is written.
struct Output {
    directory: Utf8PathBuf,
    /// As the user would type it.
    shown: Utf8PathBuf,
    /// The link to the newest run, where evalwave named the directory itself.
    latest: Option<Utf8PathBuf>,
}

impl Output {
    fn of(arguments: &RunArguments, run_id: &str, context: &Context) -> Self {
        match &arguments.output_dir {
            Some(named) => Self {
                directory: context.absolute(named),
                shown: named.clone(),
                latest: None,
            },
            None => {
                let shown = Utf8Path::new(OUTPUT_ROOT).join(run_id);
                let latest = context.current_dir.join(OUTPUT_ROOT).join("latest");
                Self {
                    directory: context.absolute(&shown),
                    shown,
                    latest: Some(latest),
                }
            }
        }
    }

    fn point_latest(&self) {
        if let Some(latest) = &self.latest
            && let Err(error) = store::point_latest(&self.directory, latest)
        {
            tell(&format!("notice: {:#}", anyhow::Error::from(error)));
        }
    }

    /// What no sandbox receives.
    fn roots(&self) -> Vec<Utf8PathBuf> {
        let root = self.latest.as_ref().and_then(|latest| latest.parent());
        std::iter::once(self.directory.clone())
            .chain(root.map(Utf8Path::to_owned))
            .collect()
    }
}

/// The secrets that are set; a missing one is said before anything is spent.
fn secrets(config: &Config, context: &Context) -> Result<Vec<(String, String)>, Failure> {
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for SecretConfig { name, optional } in &config.attempt.secrets {
        match context.variable(name) {
            Some(value) => {
                if value.len() < MIN_SECRET {
                    tell(&format!(
                        "warning: the secret `{name}` is shorter than {MIN_SECRET} characters: it cannot be taken out of logs"
                    ));
                }
                found.push((name.clone(), value.to_owned()));
            }
            None if *optional => {}
            None => missing.push(format!("`{name}`")),
        }
    }
    if missing.is_empty() {
        return Ok(found);
    }
    Err(anyhow!(
        "missing in the environment: {} (attempt.secrets)\nset it, or mark it `optional: true`",
        missing.join(", ")
    )
    .into())
}

/// Read before the run, so that a broken baseline costs nothing.
fn baseline(
    suite: &Suite,
    arguments: &RunArguments,
    context: &Context,
) -> Result<Result<ResultSet, String>, Failure> {
    match &suite.config.baseline {
        BaselineConfig::None => Ok(Err("no baseline was asked for".to_owned())),
        BaselineConfig::Auto => Ok(Err(
            "no baseline: name one with `baseline` or --baseline".to_owned()
        )),
        BaselineConfig::Sources(sources) => {
            // Recorded verdicts stand; attempts that are known one by one are decided as this run's are.
            let policy = Some(suite.config.policy);
            Ok(Ok(
                read_results(sources, &suite.root, policy).context("cannot read the baseline")?
            ))
        }
    }
}

fn job(
    suite: &Suite,
    plan: RunPlan,
    secrets: Vec<(String, String)>,
    run_id: String,
    started_at: jiff::Timestamp,
    output: &Output,
    context: &Context,
) -> Result<Job, Failure> {
    let config = &suite.config;
    let env = config.attempt.env_from.iter().filter_map(|name| {
        context
            .environment
            .get(name)
            .map(|value| (name.clone(), value.clone()))
    });
    let files = catalog::workspace_files(&suite.root, &config.attempt.upload, &output.roots())?;
    Ok(Job {
        run_id,
        started_at,
        commit: catalog::commit(&suite.root),
        redactor: Redactor::new(secrets.iter().map(|(_, value)| value.as_str())),
        env: env.collect(),
        secrets,
        rules: runner::rules(config),
        pace: Pace::new(plan.strategy, plan.on_pass)?,
        retry: config.retry,
        workspace: Workspace {
            root: suite.root.clone(),
            files,
        },
        attempt: config.attempt.clone(),
        plan,
    })
}

fn backend(suite: &Suite, job: &Job, context: &Context) -> Result<Arc<dyn Backend>, Failure> {
    let SandboxConfig::Local(local) = &suite.config.sandbox;
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

/// Runs the plan, SIGINT and SIGTERM cancelling it.
fn drive(job: Arc<Job>, backend: Arc<dyn Backend>, recording: &Arc<Recording>) -> Result<Run, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the asynchronous runtime")?;
    let cancel = CancellationToken::new();
    let run = runtime.block_on(async {
        let watching = tokio::spawn(cancel_on_signal(cancel.clone()));
        let run = runner::run(job, backend, Arc::clone(recording) as _, cancel).await;
        watching.abort();
        run
    });
    Ok(run)
}

async fn cancel_on_signal(cancel: CancellationToken) {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (Ok(mut interrupt), Ok(mut terminate)) =
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            tell("warning: signals cannot be watched: an interrupt will lose what runs");
            return;
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
    #[cfg(not(unix))]
    if tokio::signal::ctrl_c().await.is_err() {
        return;
    }
    tell("cancelling: nothing more starts, what runs is stopped");
    cancel.cancel();
}

fn conclude(
    run: &Run,
    config: &Config,
    baseline: Result<ResultSet, String>,
    skipped: bool,
) -> (Summary, ExitCode) {
    let mut summary = aggregate::summarize(run);
    match baseline {
        Ok(baseline) => {
            let options = Options {
                alpha: config.compare.alpha,
                margin: config.compare.margin,
                group_by: config.report.group_by.clone(),
                now: Some(run.started_at),
            };
            let current = ResultSet::of_summary("this run", &summary);
            summary.comparison = Some(compare::compare(&baseline, &current, &options));
        }
        Err(why) => summary.notices.push(why),
    }
    summary.gates = gates::evaluate(
        &config.fail_on,
        &GateFacts::of_summary(&summary),
        summary.comparison.as_ref(),
    );
    let incomplete = Gate::Incomplete.to_string();
    let facts = Facts {
        totals: &summary.totals,
        cancelled: run.cancelled,
        skipped,
        fail_on: &config.fail_on,
        gate_failed: summary
            .gates
            .iter()
            .any(|gate| gate.failed && gate.gate != incomplete),
    };
    let (conclusion, exit) = aggregate::conclude(facts);
    summary.run.conclusion = conclusion;
    (summary, exit)
}

/// Writes the documents of the whole run; what cannot be written is said, and what was printed stands.
fn keep(directory: &RunDir, summary: &Summary) -> Result<(), Failure> {
    let documents = [
        (store::SUMMARY_FILE, json(summary)?),
        ("report.md", report::markdown(summary, usize::MAX)),
    ];
    for (name, text) in documents {
        if let Err(error) = directory.write(name, &text) {
            tell(&format!("warning: {:#}", anyhow::Error::from(error)));
        }
    }
    Ok(())
}
