//! `evalwave snapshot`: the snapshot that sandboxes of Vercel start from, with `attempt.setup` done.

use anyhow::{Context as _, anyhow};
use camino::Utf8PathBuf;
use tokio::sync::mpsc;

use super::arguments::{SelectionArguments, SnapshotAction, SnapshotArguments};
use super::arms::Driver;
use super::context::{self, Context};
use super::job::{self, Means};
use super::output;
use super::past::Past;
use super::sources::Suite;
use super::{Failure, engine, print, tell, vercel};
use crate::config::{SandboxConfig, VercelConfig};
use crate::model::{ExitCode, with_causes};
use crate::plan::Experience;
use crate::runner;
use crate::sandbox::Setup;
use crate::sandbox::vercel::{SnapshotState, VercelBackend};

/// Pieces of output that may wait to be shown.
const BACKLOG: usize = 16;

/// Does what the command line says.
pub(super) fn snapshot(arguments: &SnapshotArguments, context: &Context) -> Result<ExitCode, Failure> {
    let selection = selection(arguments.config.clone());
    let driver = Driver::new()?;
    let suite = Suite::read(&selection, &[], &driver, context)?;
    act(arguments.action, &suite, &driver, context)
}

/// A snapshot is every pair's.
pub(super) fn selection(config: Option<Utf8PathBuf>) -> SelectionArguments {
    SelectionArguments {
        config,
        ..SelectionArguments::default()
    }
}

/// The engine as a builder needs it: what a network policy names is the attempts'.
pub(super) fn builder(config: &SandboxConfig) -> SandboxConfig {
    match config {
        SandboxConfig::Vercel(config) => SandboxConfig::Vercel(VercelConfig {
            network_policy: None,
            ..config.clone()
        }),
        other => other.clone(),
    }
}

/// Does it. What cannot be done because the service or `attempt.setup` fails is exit code 3.
pub(super) fn act(
    action: SnapshotAction,
    suite: &Suite,
    driver: &Driver,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let config = &suite.config;
    let SandboxConfig::Vercel(of_vercel) = &config.sandbox else {
        return Err(anyhow!(
            "snapshots are for `sandbox.kind: vercel`, found `{}`",
            config.sandbox.kind()
        )
        .into());
    };
    engine::check(&builder(&config.sandbox), context)?;
    // A snapshot is the same whatever earlier runs took.
    let past = Past {
        experience: Experience::default(),
        is_pinned: true,
    };
    let plan = suite.plan(&selection(None), &past)?;
    let means = Means::without_secrets(config, context);
    // What a run leaves out as well.
    let workspace = job::workspace(config, &suite.root, &[output::root(context)])?;
    let now = context::now();
    let job = job::job(config, &means, workspace, plan, context::new_run_id(now), now)?;
    let backend = vercel::backend(of_vercel, &job, &suite.root, context)?;
    let setup = runner::setup(&job);
    driver.set_out();
    let done = match action {
        SnapshotAction::Build => driver.wait(build(&backend, &setup, &job)).or_else(|| {
            let given_up = driver.finish(backend.give_up_build(&setup));
            given_up
                .context("the sandbox of the build is still there; `evalwave snapshot delete` deletes it")
                .err()
                .map(|error| Err(error.into()))
        }),
        SnapshotAction::Check => driver.wait(check(&backend, &setup, &job)),
        SnapshotAction::Delete => driver.wait(delete(&backend, &setup)),
    };
    done.unwrap_or(Ok(ExitCode::Cancelled)).map_err(|failure| {
        // The service's own words are among it.
        let error = with_causes(failure.error.as_ref());
        Failure {
            exit: ExitCode::Incomplete,
            error: anyhow!("{}", job.redactor.text(&error)),
        }
    })
}

async fn build(backend: &VercelBackend, setup: &Setup, job: &runner::Job) -> Result<ExitCode, Failure> {
    let (output, mut chunks) = mpsc::channel::<Vec<u8>>(BACKLOG);
    let telling = async {
        let mut text = job.redactor.stream();
        let mut line = Vec::new();
        while let Some(chunk) = chunks.recv().await {
            line.extend(text.push(&chunk));
            if let Some(end) = line.iter().rposition(|byte| *byte == b'\n') {
                let rest = line.split_off(end + 1);
                show(&std::mem::replace(&mut line, rest));
            }
        }
        line.extend(text.finish());
        show(&line);
    };
    let building = async {
        let output = output;
        backend.build_snapshot(setup, &output).await
    };
    let (built, ()) = tokio::join!(building, telling);
    let snapshot = built.context("cannot build the snapshot")?;
    tell(&format!(
        "{}: {}",
        if snapshot.is_new {
            "made"
        } else {
            "is there already"
        },
        described(&snapshot)
    ));
    print(&format!("{}\n", snapshot.id))?;
    Ok(ExitCode::Success)
}

async fn check(backend: &VercelBackend, setup: &Setup, job: &runner::Job) -> Result<ExitCode, Failure> {
    match backend
        .check_snapshot(setup)
        .await
        .context("cannot check the snapshot")?
    {
        Ok(snapshot) => {
            tell(&format!("sandboxes start from {}", described(&snapshot)));
            print(&format!("{}\n", snapshot.id))?;
            Ok(ExitCode::Success)
        }
        Err(why) => {
            let why = job.redactor.text(&why);
            tell(&format!("sandboxes start from nothing: {why}"));
            Ok(ExitCode::Incomplete)
        }
    }
}

async fn delete(backend: &VercelBackend, setup: &Setup) -> Result<ExitCode, Failure> {
    let deleted = backend
        .delete_snapshots(setup)
        .await
        .context("cannot delete the snapshot")?;
    tell(&match deleted {
        0 => "there was no snapshot to delete".to_owned(),
        1 => "deleted 1 snapshot".to_owned(),
        many => format!("deleted {many} snapshots"),
    });
    Ok(ExitCode::Success)
}

fn described(snapshot: &SnapshotState) -> String {
    let key = snapshot.key.as_ref().map(|key| format!(", key {key}"));
    let size = snapshot
        .bytes
        .map(|bytes| format!(", {}", bytesize::ByteSize::b(bytes).display().si()));
    let expires = match snapshot.expires_at {
        Some(at) => format!(", expires {}", at.strftime("%Y-%m-%d %H:%M UTC")),
        None => ", never expires".to_owned(),
    };
    format!(
        "snapshot {}{}{}{expires}",
        snapshot.id,
        key.unwrap_or_default(),
        size.unwrap_or_default()
    )
}

/// Shows lines of what `attempt.setup` prints.
fn show(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if !text.trim().is_empty() {
        tell(text.trim_end_matches('\n'));
    }
}
