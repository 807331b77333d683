//! Sandboxes that run commands for real, with what the official client has no scenario for.

use std::ffi::OsString;

use camino::Utf8PathBuf;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Client;
use crate::support::git;
use crate::support::vercel::{Faults, Limits, Machines, PROJECT, State, Vercel};

/// Where `.ci/run` says that bubblewrap is.
pub(super) const BWRAP: &str = "EVALWAVE_TEST_BWRAP";

pub(super) fn bwrap() -> Option<Utf8PathBuf> {
    std::env::var_os(BWRAP)
        .map(OsString::into_string)
        .map(|path| path.unwrap().into())
}

fn real() -> Option<Vercel> {
    let Some(bwrap) = bwrap() else {
        eprintln!("skipped: {BWRAP} does not say where bubblewrap is; .ci/run installs it and sets it");
        return None;
    };
    let state = State::new(Limits::none(), Faults::default());
    Some(Vercel::start(0, state, Machines::real(bwrap).unwrap()).unwrap())
}

fn sh(script: &str) -> Value {
    json!({ "command": "sh", "args": ["-c", script] })
}

#[tokio::test]
async fn a_sandbox_starts_with_a_commit_of_a_repository() {
    let Some(vercel) = real() else { return };
    let client = Client::new(&vercel);
    let repository = TempDir::new().unwrap();
    let path = camino::Utf8Path::from_path(repository.path()).unwrap();
    git(path, &["init", "--quiet"]);
    for text in ["first", "second"] {
        fs_err::write(path.join("file"), text).unwrap();
        git(path, &["add", "."]);
        git(path, &["commit", "--quiet", "--message", text]);
    }
    let source = |revision: &str| {
        json!({
            "projectId": PROJECT, "persistent": false, "runtime": "node24",
            "source": { "type": "git", "url": format!("file://{path}"), "revision": revision, "depth": 5 },
        })
    };
    let (_, created) = client
        .ask("POST", "/v2/sandboxes", &source("HEAD~1"))
        .await
        .unwrap();
    assert_eq!(
        created["error"]["code"], "internal_server_error",
        "no such reference: {created}"
    );
    let first = assert_cmd::Command::new("git")
        .args(["-C", path.as_str(), "rev-parse", "HEAD~1"])
        .output()
        .unwrap();
    let first = String::from_utf8(first.stdout).unwrap();
    let (status, created) = client
        .ask("POST", "/v2/sandboxes", &source(first.trim()))
        .await
        .unwrap();
    assert_eq!(status, 200, "{created}");
    let session = created["session"]["id"].as_str().unwrap();
    assert_eq!(client.run(session, &sh("[ $(cat file) = first ]")).await, 0);
}

#[tokio::test]
async fn this_system_is_there_to_read_and_the_sandbox_alone_to_write() {
    let Some(vercel) = real() else { return };
    let client = Client::new(&vercel);
    let session = client.session("one").await;
    let marker = TempDir::new().unwrap();
    for (script, code) in [
        ("touch /vercel/sandbox/x /tmp/x ~/x", 0),
        ("touch /usr/x /etc/x 2>/dev/null || exit 7", 7),
        (&format!("[ -e {} ]", marker.path().display()), 1),
        ("[ $$ -lt 100 ]", 0),
        ("kill -9 $$", 137),
    ] {
        assert_eq!(client.run(&session, &sh(script)).await, code, "{script}");
    }
}

#[tokio::test]
async fn nothing_that_a_sandbox_has_started_outlives_it() {
    let Some(vercel) = real() else { return };
    let client = Client::new(&vercel);
    let session = client.session("one").await;
    // A duration that no other process of this machine sleeps for.
    let word = format!("1{}.5", std::process::id());
    assert_eq!(
        client
            .run(
                &session,
                &sh(&format!(
                    "setsid sleep {word} & until grep -qs {word} /proc/$!/cmdline; do :; done"
                ))
            )
            .await,
        0
    );
    assert_eq!(sleeping(&word), 1);
    let (status, _) = client
        .ask("DELETE", "/v2/sandboxes/one", &Value::Null)
        .await
        .unwrap();
    assert_eq!(status, 200);
    while sleeping(&word) > 0 {
        tokio::task::yield_now().await;
    }
    let left = client
        .ask("GET", &format!("/v2/sandboxes/sessions/{session}"), &Value::Null)
        .await;
    assert_eq!(left.unwrap().1["session"]["status"], "stopped");
}

/// How many processes have this in their command line.
fn sleeping(word: &str) -> usize {
    let entries = fs_err::read_dir("/proc").unwrap();
    let lines = entries.filter_map(|entry| fs_err::read(entry.ok()?.path().join("cmdline")).ok());
    let wanted = format!("sleep\0{word}\0").into_bytes();
    lines.filter(|line| *line == wanted).count()
}
