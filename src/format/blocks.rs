//! Content that is a string or an array of typed parts, as in chat completions, Responses and
//! Anthropic's messages.
//!
//! Formats differ in the parts that they allow. In all of them, unknown fields and cache marks stay
//! when a result is replaced.

use std::collections::VecDeque;

use crate::json::{Edit, Kind, New, View};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::site::{See, Site};
use super::{JsonRef, PartRef, Piece};
use crate::content::Part;

/// Parts of content as one wire format writes them.
pub(super) trait Blocks {
    /// The types of text parts, and the field that holds each one's text: in results always `text`. New parts
    /// have the first type.
    const TEXTS: &'static [(&'static str, &'static str)];

    /// Reads a part that is media or a link; `None` for any other.
    fn read<'m, V: View<'m>>(part: V) -> Option<PartRef<'m>>;
    /// A part that holds bytes.
    fn media(mime: &str, base64: String) -> Value;
    /// A part that points at `url`.
    fn link(mime: Option<&str>, url: String) -> Value;

    /// Writes a part. One that the format cannot express becomes text.
    fn write(part: Part) -> Value {
        match part {
            Part::Text(text) => Self::text(text),
            Part::Json(value) => Self::text(value.to_string()),
            Part::Media { mime, data } => Self::media(&mime, STANDARD.encode(&data)),
            Part::Link { mime, url } => Self::link(mime.as_deref(), url),
            Part::Opaque(value) => value,
        }
    }

    /// A text part.
    fn text(text: String) -> Value {
        json!({"type": Self::TEXTS[0].0, "text": text})
    }

    /// The field that holds the text of a part of type `kind`; `None` if it is not a text part.
    fn text_field(kind: &str) -> Option<&'static str> {
        let (_, field) = Self::TEXTS.iter().find(|(text, _)| *text == kind)?;
        Some(field)
    }

    fn is_text(kind: &str) -> bool {
        Self::text_field(kind) == Some("text")
    }

    /// Shows the content that is in `field` of a message.
    fn show<'m, V: View<'m>>(message: V, field: &'static str, see: See<'_, 'm, V>) {
        let Some(content) = message.get(field) else {
            return;
        };
        match (content.kind(), content.as_str()) {
            (Kind::Null, _) => {}
            (_, Some(text)) => {
                let site = Site::of(message, field);
                see(Piece::Content(PartRef::Text(text)), Some(site));
            }
            (Kind::Array, _) => {
                for (at, part) in content.items().enumerate() {
                    Self::show_part(part, (field, at), see);
                }
            }
            _ => see(Piece::Content(PartRef::Json(content.json())), None),
        }
    }

    /// Shows a part of a message, which is an `item` of a list.
    fn show_part<'m, V: View<'m>>(part: V, item: (&'static str, usize), see: See<'_, 'm, V>) {
        let site = Self::text_field(part.text("type")).map(|field| Site {
            item: Some(item),
            ..Site::of(part, field)
        });
        see(Piece::Content(Self::part(part)), site);
    }

    /// Shows the content of a result slot that may be replaced.
    fn show_slot<'m, V: View<'m>>(result: V, field: &'static str, see: See<'_, 'm, V>) {
        let Some(list) = result.get(field).filter(|content| content.is_array()) else {
            return Self::show(result, field, see);
        };
        let are_kept = Self::keeps_unknown_fields(list);
        for part in list.items() {
            see(Piece::Content(Self::slot_part(part, are_kept)), None);
        }
    }

    /// A part of a slot, in which the unknown fields of text parts stay or not.
    fn slot_part<'m, V: View<'m>>(part: V, are_kept: bool) -> PartRef<'m> {
        if are_kept || !Self::has_unknown_fields(part) {
            Self::part(part)
        } else {
            PartRef::Opaque(part.json())
        }
    }

    /// Replaces a slot's content by `parts`. One text, or one JSON document, becomes a string, which every
    /// provider accepts. Anything else becomes an array, and so does whatever replaces an array.
    fn replace<'m, V: View<'m>>(result: Site<V>, parts: Vec<Part>) -> Vec<Edit<'m>> {
        let content = match result.get().filter(|content| content.is_array()) {
            Some(old) => Self::replace_array(old, parts),
            None => New::Value(Self::content(parts)),
        };
        vec![result.set(content)]
    }

    /// Content made of new parts.
    fn content(parts: Vec<Part>) -> Value {
        match <[Part; 1]>::try_from(parts) {
            Ok([Part::Text(text)]) => Value::String(text),
            Ok([Part::Json(value)]) => Value::String(value.to_string()),
            Ok([part]) => Value::Array(vec![Self::write(part)]),
            Err(parts) if parts.is_empty() => Value::String(String::new()),
            Err(parts) => parts.into_iter().map(Self::write).collect(),
        }
    }

    fn part<'m, V: View<'m>>(part: V) -> PartRef<'m> {
        if let Some(text) = part.as_str() {
            return PartRef::Text(text);
        }
        let known = match Self::text_field(part.text("type")) {
            Some(field) => part.get(field).and_then(V::as_str).map(PartRef::Text),
            None => Self::read(part),
        };
        known.unwrap_or_else(|| PartRef::Opaque(part.json()))
    }

    /// Returns true if unknown fields of text parts stay when the texts are replaced: those of one
    /// part can, those of several cannot.
    fn keeps_unknown_fields<'m, V: View<'m>>(parts: V) -> bool {
        let with_unknown = |part: &V| Self::has_unknown_fields(*part);
        parts.items().filter(with_unknown).count() <= 1
    }

    /// Returns true if a text part has fields other than its type, its text and cache marks.
    fn has_unknown_fields<'m, V: View<'m>>(part: V) -> bool {
        Self::is_text(part.text("type")) && !part.fields().all(|(name, _)| is_own(name))
    }

    /// The new parts as an array, since the old content was one. Old parts among them stay as they are
    /// spelled. Cache marks and unknown fields of text parts that leave move to the last part that is new.
    fn replace_array<'m, V: View<'m>>(old: V, parts: Vec<Part>) -> New<'m> {
        let are_kept = Self::keeps_unknown_fields(old);
        let mut moved: Vec<(&str, V)> = Vec::new();
        let mut leave = |part: V| {
            let kind = part.text("type");
            let (is_part, is_text) = (!kind.is_empty(), Self::is_text(kind));
            let moves = |(name, value): &(&str, V)| {
                let is_mark = is_part && is_cache_mark(name) && is_given(Some(*value));
                is_mark || are_kept && is_text && !is_own(name)
            };
            for (name, value) in part.fields().filter(moves) {
                moved.retain(|(other, _)| *other != name);
                moved.push((name, value));
            }
        };
        let mut old: VecDeque<V> = old.items().collect();
        let mut items = Vec::with_capacity(parts.len());
        for part in parts {
            let show = |old| Self::slot_part(old, are_kept);
            let kept = take_same(&mut old, &part, show, &mut leave);
            items.push(match kept {
                Some(kept) => New::Kept(kept.json()),
                None => New::Value(Self::write(part)),
            });
        }
        old.into_iter().for_each(leave);
        let is_new = |item: &&mut New<'_>| matches!(item, New::Value(Value::Object(_)));
        if let Some(last) = items.iter_mut().rfind(is_new)
            && let New::Value(Value::Object(fields)) = last
        {
            fields.retain(|name, _| moved.iter().all(|(moved, _)| moved != name));
            let own = std::mem::take(fields).into_iter();
            let own = own.map(|(name, value)| (name, New::Value(value)));
            let moved = moved.into_iter();
            let moved = moved.map(|(name, value)| (name.to_owned(), New::Kept(value.json())));
            *last = New::Object(own.chain(moved).collect());
        }
        New::List(items)
    }
}

/// Takes the next of `old` parts that is shown as `part`. Those before it `leave`. A part that stays is not
/// written anew, since a format says more of it than [`Part`] can.
pub(super) fn take_same<'m, V: View<'m>>(
    old: &mut VecDeque<V>,
    part: &Part,
    show: impl Fn(V) -> PartRef<'m>,
    leave: impl FnMut(V),
) -> Option<V> {
    let at = old.iter().position(|old| show(*old) == *part)?;
    old.drain(..at).for_each(leave);
    old.pop_front()
}

/// Returns true for the fields of a text part that a new one has, and for cache marks.
fn is_own(name: &str) -> bool {
    matches!(name, "type" | "text") || is_cache_mark(name)
}

/// Marks of where a provider's prompt cache ends: Anthropic's, which other providers accept too,
/// and OpenAI's.
const CACHE_MARKS: [&str; 2] = ["cache_control", "prompt_cache_breakpoint"];

pub(super) fn is_cache_mark(field: &str) -> bool {
    CACHE_MARKS.contains(&field)
}

/// Reads a field that holds a call's arguments as text or as JSON; empty text if there is none.
pub(super) fn arguments<'m, V: View<'m>>(field: Option<V>) -> JsonRef<'m> {
    let text = JsonRef::Spelled;
    field.map_or(text(""), |field| {
        field.as_str().map_or_else(|| field.json(), text)
    })
}

/// Returns true if a program made a call or gets a result. LiteLLM has its `caller` among the provider's fields.
pub(super) fn is_for_program<'m, V: View<'m>>(item: V) -> bool {
    let [own, fields] = item.pick(["caller", "provider_specific_fields"]);
    let callers = [own, fields.and_then(|fields| fields.get("caller"))];
    let mut callers = callers.into_iter().filter(|caller| is_given(*caller));
    callers.any(|caller| caller.is_some_and(|caller| caller.text("type") != "direct"))
}

/// Returns true if the content of a result has a reference to a tool: without it, the model could no longer
/// call that tool.
pub(super) fn loads_tools<'m, V: View<'m>>(content: Option<V>) -> bool {
    let mut parts = content.into_iter().flat_map(V::items);
    parts.any(|part| part.text("type") == "tool_reference" || part.has("tool_references"))
}

/// Returns true if a call, or a part of one, carries a provider's signature, which LiteLLM also writes into
/// ids.
pub(super) fn is_signed<'m, V: View<'m>>(call: V) -> bool {
    let ids = call.pick(["id", "call_id"]).into_iter().flatten();
    let mut ids = ids.filter_map(V::as_str);
    ids.any(|id| id.contains("__thought__")) || has_signature(call)
}

/// Fields in which nothing is a signature of calls: what a model or a tool wrote, and thoughts, which have
/// signatures of their own.
const WRITTEN: [&str; 6] = [
    "arguments",
    "input",
    "args",
    "response",
    "reasoning_details",
    "thinking_blocks",
];

/// Returns true if a call, or a message with calls, carries a provider's signature, in whatever field: gateways return
/// it in fields of their own (`extra_content`, `provider_metadata` …).
pub(super) fn has_signature<'m, V: View<'m>>(value: V) -> bool {
    signature_within(value, 8)
}

fn signature_within<'m, V: View<'m>>(value: V, depth: u8) -> bool {
    let Some(depth) = depth.checked_sub(1) else {
        return false;
    };
    value.items().any(|item| signature_within(item, depth))
        || value.fields().any(|(name, field)| {
            // Copilot's `reasoning_opaque` is one, and so is any field with the word in its name.
            let is_signature = name.contains("ignature") || name == "reasoning_opaque";
            let is_within = || signature_within(field, depth);
            !WRITTEN.contains(&name) && (is_signature && is_given(Some(field)) || is_within())
        }) && value.text("type") != "thinking"
}

/// Returns true for a field that is there, and is not null.
pub(super) fn is_given<'m, V: View<'m>>(field: Option<V>) -> bool {
    field.is_some_and(|field| field.kind() != Kind::Null)
}

/// Builds `data:image/png;base64,AAAA` from a media type and base64.
pub(super) fn data_url(mime: &str, base64: &str) -> String {
    format!("data:{mime};base64,{base64}")
}

/// Splits `data:image/png;base64,AAAA`, in letters of either case, into its media type and its base64.
pub(crate) fn split_data_url(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_at_checked("data:".len())?;
    let (head, data) = rest.split_once(',')?;
    let (mime, encoding) = head.rsplit_once(';')?;
    let is_one = scheme.eq_ignore_ascii_case("data:") && encoding.eq_ignore_ascii_case("base64");
    is_one.then(|| (mime.split(';').next().unwrap_or(mime), data))
}

/// Reads a URL: media inside the message, a link to something elsewhere, or `None` for neither.
pub(super) fn read_url(url: &str) -> Option<PartRef<'_>> {
    match split_data_url(url) {
        Some((mime, base64)) => Some(PartRef::Media {
            mime,
            data: super::Data::Base64(base64),
        }),
        None if url.starts_with("http:") || url.starts_with("https:") => {
            Some(PartRef::Link { mime: None, url })
        }
        None => None,
    }
}
