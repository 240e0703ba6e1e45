//! The tools: a shell and an edit, in a directory of their own.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// Definitions, as a request has them.
pub(crate) fn definitions() -> Vec<Value> {
    let tool = |name: &str, description: &str, fields: &[&str]| {
        let properties: serde_json::Map<String, Value> = fields
            .iter()
            .map(|field| ((*field).to_owned(), json!({"type": "string"})))
            .collect();
        let parameters = json!({"type": "object", "properties": properties, "required": fields});
        json!({"type": "function", "function": {"name": name, "description": description, "parameters": parameters}})
    };
    vec![
        tool("bash", "Run a command in the project.", &["command"]),
        tool(
            "edit",
            "Replace a text that a file has exactly once.",
            &["path", "old", "new"],
        ),
    ]
}

/// Runs a tool in `folder`. An error is a result too, as in any agent.
pub(crate) fn call(folder: &Path, tool: &str, arguments: &Value) -> String {
    let field = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
    let done = match tool {
        "bash" => bash(folder, &field("command")),
        "edit" => edit(folder, &field("path"), &field("old"), &field("new")),
        _ => Err(format!("there is no tool {tool}")),
    };
    done.unwrap_or_else(|error| format!("Error: {error}"))
}

fn bash(folder: &Path, command: &str) -> Result<String, String> {
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .env("LC_ALL", "C")
        .output();
    let output = output.map_err(|error| error.to_string())?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text += &String::from_utf8_lossy(&output.stderr);
    if let Some(code) = output.status.code().filter(|code| *code != 0) {
        text += &format!("\nexit code: {code}");
    }
    Ok(text)
}

fn edit(folder: &Path, path: &str, old: &str, new: &str) -> Result<String, String> {
    let path = folder.join(path);
    let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
    match text.matches(old).count() {
        1 if !old.is_empty() => {
            fs::write(&path, text.replacen(old, new, 1)).map_err(|error| error.to_string())?;
            Ok("Edited.".to_owned())
        }
        count => Err(format!("the old text was found {count} times")),
    }
}
