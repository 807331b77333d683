//! The integration tests: one binary, so that it links once.

mod docs;
mod fixture;
mod layers;
mod local;
mod run;
mod schemas;
mod sources;
mod support;
mod usage;
