//! The report of a sweep, and its errors.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::backend::{BackendError, Location, debug_as_chain};
use serde::Serialize;

/// Everything that a sweep did, or in a dry run would do. What is stored afterwards is the sum of
/// `live` and `kept`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SweepReport {
    /// True if nothing was changed.
    pub dry_run: bool,
    /// Conversations that a transcript or live content names.
    pub live: Tally,
    /// Conversations that nothing names and that stay, because they were in use too recently or could
    /// not be removed.
    pub kept: Tally,
    /// Conversations that were removed. One that was removed in part counts here and in `kept`.
    pub removed: Tally,
    /// Number of leftovers of interrupted processes that were removed.
    pub tidied: u64,
    /// Failures: at most one removal for each conversation, and leftovers. The next sweep tries again.
    pub failed: Vec<SweepFailure>,
}

/// An amount of what is stored. Sums of bytes saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Number of conversations.
    pub conversations: u64,
    /// Number of results, records and notes in them.
    pub count: u64,
    /// Their total size in bytes.
    pub bytes: u64,
}

impl Tally {
    pub(super) fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.conversations += other.conversations;
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Something that could not be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SweepFailure {
    /// Its location.
    pub location: Location,
    /// The store's error.
    pub error: String,
}

impl SweepFailure {
    pub(super) fn new(location: Location, error: &BackendError) -> Self {
        let error = error.to_string();
        Self { location, error }
    }
}

/// Reason why nothing was swept, or why nothing should be.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// A file that may name live content could not be read, so what is live is unknown.
    // File names may hold line feeds and escapes, which must not look like lines of ours.
    #[error(
        "can't tell what is live, so nothing should be swept: {} can't be read",
        path.to_string_lossy().escape_debug()
    )]
    Unread {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The configuration has no store that can be swept.
    #[error(
        "no store can be swept: set a backend; a store of your own must implement `Backend::remove`"
    )]
    NoStore,
    /// The idle time is too short.
    #[error("an idle time of {} s is too short to be safe: use at least {} s", idle.as_secs(), at_least.as_secs())]
    Idle {
        /// The idle time in the policy.
        idle: Duration,
        /// The shortest that is allowed.
        at_least: Duration,
    },
    /// The store's locations do not end in the keys that they name, so transcripts don't tell what
    /// is live.
    #[error(
        "{store} can't be swept: its locations do not end in the keys that they name, so transcripts don't tell what is live; \
         make them end so, or leave out `Backend::remove`"
    )]
    Locations {
        /// A location in the store.
        store: Location,
    },
    /// The store could not list its content, or read live content that may name more.
    #[error(
        "nothing was swept: the store failed, so live content could not be determined; try again later"
    )]
    Store(#[source] BackendError),
}

debug_as_chain!(SweepError);

impl From<BackendError> for SweepError {
    fn from(error: BackendError) -> Self {
        Self::Store(error)
    }
}
