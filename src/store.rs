//! The run directory: journal, attempts, published results, summary. Knows nothing of how a run is made.
