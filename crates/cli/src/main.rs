//! The program `offcut`; the code is in the library of this crate.

use std::process::ExitCode;

/// Keeps the memory of large bodies for the next ones. The system's allocator gives it back, and every request then waits
/// for new pages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    offcut_cli::main()
}
