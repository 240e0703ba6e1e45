//! The file in which each agent names its MCP servers.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::server::Server;
use super::{json_file, toml_file};
use crate::agents::install::{InstallError, Installation};
use crate::agents::{Agent, layout};
use crate::units;

/// A file with MCP servers, and the record of its changes.
#[derive(Debug)]
pub(super) struct ServersFile {
    agent: Agent,
    pub(super) path: PathBuf,
    pub(super) record: PathBuf,
}

impl ServersFile {
    /// Reads the servers in the file's text.
    ///
    /// # Errors
    ///
    /// The problem with the text, which is not quoted.
    pub(super) fn read(&self, text: &str) -> Result<Vec<Server>, String> {
        match self.agent {
            Agent::Codex => toml_file::read(text),
            Agent::OpenCode => json_file::read(text, &[&["mcp"]]),
            // Claude Code keeps servers of projects that are the user's own here too.
            _ => json_file::read(text, &[&["mcpServers"], &["projects", "*", "mcpServers"]]),
        }
    }
}

/// The file of an installation; `None` if the agent has none.
pub(super) fn of(installation: &Installation) -> Result<Option<ServersFile>, InstallError> {
    let agent = installation.agent;
    let place = |of_user, of_project| installation.scope.place(agent, of_user, of_project);
    let path = match agent {
        Agent::ClaudeCode => place(layout::claude_code_state(), ".mcp.json")?,
        Agent::Codex => place(
            layout::in_agent_home(agent, "config.toml"),
            ".codex/config.toml",
        )?,
        Agent::GeminiCli => place(
            layout::in_agent_home(agent, "settings.json"),
            ".gemini/settings.json",
        )?,
        Agent::OpenCode => either(&place(layout::opencode_settings(), "")?),
        Agent::Pi => return Ok(None),
    };
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    let name = units::hex(&digest[..12]);
    let folder = installation.home.installed().join(agent.name());
    Ok(Some(ServersFile {
        agent,
        path,
        record: folder.join("servers").join(format!("{name}.json")),
    }))
}

/// OpenCode's settings, which may have one of two names.
fn either(folder: &Path) -> PathBuf {
    let with_comments = folder.join("opencode.jsonc");
    if with_comments.exists() {
        with_comments
    } else {
        folder.join("opencode.json")
    }
}
