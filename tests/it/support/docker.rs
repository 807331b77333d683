//! A real Docker engine, where the environment names one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use bollard::models::ContainerSummary;
use bollard::query_parameters::ListContainersOptionsBuilder;
use evalwave::config::{DockerConfig, DockerImage};

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

/// The least that a container needs. The engine of the tests has no bridge.
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
