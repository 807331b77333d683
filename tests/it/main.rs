//! The integration tests: one binary, so that it links once.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test that cannot go on fails"
)]

mod action;
mod docs;
#[cfg(target_os = "linux")]
mod fake_vercel;
mod github;
mod hostile;
mod judged;
mod layers;
#[cfg(target_os = "linux")]
mod local;
mod run;
mod scheduling;
mod schemas;
mod sources;
mod statistics;
mod support;
mod traces;
mod usage;
