//! Bytes inside of JSON: media, and what only the provider can read.

use serde_json::Value;

use super::image;
use crate::format::Data;
use crate::format::blocks::split_data_url;

/// Bytes per token of audio and files.
pub(super) const BYTES_PER_TOKEN: u64 = 40;
/// The shortest text that is taken for bytes, in bytes.
pub(super) const LEAST: u64 = 256;

/// The cost of media. Those that do not say what they are may be an image.
pub(super) fn media_cost(mime: Option<&str>, data: Data<'_>) -> u64 {
    let by_bytes = data.decoded_len() / BYTES_PER_TOKEN;
    match mime {
        Some(mime) if mime.starts_with("image/") => image::cost(data).unwrap_or(image::UNKNOWN),
        Some(_) => by_bytes,
        None => image::cost(data).unwrap_or(by_bytes),
    }
}

/// Takes all bytes out of a value, and returns what they cost.
pub(super) fn take_out(value: &mut Value) -> u64 {
    take_field(value, "", None)
}

/// Does so in the field `name` of an object that names the media type `mime`.
fn take_field(value: &mut Value, name: &str, mime: Option<&str>) -> u64 {
    match value {
        Value::Array(items) => items.iter_mut().map(take_out).fold(0, u64::saturating_add),
        Value::Object(fields) => {
            let text = |name: &str| fields.get(name).and_then(Value::as_str);
            let mime = ["media_type", "mime_type", "mimeType"];
            let mime = mime.into_iter().find_map(text).map(str::to_owned);
            let is_redacted = text("type").is_some_and(|kind| kind.starts_with("redacted"));
            let costs = fields.iter_mut().map(|(name, value)| {
                let is_encrypted = is_redacted && name == "data";
                let name = if is_encrypted { "encrypted" } else { name };
                take_field(value, name, mime.as_deref())
            });
            costs.fold(0, u64::saturating_add)
        }
        Value::String(text) => {
            let cost = cost_of(text, name, mime);
            if cost.is_some() {
                text.clear();
            }
            cost.unwrap_or_default()
        }
        _ => 0,
    }
}

/// The cost of a text that stands for bytes; `None` for any other.
fn cost_of(text: &str, name: &str, mime: Option<&str>) -> Option<u64> {
    // Of `redacted_thinking`, however short.
    if name == "encrypted" {
        return Some(0);
    }
    if (text.len() as u64) < LEAST {
        return None;
    }
    if name.starts_with("encrypted") || name.to_ascii_lowercase().ends_with("signature") {
        return Some(0);
    }
    let (mime, data) = match split_data_url(text) {
        Some((mime, data)) => (Some(mime), data),
        None => (mime, text),
    };
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=-_\r\n".contains(&byte);
    data.bytes()
        .all(is_base64)
        .then(|| media_cost(mime, Data::Base64(data)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bytes_cost_what_they_are() {
        let bytes = "QUJD".repeat(10_000);
        let png = format!("data:image/png;base64,{bytes}");
        let by_bytes = 30_000 / BYTES_PER_TOKEN;
        // A PNG of 1000 × 1000, as far as its size.
        let sized = format!("iVBORw0KGgoAAAANSUhEUgAAA+gAAAPo{bytes}");
        for (value, cost) in [
            (
                json!({"type": "computer_call_output", "output": {"image_url": png}}),
                image::UNKNOWN,
            ),
            (
                json!({"type": "input_file", "filename": "a.pdf", "file_data": format!("data:application/pdf;base64,{bytes}")}),
                by_bytes,
            ),
            (
                json!({"type": "file", "file": {"filename": "a.pdf", "file_data": bytes}}),
                by_bytes,
            ),
            (
                json!({"type": "image_generation_call", "result": sized}),
                1_334,
            ),
            (
                json!({"type": "document", "title": "t", "source": {"type": "base64", "media_type": "application/pdf", "data": bytes}}),
                by_bytes,
            ),
            (json!({"type": "redacted_thinking", "data": bytes}), 0),
            (json!({"type": "compaction", "encrypted_content": bytes}), 0),
            (
                json!([{"content": [{"encrypted_content": bytes, "signature": bytes}]}]),
                0,
            ),
        ] {
            let mut left = value.clone();
            assert_eq!(take_out(&mut left), cost, "{:.80}", value.to_string());
            assert!(left.to_string().len() < 200, "{left}");
        }
        let mut prose = json!({"text": "a word and another ".repeat(100), "id": "x".repeat(100)});
        let before = prose.clone();
        assert_eq!(take_out(&mut prose), 0);
        assert_eq!(prose, before);
    }
}
