//! What can go wrong between us and the API of Vercel Sandbox, in words that say what was asked and what to do.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::model::ErrorClass;
use crate::sandbox::SandboxError;

/// A request that was not answered as expected.
#[derive(Debug)]
pub struct VercelError {
    /// What was asked for, as it follows `cannot`.
    pub(super) asked: String,
    pub(super) problem: Problem,
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    /// The address is none, or none that a token may be sent to.
    #[error(
        "`{0}` is no address of the API (`sandbox.base-url`)\nexpected one like `https://vercel.com/api`; \
         without `https` only an address of this machine"
    )]
    Address(String),
    /// A credential has characters that cannot be sent.
    #[error("`{0}` has characters that it cannot have")]
    Credential(&'static str),
    /// Not even a connection can be tried.
    #[error("no connection can be set up")]
    Setup(#[source] Box<dyn Error + Send + Sync>),
    /// Nobody answers, or not to the end.
    #[error("no answer ({0})")]
    Unreachable(String),
    /// An answer that does not come.
    #[error("no answer within {} s", .0.as_secs())]
    Late(Duration),
    /// An answer that is none.
    #[error("{0}")]
    Refused(Refusal),
    /// An answer beyond the cap.
    #[error("the answer is larger than {0} MiB")]
    TooLarge(usize),
    /// An answer of another shape than is documented.
    #[error("the answer is not of the documented shape")]
    Shape(#[source] serde_json::Error),
    /// Output that ends before its command does, or breaks off with this.
    #[error("the output broke off ({0})")]
    BrokeOff(String),
    /// A machine that is not there any more, or never came to be.
    #[error("the sandbox is {0}")]
    Gone(String),
    /// Anything else that is not as it should be.
    #[error("{0}")]
    Unexpected(String),
}

/// An answer that says no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    /// The error's code in the body.
    pub(super) code: Option<String>,
    /// What the body says.
    pub(super) message: Option<String>,
    pub(super) retry_after: Option<Duration>,
}

/// Whether the same request may be answered later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// No.
    Never,
    /// Perhaps in a moment.
    Soon,
    /// Not before the engine lets anybody in again; it may say when.
    Throttled(Option<Duration>),
}

impl Refusal {
    /// A name that is taken: by an earlier request whose answer was lost.
    pub(super) fn is_duplicate_name(&self) -> bool {
        let says_so = self
            .message
            .as_deref()
            .is_some_and(|message| message.contains("already exists"));
        matches!(self.status, 400 | 409) && says_so
    }

    fn again(&self) -> Again {
        match self.status {
            // A time that is over already says nothing of when.
            429 => Again::Throttled(self.retry_after.filter(|wait| !wait.is_zero())),
            // A session that is stopping or being stored says so for a moment, and is gone after it.
            422 | 408 | 500..=599 => Again::Soon,
            _ => Again::Never,
        }
    }

    fn hint(&self) -> &'static str {
        match self.status {
            401 => "\n`VERCEL_TOKEN` is wrong or has expired",
            402 => "\nthe account has to be paid for, or its limit is used up",
            403 => {
                "\n`VERCEL_TOKEN` may not do this in the project that `VERCEL_TEAM_ID` and `VERCEL_PROJECT_ID` name"
            }
            _ => "",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the answer is {}", self.status)?;
        if let Some(code) = &self.code {
            write!(f, " {code}")?;
        }
        if let Some(message) = &self.message {
            write!(f, ": {message}")?;
        }
        f.write_str(self.hint())
    }
}

impl VercelError {
    pub(super) fn refusal(&self) -> Option<&Refusal> {
        match &self.problem {
            Problem::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    pub(super) fn status(&self) -> Option<u16> {
        self.refusal().map(|refusal| refusal.status)
    }

    /// What was asked for is not there, or no more.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.status(), Some(404 | 410)) || matches!(self.problem, Problem::Gone(_))
    }

    pub(super) fn again(&self) -> Again {
        match &self.problem {
            Problem::Refused(refusal) => refusal.again(),
            Problem::Unreachable(_) | Problem::Late(_) | Problem::BrokeOff(_) | Problem::Shape(_) => {
                Again::Soon
            }
            _ => Again::Never,
        }
    }

    /// Whether no other sandbox would fare better: a definite no to who we are or to what we ask for.
    pub(super) fn is_definite(&self) -> bool {
        match &self.problem {
            Problem::Refused(refusal) => matches!(refusal.status, 400..=407 | 409 | 411..=421 | 423..=428),
            Problem::Address(_) | Problem::Credential(_) | Problem::Setup(_) => true,
            _ => false,
        }
    }

    /// Whether nothing at all is to be had: a no to who we are, or no way to ask.
    pub(super) fn shuts_out(&self) -> bool {
        match &self.problem {
            Problem::Refused(refusal) => matches!(refusal.status, 401..=403),
            _ => self.is_definite(),
        }
    }

    /// The failure of a sandbox that was there.
    pub(super) fn in_sandbox(self) -> SandboxError {
        let class = match self.status() {
            _ if self.is_gone() => Some(ErrorClass::SandboxLost),
            // A session that stops: by its own time limit, or by somebody else's hand.
            Some(422) => Some(ErrorClass::SandboxLost),
            Some(401..=403) => Some(ErrorClass::Refused),
            _ => None,
        };
        self.into_sandbox_error(class)
    }

    /// The failure of a sandbox that was to be.
    pub(super) fn in_creation(self) -> SandboxError {
        let class = self.is_definite().then_some(ErrorClass::Refused);
        self.into_sandbox_error(class)
    }

    fn into_sandbox_error(self, class: Option<ErrorClass>) -> SandboxError {
        SandboxError {
            class,
            message: self.to_string(),
            source: self.into_source(),
        }
    }

    fn into_source(self) -> Option<Box<dyn Error + Send + Sync>> {
        match self.problem {
            Problem::Setup(source) => Some(source),
            Problem::Shape(source) => Some(Box::new(source)),
            _ => None,
        }
    }
}

impl fmt::Display for VercelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.asked, self.problem)
    }
}

impl Error for VercelError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.problem.source()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Again, Problem, Refusal, VercelError};
    use crate::model::ErrorClass;

    fn refused(status: u16, code: &str, message: &str) -> VercelError {
        VercelError {
            asked: "create the sandbox".to_owned(),
            problem: Problem::Refused(Refusal {
                status,
                code: Some(code.to_owned()),
                message: Some(message.to_owned()),
                retry_after: Some(Duration::from_secs(7)),
            }),
        }
    }

    #[test]
    fn only_429_5xx_422_and_lost_answers_are_worth_asking_again() {
        for status in [500, 502, 503, 422, 408] {
            assert_eq!(refused(status, "", "").again(), Again::Soon, "{status}");
        }
        assert_eq!(
            refused(429, "", "").again(),
            Again::Throttled(Some(Duration::from_secs(7)))
        );
        for status in [400, 401, 402, 403, 404, 409, 410] {
            assert_eq!(refused(status, "", "").again(), Again::Never, "{status}");
        }
    }

    #[test]
    fn whoever_says_to_come_back_at_once_is_waited_for_as_one_who_does_not_say() {
        let refusal = Refusal {
            status: 429,
            code: None,
            message: None,
            retry_after: Some(Duration::ZERO),
        };
        assert_eq!(refusal.again(), Again::Throttled(None));
    }

    #[test]
    fn a_sandbox_that_has_stopped_is_lost_and_wrong_credentials_are_refused_for_good() {
        let class = |status| refused(status, "", "").in_sandbox().class;
        assert_eq!(class(410), Some(ErrorClass::SandboxLost));
        assert_eq!(class(422), Some(ErrorClass::SandboxLost));
        assert_eq!(class(403), Some(ErrorClass::Refused));
        assert_eq!(class(500), None);
        let class = |status| refused(status, "", "").in_creation().class;
        assert_eq!(class(400), Some(ErrorClass::Refused));
        assert_eq!(class(429), None);
        assert_eq!(class(502), None);
    }

    #[test]
    fn a_refusal_says_what_the_service_says_and_what_to_do() {
        insta::assert_snapshot!(refused(403, "forbidden", "Not authorized"), @r"
        cannot create the sandbox: the answer is 403 forbidden: Not authorized
        `VERCEL_TOKEN` may not do this in the project that `VERCEL_TEAM_ID` and `VERCEL_PROJECT_ID` name
        ");
    }
}
