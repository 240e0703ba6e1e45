//! What a sweep takes away.

use std::time::Duration;

use serde::{Deserialize, Serialize};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// A shorter grace would be over before a slow store, or an agent, has done one step.
pub(super) const LEAST_GRACE: Duration = Duration::from_secs(60 * 60);

/// What a [sweep](crate::sweep) takes away: data, which can stand in a file.
///
/// ```
/// use offcut_sweep::SweepPolicy;
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
/// - `max_age`, `quota_bytes`: none
/// - `unreferenced`: false. With these three, nothing new is taken away; what was swept before is
///   removed when its grace is over.
/// - `grace`: 24 hours
/// - `dry_run`: true
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SweepPolicy {
    /// What was stored longer ago than this goes; `max_age_seconds` in files.
    #[serde(rename = "max_age_seconds", with = "seconds")]
    pub max_age: Option<Duration>,
    /// The oldest goes until what is not live takes at most so many bytes.
    pub quota_bytes: Option<u64>,
    /// Whatever is not live goes.
    pub unreferenced: bool,
    /// How long what is new stays in any case, and how long what was taken away can be brought
    /// back; `grace_seconds` in files. It has to be longer than an agent ever takes between storing
    /// a result and its transcript being where `live` is gathered from.
    #[serde(rename = "grace_seconds", with = "whole_seconds")]
    pub grace: Duration,
    /// Nothing is changed: the report says what would be.
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
    /// The defaults: a dry run that takes nothing away.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// See [`max_age`](Self::max_age).
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        self
    }

    /// See [`quota_bytes`](Self::quota_bytes).
    #[must_use]
    pub fn quota_bytes(mut self, bytes: u64) -> Self {
        self.quota_bytes = Some(bytes);
        self
    }

    /// See [`unreferenced`](Self::unreferenced).
    #[must_use]
    pub fn unreferenced(mut self) -> Self {
        self.unreferenced = true;
        self
    }

    /// See [`grace`](Self::grace). At least an hour.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// In earnest: no dry run.
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
