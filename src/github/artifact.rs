//! Artifacts of workflow runs: which there are, and one file out of one of them. Does not know what is in the file.
