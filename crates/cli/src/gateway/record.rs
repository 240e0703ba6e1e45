//! The figures of one request.

use crate::gateway::watch::PromptMiss;

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
    /// The request's body as it came.
    pub before: Size,
    /// The body as it went on.
    pub after: Size,
    /// The reason for which the provider's cache held less of it than of the request before.
    pub(crate) miss: Option<PromptMiss>,
}

/// Bytes of a request's body.
///
/// A provider's cache holds what the previous request of the conversation began with: model, tools,
/// instructions and messages, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Size {
    /// Bytes that the previous request of the conversation had too.
    pub cached: u64,
    /// All other bytes.
    pub fresh: u64,
}

impl std::ops::SubAssign for Size {
    fn sub_assign(&mut self, less: Self) {
        self.cached = self.cached.saturating_sub(less.cached);
        self.fresh = self.fresh.saturating_sub(less.fresh);
    }
}

impl Size {
    pub(crate) fn new(cached: u64, fresh: u64) -> Self {
        Self { cached, fresh }
    }

    /// The length of the body.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.cached + self.fresh
    }
}

impl std::ops::AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        self.cached += other.cached;
        self.fresh += other.fresh;
    }
}
