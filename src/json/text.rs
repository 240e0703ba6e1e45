//! JSON text that keeps its spelling.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::json::json_ref::JsonRef;
use crate::json::scan::{InvalidJson, Span, SpanKind, Spans, scan, scan_within};
use crate::json::unescape::unescape;
use crate::json::view::{Kind, View};

/// A JSON value as text: the text that was parsed, byte for byte, and the places of its values.
///
/// It is the message type of `offcut::format::Spelled`, which changes single values in
/// it. Whitespace, the order of keys, duplicate keys, escapes, and numbers of any size stay as
/// they are. Parsing is linear and accepts any depth.
///
/// ```
/// use offcut::format::JsonText;
/// let text = r#"{ "n": 1.00, "n": 1E5, "half": "\ud83d" }"#;
/// assert_eq!(JsonText::parse(text)?.as_str(), text);
/// assert_eq!(JsonText::parse("{\"a\": 01}").unwrap_err().to_string(), "not JSON: expected `,` or `}` at line 1, column 8");
/// # Ok::<(), offcut::format::InvalidJson>(())
/// ```
///
/// Clones share the text, what was found in it, and the strings that were unescaped, until one of
/// them changes.
#[derive(Clone, Debug)]
pub struct JsonText(Arc<Parsed>);

/// A text and what is known about it.
#[derive(Debug)]
struct Parsed {
    text: String,
    spans: Vec<Span>,
    /// Meanings of the strings with escapes, filled in when they are first asked for.
    meanings: Vec<OnceLock<Option<String>>>,
    has_surrogates: bool,
    is_plain: OnceLock<bool>,
}

impl JsonText {
    /// Parses `text`.
    ///
    /// # Errors
    ///
    /// Fails if `text` is not JSON, or longer than 4 GiB.
    pub fn parse(text: impl Into<String>) -> Result<Self, InvalidJson> {
        let text = text.into();
        let spans = scan(&text)?;
        Ok(Self::new(text, spans))
    }

    /// Parses `text`, unless it has more than about `most` values and keys: each takes 16 bytes of
    /// memory, and a value can be as short as two bytes. Returns `None` if there are more.
    ///
    /// ```
    /// use offcut::format::JsonText;
    /// assert!(JsonText::parse_within("[1, 2, 3]", 8)?.is_some());
    /// assert!(JsonText::parse_within("[1, 2, 3, 4, 5, 6, 7, 8]", 8)?.is_none());
    /// # Ok::<(), offcut::format::InvalidJson>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if `text` is not JSON, as far as it is read, or longer than 4 GiB.
    pub fn parse_within(text: impl Into<String>, most: usize) -> Result<Option<Self>, InvalidJson> {
        let text = text.into();
        let spans = scan_within(&text, most)?;
        Ok(spans.map(|spans| Self::new(text, spans)))
    }

    fn new(text: String, spans: Spans) -> Self {
        let Spans {
            all,
            escaped,
            has_surrogates,
        } = spans;
        let meanings = (0..escaped).map(|_| OnceLock::new()).collect();
        Self(Arc::new(Parsed {
            text,
            spans: all,
            meanings,
            has_surrogates,
            is_plain: OnceLock::new(),
        }))
    }

    /// The text, as it is now.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// The text, without a copy unless a clone shares it.
    #[must_use]
    pub fn into_string(self) -> String {
        Arc::try_unwrap(self.0).map_or_else(|shared| shared.text.clone(), |own| own.text)
    }

    /// The index after a value and everything inside it.
    #[inline]
    fn next(&self, at: usize) -> usize {
        let span = self.0.spans[at];
        if span.is_container() {
            span.link as usize
        } else {
            at + 1
        }
    }

    #[inline]
    fn spelling(&self, at: usize) -> &str {
        let Span { start, end, .. } = self.0.spans[at];
        &self.0.text[start as usize..end as usize]
    }

    /// The meaning of a string; `None` if the value is not a string, or not valid Unicode.
    #[inline]
    fn meaning(&self, at: usize) -> Option<&str> {
        let inside = || {
            let spelling = self.spelling(at);
            &spelling[1..spelling.len() - 1]
        };
        match self.0.spans[at].kind {
            SpanKind::Plain => Some(inside()),
            SpanKind::Escaped => {
                let cell = &self.0.meanings[self.0.spans[at].link as usize];
                cell.get_or_init(|| unescape(inside())).as_deref()
            }
            _ => None,
        }
    }

    /// The text with other bytes at `range`.
    pub(crate) fn replaced(&self, range: Range<usize>, new: &str) -> String {
        let text = self.as_str();
        // Written anew, since `replace_range` moves byte by byte.
        [&text[..range.start], new, &text[range.end..]].concat()
    }

    /// A copy of the value at `at` alone.
    fn part(&self, at: usize) -> Self {
        let (from, spans) = (self.0.spans[at].start, &self.0.spans[at..self.next(at)]);
        let base = u32::try_from(at).unwrap_or_default();
        let is_escaped = |span: &&Span| span.kind == SpanKind::Escaped;
        let first = spans.iter().find(is_escaped).map_or(0, |span| span.link);
        let moved = |span: &Span| Span {
            start: span.start - from,
            end: span.end - from,
            link: match span.kind {
                SpanKind::Array | SpanKind::Object => span.link - base,
                SpanKind::Escaped => span.link - first,
                _ => 0,
            },
            ..*span
        };
        let escaped = u32::try_from(spans.iter().filter(is_escaped).count()).unwrap_or_default();
        let all = spans.iter().map(moved).collect();
        Self::new(
            self.spelling(at).to_owned(),
            Spans {
                all,
                escaped,
                has_surrogates: self.0.has_surrogates,
            },
        )
    }

    /// Returns true if no object has a duplicate key and all strings are valid Unicode. Checks only
    /// once.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self.0.is_plain.get_or_init(|| {
            (0..self.0.spans.len()).all(|at| match self.0.spans[at].kind {
                SpanKind::Escaped if self.0.has_surrogates => self.meaning(at).is_some(),
                SpanKind::Object => !self.has_twice(Node { json: self, at }),
                _ => true,
            })
        })
    }

    fn has_twice(&self, object: Node<'_>) -> bool {
        let mut keys = HashSet::new();
        let mut meanings = object
            .keys()
            .map(|key| self.meaning(key).unwrap_or("\u{fffd}"));
        !meanings.all(|key| keys.insert(key))
    }
}

/// Writes the text, byte for byte.
impl fmt::Display for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

/// Compares the texts.
impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for JsonText {}

/// A value in a text.
#[derive(Clone, Copy, Debug)]
pub struct Node<'m> {
    pub(crate) json: &'m JsonText,
    at: usize,
}

impl<'m> Node<'m> {
    /// The whole document.
    #[inline]
    #[must_use]
    pub fn root(json: &'m JsonText) -> Self {
        Self { json, at: 0 }
    }

    /// Its place in the text, in bytes.
    #[must_use]
    pub fn range(self) -> Range<usize> {
        let Span { start, end, .. } = self.json.0.spans[self.at];
        start as usize..end as usize
    }

    /// Its text.
    pub(crate) fn spelling(self) -> &'m str {
        self.json.spelling(self.at)
    }

    /// The number of values and keys inside of it, and one for itself.
    #[must_use]
    pub fn values(self) -> usize {
        self.json.next(self.at) - self.at
    }

    /// The number of objects among them that are inside of fewer than `depth` others.
    #[must_use]
    pub fn objects(self, depth: usize) -> usize {
        let (mut at, end) = (self.at, self.json.next(self.at));
        let (mut objects, mut open) = (0, Vec::new());
        while at < end {
            while open.last().is_some_and(|end| *end <= at) {
                open.pop();
            }
            if self.json.0.spans[at].kind != SpanKind::Object {
                at += 1;
                continue;
            }
            objects += 1;
            let next = self.json.next(at);
            if open.len() + 1 < depth {
                open.push(next);
                at += 1;
            } else {
                at = next;
            }
        }
        objects
    }

    /// A copy of the value alone.
    #[must_use]
    pub fn to_text(self) -> JsonText {
        self.json.part(self.at)
    }

    /// The indices of an object's keys. Each value is at the index after its key.
    #[inline]
    fn keys(self) -> impl Iterator<Item = usize> {
        let Self { json, at, .. } = self;
        let end = if json.0.spans[at].kind == SpanKind::Object {
            json.next(at)
        } else {
            at + 1
        };
        walk(at + 1, end, move |key| json.next(key + 1))
    }

    /// The keys of an object.
    pub(crate) fn key_nodes(self) -> impl Iterator<Item = Self> {
        self.keys().map(move |key| Self { at: key, ..self })
    }

    /// The value of the key at this node.
    pub(crate) fn value(self) -> Self {
        self.value_of(self.at)
    }

    #[inline]
    fn value_of(self, key: usize) -> Self {
        Self {
            at: key + 1,
            ..self
        }
    }

    #[inline]
    fn key(self, at: usize) -> &'m str {
        // A key that is not valid Unicode is not one that a format looks for.
        self.json.meaning(at).unwrap_or("\u{fffd}")
    }
}

/// The indices from `at` up to, but not including, `end`, one `next` at a time.
fn walk(mut at: usize, end: usize, next: impl Fn(usize) -> usize) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let this = (at < end).then_some(at)?;
        at = next(this);
        Some(this)
    })
}

impl<'m> View<'m> for Node<'m> {
    #[inline]
    fn kind(self) -> Kind {
        match self.json.0.spans[self.at].kind {
            SpanKind::Null => Kind::Null,
            SpanKind::True | SpanKind::False => Kind::Bool,
            SpanKind::Number => Kind::Number,
            SpanKind::Plain | SpanKind::Escaped => Kind::String,
            SpanKind::Array => Kind::Array,
            SpanKind::Object => Kind::Object,
        }
    }

    #[inline]
    fn as_str(self) -> Option<&'m str> {
        self.json.meaning(self.at)
    }

    #[inline]
    fn as_bool(self) -> Option<bool> {
        match self.json.0.spans[self.at].kind {
            SpanKind::True => Some(true),
            SpanKind::False => Some(false),
            _ => None,
        }
    }

    fn items(self) -> impl Iterator<Item = Self> {
        let Self { json, at, .. } = self;
        let end = if json.0.spans[at].kind == SpanKind::Array {
            json.next(at)
        } else {
            at + 1
        };
        walk(at + 1, end, move |item| json.next(item)).map(move |item| Self { at: item, ..self })
    }

    fn fields(self) -> impl Iterator<Item = (&'m str, Self)> {
        self.keys()
            .map(move |key| (self.key(key), self.value_of(key)))
    }

    fn pick<const N: usize>(self, names: [&str; N]) -> [Option<Self>; N] {
        let mut found = [None; N];
        for (key, value) in self.fields() {
            if let Some(nth) = names.iter().position(|name| *name == key) {
                found[nth] = Some(value);
            }
        }
        found
    }

    #[inline]
    fn json(self) -> JsonRef<'m> {
        JsonRef::Spelled(self.spelling())
    }
}
