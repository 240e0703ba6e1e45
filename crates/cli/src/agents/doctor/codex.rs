//! The settings of Codex that keep a hook from running.

use std::path::Path;

use super::finding::Finding;
use crate::agents::install::{read_text, refused};
use crate::failure::Failure;

/// Findings about the client's settings, in the file at `config`.
pub(super) fn findings(config: &Path) -> Result<Vec<Finding>, Failure> {
    let settings: toml::Table = toml::from_str(&read_text(config)?).map_err(|_| {
        // Its message would quote the line, and settings hold secrets.
        refused(config, "it is not TOML; mend it, and try again")
    })?;
    // No document says how the client notes its user's trust.
    let mut findings = vec![Finding::note(
        "the agent skips a hook until its user trusts it as it is",
        "start codex, enter `/hooks`, and look whether Offcut's is trusted and switched on",
    )];
    let flag = settings.get("features").and_then(|all| all.get("hooks"));
    if flag.and_then(toml::Value::as_bool) == Some(false) {
        findings.push(Finding::problem(
            format!("{} switches all hooks off", config.display()),
            "remove `features.hooks`",
        ));
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn hooks_may_be_off_and_are_not_trusted_by_themselves() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.toml");
        for (settings, expected) in [
            ("", &[Level::Note][..]),
            ("features.hooks = false", &[Level::Note, Level::Problem]),
        ] {
            std::fs::write(&config, settings).unwrap();
            let found = findings(&config).unwrap();
            let levels: Vec<_> = found.iter().map(|one| one.level).collect();
            assert_eq!(levels, expected, "{settings}");
        }
    }

    #[test]
    fn settings_that_cant_be_read_are_not_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.toml");
        std::fs::write(&config, "key = sk-secret").unwrap();
        let error = findings(&config).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
        assert!(std::error::Error::source(&error).is_none());
    }
}
