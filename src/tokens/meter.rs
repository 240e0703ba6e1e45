//! A token counter, and its cached counts for one conversation.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::{CountTokens, image, payload};
use crate::fingerprint::{FieldPrint, Fingerprint, FingerprintStream};
use crate::format::{Arguments, Conversation, JsonRef, PartRef, Piece};
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

/// A text, in the form in which a message holds it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Text<'m> {
    Is(&'m str),
    /// A JSON value, counted as its compact text.
    Json(JsonRef<'m>),
    /// A part that the format does not know, counted as what it holds: media by their kind, and
    /// nothing for what only the provider can read.
    Opaque(JsonRef<'m>),
}

impl<'m> Text<'m> {
    pub(crate) fn of_part(part: PartRef<'m>) -> Option<Self> {
        match part {
            PartRef::Text(text) | PartRef::Link { url: text, .. } => Some(Self::Is(text)),
            PartRef::Json(json) => Some(Self::of_json(json)),
            PartRef::Opaque(json) => Some(Self::Opaque(json)),
            PartRef::Media { .. } => None,
        }
    }

    pub(crate) fn of_arguments(arguments: Arguments<'m>) -> Self {
        match arguments {
            Arguments::Text(text) => Self::Is(text),
            Arguments::Json(json) => Self::of_json(json),
        }
    }

    pub(crate) fn of_json(json: JsonRef<'m>) -> Self {
        match json {
            JsonRef::Spelled(text) => Self::Is(text),
            value => Self::Json(value),
        }
    }

    /// Length in bytes, without allocating.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Is(text) => text.len() as u64,
            Self::Json(json) | Self::Opaque(json) => length(json),
        }
    }

    pub(crate) fn fingerprint(self) -> Fingerprint {
        match self {
            Self::Is(text) => Fingerprint::of(text.as_bytes()),
            Self::Json(json) => print_of(json),
            // It costs something else than a text that reads the same.
            Self::Opaque(json) => {
                let mut print = FieldPrint::new(b'o', b"");
                print.add_print(b'o', print_of(json));
                print.finish()
            }
        }
    }

    pub(crate) fn read(self) -> Cow<'m, str> {
        match self {
            Self::Is(text) => text.into(),
            Self::Json(json) | Self::Opaque(json) => json.to_string().into(),
        }
    }
}

/// Counts the bytes that are written to it.
struct ByteCount(u64);

impl io::Write for ByteCount {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn length(json: JsonRef<'_>) -> u64 {
    let mut length = ByteCount(0);
    write_json(json, &mut length);
    length.0
}

fn print_of(json: JsonRef<'_>) -> Fingerprint {
    let mut stream = FingerprintStream::default();
    write_json(json, &mut stream);
    stream.finish()
}

/// Writes the text of `json`. Can't fail, since no JSON value and no writer here does.
fn write_json(json: JsonRef<'_>, to: &mut impl io::Write) {
    let written = write!(to, "{json}");
    debug_assert!(written.is_ok());
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

    /// The number of tokens of `text`, whose fingerprint is `print`.
    pub(crate) fn count(&self, print: Fingerprint, text: Text<'_>) -> u64 {
        self.known(print).unwrap_or_else(|| {
            // No lock is held, since counting may be slow and may call back into this meter.
            let tokens = match text {
                Text::Opaque(json) => self.opaque(json),
                text => self.count_uncached(&text.read()),
            };
            let mut counts = self.counts();
            if counts.len() >= MOST_COUNTS {
                counts.clear();
            }
            counts.insert(print, tokens);
            tokens
        })
    }

    /// The number of tokens of a text.
    pub(crate) fn count_text(&self, text: Text<'_>) -> u64 {
        self.count(text.fingerprint(), text)
    }

    /// Like [`count_str`](Self::count_str), but not cached, for a text that will not be counted again.
    ///
    /// If the counter panics, returns the text's length in bytes, since no text has more tokens
    /// than bytes.
    pub(crate) fn count_uncached(&self, text: &str) -> u64 {
        guard("the token counter", || Ok(self.counter.count(text))).unwrap_or_else(|error| {
            tracing::warn!(%error, "the token counter failed; using the text's length in bytes");
            text.len() as u64
        })
    }

    /// The number of tokens of a part that the format does not know.
    fn opaque(&self, json: JsonRef<'_>) -> u64 {
        if let Some(mut value) = json.to_value() {
            let media = payload::take_out(&mut value);
            return media.saturating_add(self.count_uncached(&value.to_string()));
        }
        self.count_uncached(&json.to_string())
    }

    pub(crate) fn count_str(&self, text: &str) -> u64 {
        self.count_text(Text::Is(text))
    }

    pub(crate) fn part(&self, part: PartRef<'_>) -> u64 {
        media_cost(part).saturating_add(Text::of_part(part).map_or(0, |text| self.count_text(text)))
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
        let mut bound: u64 = tools
            .iter()
            .map(|tool| Text::of_json(tool.into()).bytes())
            .sum();
        for message in from..conversation.len() {
            bound += PER_MESSAGE;
            if bound > limit {
                return None;
            }
            conversation.visit(message, &mut |piece| {
                bound += match piece {
                    Piece::Content(part) => {
                        media_cost(part) + Text::of_part(part).map_or(0, Text::bytes)
                    }
                    Piece::Call(call) => {
                        call.name.len() as u64 + Text::of_arguments(call.arguments).bytes()
                    }
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
        PartRef::Media { mime, data } if mime.starts_with("image/") => image::cost(data),
        PartRef::Media { data, .. } => data.decoded_len() / payload::BYTES_PER_TOKEN,
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
        let print = |i: usize| Fingerprint::of(&i.to_le_bytes());
        for i in 0..=2 * MOST_COUNTS {
            assert_eq!(meter.count(print(i), Text::Is("12345678")), 2);
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
            let json = Text::of_json(JsonRef::from(&value));
            assert_eq!(json.fingerprint(), Text::Is(&text).fingerprint());
            assert_eq!(json.bytes(), text.len() as u64);
            assert_eq!(json.read(), text);
            assert_eq!(meter.count_text(json), meter.count_str(&text));
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
