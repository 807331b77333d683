//! Workspaces: what is in them, that the source stays as it is, and that nothing is left of them.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use evalwave::config::WorkspaceMode;
use evalwave::sandbox::local::LocalBackend;
use evalwave::sandbox::{Backend as _, Sandbox};

use super::{Bench, read, skipped};
use crate::support::sandbox::{PATIENCE, sh, start};

/// Runs git in the source, where it has to succeed. Returns its output.
fn git(bench: &Bench, arguments: &[&str]) -> String {
    let done = assert_cmd::Command::new("git")
        .args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.com",
            "-C",
            bench.source.as_str(),
        ])
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .assert()
        .success();
    String::from_utf8_lossy(&done.get_output().stdout).into_owned()
}

#[tokio::test]
async fn a_copy_has_what_is_listed_and_leaves_the_source_alone() {
    let mut bench = Bench::new();
    bench.config.link = vec!["modules".into()];
    bench.write("bin/run.sh", "#!/bin/sh\ncat ../data/in.txt\n");
    bench.write("data/in.txt", "before");
    bench.write("modules/m.js", "module");
    bench.write("ignored.log", "no");
    let run = bench.source.join("bin/run.sh");
    fs_err::set_permissions(&run, std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink("data/in.txt", bench.source.join("alias")).unwrap();
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    sandbox
        .upload(&bench.workspace(&["alias", "bin/run.sh", "data/in.txt", "modules/m.js"]))
        .await
        .unwrap();
    let output = sh(
        &mut *sandbox,
        "ls; readlink alias; (cd bin && ./run.sh); cat modules/m.js; printf after >data/in.txt",
    )
    .await;
    assert_eq!(output, "alias\nbin\ndata\nmodules\ndata/in.txt\nbeforemodule");
    assert_eq!(read(&bench.source.join("data/in.txt")), "before");
    assert_eq!(
        fs_err::metadata(bench.source.join("data/in.txt"))
            .unwrap()
            .nlink(),
        1
    );
    sandbox.stop().await.unwrap();
    assert_eq!(
        read(&bench.source.join("modules/m.js")),
        "module",
        "what is linked is not removed"
    );
    drop(backend);
    assert_eq!(bench.left(), 0);
}

#[tokio::test]
async fn what_an_attempt_made_unwritable_is_removed() {
    let bench = Bench::new();
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    sh(
        &mut *sandbox,
        "mkdir -p a/b/c && touch a/b/c/f && chmod 000 a/b/c a/b && chmod 500 a . \"$HOME\"",
    )
    .await;
    sandbox.stop().await.unwrap();
    assert_eq!(
        fs_err::read_dir(bench.temporary.join("evalwave-r1"))
            .unwrap()
            .count(),
        0
    );
}

#[tokio::test]
async fn a_sandbox_that_was_never_stopped_goes_with_the_engine() {
    let bench = Bench::new();
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    sh(&mut *sandbox, "touch file").await;
    drop(sandbox);
    drop(backend);
    assert_eq!(bench.left(), 0);
}

#[tokio::test]
async fn an_engine_that_started_nothing_made_nothing() {
    let bench = Bench::new();
    let backend = bench.backend();
    assert!(backend.capacity().running.is_some());
    assert_eq!(bench.left(), 0);
}

#[tokio::test]
async fn a_shared_workspace_is_the_source_itself_and_stays() {
    let mut bench = Bench::new();
    bench.config.workspace = WorkspaceMode::Shared;
    bench.write("file", "text");
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    sandbox.upload(&bench.workspace(&["file"])).await.unwrap();
    sh(&mut *sandbox, "printf new >made; touch \"$HOME/x\"").await;
    sandbox.stop().await.unwrap();
    assert_eq!(read(&bench.source.join("made")), "new");
    drop(backend);
    assert_eq!(bench.left(), 0);
}

#[tokio::test]
async fn an_overlay_holds_changes_apart() {
    let mut bench = Bench::new();
    bench.config.workspace = WorkspaceMode::Overlay;
    bench.write("dir/file", "before");
    let backend = match LocalBackend::new(&bench.config, bench.options(), &bench.source) {
        Ok(backend) => backend,
        Err(error) => {
            assert!(error.to_string().contains("use `workspace: copy`"), "{error}");
            skipped(&error.to_string());
            return;
        }
    };
    assert_eq!(bench.left(), 0, "the probe leaves nothing");
    let workspace = bench.workspace(&["dir/file"]);
    let mut sandboxes: Vec<Box<dyn Sandbox>> = Vec::new();
    for name in ["a", "b", "c"] {
        let mut sandbox = start(&backend, name).await;
        sandbox.upload(&workspace).await.unwrap();
        sandboxes.push(sandbox);
    }
    sh(
        &mut *sandboxes[0],
        "printf after >dir/file; mv dir moved; touch new",
    )
    .await;
    assert_eq!(
        sh(&mut *sandboxes[0], "cat moved/file; ls").await,
        "aftermoved\nnew\n"
    );
    assert_eq!(sh(&mut *sandboxes[1], "cat dir/file; ls").await, "beforedir\n");
    assert_eq!(read(&bench.source.join("dir/file")), "before");
    let unstopped = sandboxes.pop();
    for sandbox in sandboxes {
        sandbox.stop().await.unwrap();
    }
    drop((unstopped, backend));
    assert_eq!(bench.left(), 0);
    let mounts = fs_err::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(bench.temporary.as_str()), "{mounts}");
}

#[tokio::test]
async fn worktrees_are_made_eight_at_once_and_leave_no_trace() {
    let mut bench = Bench::new();
    bench.config.workspace = WorkspaceMode::Worktree;
    bench.write("file", "committed");
    git(&bench, &["init", "--quiet"]);
    git(&bench, &["add", "."]);
    git(&bench, &["commit", "--quiet", "--message", "one"]);
    bench.write("file", "not committed");
    let backend = bench.backend();
    let workspace = bench.workspace(&["file"]);
    let attempts = (0..8).map(|number| {
        let (backend, workspace) = (&backend, &workspace);
        async move {
            let mut sandbox = start(backend, &format!("w{number}")).await;
            sandbox.upload(workspace).await.unwrap();
            let seen = sh(&mut *sandbox, "cat file; printf mine >file").await;
            if number == 3 {
                sh(&mut *sandbox, "rm .git").await;
            }
            sandbox.stop().await.unwrap();
            seen
        }
    });
    assert_eq!(futures::future::join_all(attempts).await, ["committed"; 8]);
    assert_eq!(read(&bench.source.join("file")), "not committed");
    assert_eq!(git(&bench, &["worktree", "list"]).lines().count(), 1);
    drop(backend);
    assert_eq!(bench.left(), 0);
}

#[tokio::test]
async fn a_worktree_of_a_subdirectory_runs_there_and_can_commit() {
    let mut bench = Bench::new();
    bench.config.workspace = WorkspaceMode::Worktree;
    bench.write("evals/file", "text");
    git(&bench, &["init", "--quiet"]);
    git(&bench, &["add", "."]);
    git(&bench, &["commit", "--quiet", "--message", "one"]);
    let below = bench.source.join("evals");
    let backend = LocalBackend::new(&bench.config, bench.options(), &below).unwrap();
    let mut sandbox = start(&backend, "a").await;
    sandbox.upload(&bench.workspace(&[])).await.unwrap();
    let commit =
        "cat file; echo x >>file; git -c user.name=a -c user.email=a@example.com commit -q -a -m two";
    assert_eq!(sh(&mut *sandbox, commit).await, "text");
    sandbox.stop().await.unwrap();
    assert_eq!(git(&bench, &["log", "--format=%s"]), "one\n");
}

#[tokio::test]
async fn a_worktree_of_no_repository_is_refused_before_anything_starts() {
    let mut bench = Bench::new();
    bench.config.workspace = WorkspaceMode::Worktree;
    // Above the source there may be one: of what holds the build directory.
    let nowhere = camino::Utf8Path::new("/");
    let refused = LocalBackend::new(&bench.config, bench.options(), nowhere).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "cannot make worktrees of `/`, which `workspace: worktree` needs"
    );
}

#[tokio::test]
async fn results_come_out_and_old_ones_are_deleted() {
    let bench = Bench::new();
    bench.write("results/old.json", "old");
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    sandbox
        .upload(&bench.workspace(&["results/old.json"]))
        .await
        .unwrap();
    sandbox.remove("results/*.json").await.unwrap();
    sh(
        &mut *sandbox,
        "test ! -e results/old.json && printf new >results/new.json",
    )
    .await;
    let mut bytes = Vec::new();
    assert!(
        sandbox
            .download("results/old.json".into(), &mut bytes)
            .await
            .unwrap()
            .is_none()
    );
    assert!(bytes.is_empty());
    sandbox
        .download("results/new.json".into(), &mut bytes)
        .await
        .unwrap()
        .unwrap();
    let mut archive = tar::Archive::new(bytes.as_slice());
    let entry = archive.entries().unwrap().next().unwrap().unwrap();
    assert_eq!(entry.path().unwrap().to_str(), Some("new.json"));
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn a_store_that_fails_ends_the_download() {
    let bench = Bench::new();
    let backend = bench.backend();
    let mut sandbox = start(&backend, "a").await;
    sh(&mut *sandbox, "truncate -s 100M large").await;
    let mut full =
        tokio::io::BufWriter::with_capacity(1, tokio::fs::File::create("/dev/full").await.unwrap());
    let error = sandbox.download("large".into(), &mut full).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot store what `large` holds");
    assert_eq!(error.class, Some(evalwave::model::ErrorClass::OutOfDisk));
    sandbox.stop().await.unwrap();
}

#[test]
fn however_many_bring_out_large_files_at_once_all_of_them_end() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let bench = Bench::new();
    let backend = bench.backend();
    let many = async |number: usize| {
        let mut sandbox = start(&backend, &format!("s{number}")).await;
        sandbox.upload(&bench.workspace(&[])).await.unwrap();
        sh(&mut *sandbox, "head -c 1000000 /dev/zero >large").await;
        sandbox
    };
    runtime.block_on(async {
        let sandboxes = futures::future::join_all((0..100).map(many)).await;
        let out = sandboxes.into_iter().map(async |mut sandbox| {
            let mut file = tokio::fs::File::from_std(tempfile::tempfile().unwrap());
            sandbox
                .download("large".into(), &mut file)
                .await
                .unwrap()
                .unwrap();
            sandbox.stop().await.unwrap();
        });
        tokio::time::timeout(PATIENCE, futures::future::join_all(out))
            .await
            .expect("they wait for each other");
    });
}
