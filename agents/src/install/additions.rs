//! The values that each agent's settings get.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::error::InstallError;
use super::installation::{Installation, Scope};
use super::jsonc::{Addition, Place};
use crate::Agent;
use crate::layout::{self, Home};

/// The tools of Claude Code whose results the hook can shorten, as a pattern of its settings.
const CLAUDE_CODE_TOOLS: &str = "Bash|Read|Grep|WebFetch|Task|Agent|mcp__.*";
/// Seconds after which an agent goes on without an answer.
const TIME_OUT: u64 = 30;
/// Characters with a meaning of their own in the rules of agents.
const NOT_IN_RULES: &[char] = &['*', '?', '[', ']', '{', '}', '(', ')', '!', '\\', '\n'];

/// The file with an agent's settings.
///
/// # Errors
///
/// The agent has no hooks that Offcut can install, or there is no home directory.
pub fn settings_path(agent: Agent, scope: &Scope) -> Result<PathBuf, InstallError> {
    if agent != Agent::ClaudeCode {
        let problem = format!(
            "{agent} can't be installed yet; known is {}",
            Agent::ClaudeCode
        );
        return Err(InstallError::new(Path::new(agent.name()), problem));
    }
    match scope {
        Scope::User => layout::agent_home(agent)
            .map(|folder| folder.join("settings.json"))
            .ok_or_else(|| {
                let problem = "there is no home directory; set HOME";
                InstallError::new(Path::new("settings.json"), problem)
            }),
        // Not `settings.json`: others would get a program and a store that only this user has.
        Scope::Project(folder) => {
            let folder = folder
                .canonicalize()
                .map_err(|error| InstallError::because(folder, "it can't be opened", error))?;
            Ok(folder.join(".claude/settings.local.json"))
        }
    }
}

/// The values that the settings of an installation's agent get.
pub(super) fn of(installation: &Installation) -> Result<Vec<Addition>, InstallError> {
    let command = command_of(installation)?;
    let hook = json!({"type": "command", "command": command, "timeout": TIME_OUT});
    let group = json!({"matcher": CLAUDE_CODE_TOOLS, "hooks": [hook]});
    let rules = rules_for(&installation.home)?;
    let rules = rules
        .into_iter()
        .map(|rule| Addition::element("permissions.allow", rule));
    Ok([Addition::element("hooks.PostToolUse", group)]
        .into_iter()
        .chain(rules)
        .collect())
}

/// The command of a hook. It succeeds even if the program is gone: an agent would show its user an error at
/// each call.
pub(crate) fn command_of(installation: &Installation) -> Result<String, InstallError> {
    let home = &installation.home;
    let environment = match Home::by_default().as_ref() {
        Some(default) if default == home => String::new(),
        _ => format!("OFFCUT_HOME={} ", quoted(home.path())?),
    };
    let program = quoted(&installation.program)?;
    Ok(format!(
        "{environment}{program} hook {} || true",
        installation.agent
    ))
}

/// The rules by which the agent may read the store. Two if the store's path holds a symbolic link.
fn rules_for(home: &Home) -> Result<Vec<Value>, InstallError> {
    let store = home.store();
    let mut paths = vec![store.clone()];
    paths.extend(
        store
            .canonicalize()
            .ok()
            .filter(|resolved| *resolved != store),
    );
    let rule = |path: &PathBuf| {
        let text = path.to_str().filter(|text| !text.contains(NOT_IN_RULES));
        let text = text.ok_or_else(|| {
            let problem = "its path holds characters that a rule can't have; set OFFCUT_HOME to another directory";
            InstallError::new(path, problem)
        })?;
        Ok(json!(format!("Read(/{text}/**)")))
    };
    paths.iter().map(rule).collect()
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> Result<String, InstallError> {
    let text = path.to_str().filter(|text| !text.contains(['\n', '\r']));
    let text =
        text.ok_or_else(|| InstallError::new(path, "its path is not text that settings can hold"))?;
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
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
        let path = addition.path.join(".");
        match &addition.place {
            Place::Element => format!("{path}: {value}"),
            Place::Property(name) => format!("{path}.{name}: {value}"),
        }
    };
    additions.iter().map(in_words).collect()
}
