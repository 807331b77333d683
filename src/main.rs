//! The `evalwave` command.

fn main() {}
