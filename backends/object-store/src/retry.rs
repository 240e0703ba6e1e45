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

impl Default for Retry {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(120),
            retries: 5,
            backoff: Duration::from_millis(100),
        }
    }
}

impl Retry {
    /// Rejects values on which `object_store` would panic.
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        let (name, must) = if self.timeout.is_zero() || self.timeout > MAX_TIMEOUT {
            ("timeout", "be more than 0 and at most an hour: `120s`")
        } else if self.retries > MAX_RETRIES {
            ("retries", "be at most 20")
        } else if self.backoff.is_zero() || self.backoff > LONGEST_PAUSE {
            ("backoff", "be more than 0 and at most 15 seconds: `100ms`")
        } else {
            return Ok(());
        };
        Err(OpenError::Value { name, must })
    }

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
