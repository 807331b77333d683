//! evalwave runs the eval suite of an AI agent in parallel sandboxes and says what changed against a baseline.
//!
//! The modules in reading order, lowest first. A module uses only modules above it; `ARCHITECTURE.md` has the order
//! and a test keeps it.
//!
//! ```
//! use evalwave::compare::{Options, compare};
//! use evalwave::model::comparison::ComparisonVerdict;
//! use evalwave::results::parse;
//!
//! let before = br#"[{"experiment": "agent", "eval": "task", "passed": true}]"#;
//! let now = br#"[{"experiment": "agent", "eval": "task", "passed": false}]"#;
//! let options = Options { alpha: 0.05, margin: 0.10, group_by: None, now: None };
//! let comparison = compare(&parse("before", before, None)?, &parse("now", now, None)?, &options);
//! assert_eq!(comparison.flips.pass_to_fail.len(), 1);
//! // One pair is no evidence of anything.
//! assert_eq!(comparison.verdict, ComparisonVerdict::Inconclusive);
//! # Ok::<(), evalwave::results::ResultsError>(())
//! ```

pub mod glob;
pub mod http;
pub mod model;
pub mod zip;

pub mod aggregate;
pub mod config;
pub mod redact;

pub mod schedule;

pub mod compare;
pub mod plan;

pub mod report;

pub mod git;

pub mod catalog;
pub mod results;
pub mod sandbox;
pub mod store;

pub mod github;

pub mod runner;

pub mod cli;
