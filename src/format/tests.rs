//! Helpers for the tests of all wire formats.

use crate::content::Part;
use crate::json::JsonText;
use serde_json::{Value, json};

use super::{Format, NewPiece, Piece, Spelled, WireFormat};

/// The pieces that `format` shows of a message, one on each line.
pub(super) fn seen<F: Format>(format: &F, message: &F::Message) -> String {
    let mut out = String::new();
    format.visit(message, &mut |piece| out.push_str(&format!("{piece:?}\n")));
    out
}

/// Expects that malformed messages are shown with a role, and that replacing what they do not have,
/// result `slot` and the first call, leaves them alone.
pub(super) fn expect_untouched(format: &impl Format<Message = Value>, slot: usize, odd: &[Value]) {
    for odd in odd {
        assert!(seen(format, odd).starts_with("Role("), "{odd}");
        let mut changed = odd.clone();
        format.replace(&mut changed, slot, NewPiece::Result(vec![]));
        format.replace(&mut changed, 0, NewPiece::Arguments("{}".into()));
        assert_eq!(changed, *odd);
    }
}

/// Media and short texts stay as they are spelled. Fields of the text that leaves go to the hint.
#[test]
fn l5_parts_that_stay_are_as_they_were() {
    let openai = |text: &str| {
        json!({"type": "custom_tool_call_output", "call_id": "a", "output": [
            {"type": "input_text", "text": text, "prompt_cache_breakpoint": {"mode": "explicit"}},
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "original", "prompt_cache_breakpoint": null},
            {"type": "input_file", "file_url": "https://example.org/x.pdf", "detail": "low"},
            {"type": "input_file", "file_data": "data:image/png;base64,AAAA"},
            {"type": "input_image", "image_url": "https://example.org/x.png", "file_id": "file_1", "detail": "auto"},
            "bare",
        ]})
    };
    let chat = |text: &str| {
        json!({"role": "tool", "tool_call_id": "a", "content": [
            {"type": "text", "text": text},
            {"type": "image_url", "image_url": {"url": "https://example.org/x.png", "detail": "high"}},
        ]})
    };
    let anthropic = |text: &str| {
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [
            {"type": "document", "source": {"type": "url", "url": "https://example.org/x.pdf"}, "cache_control": {"type": "ephemeral", "ttl": "5m"}},
            {"type": "text", "text": text, "citations": [1.0], "cache_control": {"type": "ephemeral", "ttl": "1h"}},
            {"type": "image", "source": {"type": "url", "url": "https://example.org/x.png"}, "transformations": {"oversized_image": "downsize"}},
            {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "short"}]},
        ]}]})
    };
    let gemini = |text: &str| {
        json!({"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": text}, "parts": [
            {"inlineData": {"mimeType": "image/png", "data": "AAAA", "displayName": "a.png"}},
            {"file_data": {"file_uri": "https://example.org/x.mp4"}, "videoMetadata": {"startOffset": "1s"}},
        ]}}]})
    };
    for (format, message) in [
        (WireFormat::Responses, &openai as &dyn Fn(&str) -> Value),
        (WireFormat::OpenAiChat, &chat),
        (WireFormat::Anthropic, &anthropic),
        (WireFormat::Gemini, &gemini),
    ] {
        let long = message("long");
        let mut parts = Vec::new();
        format.visit(&long, &mut |piece| {
            if let Piece::Content(part) = piece {
                parts.push(Part::from(part));
            }
        });
        let at = parts.iter().position(|part| *part == "long".into());
        parts[at.unwrap()] = "hint".into();
        let mut changed = long.clone();
        format.replace(&mut changed, 0, NewPiece::Result(parts.clone()));
        assert_eq!(changed, message("hint"));
        let mut spelled = JsonText::parse(long.to_string()).unwrap();
        Spelled(format).replace(&mut spelled, 0, NewPiece::Result(parts));
        let expected = message("hint").to_string();
        assert_eq!(sorted(spelled.as_str()), sorted(&expected));
    }
}

/// A text's characters in order: fields that move are written last.
fn sorted(text: &str) -> Vec<char> {
    let mut all: Vec<char> = text.chars().collect();
    all.sort_unstable();
    all
}
