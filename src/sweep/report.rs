//! The report of a sweep, and its errors.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::ErrorChain;
use crate::backend::{BackendError, Location};
use serde::{Serialize, Serializer};

/// Everything that a sweep did, or in a dry run would do.
///
/// `live`, `young`, `kept` and `moved` partition the content that was in place when the sweep
/// began; content that could not be moved is in `kept` and in `failed`. `waiting` and `removed` are
/// content that had been swept before. What is stored after a sweep is the sum of all but `removed`
/// and `brought_back`. Of that, `young` and `kept` are at most the quota, unless all of it is
/// young.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SweepReport {
    /// True if nothing was changed.
    pub dry_run: bool,
    /// Content that a live conversation names, without the swept copies of what was brought back.
    pub live: Tally,
    /// Content that nothing names and that was stored within the grace.
    pub young: Tally,
    /// Content that nothing names and that the policy keeps.
    pub kept: Tally,
    /// Content that was moved away. Reading brings it back.
    pub moved: Tally,
    /// Content that had been moved away, is live, and was copied back. It is part of `live` too.
    pub brought_back: Tally,
    /// Content that had been moved away and stays there for now, and unnamed content that was
    /// stored or brought back under the same keys.
    pub waiting: Tally,
    /// Content that had been moved away and was removed now.
    pub removed: Tally,
    /// Number of leftovers of interrupted processes that were removed.
    pub tidied: u64,
    /// Earliest time at which a later sweep can remove what this one has moved; until then, moving
    /// has freed no space. `None` if nothing was moved. Serialized in seconds since 1970.
    #[serde(serialize_with = "seconds")]
    pub moved_free_at: Option<SystemTime>,
    /// Earliest time at which a later sweep can remove any of the content that earlier sweeps have
    /// moved and that still waits.
    #[serde(serialize_with = "seconds")]
    pub waiting_free_at: Option<SystemTime>,
    /// True if the lease of a store could not be written, such as on a full disk. In that store,
    /// only content that had waited for its grace was removed; `failed` says where and why.
    pub without_lease: bool,
    /// True if the sweep stopped early because it had run for half the grace. The next one
    /// continues.
    pub stopped: bool,
    /// Steps that failed. The rest was done; the next sweep tries these again.
    pub failed: Vec<SweepFailure>,
}

impl SweepReport {
    pub(super) fn trace(&self) {
        let Self {
            dry_run,
            live,
            young,
            kept,
            moved,
            brought_back,
            waiting,
            removed,
            tidied,
            moved_free_at: _,
            waiting_free_at: _,
            without_lease,
            stopped,
            failed,
        } = self;
        tracing::info!(
            dry_run,
            live = live.count,
            young = young.count,
            kept = kept.count,
            moved = moved.count,
            moved_bytes = moved.bytes,
            brought_back = brought_back.count,
            waiting = waiting.count,
            removed = removed.count,
            removed_bytes = removed.bytes,
            tidied,
            without_lease,
            stopped,
            failed = failed.len(),
            "sweep"
        );
    }
}

/// A number of contents and their total size. Both saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Number of contents.
    pub count: u64,
    /// Their total size in bytes.
    pub bytes: u64,
}

impl Tally {
    pub(super) fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

fn seconds<S: Serializer>(time: &Option<SystemTime>, to: S) -> Result<S::Ok, S::Error> {
    time.map(|time| {
        time.duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs())
    })
    .serialize(to)
}

/// A step that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SweepFailure {
    /// Location of the content.
    pub location: Location,
    /// The step that failed, and the store's error.
    pub error: String,
}

/// Reason why nothing was swept.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// The configuration has no store that is ever swept.
    #[error(
        "no store can be swept: set a backend; a store of your own must implement `Backend::remove`"
    )]
    NoStore,
    /// The grace is too short.
    #[error("a grace of {} s is too short to be safe: use at least {} s", grace.as_secs(), at_least.as_secs())]
    Grace {
        /// The grace in the policy.
        grace: Duration,
        /// The shortest grace that is allowed.
        at_least: Duration,
    },
    /// The store's locations do not end in the keys that they name, so transcripts don't tell what
    /// is live.
    #[error(
        "{store} can't be swept: its locations do not end in the keys that they name, so transcripts don't tell what is live; \
         return false from `Backend::can_be_swept`"
    )]
    Locations {
        /// A location in the store.
        store: Location,
    },
    /// Another sweep of the store is running.
    #[error(
        "another sweep is running in this store: {}, for {} s; wait until it ends. If it has died, try again {} s after \
         its start, or remove {lease} first", by.escape_debug(), running_for.as_secs(), grace.as_secs()
    )]
    Held {
        /// Location of its lease.
        lease: Location,
        /// Name of the other sweep.
        by: String,
        /// Its start, by its own clock.
        since: SystemTime,
        /// Time since its start, by this sweep's clock.
        running_for: Duration,
        /// Time after which it counts as dead.
        grace: Duration,
    },
    /// The store could not list its content, read live content that may name more, or tell whether
    /// another sweep is running.
    #[error(
        "nothing was swept: the store failed, so live content could not be determined; try again later"
    )]
    Store(#[source] BackendError),
}

impl fmt::Debug for SweepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&ErrorChain(self), f)
    }
}

impl From<BackendError> for SweepError {
    fn from(error: BackendError) -> Self {
        Self::Store(error)
    }
}
