//! Renders a summary or a comparison. Does not know how a run was made, nor where its baseline came from.
//!
//! All renderings come from one view model, so that they say the same in the same words. Whatever comes from outside
//! (names, messages) is kept apart from our own words until a renderer encodes it.

mod attempts;
mod ctrf;
mod escape;
mod html;
mod junit;
mod markdown;
pub mod plan;
pub mod results;
mod terminal;
mod view;
mod words;

pub use escape::{ascii, code, excerpt, plain};
pub use html::HtmlError;
pub use words::{duration, points, rate};

use serde::Serialize;

use crate::compare::calibrate::Calibration;
use crate::model::{Comparison, Summary};

/// A run as Markdown, for a comment or a file: headline, counts, table, then sections in the order of their weight.
///
/// `limit` is in bytes. Sections that would go beyond it are dropped whole, from the end, and their number is said;
/// headline and table are never dropped.
pub fn markdown(summary: &Summary, limit: usize) -> String {
    markdown::render(&view::of_summary(summary), limit)
}

/// A run that goes on as Markdown: how far it is. `limit` as in [`markdown`].
pub fn running(summary: &Summary, limit: usize) -> String {
    markdown::render(&view::of_running(summary), limit)
}

/// A run as a page: one HTML file that asks for nothing else.
///
/// # Errors
/// A number that JSON cannot hold; a summary that was read has none.
pub fn html(summary: &Summary) -> Result<String, HtmlError> {
    html::render(&view::page::of(summary))
}

/// A comparison as Markdown; `limit` as in [`markdown`].
pub fn comparison_markdown(comparison: &Comparison, limit: usize) -> String {
    markdown::render(&view::of_comparison(comparison), limit)
}

/// A run for a terminal: headline, table, flips, errors, failed gates, notices; with ANSI colours if `color`.
pub fn text(summary: &Summary, color: bool) -> String {
    terminal::render(&view::of_summary(summary), color)
}

/// A comparison for a terminal, without colours.
pub fn comparison_text(comparison: &Comparison) -> String {
    terminal::render(&view::of_comparison(comparison), false)
}

/// A calibration for a terminal, without colours.
pub fn calibration_text(calibration: &Calibration) -> String {
    terminal::render(&view::calibration::of(calibration), false)
}

/// A run as JUnit XML: a suite for each experiment, a test case for each pair.
pub fn junit(summary: &Summary) -> String {
    junit::render(summary)
}

/// A run as a CTRF document: a test for each pair.
///
/// # Errors
/// A value that JSON cannot hold; a summary has none.
pub fn ctrf(summary: &Summary) -> Result<String, serde_json::Error> {
    json(&ctrf::of_summary(summary))
}

/// Every attempt of a run as JSON Lines, in plan order.
///
/// # Errors
/// A value that JSON cannot hold; a summary has none.
pub fn jsonl(summary: &Summary) -> Result<String, serde_json::Error> {
    attempts::render(summary)
}

/// A document as JSON for people and programs: indented, with a newline at its end.
///
/// # Errors
/// A value that JSON cannot hold; the documents of [`crate::model`] have none.
pub fn json<T: Serialize>(document: &T) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(document).map(|text| text + "\n")
}

#[cfg(test)]
mod tests;
