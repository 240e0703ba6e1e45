//! A token counter, and its cached counts for one conversation.

use std::borrow::{Borrow, Cow};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{CountTokens, image, payload};
use crate::fingerprint::{FieldPrint, Fingerprint, fingerprint};
use crate::format::PartRef;
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

/// A part of a message as it is counted: its text, or the text of its JSON, and what its media cost.
#[derive(Clone, Debug)]
pub(crate) struct Text<'m> {
    text: Cow<'m, str>,
    /// `None` for media inside the message, which have no text.
    pub(crate) print: Option<Fingerprint>,
    /// True for a part that the format does not know, counted as what it holds: media by their kind, and nothing
    /// for what only the provider can read.
    is_opaque: bool,
    /// Tokens besides those of the text.
    media: u64,
}

impl<'m> From<PartRef<'m>> for Text<'m> {
    fn from(part: PartRef<'m>) -> Self {
        let (text, media) = match part {
            PartRef::Text(text) => (text.into(), 0),
            PartRef::Link { url, .. } => (url.into(), image::UNKNOWN),
            PartRef::Json(json) | PartRef::Opaque(json) => (json.text(), 0),
            PartRef::Media { mime, data } => ("".into(), payload::media_cost(Some(mime), data)),
        };
        let is_opaque = matches!(part, PartRef::Opaque(_));
        let mut print = fingerprint(text.as_bytes());
        if is_opaque {
            // It costs something else than a text that reads the same.
            let mut fields = FieldPrint::new(b'o', b"");
            fields.add_print(b'o', text.len() as u64, print);
            print = fields.finish();
        }
        let has_text = !matches!(part, PartRef::Media { .. });
        Self {
            text,
            print: has_text.then_some(print),
            is_opaque,
            media,
        }
    }
}

impl Text<'_> {
    /// Length in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.text.len() as u64
    }

    /// The most tokens that it costs by a counter that never exceeds bytes.
    pub(crate) fn bound(&self) -> u64 {
        self.media.saturating_add(self.bytes())
    }

    pub(crate) fn into_owned(self) -> Text<'static> {
        Text {
            text: self.text.into_owned().into(),
            print: self.print,
            is_opaque: self.is_opaque,
            media: self.media,
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

    /// Returns true if no text costs more tokens than it has bytes.
    pub(crate) fn never_exceeds_bytes(&self) -> bool {
        self.counter.never_exceeds_bytes()
    }

    /// The number of tokens of a text, if it is cached.
    pub(crate) fn known(&self, text: &Text<'_>) -> Option<u64> {
        let Some(print) = text.print else {
            return Some(text.media);
        };
        let tokens = self.counts().get(&print).copied();
        tokens.map(|tokens| text.media.saturating_add(tokens))
    }

    /// Ignores poisoning: nothing that may panic runs under the lock, least of all a user's counter.
    fn counts(&self) -> MutexGuard<'_, HashMap<Fingerprint, u64>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of tokens of a text.
    ///
    /// If the counter panics, it is the text's length in bytes, since no text has more tokens than bytes.
    pub(crate) fn count(&self, text: &Text<'_>) -> u64 {
        if let Some(known) = self.known(text) {
            return known;
        }
        // No lock is held, since counting may be slow and may call back into this meter.
        let (mut plain, mut tokens) = (Cow::Borrowed(&*text.text), 0);
        if text.is_opaque
            && let Ok(mut value) = serde_json::from_str(&plain)
        {
            tokens = payload::take_out(&mut value);
            plain = value.to_string().into();
        }
        let counted = guard("the token counter", || Ok(self.counter.count(&plain)));
        let counted = counted.unwrap_or_else(|error| {
            tracing::warn!(%error, "the token counter failed; using the text's length in bytes");
            plain.len() as u64
        });
        tokens = tokens.saturating_add(counted);
        let mut counts = self.counts();
        if counts.len() >= MOST_COUNTS {
            counts.clear();
        }
        if let Some(print) = text.print {
            counts.insert(print, tokens);
        }
        text.media.saturating_add(tokens)
    }

    /// The number of tokens of all `texts`.
    pub(crate) fn sum<'m>(&self, texts: impl Iterator<Item = impl Borrow<Text<'m>>>) -> u64 {
        let tokens = texts.map(|text| self.count(text.borrow()));
        tokens.fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tokens::Estimate;

    #[test]
    fn there_are_never_too_many_counts() {
        let meter = Meter::new(Arc::new(Estimate));
        let text = |i: usize| i.to_string();
        for i in 0..=2 * MOST_COUNTS {
            let text = text(i);
            let text = Text::from(PartRef::Text(&text));
            assert_eq!(meter.count(&text), text.bytes().div_ceil(4));
            assert!(meter.known(&text).is_some());
        }
        assert_eq!(meter.known(&PartRef::Text("0").into()), None);
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
            let json = Text::from(PartRef::Json((&value).into()));
            let plain = Text::from(PartRef::Text(&text));
            assert_eq!((json.print, &json.text), (plain.print, &plain.text));
            assert_eq!(meter.count(&json), meter.count(&plain));
        }
    }
}
