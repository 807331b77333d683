//! `scripts/install.sh`: which binary the action runs, and that nothing is run whose checksum is not in the tree.

use std::process::{Command, Output};

use camino::{Utf8Path, Utf8PathBuf};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::outputs;
use crate::support::repository;

/// The tree of a release, a place that releases are downloaded from, and a runner.
struct Release {
    place: TempDir,
}

impl Release {
    fn new() -> Self {
        let release = Self {
            place: TempDir::new().unwrap(),
        };
        for directory in [
            "tree/scripts",
            "tree/checksums",
            "downloads/v0.1.0",
            "tools",
            "temp",
        ] {
            fs_err::create_dir_all(release.at(directory)).unwrap();
        }
        let copy =
            |from: &str| fs_err::copy(repository().join(from), release.at(&format!("tree/{from}"))).unwrap();
        copy("scripts/install.sh");
        fs_err::write(
            release.at("tree/Cargo.toml"),
            "[package]\nname = \"evalwave\"\nversion = \"0.1.0\"\n",
        )
        .unwrap();
        fs_err::write(release.at("evalwave"), "#!/bin/sh\necho released\n").unwrap();
        let archive = release.at("downloads/v0.1.0/evalwave-0.1.0-x86_64-unknown-linux-gnu.tar.gz");
        let packed = Command::new("tar")
            .args([
                "-czf",
                archive.as_str(),
                "-C",
                release.at("").as_str(),
                "evalwave",
            ])
            .status()
            .unwrap();
        assert!(packed.success());
        let digest: String = Sha256::digest(fs_err::read(&archive).unwrap())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        release.checksum(&digest);
        release
    }

    fn at(&self, path: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.place.path()).unwrap().join(path)
    }

    fn checksum(&self, digest: &str) {
        let line = format!("{digest}  evalwave-0.1.0-x86_64-unknown-linux-gnu.tar.gz\n");
        fs_err::write(self.at("tree/checksums/sha256.txt"), line).unwrap();
    }

    fn install(&self, variables: &[(&str, &str)]) -> Output {
        fs_err::write(self.at("output"), "").unwrap();
        Command::new("bash")
            .arg(self.at("tree/scripts/install.sh"))
            .current_dir(self.place.path())
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap())
            .env("GITHUB_OUTPUT", self.at("output"))
            .env("RUNNER_OS", "Linux")
            .env("RUNNER_ARCH", "X64")
            .env("RUNNER_TEMP", self.at("temp"))
            .env("RUNNER_TOOL_CACHE", self.at("tools"))
            .env(
                "EVALWAVE_INPUT_DOWNLOAD_BASE_URL",
                format!("file://{}", self.at("downloads")),
            )
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    }

    /// The binary that is found.
    fn installs(&self, variables: &[(&str, &str)]) -> Utf8PathBuf {
        let output = self.install(variables);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
        let text = fs_err::read_to_string(self.at("output")).unwrap();
        Utf8PathBuf::from(text.trim().strip_prefix("binary=").unwrap())
    }

    /// The annotation that says why there is none.
    fn refuses(&self, variables: &[(&str, &str)]) -> String {
        let output = self.install(variables);
        assert_eq!(output.status.code(), Some(2));
        assert!(outputs(&fs_err::read_to_string(self.at("output")).unwrap()).is_empty());
        String::from_utf8(output.stdout).unwrap()
    }
}

fn said(binary: &Utf8Path) -> String {
    String::from_utf8(Command::new(binary).output().unwrap().stdout).unwrap()
}

#[test]
fn a_release_is_downloaded_once_and_its_checksum_is_the_trees() {
    let release = Release::new();
    let binary = release.installs(&[]);
    assert_eq!(said(&binary), "released\n");
    fs_err::remove_dir_all(release.at("downloads")).unwrap();
    assert_eq!(
        release.installs(&[]),
        binary,
        "the second time it is in the tool cache"
    );
    let of_another_tree = "0".repeat(64);
    release.checksum(&of_another_tree);
    let refusal = release.refuses(&[]);
    assert!(
        refusal.contains("cannot download"),
        "a cache of other bytes does not do: {refusal}"
    );
}

#[test]
fn a_release_is_known_by_its_checksum_also_where_paths_have_backslashes() {
    let release = Release::new();
    fs_err::create_dir(release.at(r"D:\a\_temp")).unwrap();
    let temporary = release.at(r"D:\a\_temp");
    let binary = release.installs(&[("RUNNER_TEMP", temporary.as_str())]);
    assert_eq!(said(&binary), "released\n");
}

#[test]
fn other_bytes_than_were_released_are_not_run() {
    let release = Release::new();
    release.checksum(&"0".repeat(64));
    let refusal = release.refuses(&[]);
    assert!(refusal.starts_with("::error title=evalwave::"), "{refusal}");
    assert!(refusal.contains("is not the one that was released"), "{refusal}");
}

#[test]
fn a_tree_without_a_checksum_installs_nothing() {
    let release = Release::new();
    for variables in [
        ("EVALWAVE_INPUT_VERSION", "0.2.0"),
        ("EVALWAVE_INPUT_VERSION", "0.1.0; touch owned"),
        ("RUNNER_ARCH", "ARM64"),
        ("RUNNER_ARCH", "S390X"),
    ] {
        let refusal = release.refuses(&[variables]);
        assert!(
            refusal.starts_with("::error title=evalwave::"),
            "{variables:?}: {refusal}"
        );
    }
    assert_eq!(
        release.installs(&[("EVALWAVE_INPUT_VERSION", "v0.1.0")]),
        release.installs(&[])
    );
}

#[test]
fn a_binary_that_is_named_is_taken_before_anything_else() {
    let release = Release::new();
    let named = release.at("evalwave");
    assert_eq!(
        release.installs(&[("EVALWAVE_INPUT_BINARY_PATH", named.as_str())]),
        named
    );
    // A path of the workspace is not looked for on the PATH.
    let relative = release.installs(&[("EVALWAVE_INPUT_BINARY_PATH", "evalwave")]);
    assert_eq!(relative, named);
    let refusal = release.refuses(&[("EVALWAVE_INPUT_BINARY_PATH", "nowhere")]);
    assert!(
        refusal.contains("input `binary-path`: there is no such file"),
        "{refusal}"
    );
}

#[test]
fn the_checkout_itself_is_built_from_source() {
    let release = Release::new();
    // In place of cargo: what matters is that it is asked, and where the binary is looked for.
    let bin = release.at("bin");
    fs_err::create_dir_all(&bin).unwrap();
    fs_err::write(
        bin.join("cargo"),
        "#!/bin/sh\necho \"$@\" > \"$RUNNER_TEMP/cargo\"\n",
    )
    .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs_err::set_permissions(bin.join("cargo"), mode).unwrap();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let tree = release.at("tree");
    for more in [
        ("GITHUB_WORKSPACE", tree.as_str()),
        ("EVALWAVE_INPUT_BUILD_FROM_SOURCE", "True"),
    ] {
        let binary = release.installs(&[("PATH", &path), more]);
        assert!(binary.ends_with("target/release/evalwave"), "{binary}");
        let asked = fs_err::read_to_string(release.at("temp/cargo")).unwrap();
        assert!(
            asked.contains("build") && asked.contains("--release --locked"),
            "{asked}"
        );
    }
    let elsewhere = release.installs(&[("PATH", &path), ("GITHUB_WORKSPACE", release.at("temp").as_str())]);
    assert_eq!(said(&elsewhere), "released\n");
}
