//! The command by which an agent asks Offcut.

use std::path::Path;

use serde_json::json;

use super::error::InstallError;
use super::installation::Installation;
use super::jsonc::Addition;
use crate::agents::Agent;
use crate::agents::layout::Home;

/// Seconds after which the agent goes on without an answer.
const TIME_OUT: u64 = 30;

/// The command of a hook as a line of a shell.
pub(super) fn line(installation: &Installation) -> Result<String, InstallError> {
    let words = words(installation)?;
    let quoted = words.iter().map(|word| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        // The program is quoted always, so that it looks the same everywhere.
        if word.chars().all(is_plain) && !word.contains('/') {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    Ok(quoted.collect::<Vec<_>>().join(" "))
}

/// A hook for results of tools that match `matcher`, as Claude Code and Codex take it.
pub(super) fn hook(installation: &Installation, matcher: &str) -> Result<Addition, InstallError> {
    // It succeeds even if the program is gone: the user would be shown an error at each call.
    let command = format!("{} || true", line(installation)?);
    let hook = json!({"type": "command", "command": command, "timeout": TIME_OUT});
    let group = json!({"matcher": matcher, "hooks": [hook]});
    Ok(Addition::element("hooks.PostToolUse", group))
}

/// The words of a hook's command.
pub(super) fn words(installation: &Installation) -> Result<Vec<String>, InstallError> {
    let mut words = program_of(installation)?;
    words.extend(["hook", installation.agent.name()].map(str::to_owned));
    Ok(words)
}

/// The words that put Offcut in front of an MCP server's command.
pub(crate) fn front_words(installation: &Installation) -> Result<Vec<String>, InstallError> {
    let mut words = program_of(installation)?;
    words.extend(["mcp", "--"].map(str::to_owned));
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

/// The user's folder that the command of `agent` in the `text` of a file names.
pub(super) fn named_home(text: &str, agent: Agent) -> Option<Home> {
    let lines = (format!(" hook {agent}"), '"');
    let lists = (format!(r#""hook","{agent}""#), '[');
    [lines, lists].iter().find_map(|(end, start)| {
        let command = text[..text.find(end)?].rsplit(*start).next()?;
        let home = command.split_once("OFFCUT_HOME=")?.1;
        Some(Home::at(home.split(['\'', '"']).next()?))
    })
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
