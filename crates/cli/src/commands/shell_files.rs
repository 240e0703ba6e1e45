//! `offcut completions` and `offcut man`: files for shells, made from the parser.

use std::path::Path;
use std::process::ExitCode;

use clap_complete::Shell;

use crate::failure::{Failure, OrFail as _};
use crate::policies::READY;
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
    output::write(&with_files(&String::from_utf8_lossy(&script)))?;
    Ok(ExitCode::SUCCESS)
}

/// Has zsh and fish complete files too where a policy may be named: clap gives an argument values or files.
fn with_files(script: &str) -> String {
    let names = READY.map(|(name, _)| name);
    let zsh = format!("({})", names.join(" "));
    let files = format!("{{_alternative \"policies\\:policy\\:{zsh}\" \"files\\:file\\:_files\"}}");
    let fish = names.map(|name| format!("{name}\\t''")).join("\n");
    let fish = format!("-r -f -a \"{fish}\"");
    let both = fish.replacen("-f", "-F", 1);
    script.replace(&zsh, &files).replace(&fish, &both)
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
