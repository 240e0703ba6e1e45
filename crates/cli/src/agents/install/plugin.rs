//! Plug-ins of ours for agents that load such files.

use serde_json::json;

use super::command;
use super::error::InstallError;
use super::installation::Installation;
use crate::agents::Agent;

const OPENCODE: &str = include_str!("../plugins/opencode.js");
const PI: &str = include_str!("../plugins/pi.js");

/// The text of the plug-in for an installation's agent, with the command that it runs. `None` if the agent
/// has none.
pub(super) fn text(installation: &Installation) -> Result<Option<String>, InstallError> {
    let plugin = match installation.agent {
        Agent::OpenCode => OPENCODE,
        Agent::Pi => PI,
        _ => return Ok(None),
    };
    let command = json!(command::words(installation)?).to_string();
    let store = json!(command::text(&installation.store)?).to_string();
    let text = plugin.replacen("__OFFCUT_COMMAND__", &command, 1);
    Ok(Some(text.replacen("__OFFCUT_STORE__", &store, 1)))
}
