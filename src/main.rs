//! The `evalwave` command.

use std::process::ExitCode;

/// In a wave of thousands, the one of glibc would take a third of the processor's time.
#[cfg(target_os = "linux")]
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
