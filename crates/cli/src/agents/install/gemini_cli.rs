//! The settings of Gemini CLI.

use serde_json::{Value, json};

use super::command;
use super::error::InstallError;
use super::installation::Installation;
use super::jsonc::Addition;

/// Milliseconds after which the agent goes on without an answer.
const TIME_OUT: u64 = 30_000;
/// The names of the tool that reads files, which the hook needs.
const READER: [&str; 2] = ["read_file", "ReadFileTool"];

/// A hook for results. The store lies where the agent may read.
pub(super) fn additions(installation: &Installation) -> Result<Vec<Addition>, InstallError> {
    // The agent takes anything on stderr, such as that the program is gone, for the result.
    let command = format!("{} 2>/dev/null || true", command::line(installation)?);
    let hook =
        json!({"type": "command", "name": "offcut", "command": command, "timeout": TIME_OUT});
    let group = json!({"matcher": ".*", "hooks": [hook]});
    Ok(vec![Addition::element("hooks.AfterTool", group)])
}

/// Refuses settings under which a replaced result would be an error.
pub(super) fn check(settings: &Value) -> Result<(), String> {
    let names = |path: &str| {
        let list = settings.pointer(path).and_then(Value::as_array);
        let is_reader = |name: &Value| name.as_str().is_some_and(|name| READER.contains(&name));
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
            check(&settings).unwrap_err();
        }
        for settings in [
            json!({}),
            json!({"tools": {"core": ["read_file"], "exclude": ["write_file"]}}),
        ] {
            check(&settings).unwrap();
        }
    }
}
