//! A real Docker engine, where the environment names one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use bollard::models::ContainerSummary;
use bollard::query_parameters::ListContainersOptionsBuilder;
use camino::Utf8PathBuf;
use evalwave::config::{DockerConfig, DockerImage};
use futures::StreamExt as _;

/// The image that `.ci/docker-engine` makes.
pub(crate) const IMAGE: &str = "evalwave-test:base";

/// The address of the engine; without one, says that the test is skipped.
pub(crate) fn docker_host() -> Option<String> {
    let host = std::env::var("EVALWAVE_TEST_DOCKER").ok();
    if host.is_none() {
        eprintln!(
            "skipped: EVALWAVE_TEST_DOCKER names no Docker engine (`.ci/docker-engine start DIR` starts one and prints its address)"
        );
    }
    host
}

/// The directory with what users of the engine over TCP need, and with its address there; without one, says that the test
/// is skipped.
pub(crate) fn docker_tls() -> Option<Utf8PathBuf> {
    super::only_in_ci("EVALWAVE_TEST_DOCKER_TLS").map(Utf8PathBuf::from)
}

/// The least that a container needs.
pub(crate) fn docker_config() -> DockerConfig {
    DockerConfig {
        image: DockerImage::Named(IMAGE.to_owned()),
        memory: None,
        memory_per_attempt: 64_000_000,
        cpus: None,
        pids: None,
        network: "none".to_owned(),
        user: None,
        mounts: Vec::new(),
        init: false,
        read_only: false,
        privileged: false,
        platform: None,
        warm: false,
    }
}

/// A name that nothing else in the engine has.
pub(crate) fn unique(what: &str) -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{what}-{}-{count}", std::process::id())
}

/// The containers of a run, whatever became of them.
pub(crate) async fn containers(host: &str, run_id: &str) -> Vec<ContainerSummary> {
    let docker = bollard::Docker::connect_with_host(host).unwrap();
    let label = format!("evalwave.run={run_id}");
    let options = ListContainersOptionsBuilder::default()
        .all(true)
        .filters(&HashMap::from([("label", vec![label.as_str()])]));
    docker.list_containers(Some(options.build())).await.unwrap()
}

/// How many processes in the containers of a run have `MARK=mark` in their environment. Asked in the containers
/// themselves: from outside it is root's alone to see.
pub(crate) async fn marked(host: &str, run_id: &str, mark: &str) -> usize {
    let docker = bollard::Docker::connect_with_host(host).unwrap();
    let mut found = 0;
    for container in containers(host, run_id).await {
        let script = "for process in /proc/[0-9]*; do
                tr '\\0' '\\n' <$process/environ 2>/dev/null | grep -qx \"MARK=$0\" && echo found; done; true";
        let config = bollard::models::ExecConfig {
            attach_stdout: Some(true),
            cmd: Some(["sh", "-c", script, mark].map(str::to_owned).into()),
            user: Some("0".to_owned()),
            ..Default::default()
        };
        // One that is being deleted has none any more.
        let Ok(exec) = docker.create_exec(&container.id.unwrap(), config).await else {
            continue;
        };
        let started = docker
            .start_exec(&exec.id, None::<bollard::exec::StartExecOptions>)
            .await;
        if let Ok(bollard::exec::StartExecResults::Attached { output, .. }) = started {
            let said: Vec<_> = output.collect().await;
            let said = said.into_iter().flatten().map(|said| said.to_string());
            found += said.collect::<String>().matches("found").count();
        }
    }
    found
}
