//! The `evalwave` command.

use std::process::ExitCode;

/// A wave is thousands of small documents at once, a quarter of whose time the system's allocator takes.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before anything else: this path runs once for every command in a local sandbox.
    #[cfg(unix)]
    if let Some(arguments) = evalwave::sandbox::supervisor::invoked(std::env::args_os()) {
        return evalwave::sandbox::supervisor::main(arguments);
    }
    ExitCode::from(evalwave::cli::run().code())
}
