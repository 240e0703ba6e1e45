//! The content that an agent's file gets, with the command by which the agent asks Offcut.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::file::{AgentFile, refused};
use super::installation::Installation;
use super::jsonc::Addition;
use crate::agents::Agent;
use crate::agents::layout::{self, Home};
use crate::failure::Failure;
use crate::output;

/// The tools of Claude Code whose results have texts that a hook may replace. For others, the agent sends no events.
const CLAUDE_CODE_TOOLS: &str = "Bash|Read|Grep|WebFetch|Task|Agent|mcp__.*";
/// The tools of Codex whose results are replaced, and the shell, which reads stored ones.
const CODEX_TOOLS: &str = "Bash|mcp__.*";
/// Seconds after which an agent goes on without an answer.
pub(crate) const TIME_OUT: u64 = 30;

/// Characters with a meaning of their own in a rule of Claude Code.
const NOT_IN_RULES: &[char] = &['*', '?', '[', ']', '{', '}', '(', ')', '!', '\\', '\n'];
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

impl Content {
    /// The values in words.
    pub(super) fn in_words(&self, agent: Agent) -> Vec<String> {
        match self {
            Self::Values(additions) => additions.iter().map(Addition::in_words).collect(),
            Self::Whole(text) => {
                let command = command_of_plugin(text, agent);
                Vec::from_iter(command.map(|command| format!("a plug-in that runs {command}")))
            }
        }
    }

    /// Returns true if all of `additions` are part of it.
    pub(super) fn has(&self, additions: &[Addition]) -> bool {
        match self {
            Self::Values(all) => additions.iter().all(|addition| all.contains(addition)),
            Self::Whole(_) => true,
        }
    }

    /// Returns true if `file` has it. Settings of `agent` under which a replaced result would be an error are refused.
    pub(super) fn is_in(&self, file: &AgentFile, agent: Agent) -> Result<bool, Failure> {
        match self {
            Self::Values(additions) => {
                let settings = file.json()?;
                if agent == Agent::GeminiCli && !has_reader(&settings) {
                    return Err(file.refused(
                        "it switches the tool `read_file` off, without which no result can be replaced",
                    ));
                }
                Ok(additions.iter().all(|addition| addition.is_in(&settings)))
            }
            Self::Whole(text) => Ok(file.bytes() == Some(text.as_bytes())),
        }
    }
}

/// The content that the file of an installation gets.
pub(super) fn of(installation: &Installation) -> Result<Content, Failure> {
    let agent = installation.agent;
    let line = line(installation)?;
    let hook = |tools: &str, handler: Value| {
        let group = json!({"matcher": tools, "hooks": [handler]});
        Addition::element(["hooks", agent.facts().event], group)
    };
    // It succeeds even if the program is gone: the user would be shown an error at each call.
    let command = format!("{line} || true");
    let handler = json!({"type": "command", "command": command, "timeout": TIME_OUT});
    Ok(Content::Values(match agent {
        Agent::ClaudeCode => {
            let mut additions = vec![hook(CLAUDE_CODE_TOOLS, handler)];
            additions.extend(rules(&installation.store)?);
            additions
        }
        Agent::Codex => vec![hook(CODEX_TOOLS, handler)],
        Agent::GeminiCli => {
            // The agent takes anything on stderr, such as that the program is gone, for the result.
            let command = format!("{line} 2>/dev/null || true");
            let timeout = TIME_OUT * 1_000;
            let handler = json!({"type": "command", "name": "offcut", "command": command, "timeout": timeout});
            vec![hook(".*", handler)]
        }
        Agent::OpenCode => return plugin(installation, OPENCODE),
        Agent::Pi => return plugin(installation, PI),
    }))
}

/// A plug-in with the command that it runs.
fn plugin(installation: &Installation, plugin: &str) -> Result<Content, Failure> {
    let command = hook_words(installation)?;
    let stores = layout::spellings(&installation.store);
    let stores: Vec<&str> = stores
        .iter()
        .map(|store| text(store))
        .collect::<Result<_, _>>()?;
    let plugin = plugin.replacen("__OFFCUT_COMMAND__", &json!(command).to_string(), 1);
    let plugin = plugin.replacen("__OFFCUT_STORES__", &json!(stores).to_string(), 1);
    Ok(Content::Whole(plugin))
}

/// The rules by which Claude Code may read the store. Two if the store's path holds a symbolic link.
fn rules(store: &Path) -> Result<Vec<Addition>, Failure> {
    let rule = |path: &PathBuf| {
        let text = path.to_str().filter(|text| !text.contains(NOT_IN_RULES));
        let text = text.ok_or_else(|| {
            refused(path, "its path holds characters that a rule can't have; set OFFCUT_HOME or `backend` to another directory")
        })?;
        let rule = json!(format!("Read(/{text}/**)"));
        Ok(Addition::element(["permissions", "allow"], rule))
    };
    layout::spellings(store).iter().map(rule).collect()
}

/// The command of a hook as a line of a shell.
pub(super) fn line(installation: &Installation) -> Result<String, Failure> {
    Ok(line_of(&hook_words(installation)?))
}

/// Words as a line of a shell.
fn line_of(words: &[String]) -> String {
    let quoted = words.iter().map(|word| output::quoted(word));
    quoted.collect::<Vec<_>>().join(" ")
}

/// The words of the command of a hook. A folder of the user that is not the default one is named, since an agent may run
/// without the variable.
fn hook_words(installation: &Installation) -> Result<Vec<String>, Failure> {
    let home = &installation.home;
    let mut words = Vec::new();
    if Home::by_default().as_ref() != Some(home) {
        words.push("env".to_owned());
        words.push(format!("OFFCUT_HOME={}", text(home.path())?));
    }
    words.push(text(&installation.program)?.to_owned());
    words.extend(["hook", installation.agent.facts().name].map(str::to_owned));
    Ok(words)
}

/// Refuses a program that could not be found again.
pub(super) fn expect_name(program: &Path) -> Result<(), Failure> {
    let name = program.file_name().and_then(|name| name.to_str());
    match name.is_some_and(|name| name.starts_with("offcut")) {
        true => Ok(()),
        false => Err(refused(
            program,
            "the program's name has to begin with `offcut`, by which `uninstall` finds it",
        )),
    }
}

/// A path that settings can hold.
fn text(path: &Path) -> Result<&str, Failure> {
    let text = path.to_str().filter(|text| !text.contains(['\n', '\r']));
    text.ok_or_else(|| {
        refused(
            path,
            "settings can't hold this path: it is not text in one line",
        )
    })
}

/// Returns true unless `settings` of Gemini CLI switch its reader off.
fn has_reader(settings: &Value) -> bool {
    let names = |path: &str| {
        let names = settings.pointer(path)?.as_array()?.iter();
        let mut names = names.filter_map(Value::as_str);
        Some(names.any(|name| GEMINI_CLI_READER.contains(&name)))
    };
    let is_in = |paths: [&str; 2], value| paths.iter().any(|path| names(path) == Some(value));
    !is_in(["/tools/core", "/coreTools"], false)
        && !is_in(["/tools/exclude", "/excludeTools"], true)
}

/// The command of ours that the `text` of a plug-in runs, as a line of a shell.
pub(crate) fn command_of_plugin(text: &str, agent: Agent) -> Option<String> {
    let mut lines = text.lines();
    let list = lines.find_map(|line| line.strip_prefix("const COMMAND = ")?.strip_suffix(';'))?;
    let words: Vec<String> = serde_json::from_str(list).ok()?;
    Some(line_of(&words)).filter(|command| is_ours(command, agent))
}

/// The commands of ours in an agent's settings.
pub(crate) fn commands_in(settings: &Value, agent: Agent) -> Vec<String> {
    let groups = settings["hooks"][agent.facts().event].as_array();
    let hooks = groups.into_iter().flatten();
    let hooks = hooks.filter_map(|group| group["hooks"].as_array());
    let commands = hooks.flatten().filter_map(|hook| hook["command"].as_str());
    commands
        .filter(|command| is_ours(command, agent))
        .map(str::to_owned)
        .collect()
}

/// Returns true if a command of a shell asks a program called `offcut…` for `agent`. Another program may have hooks of
/// agents too.
pub(super) fn is_ours(command: &str, agent: Agent) -> bool {
    let Some((program, rest)) = command.split_once(&*format!(" hook {agent}")) else {
        return false;
    };
    // One without quotes may stand after other words.
    let (program, ends): (_, &[char]) = match program.strip_suffix(['\'', '"']) {
        Some(quoted) => (quoted, &['/', '\\', '\'', '"']),
        None => (program, &['/', '\\', ' ']),
    };
    let name = program.rsplit(ends).next().unwrap_or_default();
    name.starts_with("offcut") && (rest.is_empty() || rest.starts_with(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_without_the_reader_are_found() {
        for settings in [
            json!({"tools": {"core": ["run_shell_command"]}}),
            json!({"tools": {"exclude": ["read_file"]}}),
            json!({"excludeTools": ["ReadFileTool"]}),
        ] {
            assert!(!has_reader(&settings), "{settings}");
        }
        for settings in [
            json!({}),
            json!({"tools": {"core": ["read_file"], "exclude": ["write_file"]}}),
        ] {
            assert!(has_reader(&settings), "{settings}");
        }
    }
}
