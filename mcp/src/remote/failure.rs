//! The reasons why a request got no answer from the server.

use std::fmt;

use http::StatusCode;
use http::header::WWW_AUTHENTICATE;
use hyper_util::client::legacy::Error;
use offcut::ErrorChain;
use serde_json::{Value, json};

use super::meaning::Meaning;

/// JSON-RPC's code for errors inside a program.
pub(crate) const INTERNAL_ERROR: i32 = -32603;

/// A request that failed, in words that hold no secret.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// No connection, or it ended before the answer's head.
    Unreachable(String),
    /// A status that is not a success.
    Status {
        status: StatusCode,
        /// The answer's `WWW-Authenticate`.
        challenge: Option<String>,
    },
    /// The server sends its clients elsewhere.
    Redirected,
    /// The answer is compressed though nobody asked for that.
    Compressed,
    /// The answer is neither JSON nor a stream of events.
    NoMessage,
    /// The answer broke off and could not be resumed.
    BrokeOff,
    /// The session has ended, and no new one could be started.
    NoSession(String),
}

impl Failure {
    pub(super) fn unreachable(error: &Error) -> Self {
        Self::Unreachable(ErrorChain(error).to_string())
    }

    /// The failure that the head of an answer stands for.
    pub(super) fn of<B>(response: &http::Response<B>) -> Self {
        let challenges = response.headers().get_all(WWW_AUTHENTICATE).iter();
        let challenges: Vec<&str> = challenges.filter_map(|one| one.to_str().ok()).collect();
        Self::Status {
            status: response.status(),
            challenge: (!challenges.is_empty()).then(|| challenges.join(", ")),
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
    pub(super) fn answer(&self, meaning: &Meaning, server: &str) -> Option<String> {
        let id = meaning.request_id()?;
        let message = format!("offcut: {server}: {self}");
        let mut error = json!({"code": INTERNAL_ERROR, "message": message});
        if let Self::Status { status, challenge } = self {
            error["data"] = json!({"status": status.as_u16()});
            if let Some(challenge) = challenge {
                error["data"]["wwwAuthenticate"] = Value::from(challenge.as_str());
            }
        }
        Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(error) => write!(f, "the server can't be reached: {error}"),
            Self::Status { status, .. } => {
                write!(f, "the server answered {status}")?;
                match status.as_u16() {
                    401 | 403 => f.write_str(
                        "; it wants credentials: start offcut with --header 'Authorization: Bearer …' or --bearer-token-env-var NAME",
                    ),
                    _ => Ok(()),
                }
            }
            Self::Redirected => {
                f.write_str("the server sends its clients elsewhere; give the new URL to offcut")
            }
            Self::Compressed => {
                f.write_str("the server answered with compressed bytes, which nobody asked for")
            }
            Self::NoMessage => {
                f.write_str("the server answered with neither JSON nor a stream of events")
            }
            Self::BrokeOff => f.write_str("the server's answer broke off"),
            Self::NoSession(error) => write!(
                f,
                "the session has ended, and a new one could not be started: {error}"
            ),
        }
    }
}
