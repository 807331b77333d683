//! Drives a plan through an engine: starts, limits, retries and cancels attempts, and tells what happens as events. Knows neither files of a run nor reports.
