//! The program `offcut`; the code is in the library of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    offcut_cli::main()
}
