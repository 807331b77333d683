//! The integration tests.

#[cfg(unix)]
mod local;
