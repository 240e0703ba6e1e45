//! The file that an installation changes for each agent, and its content.

use std::path::PathBuf;

use serde_json::Value;

use super::error::InstallError;
use super::installation::{Installation, Scope};
use super::jsonc::Addition;
use super::{claude_code, command, gemini_cli, plugin};
use crate::agents::Agent;
use crate::agents::layout;

/// The tools of Codex whose results are replaced, and the shell, which reads stored ones.
const CODEX_TOOLS: &str = "Bash|mcp__.*";

/// The content that a file gets.
pub(super) enum Content {
    /// Values in settings that hold others too.
    Values(Vec<Addition>),
    /// A file of ours.
    Whole(String),
}

/// The file that an installation changes: the agent's settings, or a plug-in of ours.
///
/// # Errors
///
/// There is no home directory, or the project's folder can't be opened.
pub fn installed_path(agent: Agent, scope: &Scope) -> Result<PathBuf, InstallError> {
    let (folder, of_user, of_project) = match agent {
        // Not `settings.json`: others would get a program and a store that only this user has.
        Agent::ClaudeCode => (
            layout::agent_home(agent),
            "settings.json",
            ".claude/settings.local.json",
        ),
        Agent::GeminiCli => (
            layout::agent_home(agent),
            "settings.json",
            ".gemini/settings.json",
        ),
        Agent::OpenCode => (
            layout::opencode_settings(),
            "plugins/offcut.js",
            ".opencode/plugins/offcut.js",
        ),
        Agent::Pi => (
            layout::pi_settings(),
            "extensions/offcut.js",
            ".pi/extensions/offcut.js",
        ),
        // Not `config.toml`, which holds other things too, and which the agent itself writes to.
        Agent::Codex => (layout::agent_home(agent), "hooks.json", ".codex/hooks.json"),
    };
    let of_user = folder.map(|folder| folder.join(of_user));
    scope.place(agent, of_user, of_project)
}

/// The content that the file of an installation gets.
pub(super) fn content(installation: &Installation) -> Result<Content, InstallError> {
    if let Some(text) = plugin::text(installation)? {
        return Ok(Content::Whole(text));
    }
    let additions = match installation.agent {
        Agent::Codex => vec![command::hook(installation, CODEX_TOOLS)?],
        Agent::GeminiCli => gemini_cli::additions(installation)?,
        _ => claude_code::additions(installation)?,
    };
    Ok(Content::Values(additions))
}

/// Refuses settings under which Offcut would do harm.
pub(super) fn check(agent: Agent, settings: &Value) -> Result<(), String> {
    match agent {
        Agent::GeminiCli => gemini_cli::check(settings),
        _ => Ok(()),
    }
}

/// Additions in words, one line each.
pub(super) fn in_words(additions: &[Addition]) -> Vec<String> {
    let in_words = |addition: &Addition| {
        let value = match &addition.value {
            Value::String(text) => text.clone(),
            value => match value.pointer("/hooks/0/command").and_then(Value::as_str) {
                Some(command) => command.to_owned(),
                None => value.to_string(),
            },
        };
        format!("{}: {value}", addition.path.join("."))
    };
    additions.iter().map(in_words).collect()
}
