//! Artifacts of workflow runs: which there are, and files out of one of them. Does not know what is in them.

use camino::{Utf8Component, Utf8PathBuf};
use jiff::Timestamp;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::client::{Ask, Client, DOWNLOAD_TIMEOUT, TRIES, root};
use super::error::{Again, GithubError, Problem};
use super::retry::Refusal;
use super::{Repository, segment};
use crate::zip::{self, Archive, BadZip, Limits};

/// Most bytes of an artifact.
const MAX_ARTIFACT: usize = 64 * 1024 * 1024;

const LIMITS: Limits = Limits {
    file: 64 * 1024 * 1024,
    total: 64 * 1024 * 1024,
    entries: 10_000,
    ratio: 200,
};

/// For all files of an artifact together.
const LIMITS_OF_ALL: Limits = Limits {
    file: 512 * 1024 * 1024,
    total: 512 * 1024 * 1024,
    entries: 100_000,
    ratio: 200,
};

/// The permission that artifacts and runs need.
pub(super) const ACTIONS_READ: &str = "actions: read";

/// An artifact that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// When it was made, where known.
    pub created_at: Option<Timestamp>,
    /// `sha256:…` of its archive, where known.
    pub digest: Option<String>,
}

/// A file that was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The artifact is there no more.
    #[error("it has expired or was deleted")]
    Gone,
    /// It is larger than any of ours.
    #[error("it is larger than {0} MiB")]
    TooLarge(u64),
    /// Its bytes are not those that were uploaded.
    #[error("its bytes do not match its digest")]
    Digest,
    /// The file cannot be taken out of it.
    #[error(transparent)]
    Zip(#[from] BadZip),
    /// GitHub does not answer, which says nothing of the artifact.
    #[error(transparent)]
    Github(#[from] GithubError),
}

/// The artifacts of a run that have this name and have not expired, newest first.
///
/// # Errors
/// GitHub does not answer with them.
pub async fn list(
    client: &Client,
    repository: &Repository,
    run: u64,
    name: &str,
) -> Result<Vec<Artifact>, GithubError> {
    let ask = Ask::new(format!("list the artifacts of run {run}"), ACTIONS_READ);
    let path = format!(
        "/repos/{repository}/actions/runs/{run}/artifacts?name={}&per_page=100",
        segment(name)
    );
    let page: Page = client.get(&ask, &path).await?;
    let mut artifacts: Vec<Artifact> = page
        .artifacts
        .into_iter()
        .filter_map(|listed| listed.usable(name))
        .collect();
    artifacts.sort_by_key(|artifact| std::cmp::Reverse((artifact.created_at, artifact.id)));
    Ok(artifacts)
}

/// Reads the file called `file` out of an artifact.
///
/// # Errors
/// It is not there, or cannot be read within limits.
pub async fn read(
    client: &Client,
    repository: &Repository,
    artifact: &Artifact,
    file: &str,
) -> Result<Vec<u8>, ReadError> {
    let [bytes] = read_each(client, repository, artifact, [file]).await?;
    Ok(bytes?)
}

/// Reads some files out of an artifact, which is fetched once.
///
/// # Errors
/// It cannot be read; a file that is not there, or is beyond limits, is an error of its own.
pub async fn read_each<const N: usize>(
    client: &Client,
    repository: &Repository,
    artifact: &Artifact,
    files: [&str; N],
) -> Result<[Result<Vec<u8>, BadZip>; N], ReadError> {
    let archive = archive(client, repository, artifact).await?;
    Ok(files.map(|file| zip::read(&archive, file, LIMITS)))
}

/// Reads all files of an artifact, each with its path below the artifact's root.
///
/// # Errors
/// It is not there, or cannot be read within limits.
pub async fn read_all(
    client: &Client,
    repository: &Repository,
    artifact: &Artifact,
) -> Result<Vec<(Utf8PathBuf, Vec<u8>)>, ReadError> {
    let archive = archive(client, repository, artifact).await?;
    let mut zip = Archive::open(&archive, LIMITS_OF_ALL)?;
    let mut files = Vec::new();
    for name in zip.names() {
        // A directory has no bytes, and a name that leads elsewhere is none of ours.
        let path = Utf8PathBuf::from(&name);
        let is_plain = path
            .components()
            .all(|component| matches!(component, Utf8Component::Normal(_)));
        if is_plain && !name.ends_with('/') {
            files.push((path, zip.read(&name)?));
        }
    }
    Ok(files)
}

/// The bytes that were uploaded.
async fn archive(
    client: &Client,
    repository: &Repository,
    artifact: &Artifact,
) -> Result<Vec<u8>, ReadError> {
    let ask = Ask::new(format!("download artifact `{}`", artifact.name), ACTIONS_READ);
    let archive = download(client, repository, artifact, &ask).await?;
    if let Some(digest) = artifact
        .digest
        .as_deref()
        .and_then(|text| text.strip_prefix("sha256:"))
    {
        let actual = Sha256::digest(&archive);
        let actual: String = actual.iter().map(|byte| format!("{byte:02x}")).collect();
        if !actual.eq_ignore_ascii_case(digest) {
            return Err(ReadError::Digest);
        }
    }
    Ok(archive)
}

async fn download(
    client: &Client,
    repository: &Repository,
    artifact: &Artifact,
    ask: &Ask,
) -> Result<Vec<u8>, ReadError> {
    let path = format!("/repos/{repository}/actions/artifacts/{}/zip", artifact.id);
    let mut tried = 0;
    loop {
        tried += 1;
        // The address is good for a minute only, so each try has its own.
        let location = client.location(ask, &path).await.map_err(gone_or_failed)?;
        match fetch(client, location, ask).await {
            Err(ReadError::Github(error)) if error.again != Again::Never && tried < TRIES => {
                client.wait(error.again, tried).await;
            }
            done => return done,
        }
    }
}

fn gone_or_failed(error: GithubError) -> ReadError {
    match error.is_gone() {
        true => ReadError::Gone,
        false => ReadError::Github(error),
    }
}

/// Fetches what is stored elsewhere. The address holds a signature, so no message shows it.
async fn fetch(client: &Client, location: reqwest::Url, ask: &Ask) -> Result<Vec<u8>, ReadError> {
    let unreachable = |error: reqwest::Error| {
        let error = error.without_url();
        ask.failed_for(Problem::Unreachable(root(&error)), Again::Soon)
    };
    let too_large = || ReadError::TooLarge((MAX_ARTIFACT >> 20) as u64);
    let request = client.plain().get(location).timeout(DOWNLOAD_TIMEOUT);
    let mut answer = request.send().await.map_err(unreachable)?;
    let status = answer.status().as_u16();
    if !answer.status().is_success() {
        let message = Some("where artifacts are stored".to_owned());
        let (problem, again) = match status {
            // A signature that is not accepted: a new address has a new one.
            403 => (Problem::Status { status, message }, Again::Soon),
            _ => Refusal {
                status,
                headers: answer.headers(),
                message,
                permission: ACTIONS_READ,
            }
            .judge(),
        };
        return Err(gone_or_failed(ask.failed_for(problem, again)));
    }
    if answer
        .content_length()
        .is_some_and(|length| length > MAX_ARTIFACT as u64)
    {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(unreachable)? {
        if bytes.len() + chunk.len() > MAX_ARTIFACT {
            return Err(too_large());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

#[derive(Deserialize)]
struct Page {
    artifacts: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    id: Option<u64>,
    name: Option<String>,
    expired: Option<bool>,
    created_at: Option<Timestamp>,
    digest: Option<String>,
}

impl Listed {
    fn usable(self, name: &str) -> Option<Artifact> {
        let usable = self.name.as_deref() == Some(name) && self.expired != Some(true);
        Some(Artifact {
            id: self.id.filter(|_| usable)?,
            name: self.name?,
            created_at: self.created_at,
            digest: self.digest,
        })
    }
}
