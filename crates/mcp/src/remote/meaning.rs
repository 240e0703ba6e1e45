//! The parts of a client's message that decide about its request.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use offcut::json::{JsonText, View};

use crate::gateway::message::{Message, REVISION, key, parse};

/// The first revision whose requests name their method in headers.
const WITH_HEADERS: &str = "2026-07-28";
const CANCELLED: &str = "notifications/cancelled";
pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) const REVISION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// A message, as far as a transport reads it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meaning {
    /// The id as JSON, and as a key. `None` for a notification.
    pub(crate) id: Option<(String, String)>,
    /// `None` for a response.
    pub(crate) method: Option<String>,
    /// The revision that the message names itself: one without sessions.
    pub(crate) revision: Option<String>,
    /// The key of the request that a notification cancels.
    pub(crate) cancels: Option<String>,
    /// Headers that repeat parts of the message, as revisions without sessions want them.
    headers: HeaderMap,
}

impl Meaning {
    /// Reads a message. One that is not JSON means nothing.
    pub(crate) fn read(message: &[u8]) -> Self {
        parse(message).map_or_else(Self::default, |json| Self::of(&json))
    }

    /// Reads JSON. What is not a message means nothing.
    pub(crate) fn of(json: &JsonText) -> Self {
        let (id, method, params) = match Message::read(json) {
            Message::Request { id, method, params } => (Some(id), Some(method), params),
            Message::Notification { method, params } => (None, Some(method), params),
            Message::Response { id, .. } => (Some(id), None, None),
            Message::Other => (None, None, None),
        };
        let cancelled = params.filter(|_| id.is_none() && method == Some(CANCELLED));
        let cancelled = cancelled.and_then(|params| params.get("requestId"));
        let id = id.map(|id| (id.json().to_string(), key(id)));
        let Some(method) = method else {
            return Self {
                id,
                ..Self::default()
            };
        };
        let meta = params.and_then(|params| params.get("_meta"));
        let revision = meta.map_or("", |meta| meta.text(REVISION));
        let mut headers = HeaderMap::new();
        if let Ok(method) = HeaderValue::from_str(method) {
            headers.insert(METHOD, method);
        }
        let of_name = match method {
            "tools/call" | "prompts/get" => "name",
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
            "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
            _ => "",
        };
        let name = params.map_or("", |params| params.text(of_name));
        if let Some(value) = encoded(name).filter(|_| !name.is_empty()) {
            headers.insert(NAME, value);
        }
        Self {
            id,
            method: Some(method.to_owned()),
            revision: (!revision.is_empty()).then(|| revision.to_owned()),
            cancels: cancelled.map(key),
            headers,
        }
    }

    pub(crate) fn is(&self, method: &str) -> bool {
        self.method.as_deref() == Some(method)
    }

    /// Returns true for a notification, and for an answer of the client's.
    pub(crate) fn wants_no_answer(&self) -> bool {
        self.id.is_some() != self.method.is_some()
    }

    /// The id of a request, as JSON and as a key.
    pub(crate) fn request(&self) -> Option<&(String, String)> {
        self.id.as_ref().filter(|_| self.method.is_some())
    }

    /// The id of a request, as JSON.
    pub(crate) fn request_id(&self) -> Option<&str> {
        self.request().map(|(id, _)| &**id)
    }

    /// The key of a request's id.
    pub(crate) fn request_key(&self) -> Option<&str> {
        self.request().map(|(_, key)| &**key)
    }

    /// The headers for a message of this revision.
    pub(crate) fn headers(&self, revision: Option<&str>) -> HeaderMap {
        if revision.is_some_and(|revision| revision >= WITH_HEADERS) {
            self.headers.clone()
        } else {
            HeaderMap::new()
        }
    }
}

/// A text as the value of a header: in Base64 unless it is plain ASCII.
fn encoded(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && text.trim() == text
        && !(text.starts_with(BEGIN) && text.ends_with(END));
    if is_plain {
        return HeaderValue::from_str(text).ok();
    }
    let coded = BASE64_STANDARD.encode(text);
    HeaderValue::from_str(&format!("{BEGIN}{coded}{END}")).ok()
}

const BEGIN: &str = "=?base64?";
const END: &str = "?=";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_a_header_would_change_are_coded() {
        for plain in ["a", "a b", "=?base64?x"] {
            assert_eq!(encoded(plain).unwrap(), plain);
        }
        for changed in [" a", "a\t", "a\nb", "=?base64?x?=", "é"] {
            let coded = encoded(changed).unwrap();
            assert!(coded.to_str().unwrap().starts_with(BEGIN));
        }
    }
}
