//! Stores content that other code takes out of a conversation, as a clear pass would.

use bytes::Bytes;
use offcut_store::layout::Phase;
use offcut_store::names::digest;

use crate::backend::{BackendError, ErrorKind, Location, PutOutcome};
use crate::hint::Hint;
use crate::read_back::{HintContext, shows_only};
use crate::session::Session;
use crate::store::{Id, Name, key, put};

/// A text, classified by its relation to the store.
enum Classified {
    /// Content that is not stored yet.
    Content,
    /// Hints that show only what is stored there. Storing them again would add a hop before the
    /// original (L1).
    Hints(Vec<Location>),
    /// A text that looks like hints of this session but shows something else, as any text may.
    Imitation,
}

/// Stores `text` and returns its locations, or `None` if it only looks like hints.
pub(super) async fn store_original(
    session: &Session,
    name: &str,
    text: &str,
) -> Result<Option<Vec<Location>>, BackendError> {
    match classify(session, text).await? {
        Classified::Content => Ok(Some(vec![store(session, name, text).await?])),
        Classified::Hints(locations) => Ok(Some(locations)),
        Classified::Imitation => Ok(None),
    }
}

async fn classify(session: &Session, text: &str) -> Result<Classified, BackendError> {
    let Some(hints) = Hint::parse_all(text) else {
        return Ok(Classified::Content);
    };
    let resolve = |hint: &Hint| session.resolve(hint.location.as_ref()?.as_str());
    if !hints.iter().any(|hint| resolve(hint).is_some()) {
        return Ok(Classified::Content);
    }
    let said = HintContext {
        prose: session.prose(),
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

async fn store(session: &Session, name: &str, text: &str) -> Result<Location, BackendError> {
    // Use the backend that a result of an unnamed tool would use.
    let Some(backend) = session.policy("").backend() else {
        let message = "this reduction has no backend: set one with `Builder::backend`";
        return Err(BackendError::new(ErrorKind::Other, message));
    };
    let content = Bytes::copy_from_slice(text.as_bytes());
    let digest = digest(&content);
    // A name may be anything; only a safe one becomes part of a path (L6).
    let name = match Id::of_call(name).name() {
        Some(name) => name.with_digest(&digest),
        None => Name::of_digest(digest),
    };
    let key = key(session.roots(), Phase::Clear, &name);
    match put(&**backend, &key, content).await? {
        PutOutcome::Stored | PutOutcome::AlreadyThere => Ok(backend.locate(&key)),
        PutOutcome::Taken => {
            let message = format!("`{key}` already holds other content: nothing was stored");
            Err(BackendError::new(ErrorKind::Other, message))
        }
    }
}
