//! The program `offcut`: see the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    offcut_cli::main()
}
