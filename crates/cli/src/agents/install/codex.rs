//! The hooks of Codex, in a file of their own beside its settings.

use serde_json::json;

use super::command;
use super::error::InstallError;
use super::installation::Installation;
use super::jsonc::Addition;
use crate::agents::hook::CODEX_TOOLS;

/// Seconds after which the agent goes on without an answer.
const TIME_OUT: u64 = 30;

/// A hook for results. Its sandbox lets commands read everything.
pub(super) fn additions(installation: &Installation) -> Result<Vec<Addition>, InstallError> {
    // It succeeds even if the program is gone: the user would be shown an error at each call.
    let command = format!("{} || true", command::line(installation)?);
    let hook = json!({"type": "command", "command": command, "timeout": TIME_OUT});
    let group = json!({"matcher": CODEX_TOOLS, "hooks": [hook]});
    Ok(vec![Addition::element("hooks.PostToolUse", group)])
}
