//! What can go wrong between us and GitHub, in words that say what was asked and what to do.

/// A question that GitHub did not answer as expected.
#[derive(Debug, thiserror::Error)]
#[error("cannot {asked}: {problem}")]
pub struct GithubError {
    /// What was asked for, as it follows `cannot`.
    pub asked: String,
    /// What went wrong.
    pub problem: Problem,
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The address is none.
    #[error("`{0}` is no address of a GitHub API")]
    Address(String),
}

pub(super) fn unbuilt() -> GithubError {
    GithubError {
        asked: "ask GitHub".to_owned(),
        problem: Problem::Address("not built in yet".to_owned()),
    }
}
