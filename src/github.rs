//! What we ask of GitHub, and nothing more: results of earlier runs, and one comment. Knows neither reports nor what
//! is done with the results.

pub mod artifact;
pub mod baseline;
mod client;
pub mod comment;
mod error;
pub mod event;
pub mod log;
pub mod pull_request;
mod retry;

use std::fmt;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

pub use client::{Client, Secret};
pub use error::{GithubError, Problem};

/// A repository's `owner/name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    owner: String,
    name: String,
}

impl Repository {
    /// Who it belongs to.
    pub fn owner(&self) -> &str {
        &self.owner
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

/// Text that names no repository.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no repository: expected `owner/name`")]
pub struct NoRepository(String);

impl FromStr for Repository {
    type Err = NoRepository;

    fn from_str(text: &str) -> Result<Self, NoRepository> {
        let is_part = |part: &str| {
            !part.is_empty()
                && !part.bytes().all(|byte| byte == b'.')
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        match text.split_once('/') {
            Some((owner, name)) if is_part(owner) && is_part(name) => Ok(Self {
                owner: owner.to_owned(),
                name: name.to_owned(),
            }),
            _ => Err(NoRepository(text.to_owned())),
        }
    }
}

/// Text as one segment of a path, or one value of a query.
fn segment(text: &str) -> String {
    const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'_')
        .remove(b'.')
        .remove(b'~');
    utf8_percent_encode(text, RESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::Repository;

    #[test]
    fn only_owner_and_name_are_a_repository() {
        let repository: Repository = "octo-org/evals.v2".parse().unwrap();
        assert_eq!(repository.to_string(), "octo-org/evals.v2");
        for text in [
            "", "evals", "a/", "/b", "a/b/c", "a/..", "a b/c", "a/b?x", "a/%2e",
        ] {
            assert!(text.parse::<Repository>().is_err(), "{text}");
        }
    }
}
