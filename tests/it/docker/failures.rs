//! What is said where there is no engine, or it may not be used, or it fails; never a failed attempt.

use evalwave::model::ErrorClass;

use super::{Bench, errored, run_at};
use crate::support::docker::IMAGE;
use crate::support::sandbox::{run, sh, shell};
use crate::support::{Suite, stderr};

fn suite(image: &str) -> Suite {
    let keys = format!("sandbox: {{ kind: docker, network: none, image: '{image}' }}\nretry: {{ tries: 1 }}");
    Suite::scripted("a/one", "format: exit-code", &keys, "exit 0")
}

#[test]
fn without_an_engine_it_says_what_was_tried_and_what_to_do() {
    let suite = suite("x");
    let nowhere = suite.path().join("no.sock");
    for (host, expected) in [
        (
            format!("unix://{nowhere}"),
            "nothing answers as the Docker engine at",
        ),
        (
            "ssh://somewhere".to_owned(),
            "expected an address that begins with `unix://`",
        ),
    ] {
        let assert = run_at(&host, &suite).assert();
        let said = stderr(&assert);
        assert.code(2);
        assert!(said.contains(expected) && said.contains(&host), "{said}");
        assert!(said.contains("`DOCKER_HOST`"), "{said}");
    }
}

#[test]
fn an_engine_that_hangs_up_is_infrastructure_and_no_failed_attempt() {
    let suite = suite("x");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let host = format!("tcp://127.0.0.1:{port}");
    run_at(&host, &suite).assert().code(4);
    let message = errored(&suite);
    assert!(
        message.contains(&format!("the Docker engine at `{host}`")),
        "{message}"
    );
}

#[test]
fn an_image_that_is_missing_ends_every_attempt_as_errored() {
    let Some(bench) = Bench::new() else { return };
    let suite = suite("localhost:1/no/such/image");
    run_at(&bench.host, &suite).assert().code(4);
    let message = errored(&suite);
    assert!(
        message.contains("cannot pull the image `localhost:1/no/such/image`"),
        "{message}"
    );
}

#[test]
fn a_network_or_a_user_that_is_not_there_fails_where_the_sandbox_is_made_and_says_what_to_do() {
    let Some(bench) = Bench::new() else { return };
    for (keys, expected, to_do) in [
        (
            "network: no-such-network",
            "network no-such-network not found",
            "set `sandbox.network` to",
        ),
        (
            "network: none, user: nobody-here",
            "unable to find user nobody-here",
            "set `sandbox.user` to",
        ),
    ] {
        let keys = format!("sandbox: {{ kind: docker, image: '{IMAGE}', {keys} }}\nretry: {{ tries: 1 }}");
        let suite = Suite::scripted("a/one", "format: exit-code", &keys, "exit 0");
        run_at(&bench.host, &suite).assert().code(4);
        let message = errored(&suite);
        assert!(message.starts_with("cannot start the container: "), "{message}");
        assert!(message.contains(expected) && message.contains(to_do), "{message}");
    }
}

#[tokio::test]
async fn a_container_that_somebody_deleted_is_a_lost_sandbox() {
    let Some(bench) = Bench::new() else { return };
    let mut sandbox = bench.start().await;
    run(&mut *sandbox, &shell("exit 0")).await.0.unwrap();
    let name = format!("evalwave-{}", bench.spec("a").name);
    let options = bollard::query_parameters::RemoveContainerOptionsBuilder::default().force(true);
    bench
        .client()
        .remove_container(&name, Some(options.build()))
        .await
        .unwrap();
    let error = run(&mut *sandbox, &shell("exit 0")).await.0.unwrap_err();
    assert_eq!(error.class, Some(ErrorClass::SandboxLost), "{error}");
    let error = sandbox.download("x".into(), &mut Vec::new()).await.unwrap_err();
    assert_eq!(error.class, Some(ErrorClass::SandboxLost), "{error}");
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn a_full_disk_is_told_apart() {
    let Some(mut bench) = Bench::new() else { return };
    let docker = bench.client();
    create_small_volume(&docker, &bench.run_id).await;
    bench.config.mounts = vec![evalwave::config::DockerMount {
        source: bench.run_id.clone(),
        target: "/work".to_owned(),
        read_only: false,
    }];
    bench.write("big", &"x".repeat(3_000_000));
    let mut sandbox = bench.start().await;
    let workspace = evalwave::sandbox::Workspace {
        root: bench.root.clone(),
        files: ["big".into()].into(),
    };
    let error = sandbox.upload(&workspace).await.unwrap_err();
    assert_eq!(
        error.class,
        Some(ErrorClass::OutOfDisk),
        "{}",
        evalwave::model::with_causes(&error)
    );
    // So is one that a command has filled.
    sh(&mut *sandbox, "rm -rf ./*").await;
    assert_eq!(sandbox.full_disk().await, None);
    sh(&mut *sandbox, "cat /dev/zero >fill; true").await;
    let expected = "no space left on the disk of the sandbox (0 KB)";
    assert_eq!(sandbox.full_disk().await.as_deref(), Some(expected));
    sandbox.stop().await.unwrap();
    remove_volume(&docker, &bench.run_id).await;
    assert!(docker.inspect_image(IMAGE).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_on_a_full_disk_is_no_failed_attempt() {
    let Some(bench) = Bench::new() else { return };
    let docker = bench.client();
    for (attempt, script, passed, class) in [
        ("format: exit-code", "exit 1", 0, Some("out_of_disk")),
        // The harness does not say that it could not write its result.
        (
            "result: result.json",
            "echo '{\"passed\": false}' >result.json; exit 0",
            0,
            Some("out_of_disk"),
        ),
        ("format: exit-code", "exit 0", 1, None),
    ] {
        create_small_volume(&docker, &bench.run_id).await;
        let keys = format!(
            "sandbox: {{ kind: docker, network: none, image: '{IMAGE}', mounts: ['{}:/work'] }}\nretry: {{ tries: 1 }}",
            bench.run_id
        );
        let script = format!("cat /dev/zero >fill 2>/dev/null; {script}");
        let suite = Suite::scripted("a/one", attempt, &keys, &script);
        let said = stderr(&run_at(&bench.host, &suite).assert());
        let summary = suite.read_json("out/summary.json");
        let totals = &summary["totals"];
        let graded = (&totals["passed"], &totals["failed"]);
        assert_eq!(graded, (&passed.into(), &0.into()), "{script}: {said}");
        let error = &summary["pairs"][0]["attempts"][0]["error"];
        assert_eq!(error["class"].as_str(), class, "{script}: {error}");
        remove_volume(&docker, &bench.run_id).await;
    }
}

/// A volume of 1 MB.
async fn create_small_volume(docker: &bollard::Docker, name: &str) {
    let options = [("type", "tmpfs"), ("device", "tmpfs"), ("o", "size=1m")];
    let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let request = bollard::models::VolumeCreateRequest {
        name: Some(name.to_owned()),
        driver_opts: Some(options.into()),
        ..Default::default()
    };
    docker.create_volume(request).await.unwrap();
}

async fn remove_volume(docker: &bollard::Docker, name: &str) {
    let options = None::<bollard::query_parameters::RemoveVolumeOptions>;
    docker.remove_volume(name, options).await.unwrap();
}
