//! What goes into a sandbox, what comes out, and what stays apart.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use camino::Utf8Path;
use evalwave::sandbox::Sandbox;
use tokio::sync::mpsc;

use super::Bench;
use super::endings::drop_when_ready;
use crate::support::sandbox::{PATIENCE, sh, shell};

/// Names that a shell, a tar or a command line would stumble over.
const ODD: [&str; 7] = [
    "a b.txt",
    "quo'te\".txt",
    "-rf",
    "new\nline",
    "dir with space/é ü.txt",
    "$HOME;x&|*?[a].txt",
    "a-very-long-name-0123456789-0123456789-0123456789-0123456789-0123456789-0123456789-0123456789-0123456789-0123456789",
];

/// What a tar holds: a file's content, `-> target` of a link, `/` of a directory; with the mode of files.
async fn download(sandbox: &mut dyn Sandbox, from: &str) -> Option<BTreeMap<String, (u32, String)>> {
    let mut bytes = Vec::new();
    sandbox.download(Utf8Path::new(from), &mut bytes).await.unwrap()?;
    let mut archive = tar::Archive::new(bytes.as_slice());
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let path = entry
            .path()
            .unwrap()
            .to_str()
            .unwrap()
            .trim_end_matches('/')
            .to_owned();
        let mut content = String::new();
        match entry.header().entry_type() {
            tar::EntryType::Directory => return (path, (0, "/".to_owned())),
            tar::EntryType::Symlink => {
                let target = entry.link_name().unwrap().unwrap();
                return (path, (0, format!("-> {}", target.display())));
            }
            _ => std::io::Read::read_to_string(&mut entry, &mut content).unwrap(),
        };
        (path, (entry.header().mode().unwrap() & 0o777, content))
    });
    Some(entries.collect())
}

pub(super) async fn an_upload_keeps_modes_links_and_odd_names(bench: &Bench) {
    bench.write("bin/run.sh", "#!/bin/sh\ncat ../data/in.txt\n");
    bench.write("data/in.txt", "before");
    bench.write("empty", "");
    let run = bench.0.source().join("bin/run.sh");
    fs_err::set_permissions(&run, std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink("data/in.txt", bench.0.source().join("alias")).unwrap();
    symlink("/etc/hostname", bench.0.source().join("outside")).unwrap();
    symlink("nowhere", bench.0.source().join("broken")).unwrap();
    let mut files = vec!["alias", "bin/run.sh", "broken", "data/in.txt", "empty", "outside"];
    for name in ODD {
        bench.write(name, name);
        files.push(name);
    }
    files.sort_unstable();
    let mut sandbox = bench.with_files("upload", &files).await;
    let text = "readlink alias; readlink outside; readlink broken; (cd bin && ./run.sh); echo; wc -c <empty";
    let seen = sh(&mut *sandbox, text).await;
    assert_eq!(seen, "data/in.txt\n/etc/hostname\nnowhere\nbefore\n0\n");
    for name in ODD {
        let word = name.replace('\'', "'\\''");
        assert_eq!(sh(&mut *sandbox, &format!("cat './{word}'")).await, name);
    }
    sandbox.stop().await.unwrap();
}

pub(super) async fn an_upload_leaves_its_source_alone(bench: &Bench) {
    bench.write("dir/in.txt", "before");
    let mut sandbox = bench.with_files("source", &["dir/in.txt"]).await;
    let text = "printf after >dir/in.txt; printf new >dir/new.txt; rm -f dir/gone; cat dir/in.txt";
    assert_eq!(sh(&mut *sandbox, text).await, "after");
    sandbox.stop().await.unwrap();
    let directory = bench.0.source().join("dir");
    assert_eq!(
        fs_err::read_to_string(directory.join("in.txt")).unwrap(),
        "before"
    );
    assert_eq!(fs_err::read_dir(&directory).unwrap().count(), 1);
}

pub(super) async fn what_is_not_there_is_no_failure_to_download(bench: &Bench) {
    let mut sandbox = bench.start("missing").await;
    sh(&mut *sandbox, "touch file; mkfifo pipe").await;
    for path in [
        "result.json",
        "no/such/directory/result.json",
        "file/below",
        "pipe",
    ] {
        assert_eq!(download(&mut *sandbox, path).await, None, "{path}");
    }
    sandbox.stop().await.unwrap();
}

pub(super) async fn a_download_brings_trees_with_links_and_modes(bench: &Bench) {
    let mut sandbox = bench.start("trees").await;
    let text = "mkdir -p results/a/deep results/empty 'results/b c'; printf one >results/a/deep/one.txt
        printf two >'results/b c/two'; chmod 750 'results/b c/two'; ln -s deep/one.txt results/a/link
        ln -s /etc/passwd results/outside; printf result >result.json";
    sh(&mut *sandbox, text).await;
    let one = download(&mut *sandbox, "result.json").await.unwrap();
    assert_eq!(one["result.json"].1, "result");
    assert_eq!(one.len(), 1);
    let tree = download(&mut *sandbox, "results").await.unwrap();
    let content = |path: &str| tree.get(path).map(|(_, content)| content.as_str());
    assert_eq!(content("results/a/deep/one.txt"), Some("one"));
    assert_eq!(tree["results/b c/two"], (0o750, "two".to_owned()));
    assert_eq!(content("results/a/link"), Some("-> deep/one.txt"));
    assert_eq!(content("results/outside"), Some("-> /etc/passwd"), "{tree:?}");
    assert_eq!(content("results/empty"), Some("/"));
    let deep = download(&mut *sandbox, "results/a/deep").await.unwrap();
    assert_eq!(
        deep["deep/one.txt"].1, "one",
        "names begin with the last part of what was asked for"
    );
    sandbox.stop().await.unwrap();
}

pub(super) async fn a_download_of_the_workspace_has_the_paths_in_it(bench: &Bench) {
    bench.write("dir/in.txt", "uploaded");
    let mut sandbox = bench.with_files("whole", &["dir/in.txt"]).await;
    sh(
        &mut *sandbox,
        "printf one >one.json; printf two >dir/two.json; ln -s dir/two.json link",
    )
    .await;
    let whole = download(&mut *sandbox, "").await.unwrap();
    let content = |path: &str| {
        let found = whole.get(path).or_else(|| whole.get(&format!("./{path}")));
        found.map(|(_, content)| content.as_str())
    };
    for (path, expected) in [
        ("one.json", "one"),
        ("dir/in.txt", "uploaded"),
        ("dir/two.json", "two"),
        ("link", "-> dir/two.json"),
    ] {
        assert_eq!(content(path), Some(expected), "{path}: {whole:?}");
    }
    sandbox.stop().await.unwrap();
}

pub(super) async fn a_large_file_comes_back_whole(bench: &Bench) {
    let mut sandbox = bench.start("large").await;
    sh(
        &mut *sandbox,
        "head -c 20000000 /dev/zero >large; printf end >>large",
    )
    .await;
    let mut bytes = Vec::new();
    let found = sandbox
        .download(Utf8Path::new("large"), &mut bytes)
        .await
        .unwrap();
    assert!(found.is_some());
    let mut archive = tar::Archive::new(bytes.as_slice());
    let mut entry = archive.entries().unwrap().next().unwrap().unwrap();
    let mut content = Vec::new();
    std::io::Read::read_to_end(&mut entry, &mut content).unwrap();
    assert_eq!(content.len(), 20_000_003);
    assert!(content.ends_with(b"\0end"));
    sandbox.stop().await.unwrap();
}

pub(super) async fn nothing_of_this_machine_is_brought_out(bench: &Bench) {
    let outside = bench.0.source().with_file_name("outside");
    fs_err::create_dir(&outside).unwrap();
    fs_err::write(outside.join("secret.txt"), "of this machine").unwrap();
    let mut sandbox = bench.start("outside").await;
    let links = format!("ln -s {outside} out; ln -s {outside}/secret.txt secret.txt; ln -s .. up; mkdir in");
    sh(&mut *sandbox, &links).await;
    let absolute = format!("{outside}/secret.txt");
    for path in [
        "out/secret.txt",
        "secret.txt",
        "out",
        "up/../secret.txt",
        &absolute,
        "in/../../secret.txt",
    ] {
        let mut bytes = Vec::new();
        // Not there, or refused: both will do.
        let brought = sandbox.download(Utf8Path::new(path), &mut bytes).await;
        assert!(!matches!(brought, Ok(Some(()))), "{path}");
        assert!(
            !String::from_utf8_lossy(&bytes).contains("of this machine"),
            "{path}"
        );
    }
    assert!(
        sandbox
            .download(Utf8Path::new("../x"), &mut Vec::new())
            .await
            .is_err()
    );
    sandbox.stop().await.unwrap();
}

pub(super) async fn a_result_may_be_a_link_within_the_workspace(bench: &Bench) {
    let mut sandbox = bench.start("link").await;
    sh(&mut *sandbox, "mkdir -p real/deep; printf result >real/deep/r.json; ln -s real/deep/r.json result.json; ln -s real tree").await;
    let one = download(&mut *sandbox, "result.json").await.unwrap();
    assert_eq!(one["result.json"].1, "result");
    let tree = download(&mut *sandbox, "tree").await.unwrap();
    assert_eq!(tree["tree/deep/r.json"].1, "result");
    sandbox.stop().await.unwrap();
}

pub(super) async fn a_store_that_fails_ends_a_download_however_much_is_still_to_come(bench: &Bench) {
    let mut sandbox = bench.start("full").await;
    sh(
        &mut *sandbox,
        "head -c 3000000 /dev/urandom >large; ln -s large link",
    )
    .await;
    for from in ["large", "link"] {
        let mut full =
            tokio::io::BufWriter::with_capacity(1, tokio::fs::File::create("/dev/full").await.unwrap());
        let downloaded = sandbox.download(Utf8Path::new(from), &mut full);
        let ended = tokio::time::timeout(PATIENCE, downloaded)
            .await
            .expect("it waits for itself");
        assert!(ended.is_err(), "{from}");
    }
    sandbox.stop().await.unwrap();
}

pub(super) async fn an_old_result_is_removed_and_nothing_else(bench: &Bench) {
    let old = [
        "results/a.json",
        "results/deep/b.json",
        "results/keep.txt",
        "other/a.json",
        "-x y.json",
    ];
    for path in old {
        bench.write(path, "old");
    }
    let mut sandbox = bench.with_files("old", &old).await;
    for pattern in ["results/**/*.json", "-x y.json", "no/such/file", "no/**/such"] {
        sandbox.remove(pattern).await.unwrap();
    }
    let text = "find . -type f | sort";
    assert_eq!(
        sh(&mut *sandbox, text).await,
        "./other/a.json\n./results/keep.txt\n"
    );
    let text = "mkdir -p results/tree/a \"$TMPDIR/out\"; touch results/tree/a/b \"$TMPDIR/out/a.json\"
        ln -s \"$TMPDIR/out\" results/link";
    sh(&mut *sandbox, text).await;
    sandbox.remove("results/tree").await.unwrap();
    // What lies behind a link out of the workspace is not the pattern's.
    let _ = sandbox.remove("results/link/a.json").await;
    let seen = sh(&mut *sandbox, "ls results; ls \"$TMPDIR/out\"").await;
    assert_eq!(seen, "deep\nkeep.txt\nlink\na.json\n");
    assert!(sandbox.remove("../outside").await.is_err());
    sandbox.stop().await.unwrap();
}

pub(super) async fn what_a_dropped_command_wrote_is_brought_out(bench: &Bench) {
    for (name, path, pattern) in [
        ("late-path", "result.json", "result.json"),
        ("late-glob", "results/a/b.json", "results/**/*.json"),
    ] {
        bench.write(path, "old");
        let mut sandbox = bench.with_files(name, &[path]).await;
        sandbox.remove(pattern).await.unwrap();
        let text = format!("mkdir -p results/a; printf new >{path}; echo ready; sleep 1000");
        drop_when_ready(&mut *sandbox, &shell(&text)).await;
        let brought = download(&mut *sandbox, path).await.unwrap();
        let content: Vec<&str> = brought.values().map(|(_, content)| content.as_str()).collect();
        assert_eq!(content, ["new"]);
        // To the next command it is an old one.
        sandbox.remove(pattern).await.unwrap();
        sh(&mut *sandbox, "true").await;
        assert_eq!(download(&mut *sandbox, path).await, None);
        sandbox.stop().await.unwrap();
    }
}

pub(super) async fn an_old_result_is_not_brought_out_though_no_command_began(bench: &Bench) {
    bench.write("result.json", "old");
    let mut sandbox = bench.with_files("unbegun", &["result.json"]).await;
    sandbox.remove("result.json").await.unwrap();
    let (sender, _receiver) = mpsc::channel(1);
    let command = shell("sleep 1000");
    drop(sandbox.exec(&command, &sender));
    tokio::select! {
        biased;
        _ = sandbox.exec(&command, &sender) => panic!("it waits for ever"),
        () = std::future::ready(()) => {}
    }
    assert_eq!(download(&mut *sandbox, "result.json").await, None);
    sandbox.stop().await.unwrap();
}

pub(super) async fn sandboxes_do_not_see_each_others_files(bench: &Bench) {
    bench.write("shared.txt", "before");
    let mut one = bench.with_files("apart-one", &["shared.txt"]).await;
    let mut other = bench.with_files("apart-other", &["shared.txt"]).await;
    sh(&mut *one, "printf mine >shared.txt; printf mine >new.txt").await;
    assert_eq!(sh(&mut *other, "cat shared.txt; ls").await, "beforeshared.txt\n");
    one.stop().await.unwrap();
    assert_eq!(sh(&mut *other, "cat shared.txt").await, "before");
    other.stop().await.unwrap();
}
