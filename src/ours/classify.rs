//! Tells texts that are already stored from all others.

use crate::backend::{BackendError, ErrorKind, Location};
use crate::hint::Hint;
use crate::read_back::{HintContext, shows_only};
use crate::session::Session;

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
    let said = HintContext {
        prose: &session.prose,
        tool: "",
        reader: session.reader(),
        own: &|_| None,
    };
    let mut locations = Vec::new();
    for hint in hints {
        let Some(stored) = resolve(&hint) else {
            return Ok(Classified::Imitation);
        };
        match stored.whole().await {
            Ok(Some(content)) if shows_only(&hint, &content, said) => {
                locations.push(stored.location);
            }
            Ok(_) => return Ok(Classified::Imitation),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Classified::Imitation),
            Err(error) => return Err(error),
        }
    }
    Ok(Classified::Hints(locations))
}
