//! The reasons why a request got no answer from the server.

use std::time::Duration;

use http::{Response, StatusCode};
use hyper::body::Incoming;
use offcut::json::{Node, View};
use serde_json::json;
use tokio::time::timeout;

use super::body::whole;
use super::meaning::Meaning;
use crate::gateway::message::{INTERNAL_ERROR, error_answer, parse};

/// Maximum number of bytes of an error's body that are read, and the time for it.
const MAX_ERROR: usize = 64 * 1024;
const ERROR: Duration = Duration::from_secs(30);

/// A request that failed, in words that hold no secret.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum RequestFailure {
    /// No connection, or it ended before the answer's head.
    #[error("the server can't be reached: {0}")]
    Unreachable(String),
    /// A status that is not a success.
    #[error("the server answered {status}{}", advice(*status))]
    Status {
        status: StatusCode,
        /// The error object of JSON-RPC in the answer's body.
        error: Option<String>,
        /// True if the body speaks of a session, or of the handshake that begins one.
        names_session: bool,
    },
    #[error("the server sends its clients elsewhere; give the new URL to offcut")]
    Redirected,
    #[error("the server answered with neither plain JSON nor a stream of events")]
    NoMessage,
    /// The answer is over the maximum.
    #[error("the server's answer is {0}")]
    TooLong(String),
    /// The answer could not be resumed.
    #[error("the server's answer broke off")]
    BrokeOff,
}

impl RequestFailure {
    /// The answer, or the failure that it stands for, with what its body says.
    pub(super) async fn unless_success(
        response: Response<Incoming>,
    ) -> Result<Response<Incoming>, Self> {
        if response.status().is_success() {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        let body = timeout(ERROR, whole(body, MAX_ERROR)).await;
        let body = body.ok().and_then(Result::ok).unwrap_or_default();
        let lower = body.to_ascii_lowercase();
        let says = |words: &str| memchr::memmem::find(&lower, words.as_bytes()).is_some();
        Err(Self::Status {
            status: head.status,
            error: error_in(&body),
            names_session: says("session") || says("not initialized"),
        })
    }

    /// The failure for which a message stands that came in place of an answer.
    pub(super) fn in_place_of_answer(message: &[u8]) -> Self {
        match error_in(message) {
            None => Self::NoMessage,
            error => Self::Status {
                status: StatusCode::OK,
                error,
                names_session: false,
            },
        }
    }

    /// Returns true if the server does not know the session of a request any more. Many servers answer that
    /// with 400 in place of 404.
    pub(super) fn is_session_lost(&self) -> bool {
        let Self::Status {
            status,
            names_session,
            ..
        } = self
        else {
            return false;
        };
        match *status {
            StatusCode::NOT_FOUND => true,
            StatusCode::BAD_REQUEST | StatusCode::GONE => *names_session,
            _ => false,
        }
    }

    /// Returns true if another try may succeed.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::BrokeOff => true,
            Self::Status { status, .. } => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            _ => false,
        }
    }

    /// An answer to the request that `meaning` is of. `None` if it is not a request.
    pub(crate) fn answer(&self, meaning: &Meaning, server: &str) -> Option<String> {
        let id = meaning.request_id()?;
        let message = format!("offcut: {server}: {self}");
        let mut own = json!({"code": INTERNAL_ERROR, "message": message});
        if let Self::Status { status, error, .. } = self {
            if let Some(error) = error {
                return Some(error_answer(Some(id), error));
            }
            own["data"] = json!({"status": status.as_u16()});
        }
        Some(error_answer(Some(id), own))
    }
}

/// The error object of JSON-RPC in the body of an answer that is not a success.
fn error_in(body: &[u8]) -> Option<String> {
    let json = parse(body)?;
    // Some servers leave out the id of a message that they have not read.
    let error = Node::root(&json).get("error")?;
    let is_one = error.has("code") && error.has("message") && json.is_plain();
    is_one.then(|| error.json().to_string())
}

/// The advice that goes with a status.
fn advice(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            "; it wants credentials: start offcut with --header 'Authorization: Bearer …' or --bearer-token-env-var NAME"
        }
        _ => "",
    }
}
