//! Errors of object stores as errors for the caller, with advice and without secrets.

use std::fmt;

use object_store::Error;
#[cfg(feature = "http")]
use object_store::client::HttpError;
use offcut::backend::{BackendError, ErrorKind};

/// A store's URL, as errors name it.
#[cfg(feature = "http")]
pub(crate) const URL: &str = "the store's URL";

/// The error of a mistake in a store's URL, in its options or in the builder. It never contains a value, since any value may
/// be secret.
pub(crate) fn mistake(what: &str, must: impl fmt::Display) -> BackendError {
    BackendError::new(ErrorKind::Other, format!("{what} must {must}"))
}

/// The error of settings that `object_store` rejects.
#[cfg(feature = "http")]
pub(crate) fn refused(error: Error) -> BackendError {
    let why = "the store's settings are incomplete or contradict each other: check its account, its credentials and its endpoint";
    BackendError::new(ErrorKind::Other, why).with_source(Trouble::from(error))
}

/// An error of an object store, reduced to the facts that this crate needs.
///
/// Of the original it keeps a status, a code or a system error alone. The answer to a wrongly signed
/// request holds the request's session token, and the URL of a request to Azure may hold its signature.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub(crate) struct Trouble {
    pub(crate) kind: Kind,
    cause: String,
}

/// The kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing has that name.
    NotFound,
    /// The name is taken, or another request is about to take it.
    Exists,
    /// The range begins past the end.
    Range,
    NoBucket,
    NoCredentials,
    /// The credentials are wrong, or allow too little.
    Denied,
    WrongRegion,
    /// The store can't create without overwriting.
    Overwrites,
    Full,
    /// No answer in time, the connection or the store failed, or the answer is malformed; the outcome is unknown.
    Unreachable,
    /// The spool file can't be read.
    Spool,
    NoRuntime,
    Other,
}

impl Kind {
    fn told(self) -> ErrorKind {
        match self {
            Self::NotFound => ErrorKind::NotFound,
            Self::NoCredentials | Self::Denied => ErrorKind::Denied,
            Self::Full => ErrorKind::Full,
            Self::Exists | Self::Unreachable => ErrorKind::Unavailable,
            _ => ErrorKind::Other,
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::NotFound => "nothing is stored there",
            Self::Exists => "another call is storing there right now; try again",
            Self::NoBucket => "there is no such bucket; create it, or correct its name",
            Self::NoCredentials => {
                "there are no credentials; set those of the store in the environment, or give the machine a role"
            }
            Self::Denied => {
                "access denied; check the key, its secret and its expiry, and grant it get, put and list on the bucket"
            }
            Self::WrongRegion => {
                "the bucket is in another region; set `region` to the bucket's own"
            }
            Self::Overwrites => {
                "the store does not support create-only puts (`If-None-Match: *`); update it, or use another one"
            }
            Self::Full => "the store is full; free some space, or raise the quota",
            Self::Unreachable => {
                "the store can't be reached or fails; try again later, or check the endpoint, the network and the `timeout`"
            }
            Self::Spool => "the spooled bytes can't be read back; check the spool's disk",
            Self::NoRuntime => "an object store needs a tokio runtime; call it inside one",
            Self::Range | Self::Other => "the store rejected the request; check its settings",
        }
    }
}

impl Trouble {
    pub(crate) fn new(kind: Kind, cause: impl Into<String>) -> Self {
        let cause = cause.into();
        Self { kind, cause }
    }

    /// The runtime ended before a task of this crate.
    pub(crate) fn ended() -> Self {
        Self::new(Kind::Unreachable, "the runtime ended")
    }

    /// Creates the trouble for a failed read of the spool.
    pub(crate) fn of_spool(error: &BackendError) -> Self {
        Self::new(Kind::Spool, error.to_string())
    }

    /// Creates the caller's error. `doing` names the action and the object: `storing
    /// s3://bucket/trunc/call_1`.
    pub(crate) fn while_doing(self, doing: impl fmt::Display) -> BackendError {
        let advice = self.kind.advice();
        let kind = self.kind.told();
        BackendError::new(kind, format!("{doing} failed: {advice}")).with_source(self)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        if CREDENTIALS.iter().any(|address| text.contains(address)) {
            return Self::new(
                Kind::NoCredentials,
                "the machine's metadata service returned none",
            );
        }
        #[cfg(feature = "http")]
        if let Some(trouble) = of_http(&error) {
            return trouble;
        }
        if let Some((status, code)) = status_and_code(&text) {
            let kind = of_answer(status, code.as_deref());
            let cause = match code {
                Some(code) => format!("HTTP {status}, {code}"),
                None => format!("HTTP {status}"),
            };
            return Self::new(kind, cause);
        }
        if text.contains("redirect without LOCATION") {
            return Self::new(Kind::WrongRegion, "HTTP 301");
        }
        let (kind, cause) = match error {
            Error::NotFound { .. } => (Kind::NotFound, "not found"),
            Error::AlreadyExists { .. }
            | Error::Precondition { .. }
            | Error::NotModified { .. } => (Kind::Exists, "already exists"),
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
                (Kind::Denied, "permission denied")
            }
            Error::NotImplemented { .. } | Error::NotSupported { .. } => {
                (Kind::Overwrites, "not implemented")
            }
            Error::JoinError { .. } => (Kind::Unreachable, "a task of the store ended early"),
            // Stores in memory report a range past the end like this.
            Error::Generic { .. } => (Kind::Range, "an error of the store itself"),
            _ => (Kind::Other, "an error of the store itself"),
        };
        Self::new(kind, cause)
    }
}

/// Classifies an answer other than success.
fn of_answer(status: u16, code: Option<&str>) -> Kind {
    match (status, code.unwrap_or_default()) {
        (_, "NoSuchBucket" | "ContainerNotFound") => Kind::NoBucket,
        (
            _,
            "AuthorizationHeaderMalformed"
            | "PermanentRedirect"
            | "IllegalLocationConstraintException",
        ) => Kind::WrongRegion,
        (_, "QuotaExceeded" | "XMinioStorageFull" | "InsufficientStorage") | (507, _) => Kind::Full,
        (_, "InvalidRange") | (416, _) => Kind::Range,
        (_, "NotImplemented") | (501, _) => Kind::Overwrites,
        (_, "RequestTimeout" | "SlowDown" | "InternalError") | (408 | 429 | 500..=599, _) => {
            Kind::Unreachable
        }
        // Another attempt of the same request has completed or aborted it.
        (_, "NoSuchUpload") => Kind::Unreachable,
        (404, _) => Kind::NotFound,
        (304 | 409 | 412, _) => Kind::Exists,
        (
            _,
            "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired" | "InvalidAuthenticationInfo",
        )
        | (401 | 403, _) => Kind::Denied,
        (300..=399, _) => Kind::WrongRegion,
        _ => Kind::Other,
    }
}

/// The trouble of a request that got no answer. The innermost cause, "Connection refused" rather than "error sending
/// request", names no URL.
#[cfg(feature = "http")]
fn of_http(error: &Error) -> Option<Trouble> {
    let error: &(dyn std::error::Error + 'static) = error;
    let causes = || std::iter::successors(Some(error), |error| error.source());
    causes().find(|error| error.is::<HttpError>())?;
    Some(Trouble::new(
        Kind::Unreachable,
        causes().last()?.to_string(),
    ))
}

/// The beginnings of the addresses from which machines and containers get their credentials. They are used for nothing else.
const CREDENTIALS: [&str; 3] = [
    "http://169.254.169.254",
    "http://169.254.170.2",
    "http://metadata.google.internal",
];

/// Extracts the status and the code of an answer. The type that has them is private, so they are
/// parsed from its text, and text in any other form is dropped.
fn status_and_code(text: &str) -> Option<(u16, Option<String>)> {
    let after = |mark: &str| text.find(mark).and_then(|at| text.get(at + mark.len()..));
    let code = after("<Code>")
        .and_then(|rest| rest.split_once("</Code>"))
        .map(|(code, _)| code);
    let code = code
        .filter(|code| code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    let status = match after("status code: ") {
        Some(rest) => rest.get(..3)?.parse().ok()?,
        // A success that turned into a failure while it was answered.
        None => after("Server returned error response: ").map(|_| 500)?,
    };
    Some((status, code.map(str::to_owned)))
}

#[cfg(test)]
mod tests;
