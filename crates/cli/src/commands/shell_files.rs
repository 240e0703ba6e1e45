//! `offcut completions` and `offcut man`: files for shells, made from the parser.

use std::path::Path;
use std::process::ExitCode;

use clap_complete::Shell;

use crate::failure::{Failure, OrFail as _};
use crate::{help, output};

/// Prints the script by which a shell completes this program's arguments.
pub(crate) fn completions(shell: Shell) -> Result<ExitCode, Failure> {
    let all = help::command();
    // Otherwise hidden commands would be offered too.
    let shown = all.get_subcommands().filter(|one| !one.is_hide_set());
    let shown = clap::Command::new("offcut")
        .version(env!("CARGO_PKG_VERSION"))
        .args(all.get_arguments())
        .subcommands(shown.cloned());
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut { shown }, "offcut", &mut script);
    output::write(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the manual pages into a folder.
pub(crate) fn man(folder: &Path) -> Result<ExitCode, Failure> {
    let made = std::fs::create_dir_all(folder);
    let written = made.and_then(|()| clap_mangen::generate_to(help::command(), folder));
    written.or_advise(
        format_args!("{} can't be written to", folder.display()),
        "name a folder that you may write to; it is made if it does not exist",
    )?;
    Ok(ExitCode::SUCCESS)
}
