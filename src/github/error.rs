//! What can go wrong between us and GitHub, in words that say what was asked and what to do.

use std::error::Error;
use std::fmt;
use std::time::Duration;

/// A question that GitHub did not answer as expected.
#[derive(Debug)]
pub struct GithubError {
    /// What was asked for, as it follows `cannot`.
    pub asked: String,
    /// What went wrong.
    pub problem: Problem,
    /// Whether asking again may help.
    pub(super) again: Again,
}

/// Whether the same question may be answered later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// No.
    Never,
    /// Perhaps in a moment.
    Soon,
    /// After so long, as the server says.
    After(Duration),
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The address is none.
    #[error("`{0}` is no address of a GitHub API\nexpected one like `https://api.github.com`")]
    Address(String),
    /// The token has characters that cannot be sent.
    #[error("the token has characters that no token has")]
    Token,
    /// Not even a connection can be tried.
    #[error("no connection can be set up")]
    Setup(#[source] Box<dyn Error + Send + Sync>),
    /// Nobody answers, or not to the end.
    #[error("{0}")]
    Unreachable(String),
    /// It does not know the token.
    #[error("the token is wrong or has expired (401)")]
    Unauthorized,
    /// The token may not.
    #[error(
        "it is not allowed (403{})\nthe job needs `permissions: {{ {permission} }}`",
        said(message)
    )]
    Forbidden {
        /// The permission that is needed.
        permission: &'static str,
        /// What GitHub says.
        message: Option<String>,
    },
    /// Too many questions.
    #[error("the rate limit is reached ({status}), {}", until(*wait))]
    RateLimited {
        /// 403 or 429.
        status: u16,
        /// How long until it is lifted, where that is known.
        wait: Option<Duration>,
    },
    /// Any other answer that is none.
    #[error("the answer is {status}{}", said(message))]
    Status {
        /// The status.
        status: u16,
        /// What GitHub says.
        message: Option<String>,
    },
    /// An answer beyond the cap.
    #[error("the answer is larger than {0} MiB")]
    TooLarge(u64),
    /// An answer of another shape than is documented.
    #[error("the answer is not of the documented shape")]
    Shape(#[source] serde_json::Error),
    /// An answer without what it cannot be without.
    #[error("the answer has not {0}")]
    Lacks(&'static str),
    /// Somebody else keeps writing the same comment.
    #[error("others write the same comment at the same time, again and again")]
    Quarrel,
    /// A redirect to nowhere.
    #[error("the answer leads nowhere")]
    Nowhere,
}

impl fmt::Display for GithubError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.asked, self.problem)
    }
}

impl Error for GithubError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.problem.source()
    }
}

impl GithubError {
    /// The status of the answer, where there was one.
    pub fn status(&self) -> Option<u16> {
        match &self.problem {
            Problem::Unauthorized => Some(401),
            Problem::Forbidden { .. } => Some(403),
            Problem::RateLimited { status, .. } | Problem::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// What was asked for is not there, or no more.
    pub fn is_gone(&self) -> bool {
        matches!(self.status(), Some(404 | 410))
    }
}

fn said(message: &Option<String>) -> String {
    message
        .as_deref()
        .map(|message| format!(": {message}"))
        .unwrap_or_default()
}

fn until(wait: Option<Duration>) -> String {
    match wait.map(|wait| wait.as_secs()) {
        None => "and when it is lifted is not said".to_owned(),
        Some(seconds @ 0..120) => format!("for another {seconds} s: too long to wait for"),
        Some(seconds) => format!("for another {} min: too long to wait for", seconds / 60),
    }
}
