//! What the headers of an HTTP answer say of waiting. Does not know who was asked, nor whether it is worth the wait.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// How long `Retry-After`, in either of its forms, says to wait. A date is taken against the server's own clock.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => Some(between(date(headers)?, http_date(text)?)),
    }
}

/// When the answer was given, by the server's own clock.
pub fn date(headers: &HeaderMap) -> Option<Timestamp> {
    http_date(headers.get(DATE)?.to_str().ok()?)
}

/// The time from one moment to another; none where that is past.
pub fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

fn http_date(text: &str) -> Option<Timestamp> {
    DateTimeParser::new().parse_timestamp(text).ok()
}
