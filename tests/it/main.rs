//! The integration tests.

#[cfg(target_os = "linux")]
mod local;
