//! The trust that Codex asks its user for before it runs a hook.

use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::finding::Finding;
use crate::agents::Agent;
use crate::agents::install::{read_text, refused};
use crate::failure::Failure;
use crate::units;

/// The section of the settings in which the client notes trusted hooks, by the hook's place.
const STATE: &str = "state";
/// The client's own name of the event.
const EVENT: &str = "post_tool_use";

/// Findings about the client's settings, in the file at `config`: they may leave out the hook that runs `command`
/// from the file of `hooks` at `path`.
pub(super) fn findings(
    config: &Path,
    path: &Path,
    hooks: &Value,
    command: &str,
) -> Result<Vec<Finding>, Failure> {
    let text = read_text(config)?;
    let settings: toml::Table = toml::from_str(&text).map_err(|_| {
        // Its message would quote the line, and settings hold secrets.
        refused(config, "it is not TOML; mend it, and try again")
    })?;
    let mut findings = Vec::new();
    let flag = settings.get("features").and_then(|all| all.get("hooks"));
    if flag.and_then(toml::Value::as_bool) == Some(false) {
        findings.push(Finding::problem(
            format!("{} switches all hooks off", config.display()),
            "remove `features.hooks`",
        ));
    }
    let inline = settings.get("hooks").and_then(toml::Value::as_table);
    if inline.is_some_and(|hooks| hooks.keys().any(|name| name != STATE)) {
        findings.push(Finding::note(
            format!(
                "{} has hooks too, about which the agent warns",
                config.display()
            ),
            format!("move them to {}", path.display()),
        ));
    }
    let state = inline.and_then(|hooks| hooks.get(STATE)?.as_table());
    findings.extend(place(path, hooks, command).map(|(key, hash)| {
        let entry = state.and_then(|state| state.get(&key));
        let field = |name| entry.and_then(|entry| entry.get(name));
        let is_off = field("enabled").and_then(toml::Value::as_bool) == Some(false);
        let trusted = field("trusted_hash").and_then(toml::Value::as_str);
        let review = "start codex, enter `/hooks`, read Offcut's hook and trust it";
        match trusted {
            _ if is_off => Finding::problem(
                "the agent's user has switched this hook off",
                "start codex, enter `/hooks`, and switch it on",
            ),
            Some(trusted) if trusted == hash => Finding::works("the agent trusts this hook"),
            Some(_) => Finding::problem("the agent trusted this hook before it changed", review),
            None => Finding::problem(
                "the agent does not trust this hook yet, and skips it",
                review,
            ),
        }
    }));
    Ok(findings)
}

/// The name under which the client notes its trust in the hook that runs `command`, and the digest of the hook
/// that it trusts. No document describes the digest; it is taken from what the client writes.
fn place(path: &Path, hooks: &Value, command: &str) -> Option<(String, String)> {
    let groups = hooks["hooks"][Agent::Codex.facts().event].as_array()?;
    let all = groups.iter().enumerate().flat_map(|(nth, group)| {
        let hooks = group["hooks"].as_array().into_iter().flatten().enumerate();
        hooks.map(move |(at, hook)| (nth, at, group, hook))
    });
    let (nth, at, group, hook) = all
        .into_iter()
        .find(|(.., hook)| hook["command"] == command)?;
    // In the order of the alphabet, as the client writes it.
    let handler = json!({
        "async": hook["async"].as_bool().unwrap_or_default(), "command": command,
        "timeout": hook["timeout"].as_u64().unwrap_or(600), "type": "command",
    });
    let identity = json!({"event_name": EVENT, "hooks": [handler], "matcher": group["matcher"]});
    let digest = Sha256::digest(identity.to_string());
    let digest = units::hex(&digest);
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let key = format!("{}:{EVENT}:{nth}:{at}", path.display());
    Some((key, format!("sha256:{digest}")))
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn a_hook_must_be_trusted_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.toml");
        // The digest is the one that Codex 0.169 gives this hook.
        let mut hooks = json!({"hooks": {"PostToolUse": [
            {"matcher": "Edit", "hooks": [{"type": "command", "command": "mine"}]},
            {"matcher": ".*", "hooks": [{"type": "command", "command": "/tmp/cx/hook.sh", "timeout": 30}]},
        ]}});
        let path = Path::new("/no/such/hooks.json");
        let state = "[hooks.state.\"/no/such/hooks.json:post_tool_use:1:0\"]\n";
        let hash = "trusted_hash = \"sha256:3e8b016b5532470b98bce6b5229a834702705e0c835713b5d8af17a37aa5a6a4\"\n";
        let mut found = |settings: &str, matcher: &str| {
            std::fs::write(&config, settings).unwrap();
            hooks["hooks"]["PostToolUse"][1]["matcher"] = matcher.into();
            let findings = findings(&config, path, &hooks, "/tmp/cx/hook.sh").unwrap();
            let last = findings.last().unwrap();
            (last.level, last.text.clone(), findings.len())
        };
        let trusted = format!("{state}{hash}");
        let works = "the agent trusts this hook".to_owned();
        assert_eq!(found(&trusted, ".*"), (Level::Works, works, 1));
        let cases = [
            ("", ".*", "does not trust this hook yet"),
            (state, ".*", "does not trust this hook yet"),
            (&trusted, "Bash", "before it changed"),
            (
                &format!("{trusted}enabled = false\n"),
                ".*",
                "switched this hook off",
            ),
        ];
        for (settings, matcher, expected) in cases {
            let (level, text, _) = found(settings, matcher);
            assert_eq!(level, Level::Problem, "{settings}");
            assert!(text.contains(expected), "{settings}: {text}");
        }
        let others = format!("features.hooks = false\n[[hooks.Stop]]\n{trusted}");
        assert_eq!(found(&others, ".*").2, 3);
    }

    #[test]
    fn settings_that_cant_be_read_are_not_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.toml");
        std::fs::write(&config, "key = sk-secret").unwrap();
        let error = findings(&config, &config, &Value::Null, "").unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
        assert!(std::error::Error::source(&error).is_none());
    }
}
