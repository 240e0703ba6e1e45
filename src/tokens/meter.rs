//! A token counter, and its cached counts for one conversation.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::{CountTokens, image, payload};
use crate::fingerprint::{FieldPrint, Fingerprint, fingerprint};
use crate::format::{Conversation, PartRef, Piece};
use crate::guard::guard;

/// Tokens that each message costs in addition to its content.
pub(crate) const PER_MESSAGE: u64 = 4;

/// Number of counts that are kept: those of the texts of a few hundred long conversations, in some megabytes.
const MOST_COUNTS: usize = 256 * 1024;

/// A token counter with cached counts, so that each text is counted once. Clones share both.
#[derive(Clone)]
pub(crate) struct Meter {
    counter: Arc<dyn CountTokens>,
    /// The counts by text. All are forgotten once there are too many, and texts in use are counted again.
    counts: Arc<Mutex<HashMap<Fingerprint, u64>>>,
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter").finish_non_exhaustive()
    }
}

/// A text of a message, or the text of its JSON.
#[derive(Clone, Debug)]
pub(crate) struct Text<'m> {
    text: Cow<'m, str>,
    /// True for a part that the format does not know, counted as what it holds: media by their kind, and nothing
    /// for what only the provider can read.
    is_opaque: bool,
}

impl<'m, T: Into<Cow<'m, str>>> From<T> for Text<'m> {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            is_opaque: false,
        }
    }
}

impl<'m> Text<'m> {
    pub(crate) fn of_part(part: PartRef<'m>) -> Option<Self> {
        let text = match part {
            PartRef::Text(text) | PartRef::Link { url: text, .. } => text.into(),
            PartRef::Json(json) | PartRef::Opaque(json) => json.text(),
            PartRef::Media { .. } => return None,
        };
        Some(Self {
            text,
            is_opaque: matches!(part, PartRef::Opaque(_)),
        })
    }

    /// Length in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.text.len() as u64
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let print = fingerprint(self.text.as_bytes());
        if !self.is_opaque {
            return print;
        }
        // It costs something else than a text that reads the same.
        let mut fields = FieldPrint::new(b'o', b"");
        fields.add_print(b'o', self.bytes(), print);
        fields.finish()
    }

    pub(crate) fn into_owned(self) -> Text<'static> {
        Text {
            text: self.text.into_owned().into(),
            is_opaque: self.is_opaque,
        }
    }
}

impl Meter {
    pub(crate) fn new(counter: Arc<dyn CountTokens>) -> Self {
        Self {
            counter,
            counts: Arc::default(),
        }
    }

    /// The number of tokens of a text, if it is cached.
    pub(crate) fn known(&self, print: Fingerprint) -> Option<u64> {
        self.counts().get(&print).copied()
    }

    /// Ignores poisoning: nothing that may panic runs under the lock, least of all a user's counter.
    fn counts(&self) -> MutexGuard<'_, HashMap<Fingerprint, u64>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of tokens of a text.
    pub(crate) fn count<'m>(&self, text: impl Into<Text<'m>>) -> u64 {
        let text = text.into();
        self.count_as(text.fingerprint(), &text)
    }

    /// The number of tokens of `text`, whose fingerprint is `print`.
    pub(crate) fn count_as(&self, print: Fingerprint, text: &Text<'_>) -> u64 {
        self.known(print).unwrap_or_else(|| {
            // No lock is held, since counting may be slow and may call back into this meter.
            let tokens = self.count_uncached(text);
            let mut counts = self.counts();
            if counts.len() >= MOST_COUNTS {
                counts.clear();
            }
            counts.insert(print, tokens);
            tokens
        })
    }

    /// The number of tokens of a text.
    ///
    /// If the counter panics, it is the text's length in bytes, since no text has more tokens than bytes.
    fn count_uncached(&self, text: &Text<'_>) -> u64 {
        let (is_opaque, mut media) = (text.is_opaque, 0);
        let mut text = Cow::Borrowed(&*text.text);
        if is_opaque && let Ok(mut value) = serde_json::from_str(&text) {
            media = payload::take_out(&mut value);
            text = value.to_string().into();
        }
        let tokens = guard("the token counter", || Ok(self.counter.count(&text)));
        let tokens = tokens.unwrap_or_else(|error| {
            tracing::warn!(%error, "the token counter failed; using the text's length in bytes");
            text.len() as u64
        });
        media.saturating_add(tokens)
    }

    /// The number of tokens of all `parts`.
    pub(crate) fn parts<'m>(&self, parts: impl Iterator<Item = PartRef<'m>>) -> u64 {
        parts.fold(0, |sum, part| {
            let text = Text::of_part(part).map_or(0, |text| self.count(text));
            sum.saturating_add(media_cost(part)).saturating_add(text)
        })
    }

    /// Returns an upper bound on the tokens of `tools` and of all messages starting at `from`,
    /// without counting. Returns `None` if the bound exceeds `limit`, or if the counter does not
    /// promise one. Stops at the message that exceeds `limit`.
    pub(crate) fn bound(
        &self,
        conversation: &dyn Conversation,
        from: usize,
        tools: &[Value],
        limit: u64,
    ) -> Option<u64> {
        if !self.counter.never_exceeds_bytes() {
            return None;
        }
        let mut bound: u64 = tools.iter().map(|tool| tool.to_string().len() as u64).sum();
        for message in from..conversation.len() {
            bound += PER_MESSAGE;
            if bound > limit {
                return None;
            }
            conversation.visit(message, &mut |piece| {
                bound += match piece {
                    Piece::Content(part) => {
                        media_cost(part) + Text::of_part(part).map_or(0, |text| text.bytes())
                    }
                    Piece::Call(call) => (call.name.len() + call.arguments.text().len()) as u64,
                    Piece::Role(_) | Piece::Result(_) => 0,
                }
            });
        }
        (bound <= limit).then_some(bound)
    }
}

/// The number of tokens of a part, without those of its text.
pub(crate) fn media_cost(part: PartRef<'_>) -> u64 {
    match part {
        PartRef::Text(_) | PartRef::Json(_) | PartRef::Opaque(_) => 0,
        PartRef::Media { mime, data } => payload::media_cost(Some(mime), data),
        PartRef::Link { .. } => image::UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::format::{Message, Messages, Plain};
    use crate::tokens::Estimate;

    #[test]
    fn there_are_never_too_many_counts() {
        let meter = Meter::new(Arc::new(Estimate));
        let print = |i: usize| fingerprint(&i.to_le_bytes());
        for i in 0..=2 * MOST_COUNTS {
            assert_eq!(meter.count_as(print(i), &"12345678".into()), 2);
            assert_eq!(meter.known(print(i)), Some(2));
        }
        assert_eq!(meter.known(print(0)), None);
        assert!(meter.counts().len() <= MOST_COUNTS);
    }

    #[test]
    fn a_document_is_identified_by_its_compact_text() {
        let meter = Meter::new(Arc::new(Estimate));
        for value in [
            json!(null),
            json!({"b": [1, 2.5, "é\n"], "a": {}}),
            json!("x".repeat(5_000)),
        ] {
            let text = value.to_string();
            let json = Text::of_part(PartRef::Json((&value).into())).unwrap();
            assert_eq!(json.fingerprint(), Text::from(&*text).fingerprint());
            assert_eq!(json.text, text);
            assert_eq!(meter.count(json), meter.count(text));
        }
    }

    /// Counts one token for each byte, the maximum.
    struct Bytes;

    impl CountTokens for Bytes {
        fn count(&self, text: &str) -> u64 {
            text.len() as u64
        }

        fn never_exceeds_bytes(&self) -> bool {
            true
        }
    }

    #[test]
    fn the_bound_is_reached_and_never_exceeded() {
        let call = crate::content::ToolCall::new("a", "grep", r#"{"x":1}"#);
        let link = crate::content::Part::Link {
            mime: None,
            url: "https://example.org/a.png".into(),
        };
        let parts = vec![
            "text".into(),
            crate::content::Part::Json(json!({"a": 1})),
            link,
        ];
        let mut messages = vec![
            Message::user("go"),
            Message::calls(vec![call.clone()]),
            Message::tool(&call, parts, false),
        ];
        let (meter, tools) = (Meter::new(Arc::new(Bytes)), [json!({"name": "grep"})]);
        let conversation = Messages::new(Plain, &mut messages);
        let exact = crate::clear::count_tokens(&meter, &conversation, &tools);
        assert_eq!(meter.bound(&conversation, 0, &tools, exact), Some(exact));
        assert_eq!(meter.bound(&conversation, 0, &tools, exact - 1), None);
        assert_eq!(
            Meter::new(Arc::new(Estimate)).bound(&conversation, 0, &tools, exact),
            None,
            "nothing is known"
        );
    }
}
