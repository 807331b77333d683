use std::process::Command;

use camino::Utf8Path;

use super::tests::{Dir, message};
use super::{changed_files, commit, workspace_files};
use crate::config::UploadConfig;

#[expect(
    clippy::disallowed_methods,
    reason = "the repositories of the tests are made by git"
)]
fn git(root: &Utf8Path, args: &[&str]) {
    let output = Command::new("git")
        .args(["-C", root.as_str(), "-c", "user.name=t", "-c", "user.email=t@t"])
        .args(["-c", "commit.gpgSign=false", "-c", "protocol.file.allow=always"])
        .args(args)
        .env_remove("GIT_DIR")
        .env_remove("GIT_INDEX_FILE")
        .env_remove("GIT_WORK_TREE")
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
}

fn init(files: &[(&str, &str)]) -> Dir {
    let dir = Dir::new(files);
    git(dir.root(), &["init", "-q", "-b", "main"]);
    save(&dir);
    dir
}

fn save(dir: &Dir) {
    git(dir.root(), &["add", "-A"]);
    git(dir.root(), &["commit", "-q", "--allow-empty", "-m", "x"]);
}

fn remove(dir: &Dir, file: &str) {
    fs_err::remove_file(dir.root().join(file)).unwrap();
}

fn changed(root: &Utf8Path, reference: &str) -> Result<Vec<String>, String> {
    changed_files(root, reference)
        .map(|files| files.into_iter().map(Into::into).collect())
        .map_err(|error| message(&error))
}

fn upload(include: &[&str], exclude: &[&str]) -> UploadConfig {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    UploadConfig {
        git: true,
        include: owned(include),
        exclude: owned(exclude),
    }
}

fn files(root: &Utf8Path, upload: &UploadConfig, leave_out: &[&str]) -> Result<Vec<String>, String> {
    let leave_out: Vec<_> = leave_out.iter().map(Into::into).collect();
    workspace_files(root, upload, &leave_out)
        .map(|files| files.into_iter().map(Into::into).collect())
        .map_err(|error| message(&error))
}

#[test]
fn changed_files_are_those_that_differ_from_where_the_branches_part() {
    let same = "the same text in a file that is long enough to be seen as renamed\n";
    let dir = init(&[
        ("kept", "1"),
        ("edited", "1"),
        ("evals/old é", same),
        ("gone", "1"),
        (".gitignore", "*.log\n"),
    ]);
    git(dir.root(), &["checkout", "-q", "-b", "work"]);
    git(dir.root(), &["mv", "evals/old é", "evals/new"]);
    dir.write("committed", "1");
    save(&dir);
    git(dir.root(), &["checkout", "-q", "main"]);
    dir.write("on-main-only", "1");
    save(&dir);
    git(dir.root(), &["checkout", "-q", "work"]);
    dir.write("edited", "2");
    dir.write("staged", "1");
    git(dir.root(), &["add", "staged"]);
    dir.write("evals/untracked", "1");
    dir.write("ignored.log", "1");
    remove(&dir, "gone");
    assert_eq!(
        changed(dir.root(), "main").unwrap(),
        [
            "committed",
            "edited",
            "evals/new",
            "evals/old é",
            "evals/untracked",
            "gone",
            "staged"
        ]
    );
    assert_eq!(
        changed(&dir.root().join("evals"), "main").unwrap(),
        ["new", "old é", "untracked"]
    );
    assert_eq!(
        changed(dir.root(), "HEAD").unwrap(),
        ["edited", "evals/untracked", "gone", "staged"]
    );
}

#[test]
fn a_reference_that_cannot_be_compared_with_says_what_to_do() {
    let dir = init(&[("a", "1")]);
    let error = |reference: &str| changed(dir.root(), reference).unwrap_err();
    assert_eq!(
        error("origin/main"),
        "cannot find the commit `origin/main` in this repository\nfetch it first; actions/checkout does with \
         `fetch-depth: 0`"
    );
    for reference in ["--output=x", "-", ""] {
        assert!(
            error(reference).starts_with("cannot use `"),
            "{}",
            error(reference)
        );
    }
    git(dir.root(), &["checkout", "-q", "--orphan", "other"]);
    dir.write("b", "");
    save(&dir);
    assert!(error("main").contains("no commit in common"));

    let plain = Dir::new(&[]);
    assert_eq!(
        changed(plain.root(), "main").unwrap_err(),
        format!(
            "cannot tell which files changed: `{}` is not in a git work tree",
            plain.root()
        )
    );
}

#[test]
fn the_commit_is_that_of_the_checkout_where_there_is_one() {
    let dir = Dir::new(&[("sub/a", "1")]);
    assert_eq!(commit(dir.root()), None);
    git(dir.root(), &["init", "-q"]);
    assert_eq!(commit(dir.root()), None);
    save(&dir);
    assert_eq!(commit(&dir.root().join("sub")).unwrap().len(), 40);
}

#[test]
fn a_workspace_is_what_git_would_commit() {
    let dir = init(&[
        ("app/src/main.ts", ""),
        ("app/deleted", ""),
        ("elsewhere", ""),
        (".gitignore", "*.log\ndist/\n.env\nnode_modules\nout*/\n"),
    ]);
    dir.write("app/new file é", "");
    dir.write("app/x.log", "");
    dir.write("app/.env", "");
    dir.write("app/dist/deep/bundle.js", "");
    dir.write("app/dist/deep/bundle.log", "");
    dir.write("app/node_modules/m/index.js", "");
    dir.write("app/out/summary.json", "");
    dir.write("app/results/tracked.json", "");
    git(dir.root(), &["add", "app/results"]);
    remove(&dir, "app/deleted");
    let app = dir.root().join("app");
    let all = ["new file é", "results/tracked.json", "src/main.ts"];
    assert_eq!(files(&app, &upload(&[], &[]), &[]).unwrap(), all);
    assert_eq!(
        files(
            &app,
            &upload(
                &["dist", ".env", "no-such/**", "node_modules/**"],
                &["**/*.log", "src/"]
            ),
            &["results"]
        )
        .unwrap(),
        [
            ".env",
            "dist/deep/bundle.js",
            "new file é",
            "node_modules/m/index.js"
        ]
    );
    let absolute = app.join("results");
    let outputs = [absolute.as_str(), "out/../out", "../elsewhere"];
    assert_eq!(
        files(&app, &upload(&["out/**"], &[]), &outputs).unwrap(),
        ["new file é", "src/main.ts"]
    );
    assert_eq!(
        files(&app, &upload(&["out/*.json"], &[]), &[]).unwrap(),
        [
            "new file é",
            "out/summary.json",
            "results/tracked.json",
            "src/main.ts"
        ]
    );
    for root in [".", "./out/..", app.as_str()] {
        assert!(
            files(&app, &upload(&[], &[]), &[root])
                .unwrap_err()
                .contains("is the workspace itself")
        );
    }
    assert!(
        files(&app, &upload(&["../*"], &[]), &[])
            .unwrap_err()
            .starts_with("cannot use `attempt.upload.include`")
    );
}

#[test]
fn repositories_within_the_repository_are_part_of_its_workspace() {
    let library = init(&[("lib.c", ""), (".gitignore", "*.o\n")]);
    let dir = init(&[("a", "")]);
    git(
        dir.root(),
        &[
            "submodule",
            "--quiet",
            "add",
            library.root().as_str(),
            "vendor/lib",
        ],
    );
    save(&dir);
    dir.write("vendor/lib/lib.o", "");
    dir.write("nested/code", "");
    dir.write("nested/skip.o", "");
    dir.write("nested/.gitignore", "*.o\n");
    git(&dir.root().join("nested"), &["init", "-q"]);
    assert_eq!(
        files(dir.root(), &upload(&[], &[]), &[]).unwrap(),
        [
            ".gitmodules",
            "a",
            "nested/.gitignore",
            "nested/code",
            "vendor/lib/.gitignore",
            "vendor/lib/lib.c"
        ]
    );
    let clone = Dir::new(&[]);
    git(clone.root(), &["clone", "-q", dir.root().as_str(), "c"]);
    assert_eq!(
        files(&clone.root().join("c"), &upload(&[], &[]), &[]).unwrap(),
        [".gitmodules", "a"],
        "a submodule that was not fetched is empty"
    );
}

#[test]
fn outside_of_git_a_workspace_is_every_file() {
    let dir = Dir::new(&[("a", ""), ("b/c.log", ""), ("out/x", ""), ("b/d/e", "")]);
    assert_eq!(
        files(dir.root(), &upload(&[], &["b/d"]), &["out"]).unwrap(),
        ["a", "b/c.log"]
    );
    let dir = init(&[("tracked", ""), (".gitignore", "scratch\n")]);
    dir.write("scratch/suite/a", "");
    assert_eq!(
        files(&dir.root().join("scratch/suite"), &upload(&[], &[]), &[]).unwrap(),
        ["a"],
        "git ignores the whole directory, so that it says nothing of what is in it"
    );
    let everything = UploadConfig {
        git: false,
        ..upload(&[], &[])
    };
    assert_eq!(
        files(dir.root(), &everything, &[]).unwrap(),
        [".gitignore", "scratch/suite/a", "tracked"]
    );
}

#[test]
fn a_repository_that_git_cannot_read_is_an_error_and_no_reason_to_send_everything() {
    let dir = Dir::new(&[("secret", ""), (".git", "gitdir: /no/such/place\n")]);
    assert!(
        files(dir.root(), &upload(&[], &[]), &[])
            .unwrap_err()
            .starts_with("cannot look at the repository: git says: fatal: not a git repository")
    );
}

#[cfg(unix)]
#[test]
fn links_are_taken_as_they_are_and_special_files_are_not_taken() {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    for repository in [true, false] {
        let dir = Dir::new(&[("real/a", "")]);
        symlink("real", dir.root().join("link")).unwrap();
        symlink("nowhere", dir.root().join("dangling")).unwrap();
        let _socket = UnixListener::bind(dir.root().join("socket")).unwrap();
        if repository {
            git(dir.root(), &["init", "-q"]);
        }
        assert_eq!(
            files(dir.root(), &upload(&["link/**"], &[]), &[]).unwrap(),
            ["dangling", "link", "real/a"]
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_no_text_is_an_error_unless_it_is_left_out() {
    use std::os::unix::ffi::OsStrExt;
    for repository in [true, false] {
        let dir = Dir::new(&[("a", "")]);
        let name = std::ffi::OsStr::from_bytes(b"bad\xff.txt");
        fs_err::write(dir.root().as_std_path().join(name), "").unwrap();
        if repository {
            git(dir.root(), &["init", "-q"]);
        }
        assert!(
            files(dir.root(), &upload(&[], &[]), &[])
                .unwrap_err()
                .contains("its name is not UTF-8")
        );
        assert_eq!(
            files(dir.root(), &upload(&[], &["bad*"]), &[]),
            Ok(vec!["a".to_owned()])
        );
    }
}
