//! The content of a function's response: a value in one field of an object, or the whole object,
//! and separate media.

use crate::json::{Edit, Kind, New, View};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::content::Part;
use crate::format::blocks::{is_given, take_same};
use crate::format::site::See;
use crate::format::{PartRef, Piece};

/// The fields whose value is the content, whatever it is. The only field with another name must hold
/// text.
const KNOWN: [&str; 4] = ["output", "result", "content", "error"];

/// The fields whose text is the content beside a few short ones, such as an exit code. Its length must not
/// matter, since a hint is shorter.
const TEXTS: [&str; 6] = ["output", "result", "content", "stdout", "body", "text"];

/// The most bytes in those fields together.
const MOST_BESIDE: usize = 128;

/// The content of a tool's result in a response.
pub(super) struct ResponseContent<'m, V> {
    /// The field that a replacement goes to.
    key: &'m str,
    pub(super) is_error: bool,
    /// True if `value` is the content of the response, under `key`.
    is_only: bool,
    /// True if no other field stays beside a replacement.
    is_alone: bool,
    value: Option<V>,
}

impl<'m, V: View<'m>> ResponseContent<'m, V> {
    pub(super) fn of(response: Option<V>) -> Self {
        let found = response.map_or([None; 4], |response| response.pick(KNOWN));
        let [output, _, content, error] = found;
        let is_error = is_given(error) && output.is_none();
        let is_alone = response.is_some_and(|response| match response.fields().count() {
            1 => true,
            // Vercel's AI SDK repeats the tool's name beside the content.
            2 => content.is_some() && response.has("name"),
            _ => false,
        });
        let known = KNOWN.into_iter().zip(found);
        let mut known = known.filter(|(key, _)| (*key == "error") == is_error);
        // Frameworks have names of their own for the one text of a result, such as `return_value`.
        let text = || {
            let mut fields = response.into_iter().flat_map(V::fields);
            fields.next().filter(|(_, value)| is_text(*value))
        };
        let only = if is_alone {
            let known = known.find_map(|(key, value)| Some((key, value?)));
            known.or_else(text)
        } else {
            response.filter(|_| !is_error).and_then(text_beside)
        };
        let value = only.map(|(_, value)| value).or(response);
        // An empty object means that the result is media alone.
        let is_empty = |value: &V| value.is_object() && value.fields().next().is_none();
        let value = value.filter(|value| !(is_empty(value) && (!is_alone || is_error)));
        let key = only.map_or(if is_error { "error" } else { "output" }, |(key, _)| key);
        Self {
            key,
            is_error,
            is_only: only.is_some(),
            is_alone,
            value,
        }
    }

    pub(super) fn show(&self, see: See<'_, 'm, V>) {
        let Some(value) = self.value else { return };
        match (value.as_str(), texts_of(value)) {
            (Some(text), _) => see(Piece::Content(PartRef::Text(text)), None),
            (None, Some(texts)) => {
                texts.for_each(|text| see(Piece::Content(PartRef::Text(text)), None));
            }
            (None, None) => see(Piece::Content(PartRef::Json(value.json())), None),
        }
    }

    /// The edits that replace the content of the response at `path`, and its `media`, which it `show`s, by `parts`.
    pub(super) fn replace(
        self,
        path: String,
        media: impl Iterator<Item = V>,
        parts: Vec<Part>,
        show: impl Fn(V) -> PartRef<'m>,
    ) -> Vec<Edit<'m>> {
        let mut old = media.collect();
        let (value, media) = write(self.key, parts, |part| {
            let kept = take_same(&mut old, part, &show, drop)?;
            Some(New::Kept(kept.json()))
        });
        let value = match value {
            // Everything around the value stays, unless it would no longer be known as the content.
            Value::Object(mut fields)
                if self.is_only && (self.is_alone || fields.get(self.key).is_none_or(is_text)) =>
            {
                match fields.remove(self.key) {
                    Some(value) => {
                        let place = format!("{path}/response");
                        Edit::set(place, self.key.to_owned(), New::Value(value))
                    }
                    None => Edit::set(path.clone(), "response", New::Value(fields.into())),
                }
            }
            value => Edit::set(path.clone(), "response", New::Value(value)),
        };
        let media = if media.is_empty() {
            Edit::remove(path, "parts")
        } else {
            Edit::set(path, "parts", New::List(media))
        };
        vec![value, media]
    }
}

/// The text of a response with a few short fields beside it, and its field.
fn text_beside<'m, V: View<'m>>(response: V) -> Option<(&'m str, V)> {
    let found = TEXTS.into_iter().zip(response.pick(TEXTS));
    let mut texts = found.filter_map(|(key, value)| Some((key, value.filter(|it| is_text(*it))?)));
    let (key, value) = texts.next()?;
    let mut others = response.fields().filter(|(name, _)| *name != key);
    others.try_fold(MOST_BESIDE, |room, field| room_after(room, field))?;
    Some((key, value))
}

/// The rest of `room` bytes after a field; `None` if it has more. Its depth costs room too.
fn room_after<'m, V: View<'m>>(room: usize, (name, value): (&str, V)) -> Option<usize> {
    let own = match value.kind() {
        Kind::Number => value.json().to_string().len(),
        _ => value.as_str().map_or(0, str::len),
    };
    let room = room.checked_sub(name.len() + own + 1)?;
    let room = value
        .items()
        .try_fold(room, |room, item| room_after(room, ("", item)))?;
    value
        .fields()
        .try_fold(room, |room, field| room_after(room, field))
}

/// Returns true for a text, and for a list of only texts.
fn is_text<'m>(value: impl View<'m>) -> bool {
    value.as_str().is_some() || texts_of(value).is_some()
}

/// The texts of a list that holds only texts.
fn texts_of<'m, V: View<'m>>(value: V) -> Option<impl Iterator<Item = &'m str>> {
    let text_of = |part: V| {
        let [kind, text] = part
            .pick(["type", "text"])
            .map(|field| field.and_then(V::as_str));
        text.filter(|_| kind == Some("text") && part.fields().count() == 2)
    };
    let is_texts =
        value.items().next().is_some() && value.items().all(|part| text_of(part).is_some());
    is_texts.then(|| value.items().filter_map(text_of))
}

/// New content of a response: its object, with the texts under `key`, and its media, with those that
/// are `kept`.
pub(super) fn write<'m>(
    key: &str,
    parts: Vec<Part>,
    mut kept: impl FnMut(&Part) -> Option<New<'m>>,
) -> (Value, Vec<New<'m>>) {
    let (mut given, mut media) = (Vec::new(), Vec::new());
    for part in parts {
        if let Some(kept) = kept(&part) {
            media.push(kept);
            continue;
        }
        let mut add = |medium| media.push(New::Value(medium));
        match part {
            Part::Media { mime, data } => {
                add(json!({"inlineData": {"mimeType": mime, "data": STANDARD.encode(&data)}}));
            }
            Part::Link {
                mime: Some(mime),
                url,
            } => add(json!({"fileData": {"mimeType": mime, "fileUri": url}})),
            Part::Link { mime: None, url } => given.push(Value::String(url)),
            Part::Text(text) => given.push(Value::String(text)),
            Part::Json(value) | Part::Opaque(value) => given.push(value),
        }
    }
    let response = match <[Value; 1]>::try_from(given) {
        Ok([value]) if value.is_string() || KNOWN.contains(&key) => json!({key: value}),
        Ok([value]) => json!({key: value.to_string()}),
        // With media alone, the object is empty, but an error stays an error.
        Err(given) if given.is_empty() && key == "error" => json!({key: {}}),
        Err(given) if given.is_empty() => json!({}),
        Err(given) => json!({key: given.into_iter().map(text_item).collect::<Value>()}),
    };
    (response, media)
}

fn text_item(value: Value) -> Value {
    let text = match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    json!({"type": "text", "text": text})
}
