//! The connection to one GitHub server. Knows its address and manners, not what is asked.

use std::fmt;

use super::GithubError;

/// A value that no message and no log shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Asks one GitHub server, as one user.
#[derive(Clone, Debug)]
pub struct Client {}

impl Client {
    /// A client of the server at `api_url` (`GITHUB_API_URL`: `https://api.github.com`, or `https://HOST/api/v3`), with
    /// the token's rights; without a token only what everybody may read. It has to be made inside a tokio runtime.
    ///
    /// # Errors
    /// The address is none, the token cannot be sent, or the system's certificates cannot be read.
    pub fn new(api_url: &str, token: Option<&Secret>) -> Result<Self, GithubError> {
        let _ = (api_url, token);
        Ok(Self {})
    }
}
