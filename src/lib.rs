//! evalwave runs the eval suite of an AI agent in parallel sandboxes and says what changed against a baseline.
//!
//! The modules in reading order, lowest first. A module uses only modules above it; `ARCHITECTURE.md` has the order
//! and a test keeps it.

pub mod model;

pub mod aggregate;
pub mod config;
pub mod redact;

pub mod schedule;

pub mod compare;
pub mod plan;

pub mod report;

pub mod catalog;
pub mod results;
pub mod sandbox;
pub mod store;

pub mod runner;

pub mod cli;
