//! The arguments of the commands for coding agents.

use std::path::PathBuf;
use std::time::Duration;

use super::OfUser;
use crate::agents::Agent;
use crate::units;

/// Answer an event of a coding agent, read from stdin.
///
/// The agent's settings name this command. Long results are stored whole and
/// replaced by a hint and a preview. Anything unexpected, and any failure, lets the event pass
/// unchanged: nothing on stdout, exit code 0, and a line in OFFCUT_HOME/hook.log.
#[derive(Debug, clap::Args)]
pub(crate) struct Hook {
    /// The agent: claude-code, codex, gemini-cli, opencode or pi.
    pub(crate) agent: String,
    #[command(flatten)]
    pub(crate) of_user: OfUser,
}

/// An agent, and changes of its settings.
#[derive(Debug, clap::Args)]
pub(crate) struct Install {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Put `offcut mcp` in front of the MCP servers over stdio in the agent's settings too. With --project,
    /// in the project's own file, which others may share. Not pi; on Linux and macOS.
    #[cfg(unix)]
    #[arg(long)]
    pub(crate) mcp_servers: bool,
}

/// An agent, and the place of its settings.
#[derive(Debug, clap::Args)]
pub(crate) struct Place {
    /// The agent.
    pub(crate) agent: Agent,
    /// A project's folder: use the user's own settings for this project instead of those for all.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) project: Option<PathBuf>,
    /// The program that the hook runs, instead of this one.
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
}

/// Show what hooks and servers saved.
///
/// The hooks of coding agents, and `offcut serve` and `offcut wrap`, keep journals of sizes, without
/// content. Hints, and stored results that the model read back, are counted against the gain.
#[derive(Debug, clap::Args)]
pub(crate) struct Gain {
    /// Count only what is at most this old: 7d, 12h.
    #[arg(long, value_name = "AGE", value_parser = units::duration)]
    pub(crate) since: Option<Duration>,
}
