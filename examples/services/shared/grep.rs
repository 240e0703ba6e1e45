//! A tool with long results: every line in a directory that matches a regular expression.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use offcut::{ToolCall, ToolError};
use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};

/// The tool's name.
pub const NAME: &str = "grep";

/// The tool's description for the model.
pub const DESCRIPTION: &str =
    "Searches all text files for a regular expression. Returns path:line:text.";

/// Maximum size in bytes of a compiled pattern, since a model wrote it.
const MAX_PATTERN: usize = 1 << 20;

/// The JSON schema of its arguments.
#[must_use]
pub fn parameters() -> Value {
    json!({"type": "object", "properties": {"pattern": {"type": "string"}}, "required": ["pattern"]})
}

/// Searches `directory` as `call` requests. Skips hidden files, symbolic links and folders named
/// `target`.
///
/// # Errors
///
/// The model called another tool, its pattern is not a regular expression, or `directory` can't be
/// read.
pub fn run(directory: &Path, call: &ToolCall) -> Result<String, ToolError> {
    if call.name != NAME {
        return Err(ToolError::new("unknown tool: call `grep`"));
    }
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let Some(pattern) = arguments["pattern"].as_str() else {
        return Err(ToolError::new(
            "`pattern` is missing: pass {\"pattern\": \"…\"}",
        ));
    };
    let mut pattern = RegexBuilder::new(pattern);
    let pattern = pattern.size_limit(MAX_PATTERN).build();
    let pattern = pattern.map_err(|error| ToolError::new(error.to_string()))?;
    let mut found = String::new();
    search(directory, directory, &pattern, &mut found)
        .map_err(|error| ToolError::new(format!("the directory can't be searched: {error}")))?;
    Ok(found)
}

fn search(root: &Path, folder: &Path, pattern: &Regex, found: &mut String) -> std::io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (name, kind, path) = (entry.file_name(), entry.file_type()?, entry.path());
        if name.to_string_lossy().starts_with('.') || name == "target" {
            continue;
        }
        if kind.is_dir() {
            // An unreadable folder does not end the search.
            let _ = search(root, &path, pattern, found);
        }
        // A file that is unreadable or not text has no lines.
        let Some(text) = kind
            .is_file()
            .then(|| fs::read_to_string(&path).ok())
            .flatten()
        else {
            continue;
        };
        let shown = path.strip_prefix(root).unwrap_or(&path).display();
        for (number, line) in (1..).zip(text.lines()) {
            if pattern.is_match(line) {
                // Writing to a string does not fail.
                let _ = writeln!(found, "{shown}:{number}:{line}");
            }
        }
    }
    Ok(())
}
