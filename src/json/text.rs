//! JSON text that keeps its spelling.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::json::json_ref::JsonRef;
use crate::json::scan::{InvalidJson, Span, Spans, scan};
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
/// assert_eq!(JsonText::parse("{\"a\": 01}").unwrap_err().to_string(), "not JSON: invalid number at line 1 column 8");
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

    /// Parses `text`, unless it has more than `most` values and keys: each takes 16 bytes of
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
    /// Fails if `text` is not JSON, or longer than 4 GiB.
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

    /// Its values and keys, in the order in which they begin.
    fn nodes(&self) -> impl Iterator<Item = Node<'_>> {
        (0..self.0.spans.all.len()).map(|at| Node { json: self, at })
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
            let is_text = |node: Node<'_>| node.kind() != Kind::String || node.as_str().is_some();
            (!self.0.spans.has_surrogates || self.nodes().all(is_text))
                && self.doubled_key().is_none()
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
        self.nodes().find_map(|node| {
            let mut known = HashSet::new();
            let doubled = node.keys().find(|key| !known.insert(key.key()))?;
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
    #[must_use]
    pub fn root(json: &'m JsonText) -> Self {
        Self { json, at: 0 }
    }

    fn span(self) -> Span {
        self.json.0.spans.all[self.at]
    }

    /// The index after it and everything inside of it.
    fn next(self) -> usize {
        match self.span() {
            Span {
                kind: Kind::Array | Kind::Object,
                link,
                ..
            } => link as usize,
            _ => self.at + 1,
        }
    }

    /// Its place in the text, in bytes.
    #[must_use]
    pub fn range(self) -> Range<usize> {
        let Span { start, end, .. } = self.span();
        start as usize..end as usize
    }

    /// Its text.
    pub(crate) fn spelling(self) -> &'m str {
        &self.json.as_str()[self.range()]
    }

    /// The number of values and keys inside of it, and one for itself.
    #[must_use]
    pub fn values(self) -> usize {
        self.next() - self.at
    }

    /// The number of objects among them.
    #[must_use]
    pub fn objects(self) -> usize {
        let spans = &self.json.0.spans.all[self.at..self.next()];
        let objects = spans.iter().filter(|span| span.kind == Kind::Object);
        objects.count()
    }

    /// A copy of the value alone.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a value of valid JSON is valid JSON")]
    pub fn to_text(self) -> JsonText {
        JsonText::parse(self.spelling()).expect("valid JSON")
    }

    /// The keys of an object. Each value is at the index after its key.
    pub(crate) fn keys(self) -> impl Iterator<Item = Self> {
        self.inside(self.is_object(), |key| key.value().next())
    }

    /// The nodes inside of it from the first on, each at the index that `next` gives for the one before; none
    /// unless `has_any`.
    fn inside(self, has_any: bool, next: impl Fn(Self) -> usize) -> impl Iterator<Item = Self> {
        let end = if has_any { self.next() } else { 0 };
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            let node = (at < end).then_some(Self { at, ..self })?;
            at = next(node);
            Some(node)
        })
    }

    /// The value of the key at this node.
    pub(crate) fn value(self) -> Self {
        let at = self.at + 1;
        Self { at, ..self }
    }

    /// The meaning of this key. One that is not valid Unicode is not one that a format looks for.
    fn key(self) -> &'m str {
        self.as_str().unwrap_or("\u{fffd}")
    }
}

impl<'m> View<'m> for Node<'m> {
    fn kind(self) -> Kind {
        self.span().kind
    }

    fn as_str(self) -> Option<&'m str> {
        let (span, spelling) = (self.span(), self.spelling());
        if span.kind != Kind::String {
            return None;
        }
        match self.json.0.meanings.get(span.link as usize) {
            Some(meaning) => {
                let unescape = || serde_json::from_str(spelling).ok();
                meaning.get_or_init(unescape).as_deref()
            }
            // Without escapes, the spelling is the meaning.
            None => Some(&spelling[1..spelling.len() - 1]),
        }
    }

    fn as_bool(self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| self.spelling() == "true")
    }

    fn items(self) -> impl Iterator<Item = Self> {
        self.inside(self.is_array(), Self::next)
    }

    fn fields(self) -> impl Iterator<Item = (&'m str, Self)> {
        self.keys().map(|key| (key.key(), key.value()))
    }

    fn json(self) -> JsonRef<'m> {
        JsonRef::Spelled(self.spelling())
    }
}
