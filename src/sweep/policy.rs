//! The policy of a sweep.

use std::time::Duration;

use crate::backend::REUSED_FOR;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Rules for what a [sweep](crate::sweep) removes.
///
/// ```
/// use offcut::sweep::SweepPolicy;
/// use std::time::Duration;
///
/// let policy = SweepPolicy::new().idle(Duration::from_secs(7 * 86_400)).quota_bytes(10 << 30);
/// assert!(policy.dry_run, "until `apply`");
/// ```
///
/// # Default
///
/// - `idle`: 30 days
/// - `quota_bytes`: none
/// - `dry_run`: true
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SweepPolicy {
    /// Conversations go in which nothing was stored or read for longer than this, at least
    /// [`LEAST_IDLE`](Self::LEAST_IDLE).
    pub idle: Duration,
    /// The conversations that have been idle longest go until those that nothing names take at most
    /// this many bytes. None goes that has been idle for less than [`LEAST_IDLE`](Self::LEAST_IDLE).
    pub quota_bytes: Option<u64>,
    /// True if nothing is to be changed; the report then says what would be.
    pub dry_run: bool,
}

impl Default for SweepPolicy {
    fn default() -> Self {
        Self {
            idle: 30 * DAY,
            quota_bytes: None,
            dry_run: true,
        }
    }
}

impl SweepPolicy {
    /// The shortest idle time: 48 hours. A hint to what a sweep removes was made in the first 24 of
    /// them, and the transcript that names it has to be written in the other 24.
    pub const LEAST_IDLE: Duration = Duration::from_secs(2 * REUSED_FOR.as_secs());

    /// The defaults: a dry run.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`idle`](Self::idle).
    #[must_use]
    pub fn idle(mut self, time: Duration) -> Self {
        self.idle = time;
        self
    }

    /// Sets [`quota_bytes`](Self::quota_bytes).
    #[must_use]
    pub fn quota_bytes(mut self, bytes: u64) -> Self {
        self.quota_bytes = Some(bytes);
        self
    }

    /// Turns [`dry_run`](Self::dry_run) off.
    #[must_use]
    pub fn apply(mut self) -> Self {
        self.dry_run = false;
        self
    }
}
