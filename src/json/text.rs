//! JSON text that keeps its spelling.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::json::json_ref::JsonRef;
use crate::json::scan::{InvalidJson, Span, SpanKind, Spans, scan};
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
    spans: Spans,
    /// Meanings of the strings with escapes, filled in when they are first asked for.
    meanings: Vec<OnceLock<Option<String>>>,
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
        // No text has more values than bytes.
        let spans = scan(&text, usize::MAX)?.unwrap_or_default();
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
        let spans = scan(&text, most)?;
        Ok(spans.map(|spans| Self::new(text, spans)))
    }

    fn new(text: String, spans: Spans) -> Self {
        let meanings = (0..spans.escaped).map(|_| OnceLock::new()).collect();
        Self(Arc::new(Parsed {
            text,
            spans,
            meanings,
            is_plain: OnceLock::new(),
        }))
    }

    #[inline]
    fn span(&self, at: usize) -> Span {
        self.0.spans.all[at]
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
        let span = self.span(at);
        if span.is_container() {
            span.link as usize
        } else {
            at + 1
        }
    }

    #[inline]
    fn spelling(&self, at: usize) -> &str {
        let Span { start, end, .. } = self.span(at);
        &self.0.text[start as usize..end as usize]
    }

    /// The meaning of a string; `None` if the value is not a string, or not valid Unicode.
    #[inline]
    fn meaning(&self, at: usize) -> Option<&str> {
        let spelling = self.spelling(at);
        match self.span(at).kind {
            SpanKind::Plain => Some(&spelling[1..spelling.len() - 1]),
            SpanKind::Escaped => {
                let cell = &self.0.meanings[self.span(at).link as usize];
                let unescape = || serde_json::from_str(spelling).ok();
                cell.get_or_init(unescape).as_deref()
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

    /// Returns true if no object has a duplicate key and all strings are valid Unicode. Checks only
    /// once.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self.0.is_plain.get_or_init(|| {
            let mut all = 0..self.0.spans.all.len();
            let is_escaped = |at| self.span(at).kind == SpanKind::Escaped;
            let is_text = |at| !is_escaped(at) || self.meaning(at).is_some();
            (!self.0.spans.has_surrogates || all.all(is_text)) && self.doubled_key().is_none()
        })
    }

    /// The first key that is twice in its object, and its second place, in bytes.
    ///
    /// ```
    /// use offcut::json::JsonText;
    /// let text = JsonText::parse(r#"[{"a": 1, "\u0061": 2}]"#)?;
    /// assert_eq!(text.doubled_key(), Some(("a", 10)));
    /// # Ok::<(), offcut::format::InvalidJson>(())
    /// ```
    #[must_use]
    pub fn doubled_key(&self) -> Option<(&str, usize)> {
        (0..self.0.spans.all.len()).find_map(|at| {
            let (mut known, mut keys) = (HashSet::new(), Node { json: self, at }.keys());
            let doubled = keys.find(|key| !known.insert(key.key()))?;
            Some((doubled.key(), doubled.range().start))
        })
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
        let Span { start, end, .. } = self.json.span(self.at);
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
        let (mut objects, mut around) = (0, Vec::new());
        while at < end {
            around.retain(|end| *end > at);
            let next = self.json.next(at);
            if self.json.span(at).kind != SpanKind::Object {
                at += 1;
            } else if around.len() + 1 < depth {
                around.push(next);
                at += 1;
                objects += 1;
            } else {
                at = next;
                objects += 1;
            }
        }
        objects
    }

    /// A copy of the value alone.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a value of valid JSON is valid JSON")]
    pub fn to_text(self) -> JsonText {
        JsonText::parse(self.spelling()).expect("valid JSON")
    }

    /// The keys of an object. Each value is at the index after its key.
    #[inline]
    pub(crate) fn keys(self) -> impl Iterator<Item = Self> {
        let end = if self.is_object() {
            self.json.next(self.at)
        } else {
            self.at + 1
        };
        let keys = walk(self.at + 1, end, move |key| self.json.next(key + 1));
        keys.map(move |at| Self { at, ..self })
    }

    /// The value of the key at this node.
    #[inline]
    pub(crate) fn value(self) -> Self {
        let at = self.at + 1;
        Self { at, ..self }
    }

    /// The meaning of this key. One that is not valid Unicode is not one that a format looks for.
    #[inline]
    fn key(self) -> &'m str {
        self.as_str().unwrap_or("\u{fffd}")
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
        match self.json.span(self.at).kind {
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
        match self.json.span(self.at).kind {
            SpanKind::True => Some(true),
            SpanKind::False => Some(false),
            _ => None,
        }
    }

    fn items(self) -> impl Iterator<Item = Self> {
        let end = if self.is_array() {
            self.json.next(self.at)
        } else {
            self.at + 1
        };
        let items = walk(self.at + 1, end, move |item| self.json.next(item));
        items.map(move |at| Self { at, ..self })
    }

    fn fields(self) -> impl Iterator<Item = (&'m str, Self)> {
        self.keys().map(|key| (key.key(), key.value()))
    }

    #[inline]
    fn json(self) -> JsonRef<'m> {
        JsonRef::Spelled(self.spelling())
    }
}
