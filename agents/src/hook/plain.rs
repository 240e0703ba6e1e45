//! Events of agents whose extensions are ours: a text with its call, in JSON of our own.
//!
//! `{"session": …, "directory": …, "call_id": …, "tool": …, "input": {…}, "output": …}` is answered by
//! `{"output": …}`.

use std::path::PathBuf;

use offcut::{ToolCall, ToolReduction};
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::HookError;
use super::event::{parse, shorten};
use super::surroundings::Surroundings;

#[derive(Deserialize)]
struct Event {
    session: String,
    directory: PathBuf,
    call_id: String,
    tool: String,
    input: Value,
    output: String,
}

pub(super) async fn answer(
    event: &[u8],
    reduction: &ToolReduction,
    surroundings: &Surroundings,
) -> Result<Option<String>, HookError> {
    let event: Event = parse(event)?;
    if reads_store(&event, surroundings) {
        return Ok(None);
    }
    let session = reduction.session(&event.session);
    let call = ToolCall::new(&event.call_id, &event.tool, event.input.to_string());
    let shorter = shorten(&session, &call, event.output).await?;
    Ok(shorter.map(|output| json!({"output": output}).to_string()))
}

/// Returns true if the tool has read content of the store.
fn reads_store(event: &Event, surroundings: &Surroundings) -> bool {
    let argument = |name| event.input.get(name).and_then(Value::as_str);
    let is_path = ["path", "filePath", "file_path"]
        .into_iter()
        .filter_map(argument)
        .any(|path| surroundings.is_stored(&event.directory, path));
    is_path || argument("command").is_some_and(|command| surroundings.names_store(command))
}
