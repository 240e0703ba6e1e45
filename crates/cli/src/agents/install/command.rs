//! The command by which an agent asks Offcut.

use std::path::Path;

use super::error::InstallError;
use super::installation::Installation;
use crate::agents::layout::Home;

/// The command of a hook as a line of a shell.
pub(super) fn line(installation: &Installation) -> Result<String, InstallError> {
    shell_line(installation, "hook")
}

/// The `subcommand` of this program for the agent, as a line of a shell.
pub(super) fn shell_line(
    installation: &Installation,
    subcommand: &str,
) -> Result<String, InstallError> {
    let words = words_of(installation, subcommand)?;
    let quoted = words.iter().map(|word| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        // The program is quoted always, so that it looks the same everywhere.
        if word.chars().all(is_plain) && !word.contains('/') {
            word.clone()
        } else {
            quoted(word)
        }
    });
    Ok(quoted.collect::<Vec<_>>().join(" "))
}

/// A word in the quotes of a shell.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The words of a hook's command.
pub(super) fn words(installation: &Installation) -> Result<Vec<String>, InstallError> {
    words_of(installation, "hook")
}

/// The words that put Offcut in front of an MCP server's command.
pub(crate) fn front_words(installation: &Installation) -> Result<Vec<String>, InstallError> {
    let mut words = program_of(installation)?;
    words.extend(["mcp", "--"].map(str::to_owned));
    Ok(words)
}

/// The words of a command.
fn words_of(installation: &Installation, subcommand: &str) -> Result<Vec<String>, InstallError> {
    let mut words = program_of(installation)?;
    words.extend([subcommand.to_owned(), installation.agent.name().to_owned()]);
    Ok(words)
}

/// The words that begin each command. A folder of the user that is not the default one is named, since an agent may run
/// without the variable.
fn program_of(installation: &Installation) -> Result<Vec<String>, InstallError> {
    let home = &installation.home;
    let mut words = Vec::new();
    if Home::by_default().as_ref() != Some(home) {
        words.push("env".to_owned());
        words.push(format!("OFFCUT_HOME={}", text(home.path())?));
    }
    words.push(text(&installation.program)?.to_owned());
    Ok(words)
}

/// A path that settings can hold.
pub(super) fn text(path: &Path) -> Result<&str, InstallError> {
    let text = path.to_str().filter(|text| !text.contains(['\n', '\r']));
    text.ok_or_else(|| {
        InstallError::new(
            path,
            "settings can't hold this path: it is not text in one line",
        )
    })
}
