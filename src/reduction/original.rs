//! Stores content that other code takes out of a conversation, as a clear pass would.

use crate::backend::key::digest;
use crate::backend::layout::Phase;
use bytes::Bytes;

use crate::backend::content::{Id, Name, Target};
use crate::backend::{BackendError, ErrorKind, Location};
use crate::ours::{Classified, classify};
use crate::session::Session;

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
    let target = Target::new(&session.roots, Phase::Clear, &name, &content);
    target.save(&**backend, content).await
}
