//! Sums of requests.

use serde_json::{Value, json};

use super::record::RequestRecord;
use super::size::Size;

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
    pub(super) fn add(&mut self, record: &RequestRecord) {
        let [cut, cleared] = record.counts;
        self.calls += 1;
        self.would += record.before;
        self.sent += record.after;
        self.cut += cut;
        self.cleared += cleared;
        self.reads += record.reads;
        self.passed += u64::from(record.reason.is_some());
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
