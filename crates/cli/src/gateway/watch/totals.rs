//! Sizes of requests, and their sums.

use serde_json::{Value, json};

use super::state::RequestRecord;

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

/// The sum of some requests.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) calls: u64,
    /// The bytes that would have been sent.
    pub(super) would: Size,
    /// The bytes that were sent.
    pub(super) sent: Size,
    pub(super) cut: u64,
    pub(super) cleared: u64,
    /// Number of reads of stored content.
    pub(super) reads: u64,
    /// Number of requests that passed open.
    pub(super) passed: u64,
}

impl Totals {
    /// Adds a request. If it was `refused` before, in another form, it is the same call, and only this form was sent:
    /// what that form had sent, cut and cleared is taken back.
    pub(super) fn add(&mut self, record: &RequestRecord, refused: Option<&RequestRecord>) {
        let [cut, cleared] = record.counts;
        self.sent += record.after;
        self.cut += cut;
        self.cleared += cleared;
        self.reads += record.reads;
        self.passed += u64::from(record.reason.is_some());
        if let Some(refused) = refused {
            let [cut, cleared] = refused.counts;
            self.sent -= refused.after;
            self.cut = self.cut.saturating_sub(cut);
            self.cleared = self.cleared.saturating_sub(cleared);
        } else {
            self.calls += 1;
            self.would += record.before;
        }
    }

    pub(super) fn row(&self) -> Value {
        json!({
            "calls": self.calls,
            "would": self.would.bytes(),
            "would_fresh": self.would.fresh,
            "sent": self.sent.bytes(),
            "sent_fresh": self.sent.fresh,
            "cut": self.cut,
            "cleared": self.cleared,
            "reads": self.reads,
        })
    }
}
