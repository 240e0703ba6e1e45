//! Recognizes this library's hints: decided here and nowhere else.
//!
//! Any text may look like a hint, and looks are all that can be judged here without I/O. An
//! apparent hint is believed if that costs no more than a hint does. A longer one is first compared
//! with the stored content.

use crate::backend::content::Stored;
use crate::backend::{BackendError, ErrorKind, Location};
use crate::config::Policy;
use crate::format::PartRef;
use crate::hint::{Hint, Kind};
use crate::read_back::shows_only;
use crate::session::Session;

/// Maximum length, in bytes, of a link that is kept. Longer ones are stored like other content.
pub(crate) const MAX_LINK: usize = 2048;
/// Maximum number of bytes of several hints that are believed without a comparison, and of a
/// result's hints that lead nowhere into a store.
pub(crate) const SEVERAL: usize = 4096;

/// A text, classified by its relation to the store.
pub(crate) enum Classified {
    /// Content that is not stored yet.
    Content,
    /// Hints that show only what is stored there. Storing them again would add a hop before the
    /// original (L1).
    Hints(Vec<Location>),
    /// A text that looks like hints of this session but shows something else, as any text may.
    Imitation,
}

/// Compares a text with what is stored where it leads.
pub(crate) async fn classify(session: &Session, text: &str) -> Result<Classified, BackendError> {
    let Some(hints) = Hint::parse_all(text) else {
        return Ok(Classified::Content);
    };
    let resolve = |hint: &Hint| session.resolve(hint.location.as_ref()?.as_str());
    if !hints.iter().any(|hint| resolve(hint).is_some()) {
        return Ok(Classified::Content);
    }
    let mut locations = Vec::new();
    for hint in hints {
        let Some(ApparentHint {
            hint,
            stored: Some(stored),
        }) = session.apparent_hint(hint)
        else {
            return Ok(Classified::Imitation);
        };
        match stored.whole().await {
            Ok(Some(content)) if shows_only(&hint, &content, |_| None) => {
                locations.push(stored.location);
            }
            Ok(_) => return Ok(Classified::Imitation),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Classified::Imitation),
            Err(error) => return Err(error),
        }
    }
    Ok(Classified::Hints(locations))
}

/// A hint that may be ours.
#[derive(Debug)]
pub(crate) struct ApparentHint {
    pub(crate) hint: Hint,
    /// The content that it leads to; `None` for a link, and for content that is gone.
    pub(crate) stored: Option<Stored>,
}

impl Session {
    /// The hints that make up a text, if each of them may be ours: its sentence is no longer than
    /// any of ours, and it leads to where this session stores, is a link, or says in as few bytes
    /// as ours that content is gone. A hint with a longer preview that could not be saved leads
    /// nowhere, so it is an ordinary text.
    pub(crate) fn apparent_hints(&self, policy: &Policy, text: &str) -> Option<Vec<ApparentHint>> {
        let hints = Hint::parse_all(text)?;
        let own = hints.into_iter().map(|hint| self.apparent_hint(hint));
        own.map(|own| own.filter(|own| own.stored.is_some() || own.is_short(policy)))
            .collect()
    }

    /// Returns true if a result consists of hints that can't get shorter. A single one is believed,
    /// and several if they are few.
    pub(crate) fn is_final(&self, policy: &Policy, parts: &[PartRef<'_>]) -> bool {
        let (mut hints, mut bytes) = (Vec::new(), 0);
        for part in parts {
            let PartRef::Text(text) = part else {
                return false;
            };
            let Some(own) = self.apparent_hints(policy, text) else {
                return false;
            };
            hints.extend(own);
            bytes += text.len();
        }
        (hints.len() == 1 || hints.len() > 1 && bytes <= SEVERAL)
            && hints.iter().all(|own| own.is_short(policy))
    }

    /// Returns true if a text is one hint that can't get shorter.
    pub(crate) fn is_short_hint(&self, policy: &Policy, text: &str) -> bool {
        let own = self.apparent_hints(policy, text);
        matches!(own.as_deref(), Some([own]) if own.is_short(policy))
    }

    fn apparent_hint(&self, hint: Hint) -> Option<ApparentHint> {
        let location = hint.location.as_ref().map_or("", Location::as_str);
        if hint.prose.len() > self.prose.longest(self.reader(), location) {
            return None;
        }
        let stored = match (hint.kind, &hint.location) {
            (Kind::Link, Some(_)) => {
                let is_ours =
                    hint.bytes == 0 && hint.preview.is_empty() && location.len() <= MAX_LINK;
                is_ours.then_some(None)?
            }
            (Kind::Cleared | Kind::Truncated, None) => None,
            (_, None) => return None,
            (_, Some(_)) => Some(self.resolve(location)?),
        };
        Some(ApparentHint { hint, stored })
    }
}

impl ApparentHint {
    /// Returns true if nothing shorter could replace it.
    pub(crate) fn is_short(&self, policy: &Policy) -> bool {
        let is_cleared = matches!(self.hint.kind, Kind::Cleared | Kind::Link);
        (is_cleared || self.stored.is_none())
            && self.hint.preview.len() <= policy.stub_length.bytes_for(self.hint.bytes)
    }
}

/// Cleared arguments, as JSON that any provider accepts.
pub(crate) fn cleared_arguments(hint: &str) -> String {
    serde_json::json!({"_cleared": hint}).to_string()
}
