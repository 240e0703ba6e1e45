//! Recognizes calls that read a file. Models often edit the file next, and an edit must quote its
//! text exactly.

use serde_json::Value;

use crate::content::ToolCall;

/// Tools that return a file, in lower case. Some can also edit; an edit has the text to replace in
/// its arguments.
const READERS: [&str; 7] = [
    "read",
    "view",
    "cat",
    "open",
    "read_file",
    "readfile",
    "str_replace_editor",
];
const READER_PREFIX: &str = "get_file";
const REPLACED: &str = "old_str";
/// Tools that run a command, in lower case.
const SHELLS: [&str; 11] = [
    "bash",
    "exec",
    "shell",
    "shell_command",
    "run_shell_command",
    "exec_command",
    "execute_bash",
    "local_shell",
    "terminal",
    "run_command",
    "container.exec",
];
/// Commands that print a file.
const COMMANDS: [&str; 7] = ["cat", "sed -n", "nl", "head", "tail", "bat", "less"];
/// Maximum length of a shell's arguments in bytes. Longer ones are assumed not to print a file.
const MAX_ARGUMENTS: usize = 4096;

/// Returns `true` if `call` reads a file, judging by the tool's name and, for shells, the command.
pub(super) fn reads_a_file(call: &ToolCall) -> bool {
    let tool = call.name.to_ascii_lowercase();
    let is_of = |tools: &[&str]| tools.contains(&tool.as_str());
    if is_of(&READERS) || tool.starts_with(READER_PREFIX) {
        return !call.arguments.contains(REPLACED);
    }
    is_of(&SHELLS) && command(&call.arguments).is_some_and(|command| prints_a_file(&command))
}

/// The command in a shell's arguments: a string, or the last word of a list such as `["bash", "-c",
/// "cat a"]`.
fn command(arguments: &str) -> Option<String> {
    let arguments: Value =
        serde_json::from_str(arguments.get(..MAX_ARGUMENTS.min(arguments.len()))?).ok()?;
    let command = ["command", "cmd"]
        .iter()
        .find_map(|field| arguments.get(field))?;
    let command = command
        .as_array()
        .and_then(|words| words.last())
        .unwrap_or(command);
    command.as_str().map(str::to_owned)
}

/// Returns `true` if `command`, after an optional `cd … &&`, begins with a command that prints a
/// file.
fn prints_a_file(command: &str) -> bool {
    let command = command.trim_start();
    let after_cd = command
        .strip_prefix("cd ")
        .and_then(|rest| rest.split_once("&&"));
    let command = after_cd.map_or(command, |(_, command)| command.trim_start());
    COMMANDS.iter().any(|name| {
        command
            .strip_prefix(name)
            .is_some_and(|rest| rest.starts_with([' ', '\t']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_reads_are_recognized_by_tool_and_command() {
        let reads =
            |tool: &str, arguments: &str| reads_a_file(&ToolCall::new("1", tool, arguments));
        assert!(reads("Read", r#"{"file_path":"/a.rs"}"#));
        assert!(reads("get_file_contents", "{}"));
        assert!(!reads(
            "str_replace_editor",
            r#"{"command":"str_replace","old_str":"a","new_str":"b"}"#
        ));
        assert!(reads(
            "exec_command",
            r#"{"cmd":"cd /a && sed -n '1,20p' b.rs"}"#
        ));
        assert!(reads("shell", r#"{"command":["bash","-lc","cat a.rs"]}"#));
        assert!(!reads("bash", r#"{"command":"catalog --list"}"#));
        assert!(!reads("bash", r#"{"command":"grep -n cat a.rs"}"#));
        assert!(!reads("grep", r#"{"command":"cat a.rs"}"#));
        assert!(!reads("bash", "cat a.rs"));
        assert!(!reads(
            "bash",
            &format!(r#"{{"command":"cat {}"}}"#, "a".repeat(MAX_ARGUMENTS))
        ));
    }
}
