//! Conversion of the content of tool results.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use offcut::Part;
use offcut::format::{Data, PartRef};
use rig::message::{DocumentSourceKind, Image, ImageMediaType, MimeType, ToolResultContent};

/// Returns `content` as a borrowed part; `None` for an image in a form that a part can't have.
pub(crate) fn as_part(content: &ToolResultContent) -> Option<PartRef<'_>> {
    Some(match content {
        ToolResultContent::Text(text) => PartRef::Text(&text.text),
        ToolResultContent::Json { value } => PartRef::Json(value.into()),
        ToolResultContent::Image(image) => return as_image_part(image),
    })
}

/// Converts `content` to a part. An image is passed on unchanged, whatever its form.
pub(crate) fn to_part(content: &ToolResultContent) -> Part {
    match content {
        ToolResultContent::Text(text) => Part::Text(text.text.clone()),
        ToolResultContent::Json { value } => Part::Json(value.clone()),
        // Its own JSON, which `from_part` parses again.
        ToolResultContent::Image(_) => {
            Part::Opaque(serde_json::to_value(content).unwrap_or_default())
        }
    }
}

/// Returns an image, by its bytes or its URL.
pub(crate) fn as_image_part(image: &Image) -> Option<PartRef<'_>> {
    let mime = image.media_type.as_ref().map(MimeType::to_mime_type);
    match &image.data {
        DocumentSourceKind::Base64(data) => Some(PartRef::Media {
            mime: mime.unwrap_or("image/*"),
            data: Data::Base64(data),
        }),
        DocumentSourceKind::Url(url) => Some(PartRef::Link { mime, url }),
        _ => None,
    }
}

/// Converts `part` to content of a tool result, whose only media are images.
pub(crate) fn from_part(part: Part) -> ToolResultContent {
    let image = |data, mime: Option<&str>| {
        ToolResultContent::Image(Image {
            data,
            media_type: mime.and_then(ImageMediaType::from_mime_type),
            ..Image::default()
        })
    };
    match part {
        Part::Text(text) => ToolResultContent::text(text),
        Part::Json(value) => ToolResultContent::json(value),
        Part::Opaque(value) => {
            serde_json::from_value(value.clone()).unwrap_or_else(|_| ToolResultContent::json(value))
        }
        Part::Media { mime, data } => image(
            DocumentSourceKind::base64(STANDARD.encode(data)),
            Some(&mime),
        ),
        Part::Link { mime, url } => image(DocumentSourceKind::url(url), mime.as_deref()),
    }
}
