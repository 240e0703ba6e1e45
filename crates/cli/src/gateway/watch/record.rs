//! The figures of one request.

use super::size::Size;
use crate::gateway::outcome::PassReason;

/// The figures of a request that went on to its provider, or of a call of the plug. No content.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestRecord {
    /// The upstream's name, or `plug` and the name of the tenant.
    pub upstream: String,
    /// The name of the conversation, which tells nothing of its content; `None` if the request has
    /// none.
    pub conversation: Option<String>,
    /// The model that was asked, and the program that asked, by its `user-agent`; `unknown` if the request does not
    /// say.
    pub model: String,
    pub client: String,
    /// The outcome: `reduced`, `recovered`, `unchanged`, or the reason for which the request passed open.
    pub outcome: &'static str,
    /// Number of results that were replaced for the first time.
    pub replaced: u64,
    /// The request's body as it came; nothing if it only tells what was read of stored content, since nobody would have
    /// sent it otherwise.
    pub before: Size,
    /// The body as it went on.
    pub after: Size,
    /// The same number, apart for results cut and cleared.
    pub(super) counts: [u64; 2],
    /// Number of reads of stored content since the request before.
    pub(super) reads: u64,
    /// The reason for what was not replaced.
    pub(super) reason: Option<PassReason>,
}
