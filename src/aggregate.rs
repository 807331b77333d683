//! Attempts in, verdicts out: what became of an attempt, what its attempts decide of a pair, and the run's totals. Knows no files and no clock.
