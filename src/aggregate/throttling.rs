//! Known signs, in text that a command wrote, that a provider throttled it.

use std::sync::LazyLock;

use regex::Regex;

/// Each alternative is something that providers' clients print. A bare `429`, `rate limiter` or `overloaded function`
/// is none: an agent's own work prints those.
static SIGNS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?ix)
          (?: http | status | code | error ) (?: [\ _-]?code | / \d (?: \. \d )? )? \W{0,4} (?: 429 | 529 ) \b
        | \b too [\ _]many [\ _]requests \b
        | toomanyrequests
        | \b rate [\ _-]? limit (?: [\ _-]? (?: ed | error | exceeded | reached | hit ) )? \b
        | overloaded [\ _]? error
        | \b (?: is | are | currently | temporarily | server | servers | model | engine | api ) \s overloaded \b
        | throttling [\ _]? (?: exception | error )
        | \b (?: was | were | been | being | request | requests ) \s throttled \b
        | \b resource_exhausted \b
        | \b (?: insufficient_quota | quota \s exceeded ) \b
        "#,
    )
    .expect("the pattern is constant")
});

/// Whether text holds a known sign of throttling: HTTP 429 or 529, a rate limit, an overloaded provider.
pub fn shows_throttling(text: &str) -> bool {
    SIGNS.is_match(text)
}

#[cfg(test)]
mod tests {
    use super::shows_throttling;

    #[test]
    fn what_clients_print_when_throttled_is_known() {
        for text in [
            "HTTP/1.1 429 Too Many Requests",
            "Error: 429 {\"type\":\"error\"}",
            "{\"statusCode\":429}",
            "APIError: status code: 429",
            "openai.RateLimitError: try again in 2s",
            "{\"type\": \"rate_limit_error\"}",
            "Rate limit reached for requests per minute",
            "you are being rate-limited",
            "{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}",
            "the model is overloaded, try again",
            "HTTP 529",
            "ThrottlingException: slow down",
            "code: RESOURCE_EXHAUSTED",
        ] {
            assert!(shows_throttling(text), "{text}");
        }
    }

    #[test]
    fn an_agents_own_work_is_not_taken_for_throttling() {
        for text in [
            "error at line 429",
            "429 tests passed",
            "wrote src/rate_limiter.rs",
            "added rate limiting middleware",
            "no matching overloaded function found",
            "throttle(fn, 100)",
            "",
        ] {
            assert!(!shows_throttling(text), "{text}");
        }
    }
}
