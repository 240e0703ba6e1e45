//! Content that is a string or an array of typed parts, as chat completions, Responses and Anthropic's messages hold it.
//!
//! What a part may be differs; that unknown fields and cache marks stay where results are replaced does not.

use serde_json::{Map, Value};

use super::{PartRef, Piece};
use crate::content::Part;

/// How one wire format writes the parts of its content.
pub(super) struct Blocks {
    /// The type of a part that is text, in its field `text`.
    pub(super) is_text: fn(&str) -> bool,
    /// What a part is that is no text.
    pub(super) read: for<'m> fn(&'m Value) -> PartRef<'m>,
    /// A part as the format has it; what it has no part for is written as text.
    pub(super) write: fn(Part) -> Value,
}

impl Blocks {
    /// Shows the content of a message.
    pub(super) fn visit<'m>(&self, content: Option<&'m Value>, see: &mut dyn FnMut(Piece<'m>)) {
        match content {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => see(Piece::Content(PartRef::Text(text))),
            Some(Value::Array(parts)) => parts.iter().for_each(|part| see(Piece::Content(self.part(part)))),
            Some(other) => see(Piece::Content(PartRef::Json(other))),
        }
    }

    /// Shows the content of a result slot, which may be replaced.
    pub(super) fn visit_slot<'m>(&self, content: Option<&'m Value>, see: &mut dyn FnMut(Piece<'m>)) {
        let Some(Value::Array(parts)) = content else { return self.visit(content, see) };
        let are_kept = self.are_fields_kept(parts);
        for part in parts {
            let is_known = are_kept || !self.has_unknown_fields(part);
            see(Piece::Content(if is_known { self.part(part) } else { PartRef::Opaque(part) }));
        }
    }

    /// Puts `parts` in the place of a slot's content. One text becomes a string, which every provider accepts; anything else,
    /// and what stands where an array stood, becomes an array.
    pub(super) fn replace(&self, holder: &mut Map<String, Value>, field: &str, parts: Vec<Part>) {
        let content = match holder.get_mut(field).map(Value::take) {
            Some(Value::Array(old)) => self.keep_marks(old, parts),
            _ => self.content(parts),
        };
        holder.insert(field.into(), content);
    }

    /// New content.
    pub(super) fn content(&self, parts: Vec<Part>) -> Value {
        match <[Part; 1]>::try_from(parts) {
            Ok([Part::Text(text)]) => Value::String(text),
            Ok([part]) => Value::Array(vec![(self.write)(part)]),
            Err(parts) if parts.is_empty() => Value::String(String::new()),
            Err(parts) => parts.into_iter().map(self.write).collect(),
        }
    }

    pub(super) fn part<'m>(&self, part: &'m Value) -> PartRef<'m> {
        match part {
            Value::String(text) => PartRef::Text(text),
            _ if (self.is_text)(text_of(part, "type")) => match part.get("text").and_then(Value::as_str) {
                Some(text) => PartRef::Text(text),
                None => PartRef::Opaque(part),
            },
            _ => (self.read)(part),
        }
    }

    /// One text's unknown fields stay in the message when the text is replaced; of several texts they could not.
    fn are_fields_kept(&self, parts: &[Value]) -> bool {
        parts.iter().filter(|part| self.has_unknown_fields(part)).count() <= 1
    }

    /// Whether a text part has fields that are neither its text nor a cache mark.
    fn has_unknown_fields(&self, part: &Value) -> bool {
        let is_known = |name: &String| matches!(name.as_str(), "type" | "text") || is_cache_mark(name);
        (self.is_text)(text_of(part, "type")) && part.as_object().is_some_and(|fields| !fields.keys().all(is_known))
    }

    /// The new parts as an array, since the old content was one. Cache marks, and what an old text part carried beside its
    /// text, move to the last new part.
    fn keep_marks(&self, old: Vec<Value>, parts: Vec<Part>) -> Value {
        let mut marks = Map::new();
        let are_kept = self.are_fields_kept(&old);
        for part in old {
            let kind = text_of(&part, "type");
            let (is_part, is_kept) = (!kind.is_empty(), are_kept && (self.is_text)(kind));
            if let Value::Object(fields) = part {
                let is_mark =
                    |name: &str| is_part && is_cache_mark(name) || is_kept && name != "type" && name != "text";
                marks.extend(fields.into_iter().filter(|(name, _)| is_mark(name)));
            }
        }
        let mut new: Vec<Value> = parts.into_iter().map(self.write).collect();
        // A part that came through whole has its mark still, and providers take few of them.
        marks.retain(|name, _| !is_cache_mark(name) || new.iter().all(|part| part.get(name).is_none()));
        if let Some(Value::Object(last)) = new.last_mut() {
            last.extend(marks);
        }
        Value::Array(new)
    }
}

/// Where a provider's prompt cache ends: Anthropic's mark, which others take too, and OpenAI's.
pub(super) fn is_cache_mark(field: &str) -> bool {
    matches!(field, "cache_control" | "prompt_cache_breakpoint")
}

/// A field that is text; empty if it is missing or none.
pub(super) fn text_of<'m>(value: &'m Value, field: &str) -> &'m str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// `data:image/png;base64,AAAA` as its media type and its base64.
pub(super) fn split_data_url(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let mime = head.strip_suffix(";base64")?;
    Some((mime.split(';').next().unwrap_or(mime), data))
}

/// What a URL points at: bytes inside the message, something elsewhere, or neither.
pub(super) fn read_url(url: &str) -> Option<PartRef<'_>> {
    match split_data_url(url) {
        Some((mime, base64)) => Some(PartRef::Media { mime, data: super::Data::Base64(base64) }),
        None if url.starts_with("http:") || url.starts_with("https:") => Some(PartRef::Link { mime: None, url }),
        None => None,
    }
}
