//! `offcut drain`: reads what is left in a pipe of a command that has ended.

use std::io;
use std::process::ExitCode;

/// Reads stdin until nobody can write to it any more, and keeps nothing. Whoever writes to it would
/// otherwise die of the closed pipe.
pub(crate) fn run() -> ExitCode {
    // Whoever ends the processes of a session or a terminal does not mean this one. It fails only for the
    // first process of a group, which is apart already.
    _ = rustix::process::setsid();
    // If it can't be read, it has no reader any more, with or without this program.
    _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    ExitCode::SUCCESS
}
