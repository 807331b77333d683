//! Reads results, of any format and from any place that needs no network, into the model.
