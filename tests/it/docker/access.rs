//! Who may use an engine: the permissions of its socket, and the certificates of those who come over TCP.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};

use assert_cmd::assert::Assert;
use camino::Utf8Path;

use super::{errored, run_at};
use crate::support::docker::{IMAGE, docker_tls};
use crate::support::{Suite, evalwave, stderr};

fn suite() -> Suite {
    let keys = format!("sandbox: {{ kind: docker, network: none, image: '{IMAGE}' }}\nretry: {{ tries: 1 }}");
    Suite::scripted("a/one", "format: exit-code", &keys, "exit 0")
}

#[test]
fn a_user_who_may_not_use_the_engine_is_told_so_and_what_to_do() {
    let suite = suite();
    let socket = suite.path().join("d.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    fs_err::set_permissions(&socket, std::fs::Permissions::from_mode(0o000)).unwrap();
    let mut command = match UnixStream::connect(&socket) {
        Err(_) => evalwave(suite.path()),
        // Root is asked for its permissions only once it has given up what overrides them.
        Ok(_) => {
            let mut command = assert_cmd::Command::new("setpriv");
            command
                .args([
                    "--bounding-set=-dac_override",
                    "--",
                    env!("CARGO_BIN_EXE_evalwave"),
                ])
                .current_dir(suite.path());
            command
        }
    };
    let assert = command
        .env("DOCKER_HOST", format!("unix://{socket}"))
        .args(["run", "-o", "out"])
        .assert();
    assert.code(4);
    let message = errored(&suite);
    let begin = format!("this user may not use the Docker engine at `unix://{socket}`");
    assert!(message.starts_with(&begin), "{message}");
    assert!(message.contains("a user of the group `docker`"), "{message}");
}

/// A run with the certificates in a directory; without one, with none.
fn over_tcp(suite: &Suite, address: &str, certificates: Option<&Utf8Path>) -> Assert {
    let mut command = run_at(address, suite);
    if let Some(certificates) = certificates {
        command
            .env("DOCKER_TLS_VERIFY", "1")
            .env("DOCKER_CERT_PATH", certificates);
    }
    command.assert()
}

#[test]
fn an_engine_behind_tls_is_used_with_the_certificates_of_docker() {
    let Some(tls) = docker_tls() else { return };
    let address = fs_err::read_to_string(tls.join("address")).unwrap();
    let suite = suite();
    over_tcp(&suite, address.trim(), Some(&tls)).code(0);
    assert_eq!(suite.read_json("out/summary.json")["totals"]["passed"], 1);
}

#[test]
fn an_engine_behind_tls_refuses_others_and_that_is_infrastructure() {
    let Some(tls) = docker_tls() else { return };
    let address = fs_err::read_to_string(tls.join("address")).unwrap();
    let address = address.trim();
    let cases = [
        (Some(tls.join("stranger")), "DOCKER_CERT_PATH"),
        (None, "DOCKER_TLS_VERIFY"),
    ];
    for (certificates, to_do) in cases {
        let suite = suite();
        over_tcp(&suite, address, certificates.as_deref()).code(4);
        let message = errored(&suite);
        assert!(
            message.starts_with(&format!("cannot speak to the Docker engine at `{address}`")),
            "{message}"
        );
        assert!(message.contains(to_do), "{message}");
    }
}

#[test]
fn certificates_that_are_not_there_are_named() {
    let suite = suite();
    let nowhere = suite.path().join("certificates");
    let assert = over_tcp(&suite, "tcp://127.0.0.1:1", Some(&nowhere));
    let said = stderr(&assert);
    assert!(said.contains(nowhere.as_str()), "{said}");
    assert!(said.contains("DOCKER_CERT_PATH"), "{said}");
    assert.code(2);
}
