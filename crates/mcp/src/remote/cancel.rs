//! The end of a request before its answer.

use std::sync::atomic::AtomicBool;

use tokio::sync::Notify;

/// The end of a request whose client no longer waits.
#[derive(Debug, Default)]
pub(super) struct Cancel {
    /// Ends the exchange at once, between two messages of the server's.
    pub(super) now: Notify,
    /// True if a stream that breaks need not be resumed.
    pub(super) is_over: AtomicBool,
}
