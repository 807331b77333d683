//! The connection to the API of Vercel Sandbox: its address, its manners, who asks, how often and how patiently. Does
//! not know what is asked.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Method, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::error::{Again, Problem, Refusal, VercelError};
use crate::http::retry_after;
use crate::sandbox::limit::{Bucket, Control, Jitter};

/// No document of the API is larger.
const MAX_DOCUMENT: usize = 16 << 20;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an answer may take where its request only asks or tells.
pub(super) const ANSWER: Duration = Duration::from_secs(30);

/// How often a request is sent that may be sent again.
const TRIES: u32 = 6;

/// Requests that are answered at once, at once: each has a connection, which is an open file.
pub(super) const MOST_SHORT: usize = 512;

/// Connections that are kept for the next request.
pub(super) const MOST_IDLE: usize = 512;

/// Whoever says to wait longer is not waited for longer.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Who asks, for which project.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// `VERCEL_TOKEN`.
    pub token: String,
    /// `VERCEL_TEAM_ID`.
    pub team_id: String,
    /// `VERCEL_PROJECT_ID`.
    pub project_id: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            team_id, project_id, ..
        } = self;
        write!(
            f,
            "Credentials {{ token: ***, team_id: {team_id:?}, project_id: {project_id:?} }}"
        )
    }
}

/// Asks the API, for one project.
#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    base: Url,
    team_id: String,
    pub(super) project_id: String,
    requests: Control,
    short: Semaphore,
    jitter: Mutex<Jitter>,
}

/// A request, and how it is made.
#[derive(Clone, Debug)]
pub(super) struct Ask<'a> {
    /// What follows `cannot`.
    pub(super) what: &'a str,
    pub(super) method: Method,
    /// The path below the base, in parts that are taken as they are.
    pub(super) path: Vec<&'a str>,
    pub(super) query: Vec<(&'a str, &'a str)>,
    pub(super) payload: Payload<'a>,
    /// How long the whole answer may take; `None` is as long as it wants, once it has been accepted.
    pub(super) limit: Option<Duration>,
    /// How often it is sent, where it is not answered.
    pub(super) tries: u32,
}

/// What a request brings.
#[derive(Clone, Debug)]
pub(super) enum Payload<'a> {
    Nothing,
    Json(Bytes),
    /// A compressed archive, unpacked below this directory.
    Archive {
        bytes: Bytes,
        below: &'a str,
    },
}

impl<'a> Ask<'a> {
    /// A question.
    pub(super) fn get(what: &'a str, path: Vec<&'a str>) -> Self {
        Self {
            what,
            method: Method::GET,
            path,
            query: Vec::new(),
            payload: Payload::Nothing,
            limit: Some(ANSWER),
            tries: TRIES,
        }
    }

    /// A request that may be repeated: the second time changes nothing.
    pub(super) fn post(what: &'a str, path: Vec<&'a str>, body: &impl Serialize) -> Self {
        let body = serde_json::to_vec(body).expect("its keys are texts, and it is written into memory");
        Self {
            method: Method::POST,
            payload: Payload::Json(body.into()),
            ..Self::get(what, path)
        }
    }

    /// Asks once.
    pub(super) fn once(self) -> Self {
        Self { tries: 1, ..self }
    }

    /// Lets the answer take its time.
    pub(super) fn limit(self, limit: Option<Duration>) -> Self {
        Self { limit, ..self }
    }

    pub(super) fn query(self, query: Vec<(&'a str, &'a str)>) -> Self {
        Self { query, ..self }
    }

    pub(super) fn failed(&self, problem: Problem) -> VercelError {
        VercelError {
            asked: self.what.to_owned(),
            problem,
        }
    }
}

impl Client {
    /// A client of the API at `base_url`.
    ///
    /// # Errors
    /// The address is none, or a token must not be sent to it; a credential cannot be sent; the system's certificates
    /// cannot be read.
    pub(super) fn new(
        base_url: &str,
        credentials: &Credentials,
        requests_per_minute: u32,
        seed: u64,
    ) -> Result<Self, VercelError> {
        let failed = |problem| VercelError {
            asked: "connect to Vercel Sandbox".to_owned(),
            problem,
        };
        let address = || failed(Problem::Address(base_url.to_owned()));
        let base = Url::parse(base_url.trim()).map_err(|_| address())?;
        let host = base.host_str().ok_or_else(address)?;
        let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
        let is_here = host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback());
        let is_safe = base.scheme() == "https" || (base.scheme() == "http" && is_here);
        if !is_safe || !base.username().is_empty() || base.password().is_some() {
            return Err(address());
        }
        for (name, value) in [
            ("VERCEL_TOKEN", &credentials.token),
            ("VERCEL_TEAM_ID", &credentials.team_id),
            ("VERCEL_PROJECT_ID", &credentials.project_id),
        ] {
            if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(failed(Problem::Credential(name)));
            }
        }
        let mut bearer = HeaderValue::try_from(format!("Bearer {}", credentials.token))
            .map_err(|_| failed(Problem::Credential("VERCEL_TOKEN")))?;
        bearer.set_sensitive(true);
        // Where somebody else has installed a provider, that one serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            // Over one connection of HTTP/2, a request would wait for the long answers of all others.
            .http1_only()
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(MOST_IDLE)
            // An answer may take as long as its command; whether anybody is there still is asked on a lower level.
            .tcp_keepalive(Duration::from_secs(30))
            .https_only(base.scheme() == "https")
            .redirect(Policy::none())
            .user_agent(concat!("evalwave/", env!("CARGO_PKG_VERSION")))
            .default_headers(HeaderMap::from_iter([(AUTHORIZATION, bearer)]))
            .build()
            .map_err(|error| failed(Problem::Setup(error.into())))?;
        Ok(Self {
            http,
            base,
            team_id: credentials.team_id.clone(),
            project_id: credentials.project_id.clone(),
            requests: Control::new(Bucket::new(requests_per_minute, Duration::from_secs(60))),
            short: Semaphore::new(MOST_SHORT),
            jitter: Mutex::new(Jitter::new(seed)),
        })
    }

    /// Asks for a document.
    pub(super) async fn ask<T: DeserializeOwned>(&self, ask: &Ask<'_>) -> Result<T, VercelError> {
        let mut tries = Tries::of(self, ask);
        loop {
            // A turn that comes late is no answer that comes late.
            self.requests.turn().await;
            let answered = async {
                let response = self.send(ask).await?;
                let body = document(ask, response).await?;
                serde_json::from_slice(&body).map_err(|error| ask.failed(Problem::Shape(error)))
            };
            let answer = {
                // Nobody ever closes the semaphore; and whoever waits for the next try is not in the way meanwhile.
                let _one_of_few = self.short.acquire().await;
                within(ask, answered).await
            };
            match answer {
                Err(error) => tries.after(error).await?,
                answer => return answer,
            }
        }
    }

    /// Asks for something that comes bit by bit; the answer has begun, and is no refusal.
    pub(super) async fn open(&self, ask: &Ask<'_>) -> Result<Response, VercelError> {
        let mut tries = Tries::of(self, ask);
        loop {
            self.requests.turn().await;
            match within(ask, self.send(ask)).await {
                Err(error) => tries.after(error).await?,
                answer => return answer,
            }
        }
    }

    /// Waits as long as is right before the try after this one, counted from 1.
    pub(super) async fn wait(&self, again: Again, tried: u32) {
        let wait = match again {
            Again::Throttled(Some(wait)) => {
                let wait = self.stretch(wait.min(LONGEST_WAIT), 1.0, 1.4);
                // Nobody else would be heard meanwhile.
                self.requests.pause(wait);
                wait
            }
            Again::Never | Again::Soon | Again::Throttled(None) => {
                let doubled = Duration::from_millis(400) * (1 << tried.saturating_sub(1).min(6));
                self.stretch(doubled.min(Duration::from_secs(20)), 1.0, 2.0)
            }
        };
        tokio::time::sleep(wait).await;
    }

    pub(super) fn stretch(&self, time: Duration, low: f64, high: f64) -> Duration {
        let mut jitter = self.jitter.lock().unwrap_or_else(PoisonError::into_inner);
        jitter.stretch(time, low, high)
    }

    /// Sends a request once.
    async fn send(&self, ask: &Ask<'_>) -> Result<Response, VercelError> {
        let mut request = self.http.request(ask.method.clone(), self.url(ask)?);
        request = match &ask.payload {
            Payload::Nothing => request.header(CONTENT_TYPE, "application/json"),
            Payload::Json(body) => request
                .header(CONTENT_TYPE, "application/json")
                .body(body.clone()),
            Payload::Archive { bytes, below } => request
                .header(CONTENT_TYPE, "application/gzip")
                .header(HeaderName::from_static("x-cwd"), *below)
                .body(bytes.clone()),
        };
        let response = request.send().await.map_err(|error| unreachable(ask, error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let retry_after = retry_after(response.headers());
        let body = match document(ask, response).await {
            Ok(body) => body,
            // What this one says tells whether it is one: it has to be heard to its end.
            Err(error) if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS => {
                return Err(error);
            }
            Err(_) => Vec::new(),
        };
        // A proxy may answer in place of the API, and anything.
        let (code, message) = said(&body);
        Err(ask.failed(Problem::Refused(Refusal {
            status: status.as_u16(),
            code,
            message,
            retry_after,
        })))
    }

    fn url(&self, ask: &Ask<'_>) -> Result<Url, VercelError> {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .map_err(|()| ask.failed(Problem::Address(self.base.to_string())))?
            .pop_if_empty()
            .extend(&ask.path);
        url.query_pairs_mut()
            .append_pair("teamId", &self.team_id)
            .extend_pairs(&ask.query);
        Ok(url)
    }
}

/// How often a request has been made that may be made again.
pub(super) struct Tries<'a> {
    client: &'a Client,
    most: u32,
    made: u32,
}

impl<'a> Tries<'a> {
    pub(super) fn of(client: &'a Client, ask: &Ask<'_>) -> Self {
        Self {
            client,
            most: ask.tries,
            made: 0,
        }
    }

    /// Allows the next try without a wait.
    ///
    /// # Errors
    /// This one, where there is to be none.
    pub(super) fn at_once(&mut self, error: VercelError) -> Result<(), VercelError> {
        self.made += 1;
        if self.made >= self.most || error.again() == Again::Never {
            return Err(error);
        }
        Ok(())
    }

    /// Waits before the next try.
    ///
    /// # Errors
    /// This one, where there is to be none.
    pub(super) async fn after(&mut self, error: VercelError) -> Result<(), VercelError> {
        let again = error.again();
        self.at_once(error)?;
        self.client.wait(again, self.made).await;
        Ok(())
    }
}

/// Waits for an answer, as long as it may take.
async fn within<T>(
    ask: &Ask<'_>,
    answer: impl Future<Output = Result<T, VercelError>>,
) -> Result<T, VercelError> {
    let Some(limit) = ask.limit else {
        return answer.await;
    };
    tokio::time::timeout(limit, answer)
        .await
        .unwrap_or_else(|_| Err(ask.failed(Problem::Late(limit))))
}

/// The whole of an answer.
async fn document(ask: &Ask<'_>, mut response: Response) -> Result<Vec<u8>, VercelError> {
    let mut document = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(ask, error))? {
        if document.len() + chunk.len() > MAX_DOCUMENT {
            return Err(ask.failed(Problem::TooLarge(MAX_DOCUMENT >> 20)));
        }
        document.extend_from_slice(&chunk);
    }
    Ok(document)
}

/// The innermost cause, which is the one that says something.
pub(super) fn unreachable(ask: &Ask<'_>, error: reqwest::Error) -> VercelError {
    let error = error.without_url();
    let mut root: &dyn Error = &error;
    while let Some(cause) = root.source() {
        root = cause;
    }
    ask.failed(Problem::Unreachable(root.to_string()))
}

/// The code and the message of a refusal: each one line, and not a long one.
fn said(body: &[u8]) -> (Option<String>, Option<String>) {
    #[derive(Deserialize)]
    struct Refused {
        error: Option<Said>,
    }
    #[derive(Deserialize)]
    struct Said {
        code: Option<String>,
        message: Option<String>,
    }
    let line = |text: Option<String>| {
        let line: String = text?.lines().next()?.chars().take(300).collect();
        Some(line).filter(|line| !line.is_empty())
    };
    let said = serde_json::from_slice::<Refused>(body)
        .ok()
        .and_then(|refused| refused.error);
    said.map_or((None, None), |said| (line(said.code), line(said.message)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::{Ask, Client, Credentials, Payload, Problem};

    #[tokio::test(start_paused = true)]
    async fn the_wait_for_a_turn_is_no_part_of_the_time_that_an_answer_may_take() {
        let credentials = Credentials {
            token: "t".to_owned(),
            team_id: "team".to_owned(),
            project_id: "project".to_owned(),
        };
        let client = Client::new("http://127.0.0.1:9", &credentials, 100, 0).unwrap();
        client.requests.pause(Duration::from_secs(84));
        // It cannot be sent at all: what is told of it is that, once its turn has come.
        let ask = Ask {
            payload: Payload::Archive {
                bytes: Bytes::new(),
                below: "\n",
            },
            ..Ask::get("ask", vec!["v2"]).once()
        };
        let error = client.ask::<serde_json::Value>(&ask).await.unwrap_err();
        assert!(matches!(error.problem, Problem::Unreachable(_)), "{error}");
        client.requests.pause(Duration::from_secs(84));
        let error = client.open(&ask).await.unwrap_err();
        assert!(matches!(error.problem, Problem::Unreachable(_)), "{error}");
    }
}
