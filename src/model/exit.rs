//! The exit codes, each with its one meaning.

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCode {
    /// Done, and no gate failed.
    Success,
    /// A gate named in `fail-on` failed.
    GateFailed,
    /// Wrong usage, or a configuration or input that cannot be read: nothing was run.
    Usage,
    /// At least one pair has no result, for reasons that are not the agent's.
    Incomplete,
    /// Nothing was measured: the suite is empty, or no attempt gave a result.
    NothingMeasured,
    /// Cancelled.
    Cancelled,
}

impl ExitCode {
    /// The number that the operating system sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::GateFailed => 1,
            Self::Usage => 2,
            Self::Incomplete => 3,
            Self::NothingMeasured => 4,
            Self::Cancelled => 130,
        }
    }
}
