//! Renders a summary or a comparison. Does not know how a run was made, nor where its baseline came from.

pub mod plan;
