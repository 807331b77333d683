//! The connection to one GitHub server: its address, its manners, who asks. Does not know what is asked.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use octocrab::Octocrab;
use reqwest::header::{ACCEPT, HeaderMap, LINK, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{Again, GithubError, Problem};
use super::retry::Refusal;

/// Nothing that is asked here is answered with more.
const MAX_ANSWER: usize = 32 * 1024 * 1024;

/// How often a question is asked that may be asked again.
pub(super) const TRIES: u32 = 3;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
pub(super) const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(120);

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

/// Asks one GitHub server, as one user. Proxies are taken from the environment, certificates from the system.
#[derive(Clone, Debug)]
pub struct Client {
    github: Octocrab,
    /// What comes before every path: empty, or `/api/v3`.
    prefix: String,
    /// The same connections without the token, which is added to each question to GitHub alone.
    plain: reqwest::Client,
    first_wait: Duration,
}

/// A question, for whoever reads that it was not answered.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    /// What follows `cannot`.
    pub(super) what: String,
    /// The permission that it needs.
    pub(super) permission: &'static str,
}

impl Ask {
    pub(super) fn new(what: impl Into<String>, permission: &'static str) -> Self {
        Self {
            what: what.into(),
            permission,
        }
    }

    pub(super) fn failed(&self, problem: Problem) -> GithubError {
        self.failed_for(problem, Again::Never)
    }

    pub(super) fn failed_for(&self, problem: Problem, again: Again) -> GithubError {
        GithubError {
            asked: self.what.clone(),
            problem,
            again,
        }
    }
}

/// How something is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Write {
    Post,
    Patch,
}

enum Method<'a> {
    Get,
    Post(&'a Value),
    Patch(&'a Value),
    Delete,
}

struct Answer {
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Client {
    /// A client of the server at `api_url` (`GITHUB_API_URL`: `https://api.github.com`, or `https://HOST/api/v3`), with
    /// the token's rights; without a token only what everybody may read. It has to be made inside a tokio runtime.
    ///
    /// # Errors
    /// The address is none, the token cannot be sent, the system's certificates cannot be read, or there is no runtime.
    pub fn new(api_url: &str, token: Option<&Secret>) -> Result<Self, GithubError> {
        let ask = Ask::new("connect to GitHub", "contents: read");
        let setup = |error: Box<dyn Error + Send + Sync>| ask.failed(Problem::Setup(error));
        let address = || ask.failed(Problem::Address(api_url.to_owned()));
        let url = Url::parse(api_url.trim()).map_err(|_| address())?;
        let host = url.host_str().ok_or_else(address)?;
        if !matches!(url.scheme(), "http" | "https") || !url.username().is_empty() || url.password().is_some()
        {
            return Err(address());
        }
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let base = format!("{}://{host}{port}", url.scheme());
        let prefix = url.path().trim_end_matches('/').to_owned();

        // The connection's own task is started here.
        tokio::runtime::Handle::try_current().map_err(|error| setup(error.into()))?;
        // Where somebody else has installed a provider, that one serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(ANSWER_TIMEOUT)
            .https_only(url.scheme() == "https")
            .redirect(Policy::none())
            .user_agent(concat!("evalwave/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| setup(error.into()))?;

        // The paths of GraphQL and of REST start differently on servers of one's own, so the base is the host alone.
        let mut builder = Octocrab::builder()
            .base_uri(base)
            .map_err(|error| setup(error.into()))?
            .add_header(ACCEPT, "application/vnd.github+json".to_owned());
        if let Some(Secret(token)) = token {
            if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(ask.failed(Problem::Token));
            }
            builder = builder.personal_token(token.clone());
        }
        Ok(Self {
            github: builder
                .build_with_reqwest(http.clone())
                .map_err(|error| setup(error.into()))?,
            prefix,
            plain: http,
            first_wait: Duration::from_secs(1),
        })
    }

    /// The same client, which waits this long before it asks a second time, and twice as long before a third.
    #[must_use]
    pub fn with_first_wait(self, first_wait: Duration) -> Self {
        Self { first_wait, ..self }
    }

    /// Asks for one document.
    pub(super) async fn get<T: DeserializeOwned>(&self, ask: &Ask, path: &str) -> Result<T, GithubError> {
        let answer = self.asked_again(ask, &self.path(path), &Method::Get).await?;
        read(ask, &answer)
    }

    /// Asks for one page of a list, and whether there is another.
    pub(super) async fn page<T: DeserializeOwned>(
        &self,
        ask: &Ask,
        path: &str,
    ) -> Result<(T, bool), GithubError> {
        let answer = self.asked_again(ask, &self.path(path), &Method::Get).await?;
        Ok((read(ask, &answer)?, has_next(&answer.headers)))
    }

    /// Asks where something is stored.
    pub(super) async fn location(&self, ask: &Ask, path: &str) -> Result<Url, GithubError> {
        let answer = self.asked_again(ask, &self.path(path), &Method::Get).await?;
        let location = answer.headers.get(LOCATION).and_then(|text| text.to_str().ok());
        location
            .and_then(|text| Url::parse(text).ok())
            .ok_or_else(|| ask.failed(Problem::Nowhere))
    }

    /// Deletes something; what is gone already is deleted.
    pub(super) async fn delete(&self, ask: &Ask, path: &str) -> Result<(), GithubError> {
        match self.asked_again(ask, &self.path(path), &Method::Delete).await {
            Err(error) if !error.is_gone() => Err(error),
            _ => Ok(()),
        }
    }

    /// Writes something, once: whether to write again is for those who know what is there.
    pub(super) async fn write<T: DeserializeOwned>(
        &self,
        ask: &Ask,
        write: Write,
        path: &str,
        body: &Value,
    ) -> Result<T, GithubError> {
        let method = match write {
            Write::Post => Method::Post(body),
            Write::Patch => Method::Patch(body),
        };
        let answer = self.ask(ask, &self.path(path), &method).await?;
        read(ask, &answer)
    }

    /// Asks a question of the other API, the only one that tells every kind of token whose it is.
    pub(super) async fn graphql<T: DeserializeOwned>(
        &self,
        ask: &Ask,
        query: &str,
    ) -> Result<T, GithubError> {
        let path = format!("{}/graphql", self.prefix.trim_end_matches("/v3"));
        let body = serde_json::json!({ "query": query });
        let answer = self.asked_again(ask, &path, &Method::Post(&body)).await?;
        read(ask, &answer)
    }

    /// Waits as long as is right before the try after this one, counted from 1.
    pub(super) async fn wait(&self, again: Again, tried: u32) {
        let wait = match again {
            Again::Never => return,
            Again::After(wait) if !wait.is_zero() => wait,
            Again::Soon | Again::After(_) => self.first_wait * (1 << tried.saturating_sub(1).min(8)),
        };
        tokio::time::sleep(wait).await;
    }

    /// The client for what is stored elsewhere.
    pub(super) fn plain(&self) -> &reqwest::Client {
        &self.plain
    }

    fn path(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// For questions only: what is written is not written twice.
    async fn asked_again(&self, ask: &Ask, path: &str, method: &Method<'_>) -> Result<Answer, GithubError> {
        for tried in 1..TRIES {
            match self.ask(ask, path, method).await {
                Err(error) if error.again != Again::Never => self.wait(error.again, tried).await,
                done => return done,
            }
        }
        self.ask(ask, path, method).await
    }

    async fn ask(&self, ask: &Ask, path: &str, method: &Method<'_>) -> Result<Answer, GithubError> {
        let unreachable =
            |error: &(dyn Error + 'static)| ask.failed_for(Problem::Unreachable(root(error)), Again::Soon);
        let sent = match method {
            Method::Get => self.github._get(path).await,
            Method::Post(body) => self.github._post(path, Some(body)).await,
            Method::Patch(body) => self.github._patch(path, Some(body)).await,
            Method::Delete => self.github._delete(path, None::<&Value>).await,
        };
        let (head, body) = sent.map_err(|error| unreachable(&error))?.into_parts();
        let body = match Limited::new(body, MAX_ANSWER).collect().await {
            Ok(body) => body.to_bytes().to_vec(),
            Err(error) if error.is::<LengthLimitError>() => {
                return Err(ask.failed(Problem::TooLarge((MAX_ANSWER >> 20) as u64)));
            }
            Err(error) => return Err(unreachable(&*error)),
        };
        if head.status.is_success() || head.status == StatusCode::FOUND {
            return Ok(Answer {
                headers: head.headers,
                body,
            });
        }
        let refusal = Refusal {
            status: head.status.as_u16(),
            headers: &head.headers,
            message: message(&body),
            permission: ask.permission,
        };
        let (problem, again) = refusal.judge();
        Err(ask.failed_for(problem, again))
    }
}

fn read<T: DeserializeOwned>(ask: &Ask, answer: &Answer) -> Result<T, GithubError> {
    serde_json::from_slice(&answer.body).map_err(|error| ask.failed(Problem::Shape(error)))
}

/// What GitHub says of a refusal: one line, and not a long one, for a proxy may answer in its place.
fn message(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Refused {
        message: Option<String>,
    }
    let message = serde_json::from_slice::<Refused>(body).ok()?.message?;
    let line: String = message.lines().next()?.chars().take(200).collect();
    Some(line).filter(|line| !line.is_empty())
}

/// Whether a list goes on. Only that is taken from the link: an address from outside would be sent the token.
fn has_next(headers: &HeaderMap) -> bool {
    let links = headers.get(LINK).and_then(|links| links.to_str().ok());
    links.is_some_and(|links| links.split(',').any(|link| link.contains("rel=\"next\"")))
}

/// The innermost cause, which is the one that says something.
pub(super) fn root(error: &(dyn Error + 'static)) -> String {
    let mut root = error;
    while let Some(cause) = root.source() {
        root = cause;
    }
    format!("no answer ({root})")
}
