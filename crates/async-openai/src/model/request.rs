//! Converts the library's messages to chat completions.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use offcut::Part;
use offcut::format::{LoopFormat, Message, OpenAiChat};
use serde_json::{Value, json};

use crate::text::as_text;

/// Returns the messages of a request.
pub(super) fn messages(messages: &[Message]) -> Vec<Value> {
    let (mut all, mut images) = (Vec::new(), Vec::new());
    for message in messages {
        if !matches!(message, Message::Tool { .. }) {
            show(&mut all, &mut images);
        }
        match message {
            Message::System { content } => {
                all.push(json!({"role": "system", "content": text(content)}));
            }
            Message::User { content } => {
                all.push(json!({"role": "user", "content": parts(content)}));
            }
            Message::Assistant { content, calls } => {
                let said = if content.is_empty() {
                    Value::Null
                } else {
                    text(content).into()
                };
                let mut message = json!({"role": "assistant", "content": said});
                if !calls.is_empty() {
                    let call = |call: &offcut::ToolCall| json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}});
                    message["tool_calls"] = calls.iter().map(call).collect();
                }
                all.push(message);
            }
            Message::Tool {
                call_id,
                name,
                content,
                ..
            } => {
                let (shown, rest): (Vec<_>, Vec<_>) =
                    content.iter().cloned().partition(|part| !is_image(part));
                let shown = if shown.is_empty() && !rest.is_empty() {
                    vec!["Its image follows.".into()]
                } else {
                    shown
                };
                let call = offcut::ToolCall::new(call_id, name, "");
                let shown = vec![Part::Text(text(&shown))];
                all.push(OpenAiChat.tool_message(&call, shown, false));
                images.extend(rest.into_iter().map(|image| (name, image)));
            }
        }
    }
    show(&mut all, &mut images);
    all
}

/// Adds the images of the preceding results in a separate message, since tool messages of the API
/// hold only text.
fn show(all: &mut Vec<Value>, images: &mut Vec<(&String, Part)>) {
    if !images.is_empty() {
        let shown = images
            .drain(..)
            .flat_map(|(tool, image)| [Part::Text(format!("From {tool}:")), image]);
        all.push(json!({"role": "user", "content": parts(&shown.collect::<Vec<_>>())}));
    }
}

fn is_image(part: &Part) -> bool {
    match part {
        Part::Media { mime, .. } => mime.starts_with("image/"),
        Part::Link { .. } => true,
        _ => false,
    }
}

/// Returns a string for a single text, otherwise parts.
fn parts(content: &[Part]) -> Value {
    if !content.iter().any(is_image) {
        return text(content).into();
    }
    let image = |url: String| json!({"type": "image_url", "image_url": {"url": url}});
    let part = |part: &Part| match part {
        Part::Media { mime, data } if mime.starts_with("image/") => {
            image(format!("data:{mime};base64,{}", STANDARD.encode(data)))
        }
        Part::Link { url, .. } => image(url.clone()),
        other => json!({"type": "text", "text": as_text(other.clone())}),
    };
    content.iter().map(part).collect()
}

fn text(content: &[Part]) -> String {
    content
        .iter()
        .cloned()
        .map(as_text)
        .collect::<Vec<_>>()
        .join("\n")
}
