//! Errors of object stores as errors for the caller, with advice and without secrets.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use object_store::Error;
#[cfg(feature = "http")]
use object_store::client::{HttpError, HttpErrorKind};
use offcut::backend::{BackendError, ErrorKind};

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
    /// No answer in time; the outcome is unknown.
    TooSlow,
    /// The connection or the store failed, or the answer is malformed; the outcome is unknown.
    Unreachable,
    /// The spool file can't be read.
    Spool,
    /// Too long for one object.
    TooLong,
    NoRuntime,
    Other,
}

impl Kind {
    /// Returns whether the same request may succeed a moment later.
    pub(crate) fn is_passing(self) -> bool {
        matches!(self, Self::TooSlow | Self::Unreachable)
    }

    fn told(self) -> ErrorKind {
        match self {
            Self::NotFound => ErrorKind::NotFound,
            Self::NoCredentials | Self::Denied => ErrorKind::Denied,
            Self::Full | Self::TooLong => ErrorKind::Full,
            Self::Exists => ErrorKind::Unavailable,
            kind if kind.is_passing() => ErrorKind::Unavailable,
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
            Self::TooSlow => {
                "there was no answer in time; try again, or raise the store's `timeout`"
            }
            Self::Unreachable => {
                "the store can't be reached or fails; try again later, or check the endpoint and the network"
            }
            Self::Spool => "the spooled bytes can't be read back; check the spool's disk",
            Self::TooLong => "the content is too long to upload; store at most 48 GiB",
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
        if is_about_credentials(&text) {
            return Self::new(
                Kind::NoCredentials,
                "the machine's metadata service returned none",
            );
        }
        #[cfg(feature = "http")]
        if let Some(error) = find::<HttpError>(&error) {
            return Self::new(of_http(error), innermost(error));
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
        if let (Error::Generic { .. }, Some(error)) = (&error, find::<io::Error>(&error)) {
            return Self::new(of_io(error), error.to_string());
        }
        let (kind, cause) = match error {
            Error::NotFound { .. } => (Kind::NotFound, "not found"),
            Error::AlreadyExists { .. }
            | Error::Precondition { .. }
            | Error::NotModified { .. } => (Kind::Exists, "already exists"),
            Error::PermissionDenied { .. } => (Kind::Denied, "permission denied"),
            Error::Unauthenticated { .. } => (Kind::Denied, "not authenticated"),
            Error::NotImplemented { .. } | Error::NotSupported { .. } => {
                (Kind::Overwrites, "not implemented")
            }
            Error::JoinError { .. } => (Kind::Unreachable, "a task of the store ended early"),
            // Stores in memory and in files report a range past the end like this.
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

#[cfg(feature = "http")]
fn of_http(error: &HttpError) -> Kind {
    match error.kind() {
        HttpErrorKind::Timeout => Kind::TooSlow,
        _ => Kind::Unreachable,
    }
}

fn of_io(error: &io::Error) -> Kind {
    match error.kind() {
        // Nothing can exist below a file.
        io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => Kind::NotFound,
        io::ErrorKind::AlreadyExists => Kind::Exists,
        _ => Kind::Other,
    }
}

/// The addresses from which machines and containers get their credentials. They are used for
/// nothing else.
fn is_about_credentials(text: &str) -> bool {
    [
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "metadata.google.internal",
    ]
    .iter()
    .any(|address| text.contains(&format!("http://{address}")))
}

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

/// Returns the first error of type `E` in `error` and its chain of causes.
fn find<E: StdError + 'static>(error: &Error) -> Option<&E> {
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// Returns the innermost cause: "Connection refused" rather than "error sending request". It names
/// no URL.
#[cfg(feature = "http")]
fn innermost(error: &HttpError) -> String {
    let mut error: &dyn StdError = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests;
