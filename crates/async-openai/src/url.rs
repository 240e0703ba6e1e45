//! Media in OpenAI's types: a URL that points at the data or contains it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use offcut::Part;
use offcut::format::{Data, PartRef};

pub(crate) fn read(url: &str) -> PartRef<'_> {
    let inline = || {
        let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
        let mime = head.strip_suffix(";base64")?;
        Some(PartRef::Media {
            mime: mime.split(';').next().unwrap_or(mime),
            data: Data::Base64(data),
        })
    };
    inline().unwrap_or(PartRef::Link { mime: None, url })
}

/// Converts a part to text, for content that can only be text.
pub(crate) fn as_text(part: Part) -> String {
    match part {
        Part::Text(text) => text,
        Part::Json(value) | Part::Opaque(value) => value.to_string(),
        Part::Link { url, .. } => url,
        Part::Media { mime, data } => format!(
            "[{mime} of {} bytes, which can't be shown here]",
            data.len()
        ),
    }
}

/// Encodes bytes as a URL.
pub(crate) fn write(mime: &str, data: &[u8]) -> String {
    format!("data:{mime};base64,{}", STANDARD.encode(data))
}
