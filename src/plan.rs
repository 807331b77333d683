//! The suite's pairs and what was asked for in, a run plan out: selection, shards, concurrency, waves. Runs nothing.
