//! The `evalwave` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    // An attempt's supervisor is this same program; it must cost nothing to start.
    if let Some(code) = evalwave::sandbox::supervisor::dispatch() {
        return code;
    }
    ExitCode::from(evalwave::cli::run().code())
}
