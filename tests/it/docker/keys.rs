//! What each key of `sandbox` does to a container.

use std::io::{BufRead as _, Write as _};
use std::os::unix::fs::MetadataExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use evalwave::config::DockerMount;
use evalwave::model::ErrorClass;
use evalwave::sandbox::docker::DockerBackend;
use evalwave::sandbox::{Backend as _, Command, Exit, Workspace};

use super::Bench;
use crate::support::docker::{containers, docker_config};
use crate::support::sandbox::{Remembered, run, sh, shell};

#[test]
fn eight_containers_may_start_at_once() {
    let engine = evalwave::sandbox::docker::DockerEngine::default();
    let capacity = evalwave::sandbox::docker::capacity(&docker_config(), &engine);
    assert_eq!(capacity.starting, 8);
}

#[tokio::test]
async fn limits_network_platform_and_labels_are_the_containers() {
    let Some(mut bench) = Bench::new() else { return };
    bench.config.memory = Some(64_000_000);
    bench.config.cpus = Some(0.5);
    bench.config.pids = Some(50);
    bench.config.platform = Some("linux/amd64".to_owned());
    let mut sandbox = bench.start().await;
    assert_eq!(
        sh(&mut *sandbox, "ls /sys/class/net").await,
        "lo\n",
        "`network: none`"
    );
    let found = containers(&bench.host, &bench.run_id).await;
    let labels = found[0].labels.as_ref().unwrap();
    assert_eq!(labels["evalwave.eval"], "é/val");
    assert_eq!(labels["evalwave.expires"], "2030-01-01T00:00:00Z");
    let id = found[0].id.clone().unwrap();
    let inspected = bench.client().inspect_container(&id, None).await.unwrap();
    let host = inspected.host_config.unwrap();
    assert_eq!(
        (host.memory, host.memory_swap),
        (Some(64_000_000), Some(64_000_000))
    );
    assert_eq!((host.nano_cpus, host.pids_limit), (Some(500_000_000), Some(50)));
    assert_eq!(
        host.auto_remove,
        Some(true),
        "it goes at its own limit, whoever is there"
    );
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn memory_that_is_used_up_is_told_from_a_command_that_was_killed() {
    let Some(mut bench) = Bench::new() else { return };
    bench.config.memory = Some(MEMORY);
    // Where the kernel does not say how often it has killed, the engine is asked.
    bench.write("empty/file", "");
    let hidden = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"]
        .iter()
        .find(|path| Utf8Path::new(path).is_dir())
        .map(|path| DockerMount {
            source: "./empty".to_owned(),
            target: (*path).to_owned(),
            read_only: true,
        });
    for mounts in [Vec::new(), hidden.into_iter().collect()] {
        bench.config.mounts = mounts;
        let mut sandbox = bench.start().await;
        let killed = run(&mut *sandbox, &shell("kill -9 $$")).await.0.unwrap();
        assert_eq!(killed, Exit::Code(137));
        for _ in 0..2 {
            let error = run(&mut *sandbox, &shell(EAT)).await.0.unwrap_err();
            assert_eq!(error.class, Some(ErrorClass::OutOfMemory), "{error}");
        }
        // An earlier one is not blamed on the next command.
        let failed = run(&mut *sandbox, &shell("exit 3")).await.0.unwrap();
        assert_eq!(failed, Exit::Code(3));
        sandbox.stop().await.unwrap();
    }
}

#[tokio::test]
async fn memory_that_a_command_used_up_and_got_over_is_not_blamed_on_the_next_one() {
    let Some(mut bench) = Bench::new() else { return };
    bench.config.memory = Some(MEMORY);
    let mut sandbox = bench.start().await;
    let over = shell(&format!("({EAT}); echo $?"));
    for keeps_daemons in [false, true] {
        let command = Command {
            keeps_daemons,
            ..over.clone()
        };
        let (exit, said) = run(&mut *sandbox, &command).await;
        assert_eq!(exit.unwrap(), Exit::Code(0), "{said}");
        assert!(said.ends_with("137\n"), "{said}");
        for code in [1, 137] {
            let failed = run(&mut *sandbox, &shell(&format!("exit {code}")))
                .await
                .0
                .unwrap();
            assert_eq!(failed, Exit::Code(code));
        }
    }
    sandbox.stop().await.unwrap();
}

/// Room for what the engine itself needs for a moment to start a command.
const MEMORY: u64 = 64_000_000;

/// Uses up the memory, and is what the kernel kills first for it.
const EAT: &str =
    "echo 1000 >/proc/self/oom_score_adj; x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}";

#[tokio::test]
async fn a_user_that_is_not_root_owns_the_workspace_and_is_killed_like_any_other() {
    let Some(mut bench) = Bench::new() else { return };
    bench.config.user = Some("agent".to_owned());
    bench.write("dir/file.txt", "text");
    let mut sandbox = bench.start().await;
    let workspace = Workspace {
        root: bench.root.clone(),
        files: [Utf8PathBuf::from("dir/file.txt")].into(),
    };
    sandbox.upload(&workspace).await.unwrap();
    let text = "id -un; echo more >>dir/file.txt; touch new; (setsid sleep 1000 &); sleep 1000 &";
    assert_eq!(sh(&mut *sandbox, text).await, "agent\n");
    let left = sh(&mut *sandbox, "ps -o args | grep -c '^sleep 1000'; true").await;
    assert_eq!(left, "0\n");
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn a_read_only_container_has_a_workspace_and_a_directory_for_temporary_files() {
    let Some(mut bench) = Bench::new() else { return };
    bench.config.read_only = true;
    bench.write("file.txt", "text");
    let mut sandbox = bench.start().await;
    let workspace = Workspace {
        root: bench.root.clone(),
        files: [Utf8PathBuf::from("file.txt")].into(),
    };
    sandbox.upload(&workspace).await.unwrap();
    let text = "cat file.txt; touch new \"$TMPDIR/new\"; touch /etc/new 2>/dev/null || echo refused";
    assert_eq!(sh(&mut *sandbox, text).await, "textrefused\n");
    let mut tar = Vec::new();
    let found = sandbox.download("new".into(), &mut tar).await.unwrap();
    assert!(found.is_some());
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn mounts_are_there_and_read_only_where_asked_for() {
    let Some(mut bench) = Bench::new() else { return };
    bench.write("shared/file.txt", "of the host");
    let mount = |source: &str, target: &str, read_only| DockerMount {
        source: source.to_owned(),
        target: target.to_owned(),
        read_only,
    };
    bench.config.mounts = vec![
        mount("./shared", "/mnt/ro", true),
        mount("./shared", "/mnt/rw", false),
    ];
    let mut sandbox = bench.start().await;
    let text = "cat /mnt/ro/file.txt; touch /mnt/ro/new 2>/dev/null || echo refused; touch /mnt/rw/new";
    assert_eq!(sh(&mut *sandbox, text).await, "of the hostrefused\n");
    assert!(bench.root.join("shared/new").exists());
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_mounted_in_the_workspace_stays_its_owners() {
    let Some(mut bench) = Bench::new() else { return };
    bench.config.user = Some("agent".to_owned());
    bench.write("shared/file.txt", "of the host");
    bench.write("lock.txt", "");
    for (read_only, target) in [(false, "/work/rw"), (true, "/work/ro")] {
        bench.config.mounts = vec![DockerMount {
            source: "./shared".to_owned(),
            target: target.to_owned(),
            read_only,
        }];
        let mut sandbox = bench.start().await;
        sandbox.upload(&super::workspace(&bench)).await.unwrap();
        assert_eq!(sh(&mut *sandbox, "stat -c %U lock.txt .").await, "agent\nagent\n");
        let owner = |path: &str| fs_err::metadata(bench.root.join(path)).unwrap().uid();
        assert_eq!(
            (owner("shared"), owner("shared/file.txt")),
            (owner("lock.txt"), owner("lock.txt"))
        );
        sandbox.stop().await.unwrap();
    }
}

#[tokio::test]
async fn a_command_that_the_engine_cannot_start_is_no_exit_code_of_its_own() {
    let Some(bench) = Bench::new() else { return };
    let mut sandbox = bench.start().await;
    let large = Command {
        env: vec![("LARGE".to_owned(), "x".repeat(140_000))],
        ..shell("exit 0")
    };
    let error = run(&mut *sandbox, &large).await.0.unwrap_err();
    assert!(
        error
            .message
            .starts_with("cannot run the command in the container: "),
        "{error}"
    );
    assert!(error.message.contains("`attempt.env`"), "{error}");
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn a_result_behind_a_link_that_leads_out_of_the_workspace_is_not_read() {
    let Some(bench) = Bench::new() else { return };
    let mut sandbox = bench.start().await;
    sh(
        &mut *sandbox,
        "mkdir /tmp/far near; echo x >/tmp/far/r.json; echo y >near/r.json",
    )
    .await;
    sh(&mut *sandbox, "ln -s /tmp/far out; ln -s near in").await;
    let mut tar = Vec::new();
    assert!(
        sandbox
            .download("in/r.json".into(), &mut tar)
            .await
            .unwrap()
            .is_some()
    );
    let error = sandbox.download("out/r.json".into(), &mut tar).await.unwrap_err();
    assert!(error.message.contains("it leads out of the workspace"), "{error}");
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn a_mount_of_what_is_not_there_is_refused_and_nothing_is_made_of_it() {
    let Some(mut bench) = Bench::new() else { return };
    for (source, expected) in [("./absent", "create it"), ("~/absent", "`~` has no meaning")] {
        bench.config.mounts = vec![DockerMount {
            source: source.to_owned(),
            target: "/mnt/absent".to_owned(),
            read_only: true,
        }];
        let made = DockerBackend::new(&bench.config, bench.engine(), &bench.root);
        let why = made.map(|_| ()).unwrap_err().to_string();
        assert!(why.starts_with(&format!("cannot mount `{source}`")), "{why}");
        assert!(why.contains(expected), "{why}");
    }
    assert!(!bench.root.join("absent").exists());
}

#[tokio::test]
async fn what_a_command_writes_where_its_end_is_reported_does_not_change_how_it_ended() {
    let Some(bench) = Bench::new() else { return };
    let mut sandbox = bench.start().await;
    for said in ["echo x", "printf x", "true"] {
        let text = format!("{said} >/proc/$PPID/fd/5; exit 7");
        let ended = run(&mut *sandbox, &shell(&text)).await.0.unwrap();
        assert_eq!(ended, Exit::Code(7), "{said}");
    }
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn an_init_process_is_the_first_and_what_is_left_behind_is_killed_all_the_same() {
    let Some(mut bench) = Bench::new() else { return };
    bench.config.init = true;
    let mut sandbox = bench.start().await;
    let text =
        "(setsid sleep 1000 &); sleep 1000 & tr '\\0' ' ' </proc/1/cmdline | cut -d' ' -f1 | head -n 1";
    assert_eq!(sh(&mut *sandbox, text).await, "/sbin/docker-init\n");
    let left = sh(&mut *sandbox, "ps -o args | grep -c '^sleep 1000$'; true").await;
    assert_eq!(left, "0\n");
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn a_privileged_container_is_one_and_is_called_unconfined() {
    let Some(mut bench) = Bench::new() else { return };
    bench.config.privileged = true;
    // Not every engine of a test may start one, and it would start any other.
    let started = bench
        .backend()
        .start(&bench.spec("a"), &Remembered::default())
        .await;
    let sandbox = match started {
        Ok(sandbox) => sandbox,
        Err(error) => {
            let why = evalwave::model::with_causes(&error);
            assert!(why.contains("operation not permitted"), "{why}");
            return;
        }
    };
    let found = containers(&bench.host, &bench.run_id).await;
    let inspected = bench
        .client()
        .inspect_container(found[0].id.as_ref().unwrap(), None)
        .await;
    assert_eq!(inspected.unwrap().host_config.unwrap().privileged, Some(true));
    assert!(
        sandbox
            .confinement()
            .contains(&"not confined: `privileged: true`".to_owned())
    );
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn the_bridge_leads_to_the_engines_machine_and_no_network_leads_nowhere() {
    let Some(mut bench) = Bench::new() else { return };
    let listener = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let asked = std::io::BufReader::new(&stream).lines().map_while(Result::ok);
            asked.take_while(|line| !line.is_empty()).for_each(drop);
            let _ = (&stream).write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 8\r\n\r\nreached\n");
        }
    });
    let mut gateway = String::new();
    for (network, expected) in [("bridge", "reached\n"), ("none", "unreachable\n")] {
        bench.config.network = network.to_owned();
        let mut sandbox = bench.start().await;
        if network == "bridge" {
            let route = "ip route | sed -n 's/^default via \\([0-9.]*\\).*/\\1/p'";
            gateway = sh(&mut *sandbox, route).await.trim().to_owned();
        }
        assert_ne!(gateway, "");
        let ask = format!("wget -q -O - http://{gateway}:{port}/ 2>/dev/null || echo unreachable");
        assert_eq!(sh(&mut *sandbox, &ask).await, expected, "`network: {network}`");
        let confinement = sandbox.confinement();
        assert_eq!(confinement.contains(&"no network".to_owned()), network == "none");
        sandbox.stop().await.unwrap();
    }
}

#[tokio::test]
async fn a_network_of_a_name_is_joined() {
    let Some(mut bench) = Bench::new() else { return };
    let docker = bench.client();
    let request = bollard::models::NetworkCreateRequest {
        name: bench.run_id.clone(),
        ..Default::default()
    };
    docker.create_network(request).await.unwrap();
    bench.config.network = bench.run_id.clone();
    let mut sandbox = bench.start().await;
    assert_eq!(sh(&mut *sandbox, "ls /sys/class/net").await, "eth0\nlo\n");
    sandbox.stop().await.unwrap();
    docker.remove_network(&bench.run_id).await.unwrap();
}

#[tokio::test]
async fn a_container_ends_by_itself_at_its_own_limit() {
    let Some(bench) = Bench::new() else { return };
    let mut spec = bench.spec("short");
    spec.limit = std::time::Duration::from_secs(1);
    let (backend, ledger) = (bench.backend(), Remembered::default());
    let mut sandbox = backend.start(&spec, &ledger).await.unwrap();
    let error = run(&mut *sandbox, &shell("sleep 1000")).await.0.unwrap_err();
    assert_eq!(error.class, Some(ErrorClass::SandboxLost), "{error}");
    sandbox.stop().await.unwrap();
    assert!(containers(&bench.host, &bench.run_id).await.is_empty());
}
