//! Parts as text.

use offcut::Part;

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
