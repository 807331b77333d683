//! What whole runs in containers cost beside the engine's own speed: the same calls in the same minute, made by nothing
//! but a client of its API. A table, and no verdict.
//!
//! `EVALWAVE_TEST_DOCKER=$(.ci/docker-engine start DIR) cargo bench --bench docker`, and `.ci/docker-engine stop DIR`.

#![expect(clippy::disallowed_methods, reason = "it measures processes by the clock")]

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::{ContainerConfig, ContainerCreateBody, ExecConfig, HostConfig};
use bollard::query_parameters::{
    CommitContainerOptionsBuilder, CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder,
    RemoveImageOptionsBuilder, StartContainerOptions, UploadToContainerOptionsBuilder,
};
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::json;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const EVALWAVE: &str = env!("CARGO_BIN_EXE_evalwave");
/// The image that `.ci/docker-engine` makes.
const IMAGE: &str = "evalwave-test:base";
/// What the engine alone makes of it.
const WORKSPACE: &str = "evalwave-bench-workspace";
const IDLE: &str = include_str!("../src/sandbox/docker/idle.sh");
const RUN: &str = include_str!("../src/sandbox/docker/run.sh");
const LIFECYCLES: usize = 64;
const DELETING: usize = 8;
/// The fastest of so many: whatever else the machine does only adds.
const TIMES: usize = 3;

#[expect(clippy::print_stdout, reason = "the table is what this is for")]
fn main() -> Result<(), Failure> {
    let Ok(host) = std::env::var("EVALWAVE_TEST_DOCKER") else {
        println!("EVALWAVE_TEST_DOCKER names no Docker engine: nothing to measure");
        return Ok(());
    };
    let suite = suite()?;
    println!(
        "{:<34}{:>12}{:>12}{:>14}{:>12}{:>8}",
        "64 x `true`, fastest of 3", "engine", "a second", "evalwave", "a second", "ratio"
    );
    for in_flight in [4, 8, 16] {
        let (mut floor, mut run) = (Duration::MAX, Duration::MAX);
        for _ in 0..TIMES {
            floor = floor.min(engine(&host, in_flight)?);
            run = run.min(evalwave(&host, suite.path(), in_flight)?);
        }
        let rate = |wall: Duration| LIFECYCLES as f64 / wall.as_secs_f64();
        println!(
            "{:<34}{:>11.2}s{:>12.1}{:>13.2}s{:>12.1}{:>8.2}",
            format!("{in_flight} in flight"),
            floor.as_secs_f64(),
            rate(floor),
            run.as_secs_f64(),
            rate(run),
            run.as_secs_f64() / floor.as_secs_f64()
        );
    }
    Ok(())
}

fn suite() -> Result<tempfile::TempDir, Failure> {
    let directory = tempfile::tempdir()?;
    let pairs: Vec<_> = (0..LIFECYCLES)
        .map(|number| json!({ "experiment": "x", "eval": format!("e{number}") }))
        .collect();
    let config = json!({
        "version": 1,
        "suite": { "name": "bench", "pairs": pairs },
        "attempt": { "command": ["true"], "format": "exit-code" },
        "strategy": "parallel",
        "sandbox": { "kind": "docker", "image": IMAGE, "network": "none", "memory-per-attempt": "1MB" },
        "baseline": "none",
    });
    fs_err::write(directory.path().join("evalwave.yml"), config.to_string())?;
    Ok(directory)
}

fn evalwave(host: &str, suite: &std::path::Path, in_flight: usize) -> Result<Duration, Failure> {
    let started = Instant::now();
    let status = Command::new(EVALWAVE)
        .args([
            "run",
            "-o",
            "out",
            "--overwrite",
            "--concurrency",
            &in_flight.to_string(),
        ])
        .current_dir(suite)
        .env("DOCKER_HOST", host)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    match status.success() {
        true => Ok(started.elapsed()),
        false => Err(format!("evalwave ended with {status}").into()),
    }
}

/// The same calls, so many lifecycles at once.
fn engine(host: &str, in_flight: usize) -> Result<Duration, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let docker = Arc::new(Docker::connect_with_host(host)?);
    let started = Instant::now();
    runtime.block_on(make_image(&docker))?;
    // Deleted beside what goes on, as evalwave does it.
    let lives = futures::stream::iter(0..LIFECYCLES)
        .map(|_| lifecycle(&docker))
        .buffer_unordered(in_flight)
        .map_ok(|id| remove(&docker, id))
        .try_buffer_unordered(DELETING);
    runtime.block_on(lives.try_collect::<()>())?;
    let options = RemoveImageOptionsBuilder::default().force(true).build();
    runtime.block_on(docker.remove_image(WORKSPACE, Some(options), None))?;
    Ok(started.elapsed())
}

/// The image that holds the workspace.
async fn make_image(docker: &Docker) -> Result<(), Failure> {
    let id = start(docker, IMAGE).await?;
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(0);
    tar.append_data(&mut header, "evalwave.yml", std::io::empty())?;
    let options = UploadToContainerOptionsBuilder::default().path("/work").build();
    let files = bollard::body_full(tar.into_inner()?.into());
    docker.upload_to_container(&id, Some(options), files).await?;
    let options = CommitContainerOptionsBuilder::default()
        .container(&id)
        .repo(WORKSPACE)
        .build();
    docker
        .commit_container(options, ContainerConfig::default())
        .await?;
    remove(docker, id).await
}

/// All of it but the end.
async fn lifecycle(docker: &Docker) -> Result<String, Failure> {
    let id = start(docker, WORKSPACE).await?;
    let config = ExecConfig {
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        cmd: words(&["sh", "-c", RUN, "evalwave", "", "no", "no", "0", "true"]),
        ..ExecConfig::default()
    };
    let exec = docker.create_exec(&id, config).await?.id;
    let started = docker.start_exec(&exec, None::<StartExecOptions>).await?;
    if let StartExecResults::Attached {
        mut output,
        input: _link,
    } = started
    {
        while let Some(said) = output.next().await {
            said?;
        }
    }
    Ok(id)
}

async fn start(docker: &Docker, image: &str) -> Result<String, Failure> {
    let body = ContainerCreateBody {
        image: Some(image.to_owned()),
        entrypoint: words(&["sh", "-c", IDLE, "evalwave", "600"]),
        host_config: Some(HostConfig {
            network_mode: Some("none".to_owned()),
            auto_remove: Some(true),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    };
    let options = CreateContainerOptionsBuilder::default().build();
    let id = docker.create_container(Some(options), body).await?.id;
    docker.start_container(&id, None::<StartContainerOptions>).await?;
    Ok(id)
}

async fn remove(docker: &Docker, id: String) -> Result<(), Failure> {
    let options = RemoveContainerOptionsBuilder::default()
        .force(true)
        .v(true)
        .build();
    docker.remove_container(&id, Some(options)).await?;
    Ok(())
}

fn words(words: &[&str]) -> Option<Vec<String>> {
    Some(words.iter().map(|word| (*word).to_owned()).collect())
}
