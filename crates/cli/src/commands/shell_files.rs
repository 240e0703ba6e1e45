//! `offcut completions` and `offcut man`: files for shells, made from the parser.

use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Args;
use crate::failure::{Failure, OrFail as _};
use crate::output;

/// Prints the script by which a shell completes this program's arguments.
pub(crate) fn completions(shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "offcut", &mut script);
    output::write_bytes(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the manual pages into a folder.
pub(crate) fn man(folder: &Path) -> Result<ExitCode, Failure> {
    let made = std::fs::create_dir_all(folder);
    let written = made.and_then(|()| clap_mangen::generate_to(Args::command(), folder));
    written.or_advise(
        format_args!("{} can't be written to", folder.display()),
        "name a folder that you may write to; it is made if it does not exist",
    )?;
    Ok(ExitCode::SUCCESS)
}
