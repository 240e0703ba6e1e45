//! Counts the warnings that the library logs. Each failure in a report must have one, and so must
//! each failure that a second attempt repaired.

use std::sync::atomic::{AtomicU64, Ordering};

use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Warnings about decisions, and all others.
static WARNINGS: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// A subscriber that counts warnings and keeps nothing.
struct Counter;

impl Subscriber for Counter {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() == &Level::WARN && metadata.target().starts_with("offcut::")
    }

    fn event(&self, event: &Event<'_>) {
        let is_other = event.metadata().target() != "offcut::report";
        WARNINGS[usize::from(is_other)].fetch_add(1, Ordering::Relaxed);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Starts counting.
pub(crate) fn watch() -> Result<(), tracing::subscriber::SetGlobalDefaultError> {
    tracing::subscriber::set_global_default(Counter)
}

/// Number of warnings about decisions: something failed.
pub(crate) fn failures() -> u64 {
    WARNINGS[0].load(Ordering::Relaxed)
}

/// Number of other warnings: something failed and was tried again.
pub(crate) fn attempts() -> u64 {
    WARNINGS[1].load(Ordering::Relaxed)
}
