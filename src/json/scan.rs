//! A scanner that finds every value of a JSON text in linear time and without recursion.

use memchr::memchr2;
use serde::de::IgnoredAny;

use crate::json::view::Kind;

/// A value or a key, and its place in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) kind: Kind,
    /// Offset of the first byte; a string's is its opening quote.
    pub(crate) start: u32,
    /// Offset after the last byte.
    pub(crate) end: u32,
    /// For a list or an object, the index after everything inside it. For a string with escapes,
    /// its number among such strings. Otherwise `u32::MAX`.
    pub(crate) link: u32,
}

/// The values of a text, in the order in which they begin. Keys of an object come before their
/// values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans {
    pub(crate) all: Vec<Span>,
    /// Number of strings with escapes.
    pub(crate) escaped: u32,
    /// True if an escape names half of a surrogate pair, so that a string may not be valid Unicode.
    pub(crate) has_surrogates: bool,
}

/// A text that is not JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not JSON: {0}")]
pub struct InvalidJson(String);

/// Finds the values of `text` by the strict grammar of RFC 8259; `None` if there are more than `most` values and keys.
pub(crate) fn scan(text: &str, most: usize) -> Result<Option<Spans>, InvalidJson> {
    if u32::try_from(text.len()).is_err() {
        return Err(InvalidJson("it has over 4 GiB".to_owned()));
    }
    // Checks the grammar and nothing else: depth, range and Unicode may be any.
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| InvalidJson(error.to_string()))?;
    Ok(spans_of(text.as_bytes(), most))
}

// Offsets fit: `scan` refuses longer texts, and no text has more values than bytes.
#[expect(clippy::cast_possible_truncation, reason = "see above")]
fn spans_of(json: &[u8], most: usize) -> Option<Spans> {
    // `open` is the innermost open list or object. Until it ends, its link is the one around it.
    let (mut spans, mut open, mut at) = (Spans::default(), u32::MAX, 0);
    while let Some(byte) = json.get(at) {
        let (start, index) = (at, spans.all.len());
        at += 1;
        let kind = match byte {
            b'{' => Kind::Object,
            b'[' => Kind::Array,
            b'"' => Kind::String,
            b't' | b'f' => Kind::Bool,
            b'n' => Kind::Null,
            b'-' | b'0'..=b'9' => Kind::Number,
            b'}' | b']' => {
                if let Some(opened) = spans.all.get_mut(open as usize) {
                    open = opened.link;
                    (opened.end, opened.link) = (at as u32, index as u32);
                }
                continue;
            }
            // A comma, a colon or space.
            _ => continue,
        };
        if index >= most {
            return None;
        }
        let mut link = u32::MAX;
        match kind {
            Kind::Object | Kind::Array => {
                link = open;
                open = index as u32;
            }
            Kind::String => {
                while let Some(found) = memchr2(b'"', b'\\', &json[at..]) {
                    at += found + 1;
                    if json[at - 1] == b'"' {
                        break;
                    }
                    link = spans.escaped;
                    spans.has_surrogates |=
                        matches!(json[at..], [b'u', b'd' | b'D', b'8'..=b'f', ..]);
                    at += 1;
                }
                spans.escaped += u32::from(link != u32::MAX);
            }
            Kind::Null | Kind::Bool | Kind::Number => {
                let is_inside = |byte: &&u8| !b",]} \n\r\t".contains(byte);
                at += json[at..].iter().take_while(is_inside).count();
            }
        }
        spans.all.push(Span {
            kind,
            start: start as u32,
            end: at as u32,
            link,
        });
    }
    Some(spans)
}
