//! The policy of a sweep.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::backend::REUSED_FOR;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Half of it is for hints to content that is not young any more, and half for these hints to get into
/// a transcript.
pub(super) const LEAST_IDLE: Duration = Duration::from_secs(2 * REUSED_FOR.as_secs());

/// Rules for what a [sweep](crate::sweep) removes: plain data, which can come from a file.
///
/// ```
/// use offcut::sweep::SweepPolicy;
/// use std::time::Duration;
///
/// let policy = SweepPolicy::new().idle(Duration::from_secs(7 * 86_400)).quota_bytes(10 << 30);
/// assert!(policy.dry_run, "until `apply`");
/// # let json = serde_json::to_string(&policy)?;
/// # assert_eq!(serde_json::from_str::<SweepPolicy>(&json)?, policy);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Default
///
/// - `idle`: 30 days
/// - `quota_bytes`: none
/// - `dry_run`: true
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SweepPolicy {
    /// Conversations go in which nothing was stored or read for longer than this, at least
    /// [`LEAST_IDLE`](Self::LEAST_IDLE); `idle_seconds` in files.
    #[serde(rename = "idle_seconds", with = "whole_seconds")]
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
    pub const LEAST_IDLE: Duration = LEAST_IDLE;

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

mod whole_seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(duration.as_secs())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_secs)
    }
}
