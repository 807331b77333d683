//! Files out of an artifact, within limits.

use evalwave::github::Client;
use evalwave::github::artifact::{Artifact, ReadError, list, read, read_each};
use sha2::{Digest as _, Sha256};

use super::client;
use crate::support::github::{Fault, Github, Run, State, archive};

fn state_with(bytes: Vec<u8>) -> State {
    let mut state = State::with_history(&["a"]);
    state.measured(Run::pushed(3, "a"));
    state.artifacts[0].bytes = Some(bytes);
    state
}

async fn only(client: &Client) -> Artifact {
    let artifacts = list(client, &"octo/evals".parse().unwrap(), 3, "evalwave-all").await;
    artifacts.unwrap().remove(0)
}

async fn read_from(github: &Github, file: &str) -> Result<Vec<u8>, ReadError> {
    let client = client(github);
    let artifact = only(&client).await;
    read(&client, &"octo/evals".parse().unwrap(), &artifact, file).await
}

async fn refused(bytes: Vec<u8>, file: &str) -> String {
    let github = Github::start(state_with(bytes));
    read_from(&github, file).await.unwrap_err().to_string()
}

#[tokio::test]
async fn only_the_named_file_is_read_and_the_token_stays_with_github() {
    let files: [(&str, &[u8]); 3] = [
        ("report.md", b"no"),
        ("summary.json", b"yes"),
        ("x/summary.json", b"no"),
    ];
    let github = Github::start(state_with(archive(&files)));
    assert_eq!(read_from(&github, "summary.json").await.unwrap(), b"yes");
    let state = github.state();
    let blob = state.exchanges.last().unwrap();
    assert_eq!(
        (blob.path.as_str(), blob.query.as_str()),
        ("/blob/30", "sig=signed")
    );
    assert_eq!(blob.authorization, None);
    assert!(state.exchanges[0].authorization.is_some());
}

#[tokio::test]
async fn files_of_one_artifact_are_read_with_one_download() {
    let github = Github::start(state_with(archive(&[("a", b"one"), ("b/a", b"two")])));
    let client = client(&github);
    let artifact = only(&client).await;
    let files = ["b/a", "c", "a"];
    let read = read_each(&client, &"octo/evals".parse().unwrap(), &artifact, files).await;
    let read = read.unwrap().map(|file| file.map_err(|error| error.to_string()));
    assert_eq!(
        read,
        [
            Ok(b"two".to_vec()),
            Err("there is no `c` in it".to_owned()),
            Ok(b"one".to_vec())
        ]
    );
    let asked = github.asked();
    assert_eq!(
        asked.iter().filter(|line| line.starts_with("GET /blob/")).count(),
        1
    );
}

#[tokio::test]
async fn a_file_that_leads_elsewhere_is_never_taken_for_the_named_one() {
    let files: [(&str, &[u8]); 4] = [
        ("../summary.json", b"no"),
        ("/summary.json", b"no"),
        ("a/../summary.json", b"no"),
        ("summary.json\0", b"no"),
    ];
    assert_eq!(
        refused(archive(&files), "summary.json").await,
        "there is no `summary.json` in it"
    );
}

#[tokio::test]
async fn a_bomb_is_not_unpacked() {
    let zeros = vec![0; 4 << 20];
    let bomb = archive(&[("summary.json", &zeros)]);
    assert!(bomb.len() < 10_000);
    assert_eq!(
        refused(bomb, "summary.json").await,
        "`summary.json` in it is packed more than 200 times"
    );
}

#[tokio::test]
async fn what_is_no_archive_or_a_broken_one_is_said() {
    assert_eq!(
        refused(b"<html>".to_vec(), "summary.json").await,
        "it is no zip archive that can be read"
    );
    assert_eq!(
        refused(Vec::new(), "summary.json").await,
        "it is no zip archive that can be read"
    );
    let mut broken = archive(&[("summary.json", b"{\"a\": \"some text that is long enough\"}")]);
    broken[50] ^= 0xff;
    assert_eq!(
        refused(broken, "summary.json").await,
        "`summary.json` in it is broken"
    );
}

#[tokio::test]
async fn bytes_that_do_not_match_the_digest_are_refused() {
    let bytes = archive(&[("summary.json", b"{}")]);
    let digest: String = Sha256::digest(&bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let github = Github::start(state_with(bytes));
    github.state().artifacts[0].digest = Some(format!("sha256:{digest}"));
    assert_eq!(read_from(&github, "summary.json").await.unwrap(), b"{}");
    github.state().artifacts[0].digest = Some(format!("sha256:{}", "0".repeat(64)));
    let error = read_from(&github, "summary.json").await.unwrap_err();
    assert!(matches!(error, ReadError::Digest));
}

#[tokio::test]
async fn a_download_that_breaks_off_is_begun_anew_with_a_new_address() {
    let github = Github::start(state_with(archive(&[("summary.json", b"yes")])));
    github.state().trouble("/blob/", 1, || Fault::Drop);
    github
        .state()
        .trouble("/blob/", 1, || Fault::Status(403, Vec::new()));
    assert_eq!(read_from(&github, "summary.json").await.unwrap(), b"yes");
    let asked = github.asked();
    assert_eq!(asked.iter().filter(|line| line.ends_with("/zip")).count(), 3);
}

#[tokio::test]
async fn no_message_shows_the_signature_of_an_address() {
    let github = Github::start(state_with(Vec::new()));
    github.state().trouble("/blob/", 3, || Fault::Drop);
    let error = read_from(&github, "summary.json").await.unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot download artifact `evalwave-all`: no answer (")
    );
    assert!(!format!("{error:?}").contains("sig="), "{error:?}");
}
