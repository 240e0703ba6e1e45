//! The settings of Claude Code.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::command;
use super::error::InstallError;
use super::installation::Installation;
use super::jsonc::Addition;

/// The tools whose results have texts that a hook may replace. For others, the agent sends no events.
const TOOLS: &str = "Bash|Read|Grep|WebFetch|Task|Agent|mcp__.*";
/// Characters with a meaning of their own in a rule.
const NOT_IN_RULES: &[char] = &['*', '?', '[', ']', '{', '}', '(', ')', '!', '\\', '\n'];

/// A hook for results, and the right to read the store.
pub(super) fn additions(installation: &Installation) -> Result<Vec<Addition>, InstallError> {
    let mut additions = vec![command::hook(installation, TOOLS)?];
    for rule in rules(&installation.store)? {
        additions.push(Addition::element("permissions.allow", rule));
    }
    Ok(additions)
}

/// The rules by which the agent may read the store. Two if the store's path holds a symbolic link.
fn rules(store: &Path) -> Result<Vec<Value>, InstallError> {
    let mut paths = vec![store.to_owned()];
    paths.extend(
        store
            .canonicalize()
            .ok()
            .filter(|resolved| *resolved != store),
    );
    let rule = |path: &PathBuf| {
        let text = path.to_str().filter(|text| !text.contains(NOT_IN_RULES));
        let text = text.ok_or_else(|| {
            let problem = "its path holds characters that a rule can't have; set OFFCUT_HOME or `backend` to another directory";
            InstallError::new(path, problem)
        })?;
        Ok(json!(format!("Read(/{text}/**)")))
    };
    paths.iter().map(rule).collect()
}
