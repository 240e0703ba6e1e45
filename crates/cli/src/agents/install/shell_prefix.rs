//! The program with which Claude Code runs its commands, if commands that fail are to be shortened.
//!
//! The client starts every command as an argument of the program that a variable names. Rules about
//! permissions have been asked by then, for the line as the model wrote it.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::command;
use super::error::InstallError;
use super::file::AgentFile;
use super::installation::Installation;
use super::jsonc::Addition;

/// The name of our script in the user's folder.
const NAME: &str = "claude-code-shell";
/// The variable, in the client's settings.
const VARIABLE: &str = "env.CLAUDE_CODE_SHELL_PREFIX";

/// The path of the script.
pub(crate) fn path(installation: &Installation) -> PathBuf {
    installation.home.path().join(NAME)
}

/// The value that names the script in the settings.
pub(super) fn addition(installation: &Installation) -> Result<Addition, InstallError> {
    let path = path(installation);
    let text = command::text(&path)?;
    if text.contains(" -") {
        let problem = "the agent would take a part of this path for an option; set OFFCUT_HOME to another directory";
        return Err(InstallError::new(&path, problem));
    }
    Ok(Addition::value(VARIABLE, json!(text)))
}

/// Writes the script. It stays when Offcut is taken out of the settings, because sessions that run still name it.
pub(super) fn place(installation: &Installation) -> Result<(), InstallError> {
    let path = path(installation);
    AgentFile::read(&path)?.replace(Some(script(installation)?.as_bytes()))?;
    set_executable(&path)
        .map_err(|error| InstallError::because(&path, "it can't be made executable", error))
}

fn script(installation: &Installation) -> Result<String, InstallError> {
    let program = command::quoted(command::text(&installation.program)?);
    let line = command::shell_line(installation, "line")?;
    Ok(format!(
        r#"#!/bin/sh
# Claude Code runs its commands with this program. Only the lines of its shell are for Offcut.
case $1 in
*' && pwd -P >| '*)
    [ ! -x {program} ] || exec {line} "$1"
    case $1 in
    'source '*) exec "${{SHELL:-/bin/sh}}" -c "$1" ;;
    *) exec "${{SHELL:-/bin/sh}}" -l -c "$1" ;;
    esac
    ;;
esac
exec /bin/sh -c "$1"
"#
    ))
}

#[cfg(unix)]
fn set_executable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn set_executable(_path: &Path) -> std::io::Result<()> {
    Ok(())
}
