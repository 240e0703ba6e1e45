//! Converts the library's messages to chat completions.

use offcut::format::{LoopFormat, Message, OpenAiChat};
use offcut::{Part, ToolCall};
use serde_json::{Value, json};

use crate::text::as_text;

/// Returns the messages of a request.
pub(super) fn messages(messages: &[Message]) -> Vec<Value> {
    let (mut all, mut images) = (Vec::new(), Vec::new());
    for message in messages {
        if !matches!(message, Message::Tool { .. }) {
            show(&mut all, &mut images);
        }
        all.push(match message {
            Message::System { content } => json!({"role": "system", "content": text(content)}),
            Message::User { content } => json!({"role": "user", "content": parts(content)}),
            Message::Assistant { content, calls } => {
                let said = (!content.is_empty()).then(|| text(content));
                let mut message = json!({"role": "assistant", "content": said});
                if !calls.is_empty() {
                    let call = |call: &ToolCall| json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}});
                    message["tool_calls"] = calls.iter().map(call).collect();
                }
                message
            }
            Message::Tool {
                call_id,
                name,
                content,
                ..
            } => {
                let (pictures, mut shown): (Vec<_>, Vec<_>) =
                    content.iter().cloned().partition(is_image);
                if shown.is_empty() && !pictures.is_empty() {
                    shown.push("Its image follows.".into());
                }
                images.extend(pictures.into_iter().map(|image| (name, image)));
                json!({"role": "tool", "tool_call_id": call_id, "content": text(&shown)})
            }
        });
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
    let shown = content.iter().cloned().map(|part| match part {
        image if is_image(&image) => image,
        other => Part::Text(as_text(other)),
    });
    let mut message = OpenAiChat.tool_message(&ToolCall::default(), shown.collect(), false);
    message["content"].take()
}

fn text(content: &[Part]) -> String {
    content
        .iter()
        .cloned()
        .map(as_text)
        .collect::<Vec<_>>()
        .join("\n")
}
