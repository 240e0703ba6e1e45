//! The outcome of a request with a conversation, as the reply's header, the metrics and the log name
//! it.

use http::{HeaderValue, Response};

use crate::gateway::body::Body;

/// The header of a reply that says what was done to its request.
const HEADER: &str = "x-offcut";

/// Says on a reply what was done to its request.
pub(crate) fn marked(mut reply: Response<Body>, outcome: Outcome) -> Response<Body> {
    let name = outcome.name();
    let said = outcome.reason().and_then(|reason| {
        let text = format!("{name}; reason={}", reason.name());
        HeaderValue::from_str(&text).ok()
    });
    let said = said.unwrap_or(HeaderValue::from_static(name));
    reply.headers_mut().insert(HEADER, said);
    reply
}

/// The outcome of a request with a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was read, and nothing had to be replaced.
    #[default]
    Unchanged,
    /// Some of it was replaced, and the rest stayed for this reason, if there is one.
    Reduced(Option<PassReason>),
    /// The provider refused it as too long, and took it with all old results cleared.
    Recovered,
    /// It passed unchanged although it might have been reduced.
    Passed(PassReason),
    /// It was answered with 503 instead, as `on_failure` says.
    Refused(PassReason),
}

rows! {
    /// Reason for passing a request, or a part of it, unchanged: its name in the header, in metrics and in logs, whether
    /// something has gone wrong here, and the reason in words.
    PassReason: (&'static str, bool, &'static str) {
        TooLong => ("too-long", true,
            "the body is over max_body, or would take too much memory"),
        Encoding => ("encoding", true,
            "the body can't be decoded"),
        NotUnderstood => ("not-understood", true,
            "the body is not what its path says"),
        Store => ("store", true,
            "a store failed"),
        TooSlow => ("too-slow", true,
            "reducing took longer than reduce_seconds"),
        Bug => ("bug", true,
            "this program has a bug"),
        Signed => ("signed", false,
            "a header has a digest or a signature of the body"),
        NoReader => ("no-reader", false,
            "the model has no tool to read stored content with"),
        NoTenant => ("no-tenant", false,
            "nothing tells whose request it is"),
        Refused => ("refused", false,
            "the provider refused the changed request and got the original"),
        Untouched => ("untouched", false,
            "the provider has refused this conversation's changes before"),
        HeldOut => ("held-out", false,
            "a share of conversations is left alone for comparison"),
    }
}

impl PassReason {
    /// The name in the header, in metrics and in logs.
    pub(crate) fn name(self) -> &'static str {
        self.row().0
    }

    /// Returns true if something has gone wrong here, and false if the request is simply not one to be reduced.
    pub(crate) fn is_failure(self) -> bool {
        self.row().1
    }

    /// The reason in words.
    pub(crate) fn meaning(self) -> &'static str {
        self.row().2
    }
}

impl Outcome {
    /// The outcome of reducing, with a store that may have failed.
    pub(crate) fn of(is_changed: bool, has_store_failed: bool) -> Self {
        let reason = has_store_failed.then_some(PassReason::Store);
        match reason {
            _ if is_changed => Self::Reduced(reason),
            Some(reason) => Self::Passed(reason),
            None => Self::Unchanged,
        }
    }

    /// The outcome's name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Reduced(_) => "reduced",
            Self::Recovered => "recovered",
            Self::Passed(_) => "passed",
            Self::Refused(_) => "refused",
        }
    }

    /// The reason for what was not replaced.
    pub(crate) fn reason(self) -> Option<PassReason> {
        match self {
            Self::Unchanged | Self::Recovered => None,
            Self::Reduced(reason) => reason,
            Self::Passed(reason) | Self::Refused(reason) => Some(reason),
        }
    }
}
