use std::collections::BTreeMap;
use std::io::{Read as _, Write};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use camino::{Utf8Path, Utf8PathBuf};

use super::{pack, remove};

/// `workspace` in a directory that also holds `outside/secret`.
fn workspace() -> (tempfile::TempDir, Utf8PathBuf) {
    let temporary = tempfile::tempdir().unwrap();
    let base = Utf8PathBuf::from_path_buf(temporary.path().canonicalize().unwrap()).unwrap();
    fs_err::create_dir_all(base.join("workspace/results/a")).unwrap();
    fs_err::create_dir(base.join("outside")).unwrap();
    fs_err::write(base.join("outside/secret.json"), "secret").unwrap();
    for file in ["results/a/one.json", "results/a/two.json", "results/a/log.txt"] {
        fs_err::write(base.join("workspace").join(file), file).unwrap();
    }
    let workspace = base.join("workspace");
    (temporary, workspace)
}

/// Names and contents of what was packed; a link's content is `-> target`, a directory's `/`.
fn packed(root: &Utf8Path, from: &str) -> Option<BTreeMap<String, String>> {
    let mut bytes = Vec::new();
    pack(root, from.into(), &mut bytes).unwrap()?;
    let mut entries = BTreeMap::new();
    for entry in tar::Archive::new(bytes.as_slice()).entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().to_str().unwrap().to_owned();
        let content = match entry.link_name().unwrap() {
            Some(target) => format!("-> {}", target.display()),
            None if entry.header().entry_type().is_dir() => "/".to_owned(),
            None => {
                let mut text = String::new();
                entry.read_to_string(&mut text).unwrap();
                text
            }
        };
        entries.insert(name, content);
    }
    Some(entries)
}

fn map(entries: &[(&str, &str)]) -> Option<BTreeMap<String, String>> {
    Some(
        entries
            .iter()
            .map(|(name, content)| ((*name).to_owned(), (*content).to_owned()))
            .collect(),
    )
}

#[test]
fn entries_are_named_from_the_last_component() {
    let (_temporary, root) = workspace();
    assert_eq!(
        packed(&root, "./results/a/"),
        map(&[
            ("a", "/"),
            ("a/log.txt", "results/a/log.txt"),
            ("a/one.json", "results/a/one.json"),
            ("a/two.json", "results/a/two.json")
        ])
    );
    assert_eq!(
        packed(&root, "results/a/one.json"),
        map(&[("one.json", "results/a/one.json")])
    );
    let whole = packed(&root, ".").unwrap();
    assert!(whole.contains_key("results/a/one.json"), "{whole:?}");
}

#[test]
fn what_is_not_there_is_none_and_no_failure() {
    let (_temporary, root) = workspace();
    assert_eq!(packed(&root, "missing"), None);
    assert_eq!(packed(&root, "results/a/one.json/x"), None);
    symlink("nowhere", root.join("dangling")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    assert_eq!(packed(&root, "dangling"), None);
    assert_eq!(packed(&root, "loop/x"), None);
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    assert_eq!(packed(&root, "socket"), None);
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_not_waited_for() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    let (_temporary, root) = workspace();
    mknodat(
        CWD,
        root.join("results/pipe").as_str(),
        FileType::Fifo,
        Mode::RWXU,
        0,
    )
    .unwrap();
    assert_eq!(packed(&root, "results/pipe"), None);
    assert!(!packed(&root, "results").unwrap().contains_key("results/pipe"));
}

#[test]
fn links_are_stored_and_special_files_left_out() {
    let (_temporary, root) = workspace();
    let directory = root.join("results/b");
    fs_err::create_dir(&directory).unwrap();
    symlink("/etc/passwd", directory.join("absolute")).unwrap();
    symlink("../../../outside", directory.join("directory")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(directory.join("socket")).unwrap();
    assert_eq!(
        packed(&root, "results/b"),
        map(&[
            ("b", "/"),
            ("b/absolute", "-> /etc/passwd"),
            ("b/directory", "-> ../../../outside")
        ])
    );
}

#[test]
fn a_path_is_followed_within_the_workspace_and_never_out_of_it() {
    let (_temporary, root) = workspace();
    symlink("results/a", root.join("latest")).unwrap();
    symlink("../outside", root.join("escape")).unwrap();
    assert_eq!(
        packed(&root, "latest/one.json"),
        map(&[("one.json", "results/a/one.json")])
    );
    assert!(packed(&root, "latest").unwrap().contains_key("latest/one.json"));
    for path in [
        "escape",
        "escape/secret.json",
        "../outside",
        "/etc/passwd",
        "results/../../outside",
    ] {
        let mut bytes = Vec::new();
        let error = pack(&root, path.into(), &mut bytes).unwrap_err().to_string();
        assert!(error.contains("leads out of the workspace"), "{error}");
        assert!(bytes.is_empty(), "{path}");
    }
}

#[test]
fn long_and_unreadable_files_are_packed() {
    let (_temporary, root) = workspace();
    let long = format!("{}/{}", "d".repeat(200), "f".repeat(200));
    let file = root.join("deep").join(&long);
    fs_err::create_dir_all(file.parent().unwrap()).unwrap();
    fs_err::write(&file, "deep").unwrap();
    fs_err::set_permissions(&file, std::fs::Permissions::from_mode(0o000)).unwrap();
    assert_eq!(packed(&root, "deep").unwrap()[&format!("deep/{long}")], "deep");
}

/// Takes a tar and keeps only how much there was, and the largest piece.
#[derive(Default)]
struct Meter {
    bytes: u64,
    largest: usize,
}

impl Write for Meter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes += bytes.len() as u64;
        self.largest = self.largest.max(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_large_file_is_passed_on_in_small_pieces() {
    let (_temporary, root) = workspace();
    let file = fs_err::File::create(root.join("large")).unwrap();
    file.set_len(200_000_000).unwrap();
    let mut meter = Meter::default();
    pack(&root, "large".into(), &mut meter).unwrap();
    assert!(
        meter.bytes > 200_000_000 && meter.largest <= 64 * 1024,
        "{} {}",
        meter.bytes,
        meter.largest
    );
}

#[test]
fn a_plain_path_and_a_glob_delete_what_they_name() {
    let (_temporary, root) = workspace();
    remove(&root, "./results/a/one.json").unwrap();
    assert!(!root.join("results/a/one.json").exists());
    remove(&root, "results/*/*.json").unwrap();
    assert!(!root.join("results/a/two.json").exists());
    assert!(root.join("results/a/log.txt").exists());
    remove(&root, "results/**").unwrap();
    assert_eq!(fs_err::read_dir(root.join("results")).unwrap().count(), 0);
    remove(&root, "missing/*/x").unwrap();
    remove(&root, "missing").unwrap();
}

#[test]
fn a_name_that_looks_like_a_glob_is_also_taken_as_it_is() {
    let (_temporary, root) = workspace();
    fs_err::write(root.join("results/[x].json"), "").unwrap();
    fs_err::write(root.join("results/x.json"), "").unwrap();
    remove(&root, "results/[x].json").unwrap();
    assert!(!root.join("results/[x].json").exists());
    assert!(!root.join("results/x.json").exists());
}

#[test]
fn nothing_outside_is_ever_deleted() {
    let (_temporary, root) = workspace();
    symlink("../outside", root.join("escape")).unwrap();
    symlink("../../outside", root.join("results/escape")).unwrap();
    for pattern in [
        "escape/secret.json",
        "escape/*.json",
        "results/*/*.json",
        "**/secret.json",
    ] {
        remove(&root, pattern).unwrap();
    }
    for pattern in ["../outside/*", "/etc/passwd", "x/../../outside/secret.json"] {
        assert!(
            remove(&root, pattern)
                .unwrap_err()
                .to_string()
                .contains("leads out of the workspace")
        );
    }
    remove(&root, "results/escape").unwrap();
    assert!(
        root.join("results/escape").symlink_metadata().is_err(),
        "the link itself goes"
    );
    remove(&root, ".").unwrap();
    assert!(root.join("results").exists());
    assert!(root.join("../outside/secret.json").exists());
}

#[test]
fn a_pattern_that_cannot_be_read_is_an_error() {
    let (_temporary, root) = workspace();
    assert_eq!(
        remove(&root, "results/[").unwrap_err().to_string(),
        "cannot delete `results/[` from the sandbox"
    );
}
