//! Requests that passed through a server.

use serde::{Deserialize, Serialize};

use super::{MAX_NAME, Row, bounded};
use crate::agents::log;

/// A request that passed through `offcut serve` or `offcut wrap`. All lengths are in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Served {
    /// Seconds since 1970.
    pub time: u64,
    /// The upstream's name.
    pub upstream: String,
    /// The model that was asked, and the program that asked.
    #[serde(default)]
    pub model: String,
    #[serde(default)]
    pub client: String,
    /// The conversation's name; empty if the request had none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub conversation: String,
    /// The outcome: `reduced`, `recovered`, `unchanged`, or the reason for which the request passed open.
    pub outcome: String,
    /// Number of results that were replaced for the first time.
    #[serde(default)]
    pub replaced: u64,
    /// Length of the request as it came.
    pub before: u64,
    /// The bytes of it that a provider's cache would not have held.
    pub before_fresh: u64,
    /// Length of the request as it was sent.
    pub after: u64,
    /// The bytes of it that a provider's cache did not hold.
    pub after_fresh: u64,
}

impl Served {
    /// The outcome of a request that went on with something replaced.
    pub const REDUCED: &str = "reduced";
    /// The outcome of a request that the provider refused as too long and took with old results cleared.
    pub const RECOVERED: &str = "recovered";
    /// The outcome of a request in which nothing had to be replaced.
    pub const UNCHANGED: &str = "unchanged";

    /// Returns true if the request passed open: its outcome is the reason.
    #[must_use]
    pub fn has_passed_open(&self) -> bool {
        ![Self::REDUCED, Self::RECOVERED, Self::UNCHANGED].contains(&&*self.outcome)
    }

    /// A request of the present time that nothing is known of yet.
    #[must_use]
    pub fn new(upstream: &str, conversation: &str, outcome: &str) -> Self {
        Self {
            time: log::now(),
            upstream: bounded(upstream),
            model: String::new(),
            client: String::new(),
            conversation: end(conversation),
            outcome: bounded(outcome),
            replaced: 0,
            before: 0,
            before_fresh: 0,
            after: 0,
            after_fresh: 0,
        }
    }
}

/// The end of the prefix of a conversation, which names it, without what is too long.
fn end(conversation: &str) -> String {
    let start = conversation.len().saturating_sub(MAX_NAME);
    conversation[conversation.ceil_char_boundary(start)..].to_owned()
}

impl Row for Served {
    fn time(&self) -> u64 {
        self.time
    }

    fn conversation(&self) -> Option<(&str, &str)> {
        None
    }
}
