//! Limits on the number and duration of attempts.

use std::time::Duration;

use crate::open_error::OpenError;

/// Maximum timeout.
const MAX_TIMEOUT: Duration = Duration::from_secs(3600);
const MAX_RETRIES: u32 = 20;

/// Limits on the number and duration of attempts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retry {
    /// Time limit for a whole call.
    pub(crate) timeout: Duration,
    /// Number of retries.
    pub(crate) retries: u32,
    /// The pause before the first retry. Each later one is twice as long.
    pub(crate) backoff: Duration,
}

/// Maximum pause between two attempts.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(15);

impl Retry {
    /// Time limit for one attempt.
    pub(crate) fn attempt(&self) -> Duration {
        self.timeout / 4
    }

    pub(crate) fn pauses(&self) -> Pauses {
        Pauses {
            left: self.retries,
            next: self.backoff,
        }
    }
}

/// The pauses between attempts.
#[derive(Debug)]
pub(crate) struct Pauses {
    left: u32,
    next: Duration,
}

impl Pauses {
    /// Waits for the next attempt; false if there is none.
    pub(crate) async fn wait(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        tokio::time::sleep(self.next).await;
        self.next = self.next.saturating_mul(2).min(LONGEST_PAUSE);
        true
    }
}

/// Default settings.
pub(crate) struct Defaults {
    pub(crate) timeout: Duration,
    /// Number of retries by `object_store`.
    pub(crate) retries: u32,
    pub(crate) backoff: Duration,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(120),
            retries: 5,
            backoff: Duration::from_millis(100),
        }
    }
}

/// Rejects values on which `object_store` would panic.
pub(crate) fn check_times(
    timeout: Duration,
    retries: u32,
    backoff: Duration,
) -> Result<(), OpenError> {
    if timeout.is_zero() || timeout > MAX_TIMEOUT {
        return Err(OpenError::Value {
            name: "timeout",
            must: "be more than 0 and at most an hour: `120s`",
        });
    }
    if retries > MAX_RETRIES {
        return Err(OpenError::Value {
            name: "retries",
            must: "be at most 20",
        });
    }
    if backoff.is_zero() || backoff > LONGEST_PAUSE {
        return Err(OpenError::Value {
            name: "backoff",
            must: "be more than 0 and at most 15 seconds: `100ms`",
        });
    }
    Ok(())
}
