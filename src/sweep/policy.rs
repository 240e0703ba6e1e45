//! The policy of a sweep.

use std::time::Duration;

use serde::{Deserialize, Serialize};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// A shorter grace would be over before a slow store, or an agent, has finished one step.
pub(super) const LEAST_GRACE: Duration = Duration::from_secs(60 * 60);

/// Rules for what a [sweep](crate::sweep) removes: plain data, which can come from a file.
///
/// ```
/// use offcut::sweep::SweepPolicy;
/// use std::time::Duration;
///
/// let policy = SweepPolicy::new().max_age(Duration::from_secs(30 * 86_400)).quota_bytes(10 << 30);
/// assert!(policy.dry_run, "until `apply`");
/// # let json = serde_json::to_string(&policy)?;
/// # assert_eq!(serde_json::from_str::<SweepPolicy>(&json)?, policy);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Default
///
/// - `max_age` and `quota_bytes`: none, `unreferenced`: false. With these three, nothing new is
///   swept; what was swept before is removed when its grace is over.
/// - `grace`: 24 hours
/// - `dry_run`: true
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SweepPolicy {
    /// Content that was stored longer ago than this goes; `max_age_seconds` in files.
    #[serde(rename = "max_age_seconds", with = "seconds")]
    pub max_age: Option<Duration>,
    /// The oldest content goes until what is not live takes at most this many bytes.
    pub quota_bytes: Option<u64>,
    /// All content that is not live goes.
    pub unreferenced: bool,
    /// Time for which new content always stays, and for which swept content can be brought back;
    /// `grace_seconds` in files. It must be longer than an agent ever takes between storing a
    /// result and writing its transcript to where `live` is gathered from.
    #[serde(rename = "grace_seconds", with = "whole_seconds")]
    pub grace: Duration,
    /// True if nothing is to be changed; the report then says what would be.
    pub dry_run: bool,
}

impl Default for SweepPolicy {
    fn default() -> Self {
        Self {
            max_age: None,
            quota_bytes: None,
            unreferenced: false,
            grace: DAY,
            dry_run: true,
        }
    }
}

impl SweepPolicy {
    /// The defaults: a dry run that sweeps nothing new.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`max_age`](Self::max_age).
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        self
    }

    /// Sets [`quota_bytes`](Self::quota_bytes).
    #[must_use]
    pub fn quota_bytes(mut self, bytes: u64) -> Self {
        self.quota_bytes = Some(bytes);
        self
    }

    /// Sets [`unreferenced`](Self::unreferenced).
    #[must_use]
    pub fn unreferenced(mut self) -> Self {
        self.unreferenced = true;
        self
    }

    /// Sets [`grace`](Self::grace), which must be at least an hour.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
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

mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        duration.map(|duration| duration.as_secs()).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Duration::from_secs))
    }
}
