//! Events of Claude Code: the places in a tool's response at which texts stand.

use std::path::Path;

use serde_json::{Value, json};

use super::event::{Event, EventText};
use super::surroundings::Surroundings;

/// The field by which the client says where it has spilled all of a command's output.
const SPILLED: &str = "persistedOutputPath";
const SPILLED_SIZE: &str = "persistedOutputSize";
/// Length in bytes of the client's own preview of such output, with the lines around it.
const OWN_PREVIEW: usize = 2_300;
/// Length in bytes of ours in place of it, so that with the hint it takes about as much room.
const INSTEAD: usize = 2_000;

pub(super) fn texts(event: &Event, surroundings: &Surroundings) -> Vec<EventText> {
    let response = &event.tool_response;
    let start = response.pointer("/file/startLine").and_then(Value::as_i64);
    let of_places = |places: Vec<String>| {
        let texts = places.iter().map(|place| response.pointer(place)?.as_str());
        let texts = texts.map(|text| text.map(str::to_owned));
        let texts = texts.collect::<Option<Vec<_>>>()?;
        if texts.iter().all(String::is_empty) {
            return None;
        }
        let mut text = EventText::new(&event.tool_use_id, texts);
        if places[0] == "/stderr" {
            text.id += "-stderr";
        }
        // The client numbers what it shows, and a preview has the numbers of the stored text: those of the file only
        // if it begins with the file's first line.
        text.stays = start.is_some_and(|line| line > 1);
        // For stdout that it has put into a file, the client would show its own preview.
        if places[0] == "/stdout"
            && let Some(named) = response.get(SPILLED)
        {
            text.shown = text.shown.min(OWN_PREVIEW);
            text.excerpt = Some(INSTEAD);
            let file = || {
                let file = surroundings.file_of_agent("projects", Path::new(named.as_str()?))?;
                (file.parent()?.file_name()? == "tool-results").then_some(file)
            };
            text = text.of_file(file());
        }
        text.places = places;
        Some(text)
    };
    let places = places(&event.tool_name, response).into_iter();
    places.filter_map(of_places).collect()
}

/// The answer with the response, in which each of the texts at some places are `shortened`.
pub(super) fn output(event: &Event, shortened: &[(Vec<String>, Vec<String>)]) -> Value {
    let mut response = event.tool_response.clone();
    for (places, texts) in shortened {
        replace(&mut response, places, texts);
        if places[0] == "/file/content"
            && let Some(line) = response.pointer_mut("/file/startLine")
            && let Some(number) = line.as_i64()
        {
            // The client numbers what it shows, and a hint stands above the first line.
            *line = (number - 1).into();
        }
        if places[0] == "/stdout"
            && let Some(response) = response.as_object_mut()
        {
            // Otherwise the client would put its own preview around the text.
            response.shift_remove(SPILLED);
            response.shift_remove(SPILLED_SIZE);
        }
    }
    json!({"hookSpecificOutput": {"hookEventName": event.hook_event_name, "updatedToolOutput": response}})
}

/// Puts texts in the places of those at `paths`. If they are fewer, the blocks of the others go.
fn replace(response: &mut Value, paths: &[String], texts: &[String]) {
    for path in paths.iter().skip(texts.len()).rev() {
        let block = path
            .strip_suffix("/text")
            .and_then(|block| block.rsplit_once('/'));
        if let Some((list, at)) = block
            && let Some(Value::Array(list)) = response.pointer_mut(list)
            && let Ok(at) = at.parse::<usize>()
        {
            list.remove(at);
        }
    }
    for (path, text) in paths.iter().zip(texts) {
        if let Some(place) = response.pointer_mut(path) {
            *place = text.as_str().into();
        }
    }
}

/// JSON pointers to the texts of a response that the model is shown and that the client lets a hook
/// replace, those together that share a limit. Other texts, such as the original file in the response of an edit, stay.
fn places(tool: &str, response: &Value) -> Vec<Vec<String>> {
    let fixed = |paths: &[&str]| paths.iter().map(|path| vec![(*path).to_owned()]).collect();
    match tool {
        "Bash" if response["isImage"] != json!(true) => fixed(&["/stdout", "/stderr"]),
        "Read" if response["type"] == json!("text") => fixed(&["/file/content"]),
        "Grep" => fixed(&["/content"]),
        "WebFetch" => fixed(&["/result"]),
        "Task" | "Agent" => blocks(&response["content"], "/content"),
        _ if tool.starts_with("mcp__") => match response {
            Value::String(_) => fixed(&[""]),
            Value::Object(_) => blocks(&response["content"], "/content"),
            _ => blocks(response, ""),
        },
        _ => Vec::new(),
    }
}

/// Pointers to the texts in a list of blocks, which is at `path`.
fn blocks(list: &Value, path: &str) -> Vec<Vec<String>> {
    let blocks = list.as_array().into_iter().flatten().enumerate();
    let is_text = |block: &Value| block["type"] == json!("text") && block["text"].is_string();
    let texts = blocks.filter(|(_, block)| is_text(block));
    let paths: Vec<_> = texts.map(|(at, _)| format!("{path}/{at}/text")).collect();
    Vec::from_iter((!paths.is_empty()).then_some(paths))
}
