//! Sizes of requests.

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
