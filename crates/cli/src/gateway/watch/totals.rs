//! Sums of requests.

use serde_json::{Value, json};

use crate::gateway::record::Size;

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
    /// Adds the sizes of a request, and the results cut and cleared in it. If it was `refused` before, in another form,
    /// it is the same call, and only this form was sent.
    pub(super) fn add(
        &mut self,
        [would, sent]: [Size; 2],
        refused: Option<Size>,
        [cut, cleared]: [u64; 2],
    ) {
        self.calls += u64::from(refused.is_none());
        self.would += would;
        self.sent += sent;
        self.sent -= refused.unwrap_or_default();
        self.cut += cut;
        self.cleared += cleared;
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
