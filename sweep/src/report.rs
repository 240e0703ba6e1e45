//! What a sweep did, and why it could not.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use offcut::backend::{BackendError, Location};
use serde::{Serialize, Serializer};

/// What a sweep did, or in a dry run would do.
///
/// `live`, `young`, `kept` and `moved` are what was there when it began, each in one of them: what
/// could not be moved is in `kept` and in `failed`. `waiting` and `removed` are what had been moved
/// before. What is stored after a sweep is the sum of all but `removed` and `brought_back`, and of
/// it `young` and `kept` are at most the quota, or all young.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SweepReport {
    /// Nothing was changed.
    pub dry_run: bool,
    /// What a live conversation names, the places that it was brought back from aside.
    pub live: Tally,
    /// What nobody names, and was stored within the grace.
    pub young: Tally,
    /// What nobody names and the policy lets stay.
    pub kept: Tally,
    /// What was moved away. Reading brings it back.
    pub moved: Tally,
    /// What was moved away before and is live: it is where it was again. It is part of `live` too.
    pub brought_back: Tally,
    /// What was moved away before and stays there for now; and what was stored or brought back
    /// beside it that nobody names.
    pub waiting: Tally,
    /// What was moved away before and is removed now.
    pub removed: Tally,
    /// How many leftovers of processes that ended in the middle were removed.
    pub tidied: u64,
    /// When a later sweep can remove what this one has moved, at the earliest; until then, moving
    /// has freed no space. `None` if nothing was moved. In seconds since 1970 where it is
    /// serialized.
    #[serde(serialize_with = "seconds")]
    pub moved_free_at: Option<SystemTime>,
    /// The same for the first of what was moved before and waits.
    #[serde(serialize_with = "seconds")]
    pub waiting_free_at: Option<SystemTime>,
    /// Whether the lease of a store could not be written, such as on a full disk. In that store,
    /// only what had waited for its grace was removed: `failed` says where, and why.
    pub without_lease: bool,
    /// Whether it stopped before its end, because it had run for half the grace. The next one goes
    /// on.
    pub stopped: bool,
    /// What could not be done. The rest was; the next sweep tries it again.
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

/// How many, and how large. What does not fit in a number is the largest one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// How many.
    pub count: u64,
    /// Their bytes.
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

/// What could not be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SweepFailure {
    /// To what it was to be done.
    pub location: Location,
    /// What was to be done, and what the store said.
    pub error: String,
}

/// Why nothing was swept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// The configuration has no store, or none that is ever swept.
    #[error(
        "there is no store that can be swept: set a backend; a store of your own needs `Backend::remove`"
    )]
    NoStore,
    /// The grace is too short.
    #[error("a grace of {} s is too short to be safe: use at least {} s", grace.as_secs(), at_least.as_secs())]
    Grace {
        /// What was asked for.
        grace: Duration,
        /// The least there is.
        at_least: Duration,
    },
    /// The store's locations do not end in the keys that they name, so nobody can tell what is
    /// live.
    #[error(
        "{store} can't be swept: its locations do not end in the keys that they name, so transcripts don't say what is live; \
         let `Backend::can_be_swept` be false"
    )]
    Locations {
        /// A location of it.
        store: Location,
    },
    /// Another sweep of the store is under way.
    #[error(
        "another sweep is under way in this store: {}, for {} s; wait for its end. If it has died, this one can begin {} s after \
         it did, or once you have removed {lease}", by.escape_debug(), running_for.as_secs(), grace.as_secs()
    )]
    Held {
        /// Where it says so.
        lease: Location,
        /// Who sweeps.
        by: String,
        /// Since when, by that one's clock.
        since: SystemTime,
        /// For how long, by this one's clock.
        running_for: Duration,
        /// After how long it counts as dead.
        grace: Duration,
    },
    /// The store could not be asked what it holds, or what something live names in turn, or whether
    /// another sweep is under way.
    #[error("nothing was swept: the store failed, and without it nobody knows what is live")]
    Store(#[source] BackendError),
}

impl From<BackendError> for SweepError {
    fn from(error: BackendError) -> Self {
        Self::Store(error)
    }
}
