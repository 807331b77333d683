//! Two sets of results in, one comparison out. Does not know where either came from.
