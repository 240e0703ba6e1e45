//! Limits on the number and duration of attempts.

use std::time::Duration;

use offcut::backend::BackendError;
use tokio::runtime::Handle;

use crate::error::{Kind, Trouble, mistake};

const MAX_TIMEOUT: Duration = Duration::from_secs(3600);
const MAX_RETRIES: u32 = 20;
/// Maximum pause between two attempts.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(15);

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

impl Default for Retry {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(120),
            retries: 2,
            backoff: Duration::from_millis(100),
        }
    }
}

impl Retry {
    /// Rejects values on which `object_store` would panic.
    pub(crate) fn check(&self) -> Result<(), BackendError> {
        let (name, must) = if self.timeout.is_zero() || self.timeout > MAX_TIMEOUT {
            ("`timeout`", "be more than 0 and at most an hour: `120s`")
        } else if self.retries > MAX_RETRIES {
            ("`retries`", "be at most 20")
        } else if self.backoff.is_zero() || self.backoff > LONGEST_PAUSE {
            (
                "`backoff`",
                "be more than 0 and at most 15 seconds: `100ms`",
            )
        } else {
            return Ok(());
        };
        Err(mistake(name, must))
    }

    /// Waits for the next attempt; false if there is none.
    pub(crate) async fn pause(&self, attempts: &mut u32) -> bool {
        if *attempts == self.retries {
            return false;
        }
        let pause = self.backoff.saturating_mul(1 << *attempts);
        tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
        *attempts += 1;
        true
    }
}

/// Returns the result of `call`, or an error if it was too slow. Without a runtime there is no
/// clock, so `call` does not run.
pub(crate) async fn limited<T, E: Into<Trouble>>(
    timeout: Duration,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, Trouble> {
    if Handle::try_current().is_err() {
        return Err(Trouble::new(Kind::NoRuntime, "no tokio runtime"));
    }
    match tokio::time::timeout(timeout, call).await {
        Ok(done) => done.map_err(Into::into),
        Err(_) => Err(Trouble::new(Kind::Unreachable, "timed out")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_that_hangs_times_out() {
        let hung = limited(
            Duration::from_secs(60),
            std::future::pending::<Result<(), Trouble>>(),
        )
        .await;
        assert_eq!(hung.unwrap_err().kind, Kind::Unreachable);
    }

    #[test]
    fn l7_without_a_runtime_it_is_an_error() {
        let mut call = Box::pin(limited(
            Duration::from_secs(60),
            std::future::pending::<Result<(), Trouble>>(),
        ));
        let polled = call
            .as_mut()
            .poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        assert!(
            matches!(polled, std::task::Poll::Ready(Err(_))),
            "{polled:?}"
        );
    }
}
