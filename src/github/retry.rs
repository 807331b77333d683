//! What an answer means for the next question: the status as a problem, and how long to wait. Sends nothing.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::error::{Again, Problem};
use crate::http::{between, date, retry_after};

/// Whoever says to wait longer is not waited for.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// An answer that is no success.
pub(super) struct Refusal<'a> {
    pub(super) status: u16,
    pub(super) headers: &'a HeaderMap,
    /// What GitHub says in the body.
    pub(super) message: Option<String>,
    /// What the question needs.
    pub(super) permission: &'static str,
}

impl Refusal<'_> {
    /// The problem, and whether to ask again.
    pub(super) fn judge(self) -> (Problem, Again) {
        let status = self.status;
        if self.is_rate_limit() {
            let wait = retry_after(self.headers).or_else(|| until_reset(self.headers));
            let again = match wait {
                Some(wait) if wait <= LONGEST_WAIT => Again::After(wait),
                _ => Again::Never,
            };
            return (Problem::RateLimited { status, wait }, again);
        }
        let message = self.message;
        match status {
            401 => (Problem::Unauthorized, Again::Never),
            403 => {
                let permission = self.permission;
                (Problem::Forbidden { permission, message }, Again::Never)
            }
            500 | 502 | 503 | 504 => {
                let again = match retry_after(self.headers) {
                    None => Again::Soon,
                    Some(wait) if wait <= LONGEST_WAIT => Again::After(wait),
                    Some(_) => Again::Never,
                };
                (Problem::Status { status, message }, again)
            }
            _ => (Problem::Status { status, message }, Again::Never),
        }
    }

    fn is_rate_limit(&self) -> bool {
        let used_up = number(self.headers, "x-ratelimit-remaining") == Some(0);
        let says_so = self
            .message
            .as_deref()
            .is_some_and(|message| message.to_ascii_lowercase().contains("rate limit"));
        match self.status {
            429 => true,
            403 => used_up || says_so || self.headers.contains_key(RETRY_AFTER),
            _ => false,
        }
    }
}

/// How long until the limit is lifted, where it is used up.
fn until_reset(headers: &HeaderMap) -> Option<Duration> {
    let reset = i64::try_from(number(headers, "x-ratelimit-reset")?).ok()?;
    Some(between(date(headers)?, Timestamp::from_second(reset).ok()?))
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

    use super::Refusal;
    use crate::github::error::{Again, Problem};

    fn judge(status: u16, headers: &[(&'static str, &'static str)], message: &str) -> (Problem, Again) {
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        let refusal = Refusal {
            status,
            headers: &headers,
            message: Some(message.to_owned()),
            permission: "actions: read",
        };
        refusal.judge()
    }

    const NOW: (&str, &str) = ("date", "Mon, 02 Mar 2026 10:00:00 GMT");

    #[test]
    fn a_short_wait_is_waited_and_a_long_one_is_not() {
        assert_eq!(
            judge(429, &[("retry-after", "3")], "").1,
            Again::After(Duration::from_secs(3))
        );
        let (problem, again) = judge(429, &[("retry-after", "3600")], "");
        assert_eq!(again, Again::Never);
        assert_eq!(
            problem.to_string(),
            "the rate limit is reached (429), for another 60 min: too long to wait for"
        );
        let date = ("retry-after", "Mon, 02 Mar 2026 10:00:20 GMT");
        assert_eq!(
            judge(429, &[NOW, date], "").1,
            Again::After(Duration::from_secs(20))
        );
    }

    #[test]
    fn a_used_up_limit_is_told_from_a_missing_permission() {
        // 20 seconds after the answer's own date.
        let reset = [
            NOW,
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "1772445620"),
        ];
        let (problem, again) = judge(403, &reset, "API rate limit exceeded for installation");
        assert!(matches!(problem, Problem::RateLimited { .. }));
        assert_eq!(again, Again::After(Duration::from_secs(20)));
        let (problem, again) = judge(403, &[NOW], "You have exceeded a secondary rate limit.");
        assert!(matches!(problem, Problem::RateLimited { wait: None, .. }));
        assert_eq!(again, Again::Never);
        let (problem, again) = judge(403, &[NOW], "Resource not accessible by integration");
        assert_eq!(again, Again::Never);
        assert_eq!(
            problem.to_string(),
            "it is not allowed (403: Resource not accessible by integration)\n\
             the job needs `permissions: { actions: read }`"
        );
    }

    #[test]
    fn a_server_in_trouble_is_asked_again_and_a_definite_no_is_not() {
        assert_eq!(judge(502, &[], "").1, Again::Soon);
        assert_eq!(judge(503, &[("retry-after", "600")], "").1, Again::Never);
        for status in [400, 401, 404, 409, 410, 422, 451, 501] {
            assert_eq!(judge(status, &[], "").1, Again::Never, "{status}");
        }
    }
}
