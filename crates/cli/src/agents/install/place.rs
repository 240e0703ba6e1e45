//! The file that an installation changes for each agent, and its content.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::command;
use super::error::InstallError;
use super::installation::{Installation, Scope};
use super::jsonc::Addition;
use crate::agents::Agent;
use crate::agents::layout;

/// The tools of Claude Code whose results have texts that a hook may replace. For others, the agent sends no events.
const CLAUDE_CODE_TOOLS: &str = "Bash|Read|Grep|WebFetch|Task|Agent|mcp__.*";
/// The tools of Codex whose results are replaced, and the shell, which reads stored ones.
const CODEX_TOOLS: &str = "Bash|mcp__.*";

/// Characters with a meaning of their own in a rule of Claude Code.
const NOT_IN_RULES: &[char] = &['*', '?', '[', ']', '{', '}', '(', ')', '!', '\\', '\n'];
/// Milliseconds after which Gemini CLI goes on without an answer.
const GEMINI_CLI_TIME_OUT: u64 = 30_000;
/// The names of the tool of Gemini CLI that reads files, which the hook needs.
const GEMINI_CLI_READER: [&str; 2] = ["read_file", "ReadFileTool"];
/// Plug-ins of ours for agents that load such files.
const OPENCODE: &str = include_str!("../plugins/opencode.js");
const PI: &str = include_str!("../plugins/pi.js");

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
    let additions = match installation.agent {
        Agent::ClaudeCode => {
            let hook = command::hook(installation, CLAUDE_CODE_TOOLS)?;
            let rules = rules(&installation.store)?.into_iter();
            let rights = rules.map(|rule| Addition::element("permissions.allow", rule));
            [hook].into_iter().chain(rights).collect()
        }
        Agent::Codex => vec![command::hook(installation, CODEX_TOOLS)?],
        Agent::GeminiCli => {
            // The agent takes anything on stderr, such as that the program is gone, for the result.
            let command = format!("{} 2>/dev/null || true", command::line(installation)?);
            let hook = json!({
                "type": "command", "name": "offcut", "command": command, "timeout": GEMINI_CLI_TIME_OUT,
            });
            let group = json!({"matcher": ".*", "hooks": [hook]});
            vec![Addition::element("hooks.AfterTool", group)]
        }
        Agent::OpenCode => return plugin(installation, OPENCODE),
        Agent::Pi => return plugin(installation, PI),
    };
    Ok(Content::Values(additions))
}

/// A plug-in with the command that it runs.
fn plugin(installation: &Installation, plugin: &str) -> Result<Content, InstallError> {
    let command = json!(command::words(installation)?).to_string();
    let stores = layout::spellings(&installation.store);
    let stores: Vec<&str> = stores
        .iter()
        .map(|store| command::text(store))
        .collect::<Result<_, _>>()?;
    let text = plugin.replacen("__OFFCUT_COMMAND__", &command, 1);
    let stores = json!(stores).to_string();
    Ok(Content::Whole(text.replacen(
        "__OFFCUT_STORES__",
        &stores,
        1,
    )))
}

/// The rules by which Claude Code may read the store. Two if the store's path holds a symbolic link.
fn rules(store: &Path) -> Result<Vec<Value>, InstallError> {
    let rule = |path: &PathBuf| {
        let text = path.to_str().filter(|text| !text.contains(NOT_IN_RULES));
        let text = text.ok_or_else(|| {
            let problem = "its path holds characters that a rule can't have; set OFFCUT_HOME or `backend` to another directory";
            InstallError::new(path, problem)
        })?;
        Ok(json!(format!("Read(/{text}/**)")))
    };
    layout::spellings(store).iter().map(rule).collect()
}

/// Refuses settings under which a replaced result would be an error.
pub(super) fn check(agent: Agent, settings: &Value) -> Result<(), String> {
    if agent != Agent::GeminiCli {
        return Ok(());
    }
    let names = |path: &str| {
        let list = settings.pointer(path).and_then(Value::as_array);
        let is_reader = |name: &Value| {
            name.as_str()
                .is_some_and(|name| GEMINI_CLI_READER.contains(&name))
        };
        list.map(|list| list.iter().any(is_reader))
    };
    let is_missing = ["/tools/core", "/coreTools"]
        .iter()
        .any(|path| names(path) == Some(false));
    let is_excluded = ["/tools/exclude", "/excludeTools"]
        .iter()
        .any(|path| names(path) == Some(true));
    if is_missing || is_excluded {
        return Err(
            "it switches the tool `read_file` off, without which no result can be replaced"
                .to_owned(),
        );
    }
    Ok(())
}

/// The commands in an agent's settings that answer with Offcut.
pub(crate) fn commands_in(settings: &Value, agent: Agent) -> Vec<String> {
    let ours = format!(" hook {agent}");
    let events = ["PostToolUse", "AfterTool"].into_iter();
    let groups = events.filter_map(|event| settings["hooks"][event].as_array());
    let hooks = groups
        .flatten()
        .filter_map(|group| group["hooks"].as_array());
    let commands = hooks.flatten().filter_map(|hook| hook["command"].as_str());
    commands
        .filter(|command| command.contains(&ours))
        .map(str::to_owned)
        .collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_without_the_reader_are_refused() {
        for settings in [
            json!({"tools": {"core": ["run_shell_command"]}}),
            json!({"tools": {"exclude": ["read_file"]}}),
            json!({"excludeTools": ["ReadFileTool"]}),
        ] {
            check(Agent::GeminiCli, &settings).unwrap_err();
        }
        for settings in [
            json!({}),
            json!({"tools": {"core": ["read_file"], "exclude": ["write_file"]}}),
        ] {
            check(Agent::GeminiCli, &settings).unwrap();
        }
    }
}
