//! The session of a client with a server over HTTP.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::meaning::Meaning;

pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) const REVISION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The agreement of client and server.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// The id that the server has given. `None` without sessions.
    pub(super) id: Option<HeaderValue>,
    /// The revision that the answer to `initialize` named, or the last request.
    pub(super) revision: Option<String>,
    /// Number of sessions that have been started.
    pub(super) nth: u64,
    /// True once the server has accepted a message in this session.
    pub(super) has_worked: bool,
    /// The client's `initialize`, and its word that it is done, for a new session.
    pub(super) opening: Option<Bytes>,
    pub(super) opened: Option<Bytes>,
}

impl Session {
    /// The headers of a request with this message.
    pub(super) fn headers(&self, meaning: &Meaning) -> HeaderMap {
        let revision = meaning.revision.as_ref().or(self.revision.as_ref());
        let mut headers = meaning.headers(revision.map(String::as_str));
        let is_opening = meaning.is("initialize");
        if let Some(revision) = revision.filter(|_| !is_opening)
            && let Ok(revision) = HeaderValue::from_str(revision)
        {
            headers.insert(REVISION_HEADER, revision);
        }
        // A revision that each request names has no sessions.
        if let Some(id) = self
            .id
            .as_ref()
            .filter(|_| !is_opening && meaning.revision.is_none())
        {
            headers.insert(SESSION, id.clone());
        }
        headers
    }

    /// Takes the head of the answer to `opening`, the client's `initialize`.
    pub(super) fn started(&mut self, headers: &HeaderMap, opening: &Bytes) {
        self.id = headers.get(SESSION).cloned();
        if let Some(id) = &mut self.id {
            id.set_sensitive(true);
        }
        self.revision = None;
        self.opening = Some(opening.clone());
        self.nth += 1;
        self.has_worked = false;
    }
}
