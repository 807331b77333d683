//! The integration tests: one binary, so that it links once.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test that cannot go on fails"
)]

mod action;
mod browser;
#[cfg(unix)]
mod cleanup;
mod configuration;
#[cfg(target_os = "linux")]
mod contract;
#[cfg(target_os = "linux")]
mod docker;
mod docs;
#[cfg(target_os = "linux")]
mod engines;
#[cfg(target_os = "linux")]
mod fake_vercel;
mod formats;
mod github;
mod hostile;
mod judged;
mod layers;
#[cfg(target_os = "linux")]
mod local;
#[cfg(target_os = "linux")]
mod lost;
mod manual;
mod presets;
mod run;
mod scheduling;
mod schemas;
mod sources;
mod statistics;
mod support;
mod terminal;
mod traces;
mod usage;
#[cfg(target_os = "linux")]
mod vercel;
