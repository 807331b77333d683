//! The integration tests: one binary, so that it links once.

mod docs;
mod layers;
#[cfg(unix)]
mod local;
mod run;
mod schemas;
mod sources;
mod support;
mod usage;
